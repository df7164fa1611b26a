"""Blocks that reflinks share: what the file system says of them, and what a purge counts as freed."""

import errno
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lifecycle.stores.extents import ASKED_MAX, Unsaid, shared_bytes
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_purge import Purge
from tests.stores.places import mounted

MIB = 2**20
SHARED, LAST = 0x2000, 0x1


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """A real file system that knows reflinks, in a sparse file."""
    if shutil.which("mkfs.xfs") is None:
        pytest.skip("mkfs.xfs is not installed")
    image, at = tmp_path / "image", tmp_path / "xfs"
    with image.open("wb") as file:
        file.truncate(400 * MIB)
    subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", str(image)], check=True)
    at.mkdir()
    with mounted(at, "-o", "loop", str(image)):
        yield at


def reflink(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--reflink=always", str(source), str(target)], check=True)


def purged(directory: Path) -> Purge:
    fd = os.open(directory, os.O_RDONLY)
    try:
        purge = Purge(fd)
        purge.run()
        return purge
    finally:
        os.close(fd)


def given_back(store: Path, before: int, least: int) -> int:
    """Free space that came, once it is at least so much: XFS gives back in the background."""
    freed = 0
    for _ in range(200):
        freed = (LocalStore("x", store).usage().free_bytes or 0) - before
        if freed >= least:
            return freed
        os.sync()
        time.sleep(0.05)
    return freed


def test_a_purge_counts_what_it_gives_back(xfs: Path):
    """Checked against the free space that the file system itself tells."""
    for name in ("entry", "kept"):
        (xfs / name).mkdir()
    (xfs / "entry/own").write_bytes(os.urandom(3 * MIB))
    (xfs / "entry/shared").write_bytes(os.urandom(5 * MIB))
    (xfs / "entry/twice").write_bytes(os.urandom(2 * MIB))
    reflink(xfs / "entry/shared", xfs / "kept/shared")
    reflink(xfs / "entry/twice", xfs / "entry/again")
    os.sync()
    before = LocalStore("x", xfs).usage().free_bytes or 0
    purge = purged(xfs / "entry")
    freed = given_back(xfs, before, 5 * MIB - MIB // 4)
    assert purge.files == 4 and not purge.stuck
    assert 5 * MIB - MIB // 4 <= freed <= 5 * MIB + MIB // 4
    # XFS takes back a removed file's blocks a little later: till then its twin in the entry still counts as sharing.
    assert 3 * MIB <= purge.size_bytes <= 5 * MIB and purge.shared >= 2, "never more than was given back"
    assert len((xfs / "kept/shared").read_bytes()) == 5 * MIB


def test_a_file_system_without_extents_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def ioctl(fd: int, what: int, _answer: bytearray) -> None:
        asked.append(what)
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 9000)
    purge = purged(tmp_path)
    assert (len(asked), purge.shared) == (1, 0)
    assert purge.files == 3 and purge.size_bytes >= 27_000
    with (tmp_path / "d").open("wb") as file, pytest.raises(Unsaid):
        shared_bytes(file.fileno())


def test_what_cannot_be_told_counts_as_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def ioctl(_fd: int, _what: int, _answer: bytearray) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    for name in "ab":
        (tmp_path / name).write_bytes(b"x" * 9000)
    purge = purged(tmp_path)
    assert (purge.files, purge.shared, purge.stuck) == (2, 0, {}) and purge.size_bytes >= 18_000


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[tuple[int, int, int]]], list[int]]:
    """A file system whose file has these extents (start, length, flags); the starts that were asked from."""

    def install(every: list[tuple[int, int, int]]) -> list[int]:
        asked: list[int] = []

        def ioctl(_fd: int, what: int, answer: bytearray) -> None:
            assert what == 0xC020660B
            start, _, _, _, room, _ = struct.unpack_from("=QQLLLL", answer)
            asked.append(start)
            told = [one for one in every if one[0] + one[1] > start][:room]
            struct.pack_into("=L", answer, 20, len(told))
            for i, (at, length, flags) in enumerate(told):
                struct.pack_into("=QQQQQLLLL", answer, 32 + 56 * i, at, 0, length, 0, 0, flags, 0, 0, 0)

        monkeypatch.setattr(fcntl, "ioctl", ioctl)
        return asked

    return install


Answering = Callable[[list[tuple[int, int, int]]], list[int]]


def test_many_extents_are_asked_for_in_turn(answering: Answering):
    every = [(i * 4096, 4096, SHARED if i % 3 == 0 else 0) for i in range(600)]
    every[-1] = (599 * 4096, 4096, LAST)
    asked = answering(every)
    assert shared_bytes(-1) == 200 * 4096
    assert asked == [0, 256 * 4096, 512 * 4096]


def test_a_file_of_no_or_endless_extents(answering: Answering):
    assert (answering([]), shared_bytes(-1)) == ([0], 0)
    asked = answering([(i * 4096, 4096, SHARED) for i in range(256 * (ASKED_MAX + 5))])
    assert shared_bytes(-1) == ASKED_MAX * 256 * 4096
    assert len(asked) == ASKED_MAX
