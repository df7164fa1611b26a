"""Real file systems, users and trees for tests of the local store."""

import gc
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifecycle.stores import beneath

NOBODY = 65534


@contextmanager
def memory_directory() -> Iterator[Path]:
    """A directory that any user can reach, in memory where there is such a place; removed however deep it is."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="lifecycle-test-", dir=base))
    path.chmod(0o755)
    try:
        yield path
    finally:
        subprocess.run(["rm", "-rf", "--", str(path)], check=True)


@contextmanager
def mounted(at: Path, *options: str, later: Path | None = None) -> Iterator[Path]:
    """Something mounted at `at`: a fresh tmpfs, or what `options` say. `later` is where it will be by then."""
    done = subprocess.run(["mount", *(options or ("-t", "tmpfs", "tmpfs")), str(at)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(later or at)], check=True)


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Act as another user, without any of root's rights."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def chain(root: Path, depth: int, *, leaf: bytes = b"leaf", name: str = "d", beside: bool = False) -> None:
    """Directories inside each other, far beyond what one path may be long; a file in the last."""
    fd = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        if beside:
            os.mkdir("beside", dir_fd=fd)
        os.mkdir(name, dir_fd=fd)
        deeper = beneath.open_dir(name, fd)
        os.close(fd)
        fd = deeper
    file = os.open("leaf", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(file, leaf)
    os.close(file)
    os.close(fd)


def picture(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below `root`, by name, without the store's help: kind, mode, size, mtime, links, content."""
    seen: dict[str, tuple[object, ...]] = {}
    for top, dirs, files in os.walk(os.fsencode(root)):
        for name in [*dirs, *files]:
            path = os.path.join(top, name)
            found = os.lstat(path)
            content: bytes = b""
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    content = file.read()
            own = not stat.S_ISDIR(found.st_mode)  # a directory's size and link count tell of its children
            key = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
            seen[key] = (
                found.st_mode,
                found.st_size * own,
                found.st_mtime_ns,
                found.st_ino,
                found.st_nlink * own,
                content,
            )
    return seen


def without(view: dict[str, tuple[object, ...]], *tops: str) -> dict[str, tuple[object, ...]]:
    """A picture without what is at or below some keys."""
    return {k: v for k, v in view.items() if not any(k == top or k.startswith(top + "/") for top in tops)}


def open_descriptors() -> int:
    gc.collect()  # stores of earlier tests close theirs
    return len(os.listdir("/proc/self/fd"))


def copy_of(path: Path) -> Path:
    """The same bytes under another inode, beside it."""
    other = path.with_name(path.name + ".copy")
    shutil.copytree(path, other, symlinks=True)
    return other
