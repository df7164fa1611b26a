"""The local store takes copies in: the contract, and what a real file system can do to it."""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.copies import Directory, Member, in_order
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Target
from lifecycle.stores import beneath, posix_copy, posix_intake
from lifecycle.stores.open import open_intake
from lifecycle.stores.posix_intake import LocalIntake
from tests.stores.contract import SECOND, T0, UNITS, fill, shown
from tests.stores.intake_contract import (
    MIB,
    AgainContract,
    CutContract,
    IntakeContract,
    Parcel,
    WayContract,
    assert_nothing_of,
    assert_published,
    carry,
    checkpoint,
    lay,
    manifest_of,
    parcel,
    parcel_of,
    sealed,
    standing,
)
from tests.stores.places import NOBODY, as_user, chain, memory_directory, mounted, open_descriptors, picture
from tests.stores.test_local import LocalBench


@pytest.fixture
def place() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def bench(place: Path) -> LocalBench:
    return LocalBench(place / "root")


class TestContract(IntakeContract):
    pass


class TestWithStateElsewhere(WayContract):
    @pytest.fixture
    def bench(self, place: Path) -> LocalBench:
        return LocalBench(place / "root", state=place / "state")


class TestWithoutRenameat2(AgainContract, CutContract):
    """File systems over the network cannot promise to overwrite nothing by a rename."""

    @pytest.fixture
    def bench(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBench:
        monkeypatch.setattr(beneath, "_renameat2", None)
        return LocalBench(place / "root")


def begun(bench: LocalBench, sent: Parcel) -> LocalIntake:
    intake = LocalIntake(bench.store)
    lay(intake, sent)
    return intake


def cut_at(bench: LocalBench, sent: Parcel, name: str, number: int = 1) -> None:
    """A publishing that dies at the given call of one kind of change."""
    calls, real = 0, getattr(beneath, name)

    def act(*args):
        nonlocal calls
        calls += 1
        if calls >= number:
            raise OSError(errno.EIO, "injected")
        return real(*args)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(beneath, name, act)
        LocalIntake(bench.store).publish(sent.sealed)
    assert calls >= number


def stage_of(bench: LocalBench, copy_id: str = "c1") -> Path:
    return bench.root / ".lifecycle/incoming" / copy_id


# What cannot be copied, and what can.


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "link outside"])
@pytest.mark.parametrize("shape", [Shape.DIR, Shape.FILE])
def test_what_no_copy_can_hold_is_refused(bench: LocalBench, kind: str, shape: Shape):
    fill(bench)
    key, members, _ = UNITS[shape]
    path = bench.path(key if members else f"{key}/w/odd")
    path.unlink(missing_ok=True)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
        case "device":
            os.mknod(path, stat.S_IFCHR, os.makedev(1, 3))
        case _:
            os.link(bench.path("runs/a/latest"), path)
    with pytest.raises((Refused, Changed)) as caught:
        bench.store.contents(Target(key, shape, members))
    assert caught.value.code == "not_copyable" or (members and kind != "link outside")


def test_a_link_in_the_place_of_a_unit(bench: LocalBench):
    fill(bench)
    for shape in (Shape.DIR, Shape.FILE):
        key, members, _ = UNITS[shape]
        bench.path(key).rename(bench.root / "away")
        bench.path(key).symlink_to(bench.root / "away")
        with pytest.raises(Changed):
            bench.store.contents(Target(key, shape, members))
        with pytest.raises(Changed):
            list(bench.store.stream(f"{key}/DONE" if shape is Shape.DIR else key, 0))
        bench.remove("away")


def test_a_file_that_grows_while_it_is_read(bench: LocalBench):
    bench.put("r/file", b"x" * (9 * MIB))
    pieces = bench.store.stream("r/file", 9 * MIB)
    next(pieces)
    with bench.path("r/file").open("ab") as file:
        file.write(b"more")
    with pytest.raises(Changed):
        list(pieces)


def test_a_file_rewritten_in_place_while_it_is_read(bench: LocalBench):
    bench.put("r/file", b"x" * (9 * MIB))
    pieces = bench.store.stream("r/file", 9 * MIB)
    next(pieces)
    bench.path("r/file").write_bytes(b"y" * (9 * MIB))
    with pytest.raises(Changed):
        list(pieces)


