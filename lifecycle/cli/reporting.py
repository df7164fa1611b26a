"""``report``: how an installation stands, as text, JSON, or a page of HTML or Markdown in a file."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.checking import users_of
from lifecycle.cli.consenting import user_id
from lifecycle.cli.desk import Desk, writing
from lifecycle.cli.forecasting import site_of
from lifecycle.cli.noticing import of_last_tick
from lifecycle.cli.selecting import moment
from lifecycle.core.units import escape, format_bytes
from lifecycle.errors import ConfigInvalid
from lifecycle.flows.account import Names, Place, Sources, Wish, take_account
from lifecycle.flows.upcoming import When
from lifecycle.render.account import TITLE, document
from lifecycle.render.document import Document
from lifecycle.render.document_text import document_lines
from lifecycle.render.document_value import document_value

if TYPE_CHECKING:
    from lifecycle.ports.account import Account
    from lifecycle.world import World

STDOUT = "-"
HEAD_BYTES = 4096
"""So far into a file it is looked whether it is a report."""
MODE = 0o644
"""Of a new one: it is made to be read by others."""
MODES = 0o664
"""What an older one keeps of its mode: whoever laid it there for us to write over gives nobody else a say in it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line, as it was typed."""

    html: str | None
    markdown: str | None
    days: int
    owner: str | None
    run: str | None
    at: str | None
    everything: bool


def report(desk: Desk, asked: Asked) -> int:
    """``lifecycle report``"""
    pages = {"--html": asked.html, "--markdown": asked.markdown}
    if sum(page == STDOUT for page in (*pages.values(), STDOUT if desk.as_json else None)) > 1:
        text = "only one of --html -, --markdown - and --json can be printed: give the others a file"
        raise ConfigInvalid(text, code="usage")
    for option, page in pages.items():
        if page not in (None, STDOUT):
            _target(option, Path(page))  # asked before the work that it would be a pity to lose
    now_ns = desk.clock.now_ns()
    with desk.world(write=False, create=False) as world:
        at_ns = now_ns if asked.at is None else moment(asked.at, now_ns)
        account = _hidden(_account(desk, world, asked, at_ns), desk.seams.secrets.hide)
        found = document(account, desk.typing)
    written = []
    for option, page in pages.items():
        if page == STDOUT:
            with writing():
                print(_page(option)(found), end="")
        elif page is not None:
            written.append((page, _write(option, Path(page), _page(option)(found))))
    if STDOUT not in pages.values():
        _answer(desk, asked, found, written)
    return 0


def _account(desk: Desk, world: World, asked: Asked, at_ns: int) -> Account:
    ticking, run = world.settings.tick, asked.run
    notes: list[str] = []
    site = site_of(world, notes.append)
    return take_account(
        Sources(world.index.reader, world.index.journal, world.index.consents, world.lying),
        Place(
            rules=world.rules,
            site=site,
            urls={store.name: store.url for store in world.settings.stores},
            when=When(ticking.schedule.after if ticking.schedule else None, ticking.applies),
            approves=ticking.approves,
            engine=world.engine,
            notes=tuple(notes),
        ),
        Wish(asked.days, user_id(asked.owner), run if run is None or ":" in run else f"*:{run}"),
        Names(_name_of, users_of),
        at_ns,
        of_last_tick(desk, world),
    )


def _hidden(account: Account, hide: Callable[[str], str]) -> Account:
    """The same without the secrets that stores' and libraries' words may carry: a report goes to wikis and mails."""
    deeds, found = account.deeds, account.found
    failures = tuple(failure._replace(note=hide(failure.note)) for failure in deeds.failures.rows)
    failed = tuple(
        row._replace(seen=row.seen and row.seen._replace(note=hide(row.seen.note))) for row in found.failed.rows
    )
    return account._replace(
        deeds=deeds._replace(failures=deeds.failures._replace(rows=failures)),
        found=found._replace(failed=found.failed._replace(rows=failed)),
        noticed=tuple(
            one._replace(finding=one.finding._replace(text=hide(one.finding.text))) for one in account.noticed
        ),
        notes=tuple(map(hide, account.notes)),
    )


def _name_of(number: int) -> str | None:
    """The name of a user, where this machine knows it."""
    try:
        return pwd.getpwuid(number).pw_name
    except (KeyError, OverflowError, ValueError):
        return None


def _answer(desk: Desk, asked: Asked, found: Document, written: list[tuple[str, int]]) -> None:
    if not written:
        desk.answer(document_value(found), document_lines(found, desk.look, everything=asked.everything))
        return
    files = [{"file": page, "size_bytes": size} for page, size in written]
    lines = [f"Written: {escape(page)} ({format_bytes(size)})" for page, size in written]
    desk.answer({**document_value(found), "written": files}, [*found.sentences, *lines])


# -- files


def _page(option: str) -> Callable[[Document], str]:
    """What writes a document in the form that an option asks for."""
    if option == "--html":
        from lifecycle.render.html import html_page

        return html_page
    from lifecycle.render.markdown import markdown_page

    return markdown_page


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a report goes, and the mode that it has there."""

    path: str
    mode: int


