"""Reads the policies of a revision out of a git repository, without touching its work tree.

Objects are read as they are stored: no filter, attribute, hook or replacement of the repository has a say, nothing is
fetched, and no shell is asked. What a revision holds may have been written by anybody.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lifecycle.config.load import FILE_MAX_BYTES
from lifecycle.config.policies import FILES_MAX, is_policy
from lifecycle.config.problems import InvalidFiles, Problem
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, LifecycleError, Place

LEAD = "git:"
TIMEOUT_S = 60
_FILE = ("100644", "100755")
_BLOB, _TREE = "blob", "tree"


class Revision(NamedTuple):
    """``git:REV:PATH`` as it was typed."""

    rev: str
    path: str

    @classmethod
    def read(cls, text: str) -> Revision | None:
        """What ``text`` names; None where it is a path."""
        if not text.startswith(LEAD):
            return None
        rev, colon, path = text.removeprefix(LEAD).partition(":")
        if not rev or not colon:
            hint = "git:REV:PATH, such as git:main:policies, or git:HEAD~1: for the whole repository"
            raise ConfigInvalid(f"{text!a} names no revision and path", code="usage", hint=hint)
        return cls(rev, path.rstrip("/"))

    def __str__(self) -> str:
        return f"{LEAD}{self.rev}:{self.path}"


def files_of(revision: Revision, repo: Path) -> list[tuple[str, bytes]]:
    """(name, content) of the policies at a revision: of one file, or of the files directly in a directory.

    Raises:
        ConfigInvalid: ``no_such_revision``, or there is no policy.
        LifecycleError: ``no_git``: there is no git, or it fails.
    """
    git = _Git(repo)
    commit = git.one("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision.rev}^{{commit}}")
    if commit is None:
        text = f"{str(repo)!a} has no revision {revision.rev!a}"
        hint = "a shallow clone has only its newest: fetch-depth: 0, GIT_DEPTH: 0"
        raise ConfigInvalid(text, code="no_such_revision", hint=hint)
    at = f"{commit}:{revision.path}"
    kind = git.one("cat-file", "-t", at)
    if kind == _BLOB:
        return [(str(revision), git.content(at))]
    if kind != _TREE:
        raise ConfigInvalid(f"{revision} is not there", code="no_such_revision")
    entries = list(_inside(git, at))
    place = Place(escape(str(revision)))
    if not entries:
        raise InvalidFiles([Problem(place, "holds no policy: no file here ends in .yaml or .yml")])
    if len(entries) > FILES_MAX:
        raise InvalidFiles([Problem(place, f"holds {len(entries)} files, more than {FILES_MAX}")])
    return [
        (f"{str(revision).rstrip('/')}{'/' if revision.path else ''}{name}", git.content(blob))
        for name, blob in entries
    ]


def _inside(git: _Git, tree: str) -> Iterator[tuple[str, str]]:
    """(name, object) of files in a tree that are policies; a link is none, for it may lead anywhere."""
    for entry in git("ls-tree", "-z", tree).split(b"\0"):
        head, tab, name = entry.partition(b"\t")
        if tab:
            mode, kind, blob = head.decode("ascii").split()
            text = name.decode("utf-8", "surrogateescape")
            if kind == _BLOB and mode in _FILE and is_policy(text):
                yield text, blob


class _Git:
    """Asks git questions about one repository."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """What it answers. Raises LifecycleError."""
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        try:
            return subprocess.run(
                ["git", "-C", str(self.repo), "-c", "core.fsmonitor=false", *words],
                env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=TIMEOUT_S,
            )  # fmt: skip
        except (OSError, ValueError, subprocess.TimeoutExpired) as e:
            raise LifecycleError(f"git cannot be asked: {e}", code="no_git", hint="install git") from e

    def __call__(self, *words: str) -> bytes:
        """What it answers, or its own words as an error."""
        done = self.run(words)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise LifecycleError(f"git {words[0]}: {said}", code="no_git", hint="look at --repo")
        return done.stdout

    def one(self, *words: str) -> str | None:
        """A one-line answer; None where there is none.

        Raises:
            LifecycleError: it is no repository, or not one that git trusts us to read.
        """
        done = self.run(words)
        if done.returncode == 0:
            return done.stdout.decode("ascii", "replace").strip()
        self("rev-parse", "--git-dir")  # says why, if it is the repository's fault
        return None

    def content(self, blob: str) -> bytes:
        """A file's content; of a large one only that it is too large."""
        size = int(self("cat-file", "-s", blob))
        return self("cat-file", "blob", blob) if size <= FILE_MAX_BYTES else bytes(FILE_MAX_BYTES + 1)
