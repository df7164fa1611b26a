"""One copy that is under way into a local store: its own directory, out of sight, and whose it is at the moment."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from lifecycle.core.copies import SHA256_HEX, CopyManifest, Directory, Member
from lifecycle.core.copies import payload as payload_of
from lifecycle.errors import Changed, StoreError
from lifecycle.stores import beneath
from lifecycle.stores.posix_copy import COPY_MAX_BYTES, MANIFEST, find_files
from lifecycle.stores.posix_purge import Purge

MANIFEST_NEW = "manifest.json.new"
PAYLOAD = "payload"
"""Holds every member at its whole key, so that nothing but a rename is left to do."""
NEW = "new"
"""Holds members while they are written."""
SUMS = "sums"
"""One line for each member that is in, with its checksum. It follows the member's own fsync and needs none: of a line
that a crash takes along, the member is sent again."""
DROPPING = "dropping"
"""What the payload is called once its removal has begun: from then on it can neither be published nor read back."""


class Stage(NamedTuple):
    """The open directory of one copy under way."""

    incoming: int
    fd: int
    copy_id: str

    def claim(self, lock: int) -> None:
        """Keep other processes away until it is closed; the kernel lets go for whoever dies.

        Members come in under a shared lock; whoever begins, publishes or abandons holds it alone. Where the file
        system knows no locks, the order of the renames is what is left.

        Raises:
            StoreError: ``busy``: another process is at it.
        """
        try:
            fcntl.flock(self.fd, lock | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"another process is at work on copy {self.copy_id!r}"
            raise StoreError(text, code="busy", hint="wait for it to end, or end it") from error
        except OSError:
            return

    def manifest(self) -> CopyManifest | None:
        """What is coming; None when a crash came before that was noted. Raises StoreError (``broken_manifest``)."""
        try:
            content = beneath.read_regular(MANIFEST, self.fd, 0, COPY_MAX_BYTES)
        except FileNotFoundError:
            return None
        return CopyManifest.decode(content, self.copy_id)

    def note(self, content: bytes) -> None:
        """Keep the manifest of what is coming, durably."""
        beneath.write_file(MANIFEST, self.fd, content, MANIFEST_NEW)

    def going_on(self, manifest: CopyManifest) -> dict[str, str] | None:
        """Make ready to go on with ``manifest``: checksums of the members that are in; None where that cannot be.

        Raises:
            StoreError: ``broken_manifest``; ``io_error``: what was being written at the time cannot be removed.
        """
        begun = self.manifest()
        if begun is None or begun.sealed() or not manifest.goes_on(begun):
            return None
        if beneath.look(PAYLOAD, self.fd) is None:  # its removal has begun
            return None
        self._open_up(PAYLOAD, begun.directories)
        if beneath.look(NEW, self.fd) is not None:
            self._purge(NEW)
        beneath.mkdir(NEW, self.fd)
        sums = self._sums()
        with beneath.opened(PAYLOAD, self.fd) as payload:
            return {
                member.key: digest
                for member in payload_of(manifest.members)
                if (digest := sums.get((member.key, member.size_bytes))) and _is_in(member, payload)
            }

    def _sums(self) -> dict[tuple[str, int], str]:
        """Checksums by key and size; what cannot be read is passed over."""
        try:
            content = beneath.read_regular(SUMS, self.fd, 0, COPY_MAX_BYTES)
        except FileNotFoundError:
            return {}
        found = {}
        for line in content.splitlines():
            with suppress(ValueError, TypeError):
                key, size_bytes, digest = json.loads(line)
                if isinstance(digest, str) and len(digest) == SHA256_HEX:
                    found[key, size_bytes] = digest
        return found

    @staticmethod
    def settle(payload: int, keys: Iterable[str]) -> None:
        """Make the names of members durable, each directory once. Raises OSError."""
        for parent in sorted({beneath.place(key)[0] for key in keys}):
            with beneath.opened(parent, payload) as fd:
                os.fsync(fd)

    def drop(self, directories: Iterable[Directory] = ()) -> None:
        """Remove it with all that is left in it, its manifest last.

        Args:
            directories: whose modes may keep their own owner out.

        Raises:
            StoreError: ``io_error``: something could not be removed; a later try goes on from there.
        """
        with suppress(FileNotFoundError):
            beneath.move(PAYLOAD, self.fd, DROPPING, self.fd)
        self._open_up(DROPPING, directories)
        for name in (DROPPING, NEW):
            with suppress(FileNotFoundError):
                self._purge(name)
        for name in (SUMS, MANIFEST_NEW, MANIFEST):
            with suppress(FileNotFoundError):
                beneath.unlink(name, self.fd)
        beneath.rmdir(self.copy_id, self.incoming)
        os.fsync(self.incoming)

    def _open_up(self, name: str, directories: Iterable[Directory]) -> None:
        """Let their owner into directories that have got their own modes already."""
        for directory in directories:
            if directory.mode & stat.S_IRWXU != stat.S_IRWXU:
                with suppress(OSError), beneath.opened(f"{name}/{directory.key}", self.fd) as fd:
                    beneath.set_mode(fd, directory.mode | stat.S_IRWXU)

    def _purge(self, name: str) -> None:
        with beneath.opened(name, self.fd) as fd:
            purge = Purge(fd)
            purge.run()
        if purge.stuck:
            path, why = next(iter(purge.stuck.items()))
            text = f"{len(purge.stuck)} names of copy {self.copy_id!r} could not be removed, first {path!r}: {why}"
            raise StoreError(text, code="io_error", hint="nothing of it shows; give it up again later")
        beneath.rmdir(name, self.fd)


def _is_in(member: Member, payload: int) -> bool:
    """Whether a member is there as it was put, as far as that can be told without reading it."""
    try:
        (found,) = find_files([member.key], lambda key: beneath.opened(key, payload))
    except (OSError, Changed):
        return False
    return found.link is None and found.is_like(member)


@contextmanager
def entered(incoming: int, copy_id: str, lock: int = fcntl.LOCK_EX) -> Iterator[Stage]:
    """Open and claim the stage of a copy."""
    fd = beneath.open_dir(copy_id, incoming)
    try:
        stage = Stage(incoming, fd, copy_id)
        stage.claim(lock)
        yield stage
    finally:
        os.close(fd)


def make(incoming: int, copy_id: str, content: bytes) -> None:
    """Make the stage of a copy that has none."""
    beneath.mkdir(copy_id, incoming)
    with entered(incoming, copy_id) as stage:
        for name in (PAYLOAD, NEW):
            beneath.mkdir(name, stage.fd)
        stage.note(content)
    os.fsync(incoming)