def test_a_file_swapped_for_a_fifo_before_it_is_read(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    bench.put("x", b"1")

    def open_(name, *args, real=os.open, **kwargs):
        if name == "x":
            bench.remove("x")
            os.mkfifo(bench.root / "x")
        return real(name, *args, **kwargs)

    bench.store.root()
    monkeypatch.setattr(os, "open", open_)
    with pytest.raises(Changed):
        list(bench.store.stream("x", 1))


def test_a_directory_that_cannot_be_listed(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    inode = bench.path("runs/a/step-2/w").stat().st_ino

    def listdir(fd, real=os.listdir):
        if os.fstat(fd).st_ino == inode:
            raise OSError(errno.EIO, "injected")
        return real(fd)

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(StoreError) as caught:
        bench.store.contents(Target("runs/a/step-2", Shape.DIR, ()))
    assert caught.value.code == "listing_incomplete"


def test_a_directory_replaced_while_it_is_looked_into(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)

    def walk(key: str, real=bench.store.walk):
        folders = list(real(key))
        bench.replace(key)
        return iter(folders)

    monkeypatch.setattr(bench.store, "walk", walk)
    with pytest.raises(Changed, match="replaced"):
        bench.store.contents(Target("runs/a/step-2", Shape.DIR, ()))


def test_a_file_that_became_a_directory_while_it_is_looked_into(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)

    def walk(key: str, real=bench.store.walk):
        folders = list(real(key))
        bench.remove(f"{key}/DONE")
        bench.path(f"{key}/DONE").mkdir()
        return iter(folders)

    monkeypatch.setattr(bench.store, "walk", walk)
    with pytest.raises(Changed, match="no regular file"):
        bench.store.contents(Target("runs/a/step-2", Shape.DIR, ()))


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"caf\xe9", b"\xed\xb2\x80"])
def test_undecodable_names_deep_trees_and_links_go_there_and_back(place: Path, raw: bytes):
    one, two, three = (LocalBench(place / name) for name in ("one", "two", "three"))
    name = os.fsdecode(raw)
    top = one.path(f"run/step-{name}")
    top.mkdir(parents=True)
    chain(top, 80, beside=True)
    (top / name).write_bytes(b"odd")
    (top / "link").symlink_to(name)
    os.link(top / name, top / "d" / name)
    os.utime(top, ns=(T0, T0))
    unit = checkpoint(f"run/step-{name}", Shape.DIR)
    told = one.store.contents(Target(unit.key, Shape.DIR, ()))
    assert len(told.directories) == 161
    for bench in (one, two, three):
        bench.store.root()
    before = open_descriptors()
    for source, target in ((one, two), (two, three)):
        carry(source.store, LocalIntake(target.store), manifest_of(unit, told))
        assert target.store.contents(Target(unit.key, Shape.DIR, ())) == told
    assert open_descriptors() == before


def test_a_path_longer_than_one_call_takes(place: Path):
    one, two = (LocalBench(place / name) for name in ("one", "two"))
    one.path("run/step-1").mkdir(parents=True)
    chain(one.path("run/step-1"), 45, name="d" * 100)  # a path may have 4,096 bytes
    unit = checkpoint("run/step-1", Shape.DIR)
    told = one.store.contents(Target(unit.key, Shape.DIR, ()))
    carry(one.store, LocalIntake(two.store), manifest_of(unit, told))
    assert two.store.contents(Target(unit.key, Shape.DIR, ())) == told


def test_no_copy_runs_as_somebody_else(bench: LocalBench):
    sent = parcel_of(Shape.FILE)
    member = sent.manifest.members[0]._replace(mode=0o6755)
    sent = Parcel(replace(sent.manifest, members=(member,)), sent.content)
    begun(bench, sent).publish(sent.sealed)
    assert stat.S_IMODE(bench.path(sent.key).stat().st_mode) == 0o755


# Full and broken disks.


