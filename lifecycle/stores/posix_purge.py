"""Removes everything in one directory of the trash: by descriptors, without recursion, measuring what it frees."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from lifecycle.stores import beneath
from lifecycle.stores.extents import Unsaid, shared_bytes

DEPTH_MAX = 32
"""Directories deeper than this are moved to the top first, so that few descriptors do for any depth."""


@dataclass(slots=True)
class _Frame:
    fd: int
    name: str
    dirs: list[str]


@dataclass(slots=True)
class Purge:
    """One removal of all that lies in ``top``; what cannot go stays, is named in ``stuck``, and the rest goes on."""

    top: int
    size_bytes: int = 0
    """Blocks given back: those of files whose last name went."""
    files: int = 0
    shared: int = 0
    """Files that further hard links keep alive, or of which other files share blocks by reflinks."""
    stuck: dict[str, str] = field(default_factory=dict)
    """Path within the entry to the errno word of what could not be removed."""
    tells_extents: bool = True
    """Whether the file system says which blocks files share; found out by asking."""

    def run(self) -> None:
        """Remove all that can be removed. Raises OSError only when ``top`` itself cannot be listed."""
        device = os.fstat(self.top).st_dev
        tried: set[str] = set()
        while names := [name for name in os.listdir(self.top) if name not in tried]:
            tried.update(names)  # a second round finds what was moved up from the depths
            for name in self._remove_files(names, self.top, "", device):
                self._remove_dir(name, device)

    def _remove_dir(self, name: str, device: int) -> None:
        frames: list[_Frame] = []
        try:
            self._enter(name, self.top, frames, device)
            while frames:
                frame = frames[-1]
                if frame.dirs:
                    self._enter(frame.dirs.pop(), frame.fd, frames, device)
                    continue
                frames.pop()
                os.close(frame.fd)
                parent = frames[-1].fd if frames else self.top
                self._try(beneath.rmdir, frame.name, parent, _path(frames, frame.name))
        finally:
            for frame in frames:
                os.close(frame.fd)

    def _enter(self, name: str, parent: int, frames: list[_Frame], device: int) -> None:
        """Open a directory, remove its files, and leave its subdirectories for later."""
        path = _path(frames, name)
        try:
            fd = beneath.open_dir(name, parent)
        except FileNotFoundError:
            return
        except OSError as error:
            self._keep(path, error)
            return
        frames.append(_Frame(fd, name, []))
        try:
            dirs = self._remove_files(os.listdir(fd), fd, path + "/", device)
        except OSError as error:
            self._keep(path, error)
            return
        if len(frames) >= DEPTH_MAX:
            dirs = [sub for sub in dirs if not self._move_up(sub, fd, f"{path}/{sub}")]
        frames[-1].dirs = dirs

    def _move_up(self, name: str, fd: int, path: str) -> bool:
        found = beneath.look(name, fd)
        number = 0 if found is None else found.st_ino
        return self._try(lambda sub, at: beneath.move(sub, at, f"deep-{number}", self.top), name, fd, path)

    def _remove_files(self, names: list[str], fd: int, path: str, device: int) -> list[str]:
        """Remove all names but directories; those are given back. A link goes itself, not its target."""
        dirs = []
        for name in names:
            found = beneath.look(name, fd)
            if found is None:
                continue
            if not stat.S_ISDIR(found.st_mode):
                held = self._held_by_others(name, fd, found)
                if self._try(beneath.unlink, name, fd, path + name) and stat.S_ISREG(found.st_mode):
                    self._count(found, held)
            elif found.st_dev != device:
                self._keep(path + name, OSError(errno.EXDEV, "another file system is mounted there"))
            else:
                dirs.append(name)
        return dirs

    def _held_by_others(self, name: str, fd: int, found: os.stat_result) -> int:
        """Bytes of its blocks that other files share; what cannot be told counts as its own."""
        if not (self.tells_extents and stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_blocks):
            return 0
        try:
            with beneath.opened_file(name, fd) as file:
                return shared_bytes(file)
        except Unsaid:
            self.tells_extents = False
        except OSError:  # not ours to read, or gone: only the number is less sure
            pass
        return 0

    def _count(self, found: os.stat_result, held_bytes: int) -> None:
        self.files += 1
        if found.st_nlink == 1:
            self.size_bytes += max(0, found.st_blocks * 512 - held_bytes)
            self.shared += held_bytes > 0
        else:
            self.shared += 1

    def _try(self, act: Callable[[str, int], None], name: str, fd: int, path: str) -> bool:
        """Whether it was done; fine when another process was first."""
        try:
            act(name, fd)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._keep(path, error)
            return False
        return True

    def _keep(self, path: str, error: OSError) -> None:
        number = error.errno or 0
        self.stuck.setdefault(path, errno.errorcode.get(number, str(number)))


def _path(frames: list[_Frame], name: str) -> str:
    return "/".join([*(frame.name for frame in frames), name])
