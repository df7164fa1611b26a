"""What a real file system can do to the local store: depth, width, links, mounts, users, full disks, swaps."""

import errno
import fcntl
import os
import random
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lifecycle.core.listing import stamps_digest
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Memory, Target
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_trash import LocalTrash
from lifecycle.stores.posix_walk import OPEN_MAX, stamp_of
from tests.stores.contract import (
    NOW,
    UNITS,
    StoreContract,
    TrashContract,
    act_on,
    every_shape,
    fill,
    purge_warrant,
    remember,
    retire,
    scan,
    unit_action,
    unit_keys,
    warrant_for,
)
from tests.stores.places import (
    NOBODY,
    as_user,
    chain,
    copy_of,
    memory_directory,
    mounted,
    open_descriptors,
    picture,
    without,
)
from tests.stores.test_local import LocalBench

DIR_KEY = UNITS[Shape.DIR][0]


@pytest.fixture
def place() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def bench(place: Path) -> LocalBench:
    return LocalBench(place / "root")


class TestWithoutRenameat2(TrashContract):
    """Kernels and file systems that cannot promise to overwrite nothing."""

    @pytest.fixture
    def bench(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBench:
        monkeypatch.setattr(beneath, "_renameat2", None)
        return LocalBench(place / "root")

    def test_a_failed_move_leaves_no_empty_directory(self, place: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(beneath, "_renameat2", None)
        (place / "d").mkdir()
        fd = os.open(place, os.O_RDONLY)
        with pytest.raises(OSError):
            beneath.move("d", fd, "d/inside", fd)
        os.close(fd)
        assert [p.name for p in place.iterdir()] == ["d"] and not list((place / "d").iterdir())


class TestOldKernel(StoreContract):
    """No openat2: links are still refused, and mounts told by their device."""

    @pytest.fixture
    def bench(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBench:
        monkeypatch.setattr(beneath, "STRICT", False)
        return LocalBench(place / "root")


def test_a_refused_openat2_is_noticed(monkeypatch: pytest.MonkeyPatch):
    def refuse(name: str, fd: int) -> int:
        raise OSError(38, "not here")

    assert beneath._has_openat2() == beneath.STRICT
    monkeypatch.setattr(beneath, "_openat2", refuse)
    assert beneath._has_openat2() is False


def test_a_file_system_that_cannot_promise_it_is_asked_in_another_way(bench: LocalBench):
    (bench.root / "d").mkdir()
    root = bench.store.root()
    with beneath.opened("d", root) as inside, pytest.raises(OSError, match="22"):  # the kernel's EINVAL, twice
        beneath.move("d", root, "x", inside)
    assert [p.name for p in bench.root.rglob("*")] == ["d"]


# Depth and width.


def test_three_thousand_deep(bench: LocalBench):
    unit = bench.root / "run" / "step-1"
    unit.mkdir(parents=True)
    chain(unit, 3000)
    bench.store.root()
    before = open_descriptors()
    folders = scan(bench.store)
    deepest = max(folders.folders, key=len)
    assert deepest.count("/") == 3001 and folders.complete
    assert bench.store.read(deepest + "/leaf") == b"leaf"
    action = act_on(bench.store, "run/step-1")
    assert retire(bench, action).files == 1
    bench.trash.restore("t1")
    assert act_on(bench.store, "run/step-1") == action
    leaf = act_on(bench.store, deepest + "/leaf", Shape.FILE, (deepest + "/leaf",))
    retire(bench, leaf, "t2")
    bench.trash.restore("t2")
    retire(bench, action, "t3")
    assert bench.trash.purge(purge_warrant("t3")).files == 1
    assert list((bench.root / "run").iterdir()) == [] and open_descriptors() == before


def test_deeper_than_what_is_held_open_with_branches(bench: LocalBench):
    (bench.root / "u").mkdir()
    chain(bench.root / "u", OPEN_MAX * 2 + 5, beside=True)
    bench.store.root()
    before = open_descriptors()
    listing = scan(bench.store)
    assert listing.complete and len(listing.folders) == 2 + 2 * (OPEN_MAX * 2 + 5)
    retire(bench, act_on(bench.store, "u"))
    bench.trash.purge(purge_warrant())
    assert bench.trash.trash() == [] and open_descriptors() == before


def test_a_directory_that_moved_away_while_its_depths_were_walked(bench: LocalBench):
    (bench.root / "u").mkdir()
    chain(bench.root / "u", OPEN_MAX + 5, beside=True)
    errors = []
    for folder in bench.store.walk():
        if folder.path.endswith("/d") and folder.path.count("/") == OPEN_MAX + 4:
            (bench.root / "u").rename(bench.root / "v")
            (bench.root / "u").mkdir()
            (bench.root / "u" / "d").mkdir()
            (bench.root / "u" / "beside").mkdir()
        if folder.error:
            errors.append(folder)
    assert errors and all("beside" in f.path for f in errors) and {f.error[:6] for f in errors} <= {"ESTALE", "ENOENT"}


@pytest.mark.slow
def test_two_hundred_thousand_names_in_one_directory(bench: LocalBench):
    unit = bench.root / "run" / "step-1"
    unit.mkdir(parents=True)
    fd = os.open(unit, os.O_RDONLY)
    for i in range(200_000):
        os.mknod(f"{i:06}", dir_fd=fd)
    os.close(fd)
    (folder,) = (f for f in bench.store.walk("run/step-1"))
    assert len(folder.names) == 200_000
    retire(bench, act_on(bench.store, "run/step-1"))
    freed = bench.trash.purge(purge_warrant())
    assert (freed.files, freed.bytes) == (200_000, 0)


def test_a_walk_given_up_holds_nothing_open(bench: LocalBench):
    fill(bench)
    bench.store.root()
    before = open_descriptors()
    walk = iter(bench.store.walk())
    for _ in range(4):
        next(walk)
    walk.close()  # type: ignore[attr-defined]  # a generator, as every caller may rely on when it gives up
    assert open_descriptors() == before


# Names, links and things that are no files.


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"caf\xe9", b"\xed\xb2\x80", "日本".encode()])
def test_undecodable_names(bench: LocalBench, raw: bytes):
    path = os.path.join(os.fsencode(bench.root), b"run", b"step-" + raw)
    os.makedirs(path)
    with open(os.path.join(path, raw), "wb") as file:
        file.write(b"odd")
    key = "run/step-" + raw.decode("utf-8", "surrogateescape")
    before = picture(bench.root)
    action = act_on(bench.store, key)
    assert action.bytes == 3
    retire(bench, action)
    assert not os.path.exists(path) and bench.trash.trash()[0].key == key
    bench.reopen()[1].restore("t1")
    assert without(picture(bench.root), ".lifecycle") == before


def test_other_file_name_encodings_are_refused(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "latin-1")
    with pytest.raises(Refused, match="UTF-8"):
        bench.store.identity()


@pytest.mark.timeout(20)
def test_fifos_sockets_and_links_are_told_and_never_opened(bench: LocalBench, place: Path):
    fill(bench)
    victim = place / "victim"
    victim.mkdir()
    (victim / "precious").write_bytes(b"p")
    unit = bench.root / DIR_KEY
    os.mkfifo(unit / "fifo")
    (unit / "out").symlink_to(victim)
    (unit / "file").symlink_to(victim / "precious")
    (unit / "loop").symlink_to(".")
    server = socket.socket(socket.AF_UNIX)
    at = os.getcwd()
    os.chdir(unit)  # a socket's path is short
    server.bind("sock")
    os.chdir(at)
    server.close()
    folder = scan(bench.store).folders[DIR_KEY]
    assert folder.others == {"fifo": "fifo", "sock": "socket"}
    assert folder.links == {"out": str(victim), "file": str(victim / "precious"), "loop": "."}
    for name in ("fifo", "sock", "out", "file", "loop"):
        with pytest.raises(StoreError):
            bench.store.read(f"{DIR_KEY}/{name}")
        with pytest.raises(StoreError):
            bench.store.tags(f"{DIR_KEY}/{name}")
    with pytest.raises(Changed):
        bench.store.read(f"{DIR_KEY}/out/precious")
    outside = picture(victim)
    retire(bench, unit_action(bench, Shape.DIR))
    assert bench.trash.purge(purge_warrant()).files == 2
    assert picture(victim) == outside


@pytest.mark.root
def test_devices_are_told_and_never_opened(bench: LocalBench):
    (bench.root / "u").mkdir()
    os.mknod(bench.root / "u" / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    assert scan(bench.store).folders["u"].others == {"null": "device"}
    with pytest.raises(Changed):
        bench.store.read("u/null")


@every_shape
def test_a_link_in_the_place_of_a_unit(bench: LocalBench, shape: Shape, place: Path):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, shape))
    key = warrant.action.members[-1] if warrant.action.members else warrant.action.key
    (bench.root / key).rename(place / "moved")
    (bench.root / key).symlink_to(place / "moved")
    before = picture(place)
    with pytest.raises(Changed):
        bench.store.sight(Target(warrant.action.key, shape, warrant.action.members))
    with pytest.raises(Changed):
        bench.trash.retire(warrant, NOW)
    assert picture(place) == before


