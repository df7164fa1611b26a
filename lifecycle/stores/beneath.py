"""System calls on names below a held directory descriptor: no path text, no link and no mount is ever followed.

Every change that the POSIX store makes goes through one of the functions in `CHANGES` here, so that a test can fail
any one of them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lifecycle.core.listing import split
from lifecycle.errors import Changed, Denied, NotFound, Occupied, StoreError

CHANGES = (
    "mkdir", "write_file", "append", "create", "write", "move", "replace", "link", "symlink", "unlink", "rmdir",
    "set_times", "set_mtime", "set_mode",
)  # fmt: skip
DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)
_renameat2 = getattr(_libc, "renameat2", None)
_SYS_OPENAT2 = 437
"""The same number on every architecture (Linux 5.6)."""
_RENAME_NOREPLACE = 1
_RESOLVE = 0x01 | 0x04 | 0x08
"""RESOLVE_NO_XDEV sees bind mounts of the same file system too; NO_SYMLINKS; BENEATH."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_how = _OpenHow(DIR_FLAGS, 0, _RESOLVE)
_how_ref, _how_size = ctypes.byref(_how), ctypes.c_size_t(ctypes.sizeof(_how))


def _openat2(name: str, fd: int) -> int:
    got = _libc.syscall(_SYS_OPENAT2, fd, os.fsencode(name), _how_ref, _how_size)
    if got < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(got)


def _has_openat2() -> bool:
    """Kernels before 5.6 lack it, and some container sandboxes refuse it."""
    fd = os.open("/", DIR_FLAGS)
    try:
        os.close(_openat2(".", fd))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


_STRIDE_MAX = 1000
"""Characters of a key that surely fit into the 4,096 bytes that one call takes."""

STRICT = _has_openat2()
"""Whether the kernel itself refuses to step over a mount; else only the device number tells."""


def open_dir(name: str, fd: int, cross_mounts: bool = False) -> int:
    """Open the directory ``name`` in ``fd``. Raises OSError: ENOTDIR for a link, EXDEV for a mount point."""
    if STRICT and not cross_mounts:
        return _openat2(name, fd)
    return os.open(name, DIR_FLAGS, dir_fd=fd)


def steps(key: str) -> list[str]:
    """The segments of a key; none for the root.

    Raises:
        StoreError: ``bad_key``: it is absolute, climbs, or holds what no name can.
    """
    parts = key.split("/") if key else []
    for part in parts:
        if part in ("", ".", "..") or "\0" in part:
            raise StoreError(f"{key!r} is not a key below the root", code="bad_key")
    return parts


def place(key: str) -> tuple[str, str]:
    """Parent and base name of a key; of the root, itself and ``.``. Raises StoreError (``bad_key``)."""
    steps(key)
    parent, name = split(key)
    return parent, name or "."


def single(name: str) -> str:
    """``name`` itself when it is one plain segment. Raises StoreError (``bad_key``) otherwise."""
    if len(steps(name)) != 1:
        raise StoreError(f"{name!r} is not a plain name", code="bad_key")
    return name


def _strides(parts: list[str]) -> list[str]:
    """The same way in as few steps as one call each allows."""
    strides: list[str] = []
    for part in parts:
        if strides and len(strides[-1]) + len(part) < _STRIDE_MAX:
            strides[-1] += f"/{part}"
        else:
            strides.append(part)
    return strides


@contextmanager
def opened(key: str, root: int, cross_mounts: bool = False) -> Iterator[int]:
    """A descriptor of the directory at ``key``, however long the whole path is."""
    parts = steps(key)
    if STRICT and not cross_mounts:
        parts = _strides(parts)  # the kernel checks every step of them just as strictly
    fd = os.dup(root)
    try:
        for part in parts:
            deeper = open_dir(part, fd, cross_mounts)
            os.close(fd)
            fd = deeper
        yield fd
    finally:
        os.close(fd)


def look(name: str, fd: int) -> os.stat_result | None:
    """What ``name`` in ``fd`` is, a link itself and not its target; None where nothing is."""
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