@pytest.mark.root
@pytest.mark.parametrize("options", ["size=256k", "nr_inodes=16"])
def test_a_full_file_system(place: Path, options: str):
    (place / "small").mkdir()
    with mounted(place / "small", "-t", "tmpfs", "-o", options, "tmpfs"):
        bench = LocalBench(place / "small/root")
        content = {f"r/step-1/{i}": b"x" * (100_000 if "size" in options else 1) for i in range(20)}
        sent = parcel(checkpoint("r/step-1", Shape.DIR), content)
        with pytest.raises(StoreError) as caught:
            begun(bench, sent)
        assert caught.value.code == "no_space"
        assert list((stage_of(bench) / "new").iterdir()) == []
        LocalIntake(bench.store).abandon("c1")
        assert [p.name for p in bench.root.rglob("*")] == [".lifecycle", "incoming"]


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "no_space"), (errno.EDQUOT, "quota"), (errno.EIO, "io_error"), (errno.EROFS, "read_only")],
)
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_write_that_fails_leaves_nothing(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch, number: int, code: str, call: str
):
    sent = parcel_of(Shape.FILE)
    intake = begun(bench, sent)
    (member,) = sent.manifest.members

    def fail(*args):
        raise OSError(number, "injected")

    with monkeypatch.context() as patch:
        patch.setattr(*((beneath, "write") if call == "write" else (os, "fsync")), fail)
        with pytest.raises(StoreError) as caught:
            intake.put("c1", member, [b"y" * 45, b"y" * 45])
    assert caught.value.code == code
    assert list((stage_of(bench) / "new").iterdir()) == []
    with pytest.raises(NotFound):
        list(intake.staged("c1", member))


def test_a_broken_source_leaves_nothing(bench: LocalBench, place: Path, monkeypatch: pytest.MonkeyPatch):
    source = LocalBench(place / "source")
    sent = parcel_of(Shape.FILE)
    source.put(sent.key, sent.content[sent.key])
    intake, (member,) = begun(bench, sent), sent.manifest.members
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", lambda *args: (_ for _ in ()).throw(OSError(errno.EIO, "injected")))
        with pytest.raises(StoreError) as caught:
            intake.put("c1", member, source.store.stream(sent.key, member.size_bytes))
    assert caught.value.code == "io_error" and "read" in str(caught.value)
    assert list((stage_of(bench) / "new").iterdir()) == []