def test_a_directory_where_a_file_was_and_the_reverse(bench: LocalBench):
    fill(bench)
    directory, file = (warrant_for(bench.store, unit_action(bench, s)) for s in (Shape.DIR, Shape.FILE))
    bench.remove(DIR_KEY)
    bench.put(DIR_KEY, b"a file")
    bench.remove(file.action.key)
    bench.put(file.action.key + "/inside", b"a directory")
    before = picture(bench.root)
    for warrant in (directory, file):
        target = Target(warrant.action.key, warrant.action.shape, warrant.action.members)
        with pytest.raises(Changed):
            bench.store.sight(target)
        with pytest.raises(Changed):
            bench.trash.retire(warrant, NOW)
    assert picture(bench.root) == before


def test_hard_links_free_nothing(bench: LocalBench):
    bench.put("run/step-1/w", b"x" * 10_000)
    bench.put("run/step-1/own", b"y" * 10_000)
    (bench.root / "blob").hardlink_to(bench.root / "run/step-1/w")
    folder = scan(bench.store).folders["run/step-1"]
    assert folder.shared == {"w": 2}
    action = act_on(bench.store, "run/step-1")
    assert bench.store.sight(Target(action.key, Shape.DIR, ())).totals.shared_bytes == 10_000
    retire(bench, action)
    freed = bench.trash.purge(purge_warrant())
    assert freed.files == 2 and 10_000 <= freed.bytes < 20_000 and freed.note == "shared"
    assert (bench.root / "blob").read_bytes() == b"x" * 10_000


def test_hard_links_within_the_unit_are_freed_with_the_last(bench: LocalBench):
    bench.put("run/step-1/w", b"x" * 10_000)
    (bench.root / "run/step-1/again").hardlink_to(bench.root / "run/step-1/w")
    retire(bench, act_on(bench.store, "run/step-1"))
    freed = bench.trash.purge(purge_warrant())
    assert freed.files == 2 and freed.bytes >= 10_000


def test_sparse_files_free_what_they_took(bench: LocalBench):
    bench.put("run/step-1/w", b"")
    os.truncate(bench.root / "run/step-1/w", 1 << 40)
    retire(bench, act_on(bench.store, "run/step-1"))
    assert bench.trash.purge(purge_warrant()).bytes < 1 << 20


# The root.


def test_a_missing_root_or_a_file_as_root(place: Path):
    (place / "file").write_bytes(b"")
    for root in (place / "nothing", place / "file", "/a\0b"):
        store = LocalStore("hot", root)
        for ask in (store.identity, lambda s=store: list(s.walk()), lambda s=store: s.read("x"), store.usage):
            with pytest.raises(Refused) as caught:
                ask()
            assert caught.value.code == "source_unavailable"


def test_the_sentinel_must_be_there(place: Path):
    bench = LocalBench(place / "root", sentinel="meta/sentinel")
    with pytest.raises(Refused, match="sentinel") as caught:
        bench.store.identity()
    assert caught.value.code == "source_unavailable"
    (bench.root / "meta").mkdir()
    with pytest.raises(Refused, match="sentinel"):
        bench.store.identity()
    bench.put("meta/sentinel", b"")
    assert bench.store.identity() == LocalBench(place / "root").store.identity()


