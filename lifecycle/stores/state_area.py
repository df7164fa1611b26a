"""The directory that is ours beside the data: found without following links, made only when written to."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lifecycle.errors import Refused, StoreError
from lifecycle.stores import beneath

NOTE_MAX_BYTES = 64 * 1024
NOTES_MAX = 10_000
"""More notes than this are not ours: reading stops with an error instead of filling memory."""


class StateArea:
    """Our state directory of one local store: ``trash/`` and ``notes/`` below it.

    Args:
        label: what to call it in messages.
        name: its own base name.
        open_parent: gives a new descriptor of the directory that holds it; OSError where that is missing.
    """

    def __init__(self, label: str, name: str, open_parent: Callable[[], int]) -> None:
        self.label = label
        self.name = name
        self.open_parent = open_parent

    @contextmanager
    def _parent(self) -> Iterator[int]:
        fd = self.open_parent()
        try:
            yield fd
        finally:
            os.close(fd)

    def id(self) -> tuple[int, int] | None:
        """(device, inode), or None where it does not exist yet."""
        with beneath.telling(self.label, "find our state directory"):
            try:
                with self._parent() as parent:
                    found = os.stat(self.name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return None
        return found.st_dev, found.st_ino

    @contextmanager
    def reading(self, name: str) -> Iterator[int | None]:
        """A descriptor of the subdirectory ``name``; None where nothing was ever written."""
        with beneath.telling(self.label, "open our state directory"):
            fd = self._open(name)
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def _open(self, name: str) -> int | None:
        try:
            with self._parent() as parent:
                top = beneath.open_dir(self.name, parent, cross_mounts=True)
        except FileNotFoundError:
            return None
        try:
            return beneath.open_dir(name, top)
        except FileNotFoundError:
            return None
        finally:
            os.close(top)

    @contextmanager
    def writing(self, name: str, device: int) -> Iterator[int]:
        """A descriptor of the subdirectory ``name``, made when missing.

        Raises:
            Refused: ``state_elsewhere``: not on the file system ``device``, so that no rename could reach it;
                ``state_not_ours``: somebody else owns it and could change what we keep there.
        """
        with beneath.telling(self.label, "make our state directory"):
            top = self._make(device)
            try:
                fd = self._make_below(name, top)
            finally:
                os.close(top)
        try:
            yield fd
        finally:
            os.close(fd)

    def _make(self, device: int) -> int:
        with self._parent() as parent:
            if beneath.look(self.name, parent) is None:
                self._same_device(os.fstat(parent).st_dev, device)
                with beneath.times_kept(parent, set()), suppress(FileExistsError):
                    beneath.mkdir(self.name, parent)
            fd = beneath.open_dir(self.name, parent, cross_mounts=True)
        try:
            found = os.fstat(fd)
            self._same_device(found.st_dev, device)
            if found.st_uid != os.geteuid():
                text = f"the state directory {self.label!r} belongs to user {found.st_uid}"
                raise Refused(text, code="state_not_ours", hint="run as that user, or configure another one")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _same_device(self, found: int, wanted: int) -> None:
        if found != wanted:
            text = f"the state directory {self.label!r} is not on the store's file system"
            hint = "configure `state` on the same file system, outside every run"
            raise Refused(text, code="state_elsewhere", hint=hint)

    @staticmethod
    def _make_below(name: str, top: int) -> int:
        with suppress(FileExistsError):
            beneath.mkdir(name, top)
            os.fsync(top)
        return beneath.open_dir(name, top)

    def notes(self) -> dict[str, bytes]:
        """Every note, each cut off at its cap. Raises StoreError: it is not the same as there being none."""
        with self.reading("notes") as fd, beneath.telling("notes", "read"):
            names = [] if fd is None else [name for name in os.listdir(fd) if not name.endswith(".new")]
            if len(names) > NOTES_MAX:
                raise StoreError(f"more than {NOTES_MAX} notes in {self.label!r}", code="too_many_notes")
            return {name: beneath.read_regular(name, fd or 0, 0, NOTE_MAX_BYTES) for name in names}

    def write_note(self, name: str, content: bytes, device: int) -> None:
        """Keep a note, whole or not at all."""
        if len(content) > NOTE_MAX_BYTES or name.endswith(".new"):
            raise StoreError(f"note {name!r} is over {NOTE_MAX_BYTES} bytes or ends in .new", code="bad_note")
        beneath.single(name)
        with self.writing("notes", device) as fd, beneath.telling(name, "write note"):
            beneath.write_file(name, fd, content, f"{name}.{os.getpid()}.new")

    def drop_note(self, name: str) -> None:
        """Remove a note; fine when it is gone."""
        beneath.single(name)
        with self.reading("notes") as fd, beneath.telling(name, "drop note"):
            if fd is not None and beneath.look(name, fd) is not None:
                beneath.unlink(name, fd)
                os.fsync(fd)

    def can_rename(self, device: int) -> bool:
        """Try it with a scratch entry; False on a read-only file system or without permission."""
        name = f"probe-{os.getpid()}"
        try:
            with self.writing("scratch", device) as fd:
                beneath.mkdir(name, fd)
                beneath.move(name, fd, f"{name}-moved", fd)
                beneath.rmdir(f"{name}-moved", fd)
        except (OSError, StoreError, Refused):
            return False
        return True

    def told_ns(self, device: int) -> int:
        """Now, by the clock of whoever keeps the file system.

        A new directory and not a file: a server stamps it itself, while a client of NFS that was given a file for
        itself may stamp that by its own clock (RFC 9754), and would be compared with itself. On a full disk, which a
        purge is there for, one that stands already is set to now instead: that takes no room.

        Raises:
            Refused: as ``writing``. Denied, StoreError: nothing can be made there.
        """
        try:
            return self._stamp_ns(device)
        except StoreError as error:
            if error.code not in {"no_space", "quota"}:
                raise
        with self.writing("trash", device) as fd, beneath.telling(self.label, "ask the time of"):
            os.utime(fd)
            return os.fstat(fd).st_mtime_ns

    def _stamp_ns(self, device: int) -> int:
        name = f"clock-{uuid.uuid4().hex}"  # several hosts may ask at the same time
        with self.writing("scratch", device) as fd, beneath.telling(self.label, "ask the time of"):
            beneath.mkdir(name, fd)
            try:
                return os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
            finally:
                beneath.rmdir(name, fd)