def test_what_cannot_be_removed_is_told_and_goes_later(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    intake = begun(bench, parcel_of(Shape.DIR))
    with monkeypatch.context() as patch:
        patch.setattr(beneath, "unlink", lambda *args: (_ for _ in ()).throw(OSError(errno.EBUSY, "injected")))
        with pytest.raises(StoreError, match="EBUSY"):
            intake.abandon("c1")
    assert set(bench.store.incoming()) == {"c1"}
    with pytest.raises(StoreError):
        intake.publish(parcel_of(Shape.DIR).sealed)
    intake.abandon("c1")
    assert not bench.store.incoming() and not list(stage_of(bench).parent.iterdir())


# What a crash left, and who came in between.


def test_another_content_than_that_of_the_publishing_that_began(bench: LocalBench):
    sent = parcel_of(Shape.GROUP)
    intake = begun(bench, sent)
    cut_at(bench, sent, "move", 2)
    other = sealed(sent.manifest, {key: b"!" + body for key, body in sent.content.items()})
    with pytest.raises(Changed, match="began with other contents"):
        intake.publish(other)
    assert not bench.store.copies()
    intake.publish(sent.sealed)
    assert_published(bench, sent)


@pytest.mark.parametrize("shape", [Shape.DIR, Shape.GROUP])
def test_somebody_who_is_faster_is_not_overwritten(bench: LocalBench, monkeypatch: pytest.MonkeyPatch, shape: Shape):
    fill(bench)
    sent = parcel_of(shape)
    intake, before, last = begun(bench, sent), shown(bench), in_order(sent.manifest)[-1].key

    def move(*args, real=beneath.move):
        if args[0] == last.rpartition("/")[2] or shape is Shape.DIR:
            bench.put(last, b"somebody else's")
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(beneath, "move", move)
        with pytest.raises(Occupied):
            intake.publish(sent.sealed)
    assert shown(bench).files == before.files | {last: (b"somebody else's", shown(bench).files[last][1])}
    with pytest.raises(Occupied):
        intake.publish(sent.sealed)
    bench.remove(last if sent.manifest.keys else sent.key)
    intake.publish(sent.sealed)
    assert_published(bench, sent)


@pytest.mark.parametrize("finish", ["publish", "abandon", "begin"])
def test_a_move_without_renameat2_that_was_cut_in_two(bench: LocalBench, monkeypatch: pytest.MonkeyPatch, finish: str):
    sent = parcel_of(Shape.GROUP)
    intake = begun(bench, sent)
    cut_at(bench, sent, "move", 3)
    half = next(path for path in stage_of(bench).rglob("*") if path.is_file() and "payload" in path.parts)
    key = str(half.relative_to(stage_of(bench) / "payload"))
    bench.path(key).parent.mkdir(parents=True, exist_ok=True)
    os.link(half, bench.path(key))
    if finish == "publish":
        intake.publish(sent.sealed)
        assert_published(bench, sent)
    elif finish == "abandon":
        intake.abandon("c1")
        assert_nothing_of(bench, sent)
    else:
        lay(intake, sent)
        intake.publish(sent.sealed)
        assert_published(bench, sent)


def test_a_part_that_is_in_neither_place(bench: LocalBench):
    sent = parcel_of(Shape.GROUP)
    intake = begun(bench, sent)
    cut_at(bench, sent, "move", 2)
    (placed,) = standing(bench, sent)
    bench.remove(placed)
    with pytest.raises(NotFound):
        intake.publish(sent.sealed)
    intake.abandon("c1")
    assert_nothing_of(bench, sent)


@pytest.mark.parametrize("shape", [Shape.DIR, Shape.GROUP, Shape.FILE])
@pytest.mark.parametrize("change", ["grown", "another", "link", "fifo"])
def test_what_changed_at_its_key_before_it_was_published_is_not_ours_any_more(
    bench: LocalBench, shape: Shape, change: str
):
    sent = parcel_of(shape)
    intake = begun(bench, sent)
    cut_at(bench, sent, "write_file", 2)
    (victim,) = [key for key in standing(bench, sent) if key == sent.manifest.checkpoint.proof] or [sent.key]
    path = bench.path(victim)
    match change:
        case "grown":
            path.write_bytes(path.read_bytes() + b"more")
        case "another":
            bench.put(f"{sent.key}/another" if shape is Shape.DIR else victim, b"x" * 90, T0 + 9 * SECOND)
        case "link":
            path.unlink()
            path.symlink_to("elsewhere")
        case _:
            path.unlink()
            os.mkfifo(path)
    with pytest.raises(Occupied):
        intake.publish(sent.sealed)
    with pytest.raises(Occupied):
        intake.begin(sent.manifest)
    left = picture(bench.root)
    intake.abandon("c1")
    assert os.path.lexists(path) and not {*bench.store.copies(), *bench.store.incoming()}
    assert {k: v for k, v in picture(bench.root).items() if k == victim} == {
        k: v for k, v in left.items() if k == victim
    }


def test_what_was_published_and_forgotten_is_never_given_up(bench: LocalBench):
    sent = parcel_of(Shape.FILE)
    intake = begun(bench, sent)
    intake.forget("c1")
    cut_at(bench, sent, "move", 2)
    assert set(bench.store.copies()) == set(bench.store.incoming()) == {"c1"}
    intake.forget("c1")
    assert not {*bench.store.copies(), *bench.store.incoming()}
    intake.abandon("c1")
    assert standing(bench, sent) == sent.content


@pytest.mark.parametrize("how", ["extra", "shorter"])
def test_a_stage_that_is_not_what_the_manifest_says(bench: LocalBench, how: str):
    sent = parcel_of(Shape.DIR)
    intake = begun(bench, sent)
    path = stage_of(bench) / "payload" / sent.key / ("extra" if how == "extra" else "w/0.bin")
    path.write_bytes(b"not ours")
    with pytest.raises(Changed, match="not what its manifest says"):
        intake.publish(sent.sealed)
    assert not bench.path(sent.key).exists() and not bench.store.copies()


def test_links_in_the_way_are_not_followed(bench: LocalBench, place: Path):
    sent = parcel_of(Shape.DIR)
    (place / "victim").mkdir()
    bench.path("runs").symlink_to(place / "victim")
    with pytest.raises(StoreError):
        begun(bench, sent)
    bench.path("runs").unlink()
    intake = begun(bench, sent)
    bench.path("runs").symlink_to(place / "victim")
    with pytest.raises(StoreError):
        intake.publish(sent.sealed)
    assert list((place / "victim").iterdir()) == []
    bench.path("runs").unlink()
    bench.path(sent.key).parent.mkdir(parents=True)
    bench.path(sent.key).symlink_to("nowhere")
    with pytest.raises(Occupied):
        intake.publish(sent.sealed)
    with pytest.raises(Occupied):
        intake.begin(sent.manifest)


def test_manifests_that_name_what_is_not_theirs(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    before, intake = picture(bench.root), LocalIntake(bench.store)
    directory, group = parcel_of(Shape.DIR).manifest, parcel_of(Shape.GROUP).manifest
    stray = Member("runs/a/step-90/x", 1, T0)
    bad = [
        replace(directory, members=(*directory.members, stray)),
        replace(directory, members=(*directory.members, stray._replace(key="runs/a/step-9/../x"))),
        replace(directory, directories=(*directory.directories, Directory("runs/a", T0, 0o755))),
        replace(directory, checkpoint=replace(directory.checkpoint, key="")),
        replace(group, members=(*group.members, stray)),
        replace(group, directories=(Directory("runs/c", T0, 0o755),)),
        parcel(checkpoint(".lifecycle/notes", Shape.DIR), {".lifecycle/notes/x": b""}).manifest,
        parcel(checkpoint("x", Shape.GROUP, ("x", ".lifecycle/x")), {"x": b"", ".lifecycle/x": b""}).manifest,
    ]
    for manifest in bad:
        for act in (intake.begin, intake.publish):
            with pytest.raises(StoreError) as caught:
                act(manifest)
            assert caught.value.code == "bad_key"
    monkeypatch.setattr(posix_intake, "COPY_MAX_BYTES", len(directory.encode()))
    with pytest.raises(StoreError, match="too many files"):
        intake.begin(directory)
    assert picture(bench.root) == before


def test_manifests_that_cannot_be_read(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    sent = parcel_of(Shape.FILE)
    intake = begun(bench, sent)
    (bench.root / ".lifecycle/incoming/stray").write_bytes(b"")
    (bench.root / ".lifecycle/incoming/shell").mkdir()
    assert set(bench.store.incoming()) == {"c1"}
    intake.publish(sent.sealed)
    held = bench.store.copies()
    assert "c1" in held and "c2" not in held and len(held) == 1
    with pytest.raises(KeyError):
        held["c2"]
    with monkeypatch.context() as patch:
        patch.setattr(posix_copy, "COPY_MAX_BYTES", 10)
        with pytest.raises(StoreError) as caught:
            held["c1"]
        assert caught.value.code == "broken_manifest"
    intake.forget("c1")
    with pytest.raises(NotFound):
        held["c1"]
    (bench.root / ".lifecycle/copies").rmdir()
    with pytest.raises(NotFound):
        held["c1"]


def test_a_broken_manifest_under_way_is_left_for_people(bench: LocalBench):
    sent = parcel_of(Shape.DIR)
    intake = begun(bench, sent)
    (stage_of(bench) / "manifest.json").write_bytes(b"{")
    for act in (lambda: intake.abandon("c1"), lambda: intake.begin(sent.manifest), lambda: intake.publish(sent.sealed)):
        with pytest.raises(StoreError) as caught:
            act()
        assert caught.value.code == "broken_manifest"
    assert (stage_of(bench) / "payload" / sent.key / "DONE").exists()


# Others at work.


def damage_line(stage: Path, key: str) -> None:
    """As a crash leaves the last line, with another one after it."""
    text = (stage / "sums").read_text()
    assert key in text
    odd = ['["torn", 1', "[]", '"x"', '["k", 1, 2]', '[["k"], 1, "' + "0" * 64 + '"]']
    (stage / "sums").write_text("\n".join([text.replace(key, key[:3]), *odd]))


def remove_staged(stage: Path, key: str) -> None:
    (stage / "payload" / key).unlink()


def shorten_staged(stage: Path, key: str) -> None:
    (stage / "payload" / key).write_bytes(b"")


def link_staged(stage: Path, key: str) -> None:
    remove_staged(stage, key)
    (stage / "payload" / key).symlink_to("/etc/passwd")


def directory_staged(stage: Path, key: str) -> None:
    remove_staged(stage, key)
    (stage / "payload" / key).mkdir()


@pytest.mark.parametrize("spoil", [damage_line, remove_staged, shorten_staged, link_staged])
def test_a_member_that_is_not_surely_in_is_sent_again(bench: LocalBench, spoil: Callable[[Path, str], None]):
    sent = parcel_of(Shape.DIR)
    lay(open_intake(bench.store), sent)
    key = f"{sent.key}/w/0.bin"
    spoil(stage_of(bench), key)
    assert lay(open_intake(bench.store), sent) == [key]
    open_intake(bench.store).publish(sent.sealed)
    assert_published(bench, sent)


def test_a_directory_where_a_member_was_is_in_the_way_until_it_is_given_up(bench: LocalBench):
    sent = parcel_of(Shape.DIR)
    lay(open_intake(bench.store), sent)
    directory_staged(stage_of(bench), key := f"{sent.key}/w/0.bin")
    with pytest.raises(StoreError):
        lay(open_intake(bench.store), sent)
    open_intake(bench.store).abandon("c1")
    assert key in lay(open_intake(bench.store), sent)


def test_a_stage_that_is_half_removed_is_begun_anew(bench: LocalBench):
    sent = parcel_of(Shape.DIR)
    lay(open_intake(bench.store), sent)
    (stage_of(bench) / "payload").rename(stage_of(bench) / "dropping")
    assert set(lay(open_intake(bench.store), sent)) == set(sent.content)


def test_what_was_being_written_goes_and_what_is_in_stays(bench: LocalBench):
    sent = parcel_of(Shape.DIR)
    lay(open_intake(bench.store), sent)
    (stage_of(bench) / "new" / "77-abc").write_bytes(b"half")
    assert lay(open_intake(bench.store), sent) == []
    assert not list((stage_of(bench) / "new").iterdir())
    (stage_of(bench) / "new").rmdir()
    assert lay(open_intake(bench.store), sent) == []
    open_intake(bench.store).publish(sent.sealed)
    assert_published(bench, sent)


def test_a_publishing_that_had_not_placed_anything_is_gone_on_with(bench: LocalBench):
    """Its directories have got their own modes by then, which may keep their owner out."""
    sent = parcel_of(Shape.DIR)
    folders = tuple(d._replace(mode=0o555) for d in sent.manifest.directories)
    sent = Parcel(replace(sent.manifest, directories=folders), sent.content)
    lay(open_intake(bench.store), sent)
    (stage_of(bench) / "payload" / sent.key / "w").chmod(0o555)
    remove_staged(stage_of(bench), key := f"{sent.key}/w/0.bin")
    assert lay(open_intake(bench.store), sent) == [key]
    assert (stage_of(bench) / "payload" / sent.key / "w").stat().st_mode & 0o700 == 0o700


def test_what_somebody_is_at_work_on_is_busy(bench: LocalBench):
    sent = parcel_of(Shape.FILE)
    intake, (member,) = begun(bench, sent), sent.manifest.members
    acts: dict[int, list[Callable[[], object]]] = {
        fcntl.LOCK_EX: [lambda: intake.put("c1", member, [sent.content[member.key]])],
        fcntl.LOCK_SH: [
            lambda: intake.begin(sent.manifest),
            lambda: intake.publish(sent.sealed),
            lambda: intake.abandon("c1"),
        ],
    }
    for lock, busy in acts.items():
        other = os.open(stage_of(bench), os.O_RDONLY)
        fcntl.flock(other, lock)
        for act in busy:
            with pytest.raises(StoreError) as caught:
                act()
            assert caught.value.code == "busy"
        os.close(other)
    intake.publish(sent.sealed)
    assert_published(bench, sent)


def test_where_the_file_system_knows_no_locks(bench: LocalBench, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def flock(*args):
        asked.append(args)
        raise OSError(errno.ENOLCK, "injected")

    monkeypatch.setattr(fcntl, "flock", flock)
    sent = parcel_of(Shape.DIR)
    begun(bench, sent).publish(sent.sealed)
    assert_published(bench, sent)
    assert asked


@pytest.mark.root
@pytest.mark.parametrize("finish", ["publish", "redo", "abandon"])
def test_directories_that_their_owner_may_not_write_to(place: Path, finish: str):
    """Not even root's rights are needed for a checkpoint that was made read-only."""
    os.chown(place, NOBODY, NOBODY)
    key = "r/step-1"
    sent = parcel(checkpoint(key, Shape.DIR), {f"{key}/w/x": b"x", f"{key}/y": b"y"}, [key, f"{key}/w"])
    folders = tuple(d._replace(mode=0o555) for d in sent.manifest.directories)
    sent = Parcel(replace(sent.manifest, directories=folders), sent.content)
    with as_user(NOBODY):
        bench = LocalBench(place / "root")
        intake = begun(bench, sent)
        for call, number in (("move", 1), ("write_file", 2 if finish == "redo" else 1)):
            cut_at(bench, sent, call, number)
            if finish == "redo":
                lay(intake, sent)
        if finish == "abandon":
            intake.abandon("c1")
            assert_nothing_of(bench, sent)
            return
        intake.publish(sent.sealed)
        assert_published(bench, sent)
        assert bench.store.contents(sent.target).directories == folders