def test_another_root_has_another_identity(place: Path):
    bench = LocalBench(place / "root")
    fill(bench)
    assert LocalStore("hot", copy_of(bench.root)).identity() != bench.store.identity()


@pytest.mark.parametrize("by", ["link", "directory", "nothing"])
def test_a_root_replaced_while_it_is_held(bench: LocalBench, place: Path, by: str):
    fill(bench)
    victim = LocalBench(place / "victim")
    fill(victim)
    warrant = warrant_for(bench.store, unit_action(bench, Shape.DIR))
    retire(bench, unit_action(bench, Shape.FILE), "old")
    bench.root.rename(place / "moved")
    match by:
        case "link":
            bench.root.symlink_to("victim")
        case "directory":
            victim.root.rename(bench.root)
        case _:
            pass
    before = picture(place)
    code = "source_unavailable" if by == "nothing" else "root_changed"
    acts = [
        bench.store.identity,
        lambda: bench.trash.retire(warrant, NOW),
        lambda: bench.trash.restore("old"),
        lambda: bench.trash.purge(purge_warrant("old")),
        lambda: bench.trash.write_note("n", b""),
    ]
    for act in acts:
        with pytest.raises(Refused) as caught:
            act()
        assert caught.value.code == code
    assert picture(place) == before


def test_the_root_is_no_checkpoint(bench: LocalBench):
    bench.put("x", b"1")
    with pytest.raises(Refused):
        retire(bench, act_on(bench.store, ""))


@pytest.mark.parametrize("key", ["../x", "/x", "a//b", "a/./b", "runs/a/..", "runs/a/step-2/", "a\0b"])
def test_keys_that_climb_are_no_keys(bench: LocalBench, key: str):
    fill(bench)
    asks = [
        lambda: bench.store.read(key),
        lambda: bench.store.tags(key),
        lambda: bench.store.sight(Target(key, Shape.DIR, ())),
        lambda: bench.store.sight(Target("x", Shape.FILE, (key,))),
        lambda: list(bench.store.walk(key)),
    ]
    for ask in asks:
        with pytest.raises(StoreError) as caught:
            ask()
        assert caught.value.code == "bad_key"


def test_a_start_that_cannot_be_entered_is_told(bench: LocalBench):
    fill(bench)
    (bench.root / "link").symlink_to("runs")
    for start in ("runs/a/latest", "link", "link/a"):
        (folder,) = bench.store.walk(start)
        assert folder.path == start and folder.error


# Our state directory.


def test_reading_makes_no_state(bench: LocalBench):
    fill(bench)
    before = picture(bench.root)
    assert dict(bench.store.notes()) == {} and bench.trash.trash() == []
    bench.trash.drop_note("never")
    assert bench.trash.retired(unit_action(bench, Shape.DIR), "t1") is False
    assert bench.trash.purge(purge_warrant()).files == 0
    with pytest.raises(NotFound):
        bench.trash.restore("t1")
    scan(bench.store)
    assert picture(bench.root) == before


def test_state_is_private_and_hidden_wherever_it_is(place: Path):
    for state in (None, place / "root" / "runs" / "state", place / "root" / ".x"):
        bench = LocalBench(place / "root", state=state)
        fill(bench)
        first = scan(bench.store).folders
        bench.trash.write_note("n", b"1")
        assert set(scan(bench.store).folders) == set(first)
        real = state or bench.root / ".lifecycle"
        assert [stat.S_IMODE(p.stat().st_mode) for p in (real, real / "notes", real / "notes" / "n")] == [
            0o700,
            0o700,
            0o600,
        ]


def test_state_made_during_a_walk_is_hidden(bench: LocalBench):
    bench.store.area.id = lambda: None  # type: ignore[method-assign]  # as if it was not there yet when we began
    bench.trash.write_note("n", b"1")
    assert list(scan(bench.store).folders) == [""]


@pytest.mark.root
def test_state_of_another_user_is_not_written_to(bench: LocalBench):
    fill(bench)
    (bench.root / ".lifecycle").mkdir()
    os.chown(bench.root / ".lifecycle", NOBODY, NOBODY)
    before = picture(bench.root)
    with pytest.raises(Refused) as caught:
        retire(bench, unit_action(bench, Shape.DIR))
    assert caught.value.code == "state_not_ours" and picture(bench.root) == before
    assert bench.store.probe().rename is False


def test_state_that_is_a_link_is_not_followed(bench: LocalBench, place: Path):
    fill(bench)
    (place / "elsewhere").mkdir()
    (bench.root / ".lifecycle").symlink_to(place / "elsewhere")
    for act in (lambda: retire(bench, unit_action(bench, Shape.DIR)), bench.trash.trash, bench.store.notes):
        with pytest.raises(Changed):
            act()
    assert list((place / "elsewhere").iterdir()) == []


@pytest.mark.root
def test_state_on_another_file_system_is_refused(place: Path):
    (place / "other").mkdir()
    with mounted(place / "other"):
        for state in (place / "other" / "new", place / "other"):
            bench = LocalBench(place / "root", state=state)
            fill(bench)
            before = picture(bench.root)
            with pytest.raises(Refused) as caught:
                retire(bench, unit_action(bench, Shape.DIR))
            assert caught.value.code == "state_elsewhere" and caught.value.hint
            assert picture(bench.root) == before and list((place / "other").iterdir()) == []
            assert bench.store.probe().rename is False


def test_a_state_parent_that_is_missing(place: Path):
    bench = LocalBench(place / "root", state=place / "nowhere" / "state")
    fill(bench)
    assert bench.trash.trash() == [] and scan(bench.store).complete
    with pytest.raises(StoreError):
        retire(bench, unit_action(bench, Shape.DIR))


def test_foreign_files_among_the_notes(bench: LocalBench):
    bench.trash.write_note("n", b"1")
    notes = bench.root / ".lifecycle" / "notes"
    (notes / "half.new").write_bytes(b"cut short")
    assert set(bench.store.notes()) == {"n"}
    os.mkfifo(notes / "fifo")
    with pytest.raises(StoreError):
        bench.store.notes()
    (notes / "fifo").unlink()
    (notes / "huge").write_bytes(b"x" * 1_000_000)
    assert len(bench.store.notes()["huge"]) == 65536
    for i in range(10_001):
        (notes / f"{i}").touch()
    with pytest.raises(StoreError, match="more than"):
        bench.store.notes()
    with pytest.raises(StoreError):
        bench.trash.write_note("x.new", b"")


