"""Members that come into one stage side by side: they share open directories, and are made durable many at a time."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Lock
from typing import NamedTuple

from lifecycle.core.copies import Member
from lifecycle.errors import Changed
from lifecycle.stores import beneath
from lifecycle.stores.posix_copy import FILE_MODE
from lifecycle.stores.posix_stage import NEW, PAYLOAD, SUMS, Stage

SMALL_BYTES = 1024 * 1024
"""Up to here a member waits for others. One sync makes a journal commit what all of them changed, so that the next
ones find little left to do; where each was synced before the next was written, each paid for a commit of its own."""
TOGETHER = 64
"""Members that wait at most: each holds a descriptor."""
FOLDERS_MAX = 64
"""Directories of the payload that are held open."""


class Written(NamedTuple):
    """A member whose content is written, and neither durable nor in yet."""

    member: Member
    file: int
    temp: str
    digest: str
    """Empty where none is to be written down."""


class Sitting:
    """Takes members into the payload of a stage. A member is in once it was synced and renamed, in that order, and its
    checksum is written down after that.
    """

    def __init__(self, stage: Stage, payload: int, new: int) -> None:
        self.stage, self.payload, self.new = stage, payload, new
        self._word, self._numbers = f"{os.getpid()}-{secrets.token_hex(8)}", count()
        self._lock, self._round = Lock(), Lock()
        self._folders: dict[str, int] = {}
        self._written: list[Written] = []

    def put(self, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None) -> None:
        """Write one member; a small one may only be in when the sitting ends.

        Raises:
            OSError, Changed, StoreError (of another one that has waited), and whatever ``pieces`` raises.
        """
        parent, name = beneath.place(member.key)
        with self._lock, suppress(FileNotFoundError):
            beneath.unlink(name, self._folder(parent))  # of an earlier try: it cannot be taken for this one
        one = self._write(member, pieces, digest)
        if member.size_bytes > SMALL_BYTES:
            self._let_in([one])
            return
        with self._lock:
            self._written.append(one)
            many = len(self._written) >= TOGETHER
        if many:
            self.settle()

    def settle(self) -> None:
        """Let in whatever waits. Only one thread does so at a time, so that few descriptors are open."""
        with self._round:
            with self._lock:
                written, self._written = self._written, []
            self._let_in(written)

    def close(self) -> None:
        """Let go of every directory."""
        for fd in self._folders.values():
            os.close(fd)
        self._folders.clear()

    def _write(self, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None) -> Written:
        temp = f"{self._word}-{next(self._numbers)}"
        file = beneath.create(temp, self.new)
        try:
            _fill(file, member, pieces)
            if member.mode is not None:
                beneath.set_mode(file, member.mode & FILE_MODE)
            beneath.set_mtime(temp, self.new, member.mtime_ns)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # begins to write it out, and waits for nothing
            return Written(member, file, temp, "" if digest is None else digest())
        except BaseException:
            self._give_up([(file, temp)])
            raise

    def _let_in(self, written: list[Written]) -> None:
        left = {one.temp: one.file for one in written}
        lines = []
        try:
            for one in written:
                with beneath.telling(one.member.key, "take in"):
                    os.fsync(one.file)
                    os.posix_fadvise(one.file, 0, 0, os.POSIX_FADV_DONTNEED)  # so that reading back reads the medium
            for one in written:
                with beneath.telling(one.member.key, "take in"):
                    self._rename(one)
                os.close(left.pop(one.temp))
                if one.digest:
                    lines.append(_line(one))
        finally:
            self._give_up([(file, temp) for temp, file in left.items()])
            if lines:
                with beneath.telling(SUMS, "write"):
                    beneath.append(SUMS, self.stage.fd, "".join(lines).encode("ascii"))

    def _rename(self, one: Written) -> None:
        parent, name = beneath.place(one.member.key)
        with self._lock:
            beneath.replace(one.temp, self.new, name, self._folder(parent))

    def _give_up(self, files: Iterable[tuple[int, str]]) -> None:
        for file, temp in files:
            os.close(file)
            with suppress(OSError):
                beneath.unlink(temp, self.new)

    def _folder(self, key: str) -> int:
        """A directory in the payload, which is made when it is missing. To be used under the lock only."""
        fd = self._folders.get(key)
        if fd is None:
            if len(self._folders) >= FOLDERS_MAX:
                self.close()
            fd = self._folders[key] = _opened(key, self.payload)
        return fd


def _fill(file: int, member: Member, pieces: Iterable[bytes]) -> None:
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece)
        if size_bytes > member.size_bytes:
            break
        beneath.write(file, piece)
    if size_bytes != member.size_bytes:
        raise Changed(f"{member.key!r} came with {size_bytes} bytes or more and should have {member.size_bytes}")


def _line(one: Written) -> str:
    """It begins a line of its own, whatever a crash left of the one before. JSON by hand, for the key alone is odd."""
    return f'\n[{json.dumps(one.member.key)}, {one.member.size_bytes}, "{one.digest}"]\n'


def _opened(key: str, payload: int) -> int:
    with suppress(FileNotFoundError), beneath.opened(key, payload) as found:
        return os.dup(found)
    beneath.make_parents(key, payload, False, set())
    with beneath.opened(key, payload) as found:
        return os.dup(found)


@contextmanager
def sitting(stage: Stage) -> Iterator[Sitting]:
    """Open one; whatever still waits is in when this ends well. Raises OSError, and StoreError at the end."""
    with beneath.opened(PAYLOAD, stage.fd) as payload, beneath.opened(NEW, stage.fd) as new:
        held = Sitting(stage, payload, new)
        try:
            yield held
            held.settle()
        finally:
            held.close()