_CODES = {
    errno.EXDEV: ("cross_device", "put the state directory on the same file system and mount"),
    errno.ENOSPC: ("no_space", "the file system has no room, or no inodes, for it"),
    errno.EDQUOT: ("quota", "a quota is used up, though the file system may have room"),
}


def told(error: OSError, key: str, doing: str) -> StoreError:
    """The failure of a system call as ours, naming the key and the errno."""
    number = error.errno or 0
    word = errno.errorcode.get(number, str(number))
    text = f"cannot {doing} {key!r}: {word} ({os.strerror(number)})"
    match number:
        case errno.ENOENT:
            return NotFound(text, code="not_found")
        case errno.ELOOP | errno.ENOTDIR:
            return Changed(f"{text}; a link or a file stands where something else was")
        case errno.EACCES | errno.EPERM:
            return Denied(text, code="permission", hint="run as the owner, or leave this one to its owner")
        case errno.EROFS:
            return Denied(text, code="read_only")
        case errno.EEXIST | errno.ENOTEMPTY:
            return Occupied(text, code="occupied")
        case _:
            code, hint = _CODES.get(number, ("io_error", ""))
            return StoreError(text, code=code, hint=hint)


class telling:  # noqa: N801 - used as the function it would be, were that not five times as slow
    """Turn every OSError inside into ours."""

    __slots__ = ("doing", "key")

    def __init__(self, key: str, doing: str) -> None:
        self.key, self.doing = key, doing

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise told(error, self.key, self.doing) from error


def read_regular(name: str, fd: int, offset: int, limit: int) -> bytes:
    """At most ``limit`` bytes of a regular file; a negative offset counts from the end.

    Raises:
        OSError; ELOOP when it is not a regular file: nothing else is ever opened for reading.
    """
    with opened_file(name, fd) as file:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.ELOOP, "not a regular file")
        at = offset if offset >= 0 else max(0, found.st_size + offset)
        parts = []
        # A read takes memory for all that it asks for: no more than there is, or a little where it has just grown.
        while limit > 0 and (part := os.pread(file, min(limit, max(found.st_size - at, 4096)), at)):
            parts.append(part)
            at += len(part)
            limit -= len(part)
        return b"".join(parts)


def read_attributes(name: str, fd: int, prefix: str) -> dict[str, str]:
    """User extended attributes of a file or directory whose names begin with ``prefix``, without it."""
    with opened_file(name, fd) as file:
        try:
            names = [found for found in os.listxattr(file) if found.startswith(prefix)]
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return {}
            raise
        values = {found.removeprefix(prefix): os.getxattr(file, found) for found in names}
    return {found: value.decode("utf-8", "surrogateescape") for found, value in values.items()}


class opened_file:  # noqa: N801 - as above
    """A regular file or directory opened for reading; ELOOP for anything else, which is not even opened."""

    __slots__ = ("fd", "file", "name")

    def __init__(self, name: str, fd: int) -> None:
        self.name, self.fd, self.file = name, fd, -1

    def __enter__(self) -> int:
        kind = stat.S_IFMT(os.stat(self.name, dir_fd=self.fd, follow_symlinks=False).st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise OSError(errno.ELOOP, "not a regular file")
        self.file = os.open(self.name, FILE_FLAGS, dir_fd=self.fd)
        return self.file

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self.file)


def mkdir(name: str, fd: int, mode: int = 0o700) -> None:
    """Make a directory that must not exist."""
    os.mkdir(name, mode, dir_fd=fd)


def make_parents(key: str, root: int, cross_mounts: bool, notes: set[str]) -> None:
    """Make the directory at ``key`` and those above it, as far as they are missing; others keep their times."""
    with suppress(FileNotFoundError), opened(key, root, cross_mounts):
        return
    fd = os.dup(root)
    try:
        for step in steps(key):
            if look(step, fd) is None:
                with times_kept(fd, notes), suppress(FileExistsError):
                    mkdir(step, fd, 0o777)
            deeper = open_dir(step, fd, cross_mounts)
            os.close(fd)
            fd = deeper
    finally:
        os.close(fd)
    notes.add("parents_made")