# Mounts.


@pytest.mark.root
def test_mounts_are_not_crossed_unless_told(place: Path):
    bench = LocalBench(place / "root")
    fill(bench)
    inner = bench.root / "runs" / "a" / "step-2" / "w"
    with mounted(inner):
        (inner / "precious").write_bytes(b"p")
        listing = scan(bench.store)
        assert listing.folders[DIR_KEY].others == {"w": "mount"} and DIR_KEY + "/w" not in listing.folders
        with pytest.raises(StoreError):
            bench.store.read(f"{DIR_KEY}/w/precious")
        crossing = LocalBench(place / "root", cross_mounts=True)
        assert scan(crossing.store).folders[DIR_KEY + "/w"].names == ["precious"]
        before = picture(bench.root)
        key = f"{DIR_KEY}/w/precious"
        with pytest.raises(StoreError) as caught:
            retire(crossing, act_on(crossing.store, key, Shape.FILE, (key,)))
        assert caught.value.code == "cross_device" and key in str(caught.value) and "EXDEV" in str(caught.value)
        assert without(picture(bench.root), ".lifecycle") == before and crossing.trash.trash() == []


@pytest.mark.root
@pytest.mark.parametrize("strict", [True, False])
def test_what_is_mounted_inside_a_unit_is_not_purged(place: Path, monkeypatch: pytest.MonkeyPatch, strict: bool):
    monkeypatch.setattr(beneath, "STRICT", strict and beneath.STRICT)
    bench = LocalBench(place / "root")
    fill(bench)
    (place / "victim").mkdir()
    (place / "victim" / "precious").write_bytes(b"p")
    inner = bench.root / DIR_KEY / "w"
    options = ("--bind", str(place / "victim")) if beneath.STRICT else ()
    retire(bench, unit_action(bench, Shape.DIR))
    inside = next(bench.root.glob(".lifecycle/trash/t1/payload/0")) / "w"
    later = bench.root / ".lifecycle/trash/t1/purging/0/w"
    with mounted(inside, *options, later=later):
        (inside / "more").write_bytes(b"m")
        with pytest.raises(StoreError) as caught:
            bench.trash.purge(purge_warrant())
        assert caught.value.code == "partial_delete"
        assert (later / "more").read_bytes() == b"m"
    assert (place / "victim" / "precious").read_bytes() == b"p" and not inner.exists()
    bench.trash.purge(purge_warrant())
    assert bench.trash.trash() == []


@pytest.mark.root
def test_a_root_mounted_inside_itself_ends(place: Path):
    bench = LocalBench(place / "root", cross_mounts=True)
    fill(bench)
    (bench.root / "runs" / "again").mkdir()
    with mounted(bench.root / "runs" / "again", "--bind", str(bench.root)):
        assert scan(bench.store).folders["runs"].others == {"again": "loop"}
        strict = LocalBench(place / "root")
        assert not any(path.startswith("runs/again/") for path in scan(strict.store).folders)


@pytest.mark.root
@pytest.mark.parametrize("options", ["size=64k", "nr_inodes=40"])
def test_a_full_disk_moves_nothing(place: Path, options: str):
    (place / "small").mkdir()
    with mounted(place / "small", "-t", "tmpfs", "-o", options, "tmpfs"):
        bench = LocalBench(place / "small" / "root")
        fill(bench)
        retire(bench, unit_action(bench, Shape.FILE), "kept")
        with pytest.raises(OSError):
            for i in range(1000):
                (bench.root / f"filler{i}").write_bytes(b"x" * 4096)
        before = without(picture(bench.root), ".lifecycle/trash")
        with pytest.raises(StoreError, match="ENOSPC"):
            retire(bench, unit_action(bench, Shape.DIR))
        assert without(picture(bench.root), ".lifecycle/trash") == before
        assert [e.trash_id for e in bench.trash.trash()] == ["kept"]
        bench.trash.purge(purge_warrant("kept"))
        assert bench.trash.trash() == []


@pytest.mark.root
def test_a_read_only_file_system(place: Path):
    bench = LocalBench(place / "root")
    fill(bench)
    with mounted(bench.root, "--bind", str(bench.root)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(bench.root)], check=True)
        bench = LocalBench(bench.root)
        with pytest.raises(Denied, match="EROFS"):
            retire(bench, unit_action(bench, Shape.DIR))
        assert bench.store.probe().rename is False and scan(bench.store).complete


# Other users.


@pytest.mark.root
def test_permission_denied_leaves_everything(place: Path):
    bench = LocalBench(place / "root", state=place / "state")
    fill(bench)
    retire(bench, unit_action(bench, Shape.FILE), "mine")
    bench.trash.restore("mine")
    os.chown(place / "state", NOBODY, NOBODY)
    for path in (place / "state").rglob("*"):
        os.chown(path, NOBODY, NOBODY)
    (bench.root / "runs/c/deep").chmod(0o700)
    before = picture(place)
    with as_user(NOBODY):
        listing = scan(bench.store)
        assert not listing.complete and listing.folders["runs/c/deep"].error.startswith("EACCES")
        with pytest.raises(StoreError):
            bench.store.sight(Target("runs/c", Shape.DIR, ()))
        for shape, error in ((Shape.DIR, "EACCES"), (Shape.FILE, "EACCES")):
            with pytest.raises(Denied, match=error):
                retire(bench, unit_action(bench, shape))
        with pytest.raises(StoreError):
            unit_action(bench, Shape.GROUP)
        assert bench.trash.trash() == []
    assert without(picture(place), "state") == without(before, "state")


@pytest.mark.root
def test_parent_times_that_only_the_owner_may_set(place: Path):
    bench = LocalBench(place / "root", state=place / "state")
    fill(bench)
    (place / "state").mkdir()
    os.chown(place / "state", NOBODY, NOBODY)
    (bench.root / "runs/a").chmod(0o777)
    os.chown(bench.root / DIR_KEY, NOBODY, NOBODY)
    with as_user(NOBODY):
        assert retire(bench, unit_action(bench, Shape.DIR)).note == "parent_times_changed"
        assert bench.trash.restore("t1").note == "parent_times_changed"