def _target(option: str, path: Path) -> _Target:
    """A new file, or one that is a report itself and keeps its mode.

    A link to last week's report stays one. One of somebody else's is followed to nothing but a report: where everybody
    may write, it may lie there to have us make a file elsewhere.

    Raises:
        ConfigInvalid: something else is there, or there is no such directory, or somebody else's link leads to it.
    """
    strange = [link for link in (path, *path.absolute().parents) if _is_strange(link)]
    if strange and strange[-1] != path:
        raise _unmeant(option, strange[-1], "is a link that belongs to another user")
    real, trap = Path(os.path.realpath(path)), bool(strange)
    if not real.parent.is_dir():
        raise ConfigInvalid(f"{option}: there is no directory {str(real.parent)!a}", code="usage")
    try:
        found = os.lstat(real)
    except FileNotFoundError:
        if trap:
            raise _unmeant(option, path, "is somebody else's link to nothing") from None
        return _Target(str(real), MODE)
    except OSError as e:
        raise _unwritten(option, path, e) from e
    if not stat.S_ISREG(found.st_mode):
        raise ConfigInvalid(f"{option}: {str(path)!a} is no file", code="usage", hint="name a file, or - to print it")
    try:
        with real.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as e:
        raise _unwritten(option, path, e) from e
    if (head or trap) and not _is_report(head):
        raise _unmeant(option, path, "is there and is no report")
    return _Target(str(real), stat.S_IMODE(found.st_mode) & MODES)


def _is_strange(path: Path) -> bool:
    """Whether it is a link that neither we nor root have laid."""
    return path.is_symlink() and path.lstat().st_uid not in (0, os.geteuid())


def _is_report(head: bytes) -> bool:
    """Whether a file begins as our pages do; notes on a report name it as well, and are somebody's work."""
    begins, title = head.lstrip(), TITLE.encode()
    page = begins.startswith(b"<!doctype html>") and b"<title>" + title + b"</title>" in begins
    return page or begins.startswith(b"# " + title + b"\n")


def _unmeant(option: str, path: Path, what: str) -> ConfigInvalid:
    hint = "name another file, or remove that one"
    return ConfigInvalid(f"{option}: {str(path)!a} {what}", code="usage", hint=hint)


def _write(option: str, page: Path, text: str) -> int:
    """Put a page in its place, whole; its size in bytes.

    Raises:
        ConfigInvalid: what was there is as it was, also where it came to be there while the page was made.
    """
    from lifecycle.stores.textfile import put

    target = _target(option, page)
    content = text.encode("utf-8", "backslashreplace")
    try:
        put(target.path, content, target.mode)
    except OSError as e:
        raise _unwritten(option, Path(target.path), e) from e
    return len(content)


def _unwritten(option: str, path: Path, error: OSError) -> ConfigInvalid:
    return ConfigInvalid(f"{option}: {str(path)!a} cannot be written: {error.strerror}", code="usage")
