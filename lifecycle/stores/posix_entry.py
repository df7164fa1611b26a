"""One entry of a local store's trash: what its directory holds, and whose it is while it is being changed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from lifecycle.core.listing import split
from lifecycle.errors import StoreError
from lifecycle.stores import beneath, manifest
from lifecycle.stores.manifest import Manifest

MANIFEST = "manifest.json"
MANIFEST_NEW = "manifest.json.new"
PAYLOAD = "payload"
PURGING = "purging"
"""What the payload is called once its freeing has begun: from then on it cannot be brought back."""


class Part(NamedTuple):
    """One directory or file that an entry holds: its number is its name in the payload."""

    number: int
    key: str


class Lying(NamedTuple):
    """One entry as it is."""

    made: Manifest
    state: bool | None
    """True all that it was made for is in it, False nothing is, None some parts are still at their old keys."""
    held: frozenset[str]
    """Old keys of what it holds and can give back."""
    purging: bool
    """Its freeing has begun."""


class Entry(NamedTuple):
    """An open trash entry."""

    trash: int
    fd: int
    trash_id: str

    def claim(self) -> None:
        """Keep other processes away until it is closed; the kernel lets go for whoever dies.

        An undo and a purge at the same moment would else bring back what is just being emptied, and a recovery
        would close the act of a process that only sleeps. Where the file system knows no locks, or knows them on
        each host alone, the order of the renames is what is left.

        Raises:
            StoreError: ``busy``: another process is at it.
        """
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"another process is at work on trash entry {self.trash_id!r}"
            raise StoreError(text, code="busy", hint="wait for it to end, or end it") from error
        except OSError:
            return

    def names(self, name: str) -> set[str]:
        """What lies in one of its directories; nothing where there is no such directory."""
        try:
            fd = beneath.open_dir(name, self.fd)
        except FileNotFoundError:
            return set()
        try:
            return set(os.listdir(fd))
        finally:
            os.close(fd)

    def holds(self) -> bool:
        """Whether there is anything in it to bring back or to free."""
        return bool(self.names(PAYLOAD) | self.names(PURGING))

    def manifest(self) -> Manifest:
        """Its manifest. Raises StoreError (``broken_manifest``)."""
        content = b""
        with suppress(FileNotFoundError):
            content = beneath.read_regular(MANIFEST, self.fd, 0, manifest.MANIFEST_MAX_BYTES)
        return Manifest.decode(content, self.trash_id)

    def told(self) -> Manifest | None:
        """Its manifest; None for the shell that a crash left before there was one, which goes with this look.

        Raises:
            StoreError: ``broken_manifest``, and it holds something.
        """
        try:
            return self.manifest()
        except StoreError:
            if self.holds():
                raise
        self.drop()
        return None

    def drop(self) -> None:
        """Remove an entry that holds nothing any more, its manifest last."""
        for name in (PAYLOAD, PURGING):
            with suppress(FileNotFoundError):
                beneath.rmdir(name, self.fd)
        for name in (MANIFEST_NEW, MANIFEST):
            with suppress(FileNotFoundError):
                beneath.unlink(name, self.fd)
        beneath.rmdir(self.trash_id, self.trash)
        os.fsync(self.trash)


@contextmanager
def entered(trash: int, trash_id: str) -> Iterator[Entry]:
    """Open one entry."""
    fd = beneath.open_dir(trash_id, trash)
    try:
        yield Entry(trash, fd, trash_id)
    finally:
        os.close(fd)


@contextmanager
def opened_payload(entry: Entry) -> Iterator[int]:
    """Open the directory that holds what was moved."""
    fd = beneath.open_dir(PAYLOAD, entry.fd)
    try:
        yield fd
    finally:
        os.close(fd)


def parts_of(made: Manifest) -> list[Part]:
    """What an entry is made for, in the order of removal, the proof first, then directory by directory."""
    parts = [Part(number, key) for number, key in enumerate(made.keys)]
    return sorted(parts, key=lambda part: (part.key != made.proof, split(part.key)[0]))