@pytest.mark.root
def test_files_that_cannot_go_are_told_and_the_rest_goes(place: Path):
    bench = LocalBench(place / "root", state=place / "state")
    bench.put("run/step-1/locked/w", b"1")
    bench.put("run/step-1/closed/w", b"2")
    bench.put("run/step-1/free/w", b"3")
    (place / "state").mkdir()
    for path in (place / "state", *bench.root.rglob("*"), bench.root):
        os.chown(path, NOBODY, NOBODY)
    locked, closed = (bench.root / "run/step-1" / name for name in ("locked", "closed"))
    with as_user(NOBODY):
        action = act_on(bench.store, "run/step-1")
        locked.chmod(0o500)
        retire(bench, action)
        (place / "state/trash/t1/payload/0/closed").chmod(0o100)
        with pytest.raises(StoreError, match="EACCES") as caught:
            bench.trash.purge(purge_warrant())
        assert caught.value.code == "partial_delete"
        left = place / "state/trash/t1/purging/0"
        assert sorted(p.name for p in left.iterdir()) == ["closed", "locked"]
        assert [e.trash_id for e in bench.trash.trash()] == ["t1"]
        (left / "closed").chmod(0o700)
        (left / "locked").chmod(0o700)
        assert bench.trash.purge(purge_warrant()).files == 2
    assert bench.trash.trash() == [] and not closed.exists()


# Somebody changes things at the very moment.


def at_move(monkeypatch: pytest.MonkeyPatch, act, *, when: int = 1) -> list[int]:
    """Do something just before the `when`-th move; the list grows when it came to that."""
    real, calls, fired = beneath.move, [], []

    def move(*args):
        calls.append(1)
        if len(calls) == when:
            fired.append(1)
            act()
        real(*args)

    monkeypatch.setattr(beneath, "move", move)
    return fired


@every_shape
def test_a_unit_swapped_at_the_last_moment_goes_back(bench: LocalBench, monkeypatch: pytest.MonkeyPatch, shape: Shape):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, shape))
    key = warrant.action.proof or warrant.action.key
    key = key if warrant.action.members else warrant.action.key
    fired = at_move(monkeypatch, lambda: bench.replace(key))
    before = set(picture(bench.root))
    with pytest.raises(Changed, match="replaced"):
        bench.trash.retire(warrant, NOW)
    after = set(without(picture(bench.root), ".lifecycle"))
    assert fired and {k for k in after - before if ".old" not in k} == set() and before <= after
    assert bench.trash.trash() == []


@every_shape
def test_what_is_written_at_the_last_moment_keeps_the_unit(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch, shape: Shape
):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, shape))
    key = warrant.action.members[-1] if warrant.action.members else f"{DIR_KEY}/w/0.bin"
    fired = at_move(monkeypatch, lambda: bench.put(key, b"one more step", NOW))
    with pytest.raises(Changed, match="changed"):
        bench.trash.retire(warrant, NOW)
    assert fired and (bench.root / key).read_bytes() == b"one more step" and bench.trash.trash() == []
    assert unit_keys(shape) <= set(picture(bench.root))


@every_shape
def test_a_unit_that_vanishes_at_the_last_moment(bench: LocalBench, monkeypatch: pytest.MonkeyPatch, shape: Shape):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, shape))

    def vanish() -> None:
        for key in warrant.action.members or (warrant.action.key,):
            bench.remove(key)

    fired = at_move(monkeypatch, vanish)
    with pytest.raises(NotFound):
        bench.trash.retire(warrant, NOW)
    assert fired and bench.trash.trash() == []


def test_a_swapped_unit_whose_place_is_taken_stays_in_the_trash(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, Shape.DIR))
    fired = [
        at_move(monkeypatch, lambda: bench.replace(DIR_KEY)),
        at_move(monkeypatch, lambda: bench.put(DIR_KEY + "/new", b"n"), when=2),
    ]
    with pytest.raises(StoreError, match="could not be moved back") as raised:
        bench.trash.retire(warrant, NOW)
    (entry,) = bench.trash.trash()
    assert raised.value.code == "partial_delete", "a mere `changed` says that nothing was touched"
    assert all(fired) and entry.whole and (bench.root / DIR_KEY / "new").exists()
    assert (bench.root / ".lifecycle/trash/t1/payload/0/w/0.bin").exists()