def create(name: str, fd: int) -> int:
    """A descriptor to write a new file with, which must not exist; its mode is what the umask leaves."""
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=fd)


def write(file: int, content: bytes) -> None:
    """Write all of it."""
    _write_all(file, content)


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def write_file(name: str, fd: int, content: bytes, temp: str) -> None:
    """Write a file of ours that is there whole or not at all, durably; ``temp`` is what it is called till then."""
    file = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
    try:
        _write_all(file, content)
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(temp, name, src_dir_fd=fd, dst_dir_fd=fd)
    os.fsync(fd)


def append(name: str, fd: int, content: bytes) -> None:
    """Add to the end of a file of ours, in one write; it is made when missing. It may not be durable on return."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(name, flags, 0o600, dir_fd=fd)
    try:
        _write_all(file, content)
    finally:
        os.close(file)


def _no_renameat2(src: str, src_fd: int, dst: str, dst_fd: int) -> None:
    """Move without overwriting where the kernel or file system cannot promise it.

    A directory moves onto an empty one made by an exclusive mkdir; a file is linked, which never overwrites.
    """
    if stat.S_ISDIR(os.stat(src, dir_fd=src_fd, follow_symlinks=False).st_mode):
        os.mkdir(dst, 0o700, dir_fd=dst_fd)
        try:
            os.rename(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd)
        except OSError:
            os.rmdir(dst, dir_fd=dst_fd)
            raise
    else:
        os.link(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd, follow_symlinks=False)
        os.unlink(src, dir_fd=src_fd)


def move(src: str, src_fd: int, dst: str, dst_fd: int) -> None:
    """Rename one name to another; never overwrites (EEXIST), never copies (EXDEV)."""
    if _renameat2 is not None:
        if _renameat2(src_fd, os.fsencode(src), dst_fd, os.fsencode(dst), _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code))
    _no_renameat2(src, src_fd, dst, dst_fd)


def replace(src: str, src_fd: int, dst: str, dst_fd: int) -> None:
    """Rename one name to another in what is ours alone: a file that stands there goes."""
    os.rename(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd)


def link(src: str, src_fd: int, dst: str, dst_fd: int) -> None:
    """Give a file one more name; never overwrites."""
    os.link(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd, follow_symlinks=False)


def symlink(text: str, name: str, fd: int) -> None:
    """Make a symbolic link that holds ``text``, whatever that means; never overwrites."""
    os.symlink(text, name, dir_fd=fd)


def unlink(name: str, fd: int) -> None:
    """Remove a name that is no directory; a link goes itself, not what it points at."""
    os.unlink(name, dir_fd=fd)


def rmdir(name: str, fd: int) -> None:
    """Remove an empty directory."""
    os.rmdir(name, dir_fd=fd)


def set_mtime(name: str, fd: int, mtime_ns: int) -> None:
    """Set the mtime of a name, of a link itself and not of its target."""
    os.utime(name, ns=(mtime_ns, mtime_ns), dir_fd=fd, follow_symlinks=False)


def set_mode(fd: int, mode: int) -> None:
    """Set permission bits of the open file or directory."""
    os.fchmod(fd, mode)


def set_times(fd: int, times: os.stat_result) -> bool:
    """Give the directory behind ``fd`` its times back; False where only its owner may."""
    try:
        os.utime(fd, ns=(times.st_atime_ns, times.st_mtime_ns))
    except PermissionError:
        return False
    return True


@contextmanager
def times_kept(fd: int, notes: set[str]) -> Iterator[None]:
    """Give a directory its times back after the changes inside, and make both durable.

    Several frameworks choose what to load or drop by the mtime of directories.
    """
    times = os.fstat(fd)
    try:
        yield
    finally:
        if not set_times(fd, times):
            notes.add("parent_times_changed")
        os.fsync(fd)