def test_something_put_at_the_old_key_while_it_comes_back(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    before = set(picture(bench.root))
    action = unit_action(bench, Shape.GROUP)
    retire(bench, action)
    fired = at_move(monkeypatch, lambda: bench.put("runs/c/m-2.index", b"new"), when=3)
    with pytest.raises(Occupied):
        bench.trash.restore("t1")
    left = set(without(picture(bench.root), ".lifecycle"))
    assert fired and before - left == {"runs/c/m-2.data", "runs/c/deep/m-2.meta"}
    assert bench.trash.retired(action, "t1") is True
    bench.remove("runs/c/m-2.index")
    bench.trash.restore("t1")
    assert before <= set(picture(bench.root))


@pytest.mark.parametrize("what", ["parent", "unit"])
def test_links_swapped_in_by_a_racing_thread_never_reach_the_victim(bench: LocalBench, place: Path, what: str):
    fill(bench)
    victim = place / "victim"
    for name in ("step-1", "step-2"):
        (victim / name / "w").mkdir(parents=True)
        (victim / name / "w" / "0.bin").write_bytes(b"precious")
        (victim / name / "DONE").touch()
    outside = picture(victim)
    swapped = bench.root / ("runs/a" if what == "parent" else DIR_KEY)
    target = victim if what == "parent" else victim / "step-2"
    stop = threading.Event()
    here = os.open(swapped.parent, os.O_RDONLY)

    def swap() -> None:
        aside = swapped.with_name("aside")
        chance = random.Random(1)
        while not stop.is_set():
            # Without moments in which all is in its place nothing could be retired at all on a busy machine.
            for _ in range(chance.choice((0, 1, 5, 50))):
                time.sleep(0)
            # A restore may have made a directory meanwhile, or the unit may be in the trash.
            with suppress(OSError):
                swapped.rename(aside)
                swapped.symlink_to(target)
                time.sleep(0)
                swapped.unlink()
            with suppress(OSError):
                if swapped.is_symlink():  # it was in the trash meanwhile and has come back
                    swapped.unlink()
                beneath.move(aside.name, here, swapped.name, here)

    thread = threading.Thread(target=swap)
    thread.start()
    done = {"retired": 0, "stopped": 0}
    deadline = time.monotonic() + 2
    try:
        for number in range(10_000):
            if time.monotonic() > deadline and min(done.values()) > 0:
                break
            try:
                retire(bench, unit_action(bench, Shape.DIR), f"t{number}")
                done["retired"] += 1
            except LifecycleError:
                done["stopped"] += 1
            for entry in bench.trash.trash():
                while True:
                    try:
                        bench.trash.restore(entry.trash_id)
                        break
                    except NotFound:
                        break
                    except LifecycleError:
                        done["stopped"] += 1
    finally:
        stop.set()
        thread.join()
        os.close(here)
    assert picture(victim) == outside
    assert min(done.values()) > 0, f"the race never happened: {done}"
    assert (bench.root / DIR_KEY / "DONE").exists()


# What is left behind.


def test_a_silly_renamed_file_stays_and_a_later_purge_goes_on(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    real = beneath.unlink

    def unlink(name: str, fd: int) -> None:
        if name == "0.bin":
            os.rename(name, ".nfs0001", src_dir_fd=fd, dst_dir_fd=fd)
        elif not name.startswith(".nfs"):
            real(name, fd)

    monkeypatch.setattr(beneath, "unlink", unlink)
    with pytest.raises(StoreError, match="ENOTEMPTY") as caught:
        bench.trash.purge(purge_warrant())
    assert caught.value.code == "partial_delete" and caught.value.hint
    assert bench.trash.retired(act_on(bench.store, "runs/a/step-1"), "t1") is False
    with pytest.raises(StoreError) as caught:
        bench.trash.restore("t1")
    assert caught.value.code == "partial_delete"
    (entry,) = bench.trash.trash()
    assert entry.whole and entry.key == DIR_KEY
    monkeypatch.undo()
    assert bench.trash.purge(purge_warrant()).files == 1 and bench.trash.trash() == []


def test_a_purge_meets_another_one(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    bench.put(DIR_KEY + "/x/y", b"1")
    retire(bench, unit_action(bench, Shape.DIR))
    real = beneath.unlink, beneath.open_dir

    def unlink(name: str, fd: int) -> None:
        real[0](name, fd)
        raise FileNotFoundError(2, "injected")

    def open_dir(name: str, fd: int, cross_mounts: bool = False) -> int:
        if name == "x":
            os.unlink(bench.root / ".lifecycle/trash/t1/purging/0/x/y")
            os.rmdir(bench.root / ".lifecycle/trash/t1/purging/0/x")
        return real[1](name, fd, cross_mounts)

    monkeypatch.setattr(beneath, "unlink", unlink)
    monkeypatch.setattr(beneath, "open_dir", open_dir)
    monkeypatch.setattr(os, "listdir", lambda fd, real=os.listdir: ["ghost", *real(fd)])
    with suppress(StoreError):  # the entry's own ghost
        freed = bench.trash.purge(purge_warrant())
        assert (freed.files, freed.bytes) == (0, 0)
    monkeypatch.undo()
    assert bench.trash.trash() == []


def test_a_directory_that_cannot_be_read_is_told_by_the_purge(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    inode = (bench.root / ".lifecycle/trash/t1/payload/0/w").stat().st_ino

    def listdir(fd: int, real=os.listdir) -> list[str]:
        if os.fstat(fd).st_ino == inode:
            raise OSError(116, "injected")
        return real(fd)

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(StoreError, match="'0/w': ESTALE"):
        bench.trash.purge(purge_warrant())
    monkeypatch.undo()
    assert bench.trash.purge(purge_warrant()).files == 1


def test_an_interrupted_purge_holds_nothing_open(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    before = open_descriptors()

    def unlink(name: str, fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(beneath, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt):
        bench.trash.purge(purge_warrant())
    monkeypatch.undo()
    assert open_descriptors() == before
    assert bench.trash.purge(purge_warrant()).files == 2


def test_a_purge_cut_short_at_its_very_end_goes_on(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    real = beneath.unlink

    def unlink(name: str, fd: int) -> None:
        if name == "manifest.json":
            raise OSError(5, "injected")
        real(name, fd)

    monkeypatch.setattr(beneath, "unlink", unlink)
    with pytest.raises(StoreError, match="EIO"):
        bench.trash.purge(purge_warrant())
    monkeypatch.undo()
    assert bench.trash.purge(purge_warrant()).files == 0 and bench.trash.trash() == []


@pytest.mark.parametrize("way", ["restore", "purge"])
def test_an_entry_that_only_has_its_manifest(bench: LocalBench, monkeypatch: pytest.MonkeyPatch, way: str):
    fill(bench)
    action = unit_action(bench, Shape.DIR)
    before = without(picture(bench.root), ".lifecycle")
    bench.trash.write_note("makes", b"the state directory")
    with bench.cut(5) as fired, pytest.raises(StoreError):  # trash, entry, payload, manifest: the fifth is the move
        retire(bench, action, "t2")
    assert fired()
    assert not bench.trash.trash(), "what holds nothing is nothing to bring back"
    assert (bench.root / ".lifecycle/trash/t2").exists()
    assert bench.trash.retired(action, "t2") is False
    freed = bench.trash.restore("t2") if way == "restore" else bench.trash.purge(purge_warrant("t2"))
    assert (freed.bytes, freed.files) == (0, 0) and bench.trash.trash() == []
    assert without(picture(bench.root), ".lifecycle") == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"version": 2}', b'{"version": 1, "trash_id": "other"}', b"[" * 100_000, b"\xff"],
)
def test_a_broken_manifest_is_told_and_never_purged(bench: LocalBench, content: bytes):
    fill(bench)
    action = unit_action(bench, Shape.DIR)
    retire(bench, action)
    manifest = bench.root / ".lifecycle/trash/t1/manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(content)
    before = picture(bench.root)
    (entry,) = bench.trash.trash()
    assert (entry.trash_id, entry.key, entry.whole) == ("t1", "", False)
    assert bench.trash.retired(action, "t1") is None
    for act in (lambda: bench.trash.purge(purge_warrant()), lambda: bench.trash.restore("t1")):
        with pytest.raises(StoreError) as caught:
            act()
        assert caught.value.code == "broken_manifest"
    assert picture(bench.root) == before
    manifest.write_bytes(whole)
    bench.trash.restore("t1")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"runs/a/step-2"', b'"../../victim"'),
        (b'"runs/a/step-2"', b"7"),
        (b'"runs/a/step-2"', b'""'),
        (b'"shape": "dir"', b'"shape": "group"'),
        (b'"members": []', b'"members": [3]'),
        (b'"members": []', b'"members": ["x"]'),
        (b'"members": []', b'"members": 3'),
        (b'"trash_s": 3600', b'"trash_s": -1'),
        (b'"trash_s": 3600', b'"trash_s": true'),
        (b'"plan": "plan-1"', b'"plan": null'),
        (b'"proof"', b'"poof"'),
    ],
)
def test_a_tampered_manifest_brings_nothing_back(bench: LocalBench, place: Path, old: bytes, new: bytes):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    manifest = bench.root / ".lifecycle/trash/t1/manifest.json"
    assert old in manifest.read_bytes()
    manifest.write_bytes(manifest.read_bytes().replace(old, new))
    before = picture(place)
    with pytest.raises(StoreError):
        bench.trash.restore("t1")
    assert picture(place) == before


def test_shells_that_a_crash_left_are_not_told_and_can_go(bench: LocalBench):
    fill(bench)
    action = unit_action(bench, Shape.DIR)
    retire(bench, action, "t1")
    trash = bench.root / ".lifecycle/trash"
    for name in ("bare", "early"):
        (trash / name).mkdir()
    (trash / "early/payload").mkdir()
    (trash / "early/manifest.json.new").write_bytes(b"{")
    assert [e.trash_id for e in bench.trash.trash()] == ["t1"]
    for name in ("bare", "early"):
        assert bench.trash.retired(action, name) is False
        assert bench.trash.purge(purge_warrant(name)).files == 0
    (trash / "stray").write_bytes(b"")
    assert [(e.trash_id, e.whole) for e in bench.trash.trash()] == [("stray", False), ("t1", True)]
    with pytest.raises(StoreError):
        bench.trash.purge(purge_warrant("stray"))
    assert (trash / "stray").exists()


def test_an_entry_that_goes_while_it_is_listed(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    monkeypatch.setattr(os, "listdir", lambda fd, real=os.listdir: ["ghost", *real(fd)])
    assert [e.trash_id for e in bench.trash.trash()] == ["t1"]


@every_shape
def test_where_the_file_system_knows_no_locks_the_trash_works(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch, shape: Shape
):
    asked = []

    def flock(*args: int) -> None:
        asked.append(args)
        raise OSError(errno.ENOLCK, "injected")

    monkeypatch.setattr(fcntl, "flock", flock)
    fill(bench)
    action, before = unit_action(bench, shape), scan(bench.store).total("")
    retire(bench, action)
    assert bench.trash.retired(action, "t1") is True
    bench.trash.restore("t1")
    assert scan(bench.store).total("").files == before.files and bench.trash.trash() == []
    assert len(asked) == 3


@pytest.mark.parametrize("way", ["retired", "restore", "purge"])
def test_an_entry_that_somebody_is_at_work_on_is_busy(bench: LocalBench, way: str):
    fill(bench)
    action = unit_action(bench, Shape.DIR)
    retire(bench, action)
    ways: dict[str, Callable[[], object]] = {
        "retired": lambda: bench.trash.retired(action, "t1"),
        "restore": lambda: bench.trash.restore("t1"),
        "purge": lambda: bench.trash.purge(purge_warrant()),
    }
    other = os.open(bench.root / ".lifecycle/trash/t1", os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StoreError) as busy:
            ways[way]()
        assert busy.value.code == "busy"
        assert [(e.trash_id, e.whole) for e in bench.trash.trash()] == [("t1", True)]
    finally:
        os.close(other)
    ways[way]()


@every_shape
def test_an_entry_cleared_away_before_the_move_takes_nothing(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch, shape: Shape
):
    """A move fails the same whether the unit or the entry is gone: only for the first is the next part tried."""
    fill(bench)
    action, before = unit_action(bench, shape), without(picture(bench.root), ".lifecycle")
    real = beneath.move

    def move(name: str, fd: int, new: str, new_fd: int) -> None:
        with suppress(FileNotFoundError):
            (bench.root / ".lifecycle/trash/t1/payload").rmdir()
        real(name, fd, new, new_fd)

    monkeypatch.setattr(beneath, "move", move)
    with pytest.raises(StoreError, match="cleared away"):
        retire(bench, action)
    assert without(picture(bench.root), ".lifecycle") == before
    assert bench.trash.trash() == []
    assert bench.trash.retired(action, "t1") is False


def test_purge_of_what_was_not_looked_at(bench: LocalBench):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, Shape.DIR))
    bench.trash.retire(warrant, NOW + 1)
    with pytest.raises(Changed):
        bench.trash.purge(purge_warrant())
    assert len(bench.trash.trash()) == 1


def test_a_warrant_for_another_store(bench: LocalBench, place: Path):
    fill(bench)
    other = LocalTrash(LocalStore("cold", bench.root))
    before = picture(place)
    with pytest.raises(Refused):
        other.retire(warrant_for(bench.store, unit_action(bench, Shape.DIR)), NOW)
    assert picture(place) == before


def test_an_entry_of_another_action_says_nothing_of_this_one(bench: LocalBench):
    fill(bench)
    retire(bench, unit_action(bench, Shape.FILE))
    assert bench.trash.retired(unit_action(bench, Shape.DIR), "t1") is False


def test_parents_made_again_are_told(bench: LocalBench):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    bench.remove("runs")
    assert bench.trash.restore("t1").note == "parents_made"
    assert (bench.root / DIR_KEY / "DONE").exists()


def test_parent_times_come_back(bench: LocalBench):
    fill(bench)
    parent = bench.root / "runs/a"
    os.utime(parent, ns=(1_000_000_001, 2_000_000_002))
    os.utime(bench.root, ns=(3_000_000_003, 4_000_000_004))
    for act in (lambda: retire(bench, unit_action(bench, Shape.DIR)), lambda: bench.trash.restore("t1")):
        act()
        assert (parent.stat().st_atime_ns, parent.stat().st_mtime_ns) == (1_000_000_001, 2_000_000_002)
        assert bench.root.stat().st_mtime_ns == 4_000_000_004


def test_whoever_rotates_by_mtime_finds_the_same_order_after_an_undo(bench: LocalBench):
    """As transformers' ``rotate_checkpoints`` and OpenRLHF sort; here by times that are not in the order of names."""
    run = bench.root / "out"
    for name, at in (("checkpoint-1", 30), ("checkpoint-2", 10), ("checkpoint-3", 20)):
        bench.put(f"out/{name}/optimizer/state.pt", b"x" * at)
        for path in (run / name / "optimizer", run / name):
            os.utime(path, ns=(NOW, NOW + at))

    def order() -> list[tuple[str, int, int]]:
        stats = {path: path.stat() for path in run.glob("checkpoint-*")}
        inner = {path: (path / "optimizer").stat().st_mtime_ns for path in stats}
        return [(p.name, stats[p].st_mtime_ns, inner[p]) for p in sorted(stats, key=lambda p: stats[p].st_mtime_ns)]

    before = order()
    assert [name for name, _, _ in before] == ["checkpoint-2", "checkpoint-3", "checkpoint-1"]
    retire(bench, act_on(bench.store, "out/checkpoint-3"))
    assert order() == [one for one in before if one[0] != "checkpoint-3"]
    bench.trash.restore("t1")
    assert order() == before


# Memory of the last scan.


def test_a_remembered_run_costs_one_stat_a_directory(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    memory = remember(bench.store, "runs/a")
    asked: list[str] = []

    def lstat(name: str, *, dir_fd: int, real=os.lstat) -> os.stat_result:
        asked.append(name)
        return real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.delattr(os, "listdir")
    assert bench.store.same("runs/a", memory)
    assert sorted(asked) == sorted(memory.inside) and "step-1/w" in asked


@pytest.mark.parametrize("change", ["link", "mkdir", "touch", "gone"])
def test_a_remembered_directory_that_is_no_longer_that_one(bench: LocalBench, change: str):
    fill(bench)
    above, inside, away = (bench.root / path for path in ("runs/a/step-1", "runs/a/step-1/w", "w"))
    was = stamp_of(inside.stat())
    inside.rename(away)
    acts = {"link": lambda: inside.symlink_to(away), "mkdir": inside.mkdir, "touch": inside.touch}
    acts.get(change, lambda: None)()
    # As if the directory above had not changed, or its clock had not ticked.
    assert not bench.store.same("runs/a/step-1", Memory(("w",), stamps_digest([stamp_of(above.stat()), was])))
    assert bench.store.same("w", Memory((), stamps_digest([stamp_of(away.stat())])))


@pytest.mark.parametrize("error", [116, 5])
def test_a_stale_or_broken_directory_is_told_and_the_walk_goes_on(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch, error: int
):
    fill(bench)
    inode = (bench.root / "runs/a/step-1").stat().st_ino

    def listdir(fd: int, real=os.listdir):
        if os.fstat(fd).st_ino == inode:
            raise OSError(error, "injected")
        return real(fd)

    monkeypatch.setattr(os, "listdir", listdir)
    folders = scan(bench.store).folders
    assert [p for p, f in folders.items() if f.error] == ["runs/a/step-1"] and "runs/c/deep" in folders
    with pytest.raises(StoreError):
        bench.store.sight(Target("runs/a/step-1", Shape.DIR, ()))


def test_a_root_that_cannot_be_listed(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    bench.store.root()
    monkeypatch.setattr(os, "listdir", lambda fd: (_ for _ in ()).throw(OSError(116, "injected")))
    with pytest.raises(Refused) as caught:
        list(bench.store.walk())
    assert caught.value.code == "source_unavailable"


def test_files_that_vanish_while_they_are_listed(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    monkeypatch.setattr(os, "listdir", lambda fd, real=os.listdir: ["ghost", *real(fd)])
    assert scan(bench.store).complete
    assert bench.store.sight(Target(DIR_KEY, Shape.DIR, ())).totals.files == 2


def test_a_unit_swapped_while_it_is_looked_at(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    real = bench.store.walk

    def walk(key: str):
        bench.replace(key)
        return real(key)

    monkeypatch.setattr(bench.store, "walk", walk)
    with pytest.raises(Changed, match="while"):
        bench.store.sight(Target(DIR_KEY, Shape.DIR, ()))


def test_a_file_that_cannot_be_told(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    key, members, _ = UNITS[Shape.GROUP]

    def injected(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def look(name, *args, **kwargs):
            if name == "m-2.data":
                raise OSError(116, "injected")
            return real(name, *args, **kwargs)

        return look

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, injected(getattr(os, name)))
    with pytest.raises(StoreError, match="ESTALE"):
        bench.store.sight(Target(key, Shape.GROUP, members))


def test_tags_where_none_can_be(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    bench.put("x", b"")
    for number, expected in ((95, {}), (5, None)):
        monkeypatch.setattr(os, "listxattr", lambda fd, n=number: (_ for _ in ()).throw(OSError(n, "injected")))
        if expected is None:
            with pytest.raises(StoreError):
                bench.store.tags("x")
        else:
            assert bench.store.tags("x") == expected


def test_a_file_swapped_for_a_fifo_before_it_is_opened(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    bench.put("x", b"1")
    real = os.open

    def open_(name, *args, **kwargs):
        if name == "x":
            bench.remove("x")
            os.mkfifo(bench.root / "x")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(os, "open", open_)
    with pytest.raises(Changed):
        bench.store.read("x")


def test_usage_where_inodes_are_not_counted(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    real = os.fstatvfs(bench.store.root())
    fields = list(real)
    fields[5] = 0
    monkeypatch.setattr(os, "fstatvfs", lambda fd: os.statvfs_result(fields))
    usage = bench.store.usage()
    assert usage.inodes is None and usage.inodes_free is None and usage.size_bytes
