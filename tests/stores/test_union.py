"""A store over several roots keeps the contract, and nothing is judged by a part of it."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.action import Action, Verb
from lifecycle.core.copies import Member
from lifecycle.core.model import Shape
from lifecycle.core.notes import read_hold
from lifecycle.core.warrant import Warrant, issue_purge
from lifecycle.errors import Changed, NotFound, Occupied, Refused, StoreError
from lifecycle.flows.fills import volume_of
from lifecycle.ports import Freed, Records, Target
from lifecycle.sizing.waits import Speed
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.open import open_intake, open_trash
from lifecycle.stores.posix_trash import LocalTrash
from lifecycle.stores.union import UnionStore
from lifecycle.stores.union_trash import UnionTrash
from tests.stores.contract import (
    NOW,
    SECOND,
    T0,
    UNITS,
    StoreContract,
    TrashContract,
    act_on,
    fill,
    purge_warrant,
    remember,
    shown,
    unit_keys,
    warrant_for,
)
from tests.stores.places import NOBODY, as_user, memory_directory, picture, without
from tests.stores.test_local import LocalBench


class UnionBench:
    """Fresh directories; each file goes into one of them by its name, so that most units lie in several."""

    keeps_times = keeps_modes = keeps_links = True

    def __init__(self, place: Path, roots: int = 2, **options):
        self.paths = [place / f"n{i}" for i in range(roots)]
        for path in self.paths:
            path.mkdir(parents=True)
        self.options = options
        self.store, self.trash = self.reopen()

    def root(self, key: str) -> Path:
        """Where a file goes: by the last letter of its name, so that the files of a unit are in all of two or three."""
        return self.paths[ord(key[-1]) % len(self.paths)]

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        path = next((root / key for root in self.paths if (root / key).exists()), self.root(key) / key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(mtime_ns, mtime_ns))

    def standing(self, key: str) -> list[Path]:
        return [root / key for root in self.paths if (root / key).exists()]

    def replace(self, key: str) -> None:
        for path in self.standing(key):
            LocalBench.replace(_At(path), "")  # type: ignore[arg-type]  # as the other bench does it

    def remove(self, key: str) -> None:
        for path in self.standing(key):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def tag(self, key: str, tags: dict[str, str]) -> None:
        for path in self.standing(key):
            for name, value in tags.items():
                os.setxattr(path, f"user.tag.{name}", value.encode())

    def reopen(self) -> tuple[UnionStore, UnionTrash]:
        roots = [LocalStore("hot", path, **self.options) for path in self.paths]
        store = UnionStore("hot", roots, "roots:" + "+".join(f"file://{path}" for path in self.paths))
        return store, UnionTrash(store)

    cut = LocalBench.cut


class _At:
    def __init__(self, path: Path):
        self.at = path

    def path(self, _key: str) -> Path:
        return self.at


@pytest.fixture
def place() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def bench(place: Path) -> UnionBench:
    return UnionBench(place)


class TestContract(StoreContract):
    pass


class TestTrashOverThree(TrashContract):
    @pytest.fixture
    def bench(self, place: Path) -> UnionBench:
        return UnionBench(place, 3)


def save(bench: UnionBench, step: int = 2) -> str:
    """A checkpoint of which the proof is in the second root and a shard in each; beside a run that stays."""
    key = f"o/step-{step}"
    for i, root in enumerate(bench.paths):
        (root / key).mkdir(parents=True)
        (root / key / f"__{i}_0.distcp").write_bytes(b"shard" * (i + 1))
        (root / "other").mkdir(exist_ok=True)
        (root / "other" / f"kept-{i}").touch()
    (bench.paths[1] / key / ".metadata").write_bytes(b"all")
    return key


def leave(bench: UnionBench, key: str, trash_id: str = "t1") -> Warrant:
    return warrant_for(bench.store, act_on(bench.store, key, proof=f"{key}/.metadata"), trash_id)


def gone(bench: UnionBench) -> str:
    """A checkpoint in the trash."""
    key = save(bench)
    bench.trash.retire(leave(bench, key), NOW)
    return key


def entry(bench: UnionBench, root: int, trash_id: str = "t1") -> Path:
    return bench.paths[root] / ".lifecycle" / "trash" / trash_id


def pictures(bench: UnionBench) -> list[dict[str, tuple[object, ...]]]:
    """All that stands in each root, without what is ours."""
    return [without(picture(root), ".lifecycle") for root in bench.paths]


def test_the_units_of_the_contract_are_spread(bench: UnionBench):
    """Else it would prove nothing."""
    fill(bench)
    for shape in (Shape.DIR, Shape.GROUP):
        assert all(any((root / key).exists() for key in unit_keys(shape)) for root in bench.paths)


# What it is.


def test_identity_is_that_of_all_roots_in_their_order(bench: UnionBench, place: Path, tmp_path: Path):
    save(bench)
    own = [root.identity() for root in bench.store.roots]
    told = bench.store.identity()
    assert volume_of("hot", told) == volume_of("hot", own[0]) != "hot"
    turned = UnionStore("hot", bench.store.roots[::-1], "")
    more = UnionStore("hot", [*bench.store.roots, LocalStore("hot", place)], "")
    assert len({told, turned.identity(), more.identity(), *own}) == 5
    (tmp_path / "any").touch()
    elsewhere = LocalStore("hot", tmp_path)
    apart = UnionStore("hot", [bench.store.roots[0], elsewhere], "")
    assert apart.identity() == f"roots-{own[0]}+{elsewhere.identity()}"
    assert volume_of("hot", apart.identity()) == "hot"
    one, two = bench.store.roots[0].usage(), elsewhere.usage()
    assert bench.store.usage().size_bytes == one.size_bytes
    assert apart.usage().size_bytes == (one.size_bytes or 0) + (two.size_bytes or 0)


def test_a_root_that_is_missing_or_another_one(bench: UnionBench):
    save(bench)
    bench.store.identity()
    bench.paths[1].rename(bench.paths[1].with_name("away"))
    for store in (bench.store, bench.reopen()[0]):
        with pytest.raises(Refused, match="n1") as caught:
            store.identity()
        assert caught.value.code == "source_unavailable"
    bench.paths[1].mkdir()
    with pytest.raises(Refused, match="n1") as caught:
        bench.store.identity()
    assert caught.value.code == "root_changed"


def test_an_empty_root_beside_others_is_none(bench: UnionBench):
    bench.store.identity()  # all of them are empty: there is nothing to lose
    (bench.paths[0] / "run").mkdir()
    with pytest.raises(Refused, match=r"n1.*is empty") as caught:
        bench.store.identity()
    assert caught.value.code == "source_unavailable"
    (bench.paths[1] / ".lifecycle").mkdir()
    bench.store.identity()


def test_a_root_that_cannot_be_listed(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    def broken(_root: object) -> None:
        raise OSError(5, "injected")

    save(bench)
    monkeypatch.setattr(os, "scandir", broken)
    with pytest.raises(Refused, match="n0") as caught:
        bench.store.identity()
    assert caught.value.code == "source_unavailable"


def test_a_sentinel_is_asked_for_in_every_root(place: Path):
    bench = UnionBench(place, sentinel=".ckpt-root")
    (bench.paths[0] / ".ckpt-root").write_text("n0")
    with pytest.raises(Refused, match="n1") as caught:
        bench.store.identity()
    assert caught.value.code == "source_unavailable"
    (bench.paths[1] / ".ckpt-root").write_text("n1")
    bench.store.identity()
    (folder,) = bench.store.walk()
    assert folder.names == [".ckpt-root"] and not folder.error, "the one name that may be in all"
    assert bench.store.read(".ckpt-root") == b"n0"


def test_a_directory_that_is_two_roots(bench: UnionBench):
    save(bench)
    link = bench.paths[0].with_name("again")
    link.symlink_to(bench.paths[1])
    store = UnionStore("hot", [*bench.store.roots, LocalStore("hot", link)], "")
    with pytest.raises(Refused, match=r"again.* is the same directory"):
        store.identity()


# What it shows.

Twice = Callable[[Path], object]
OTHERS: dict[str, Twice] = {
    "file": lambda path: path.write_bytes(b"x"),
    "link": lambda path: path.symlink_to("y"),
    "fifo": os.mkfifo,
    "directory": lambda path: path.mkdir(),
}


@pytest.mark.parametrize(
    ("one", "other"), [("file", "file"), ("link", "link"), ("fifo", "directory"), ("directory", "link")]
)
def test_a_name_in_two_roots_is_not_understood(bench: UnionBench, one: str, other: str):
    key = save(bench)
    warrant = leave(bench, key)
    for root, what in zip(bench.paths, (one, other), strict=True):
        OTHERS[what](root / key / "twice")
    before = pictures(bench)
    (broken,) = (folder for folder in bench.store.walk() if folder.error)
    assert broken.path == key and not broken.names
    assert all(part in broken.error for part in ("'twice'", str(bench.paths[0]), str(bench.paths[1])))
    for look in (bench.store.sight, bench.store.contents):
        with pytest.raises(StoreError) as caught:
            look(Target(key, Shape.DIR, ()))
        assert caught.value.code == "listing_incomplete"
    for ask in (bench.store.read, bench.store.tags, lambda name: list(bench.store.stream(name, 1))):
        with pytest.raises(Changed):
            ask(f"{key}/twice")
    with pytest.raises(StoreError):
        bench.trash.retire(warrant, NOW)
    assert pictures(bench) == before


def test_a_file_of_a_group_in_two_roots(bench: UnionBench):
    save(bench)
    for root in bench.paths:
        (root / "o" / "m.index").write_bytes(b"1")
    for members in (("o/m.index",), ("o/m.index", "o/m.data")):
        with pytest.raises(StoreError, match="more than one root"):
            bench.store.sight(Target("o/m", Shape.GROUP, members))


def test_a_file_where_another_root_has_the_checkpoint(bench: UnionBench):
    key = save(bench)
    warrant = leave(bench, key)
    shutil.rmtree(bench.paths[0] / key)
    (bench.paths[0] / key).write_bytes(b"no directory")
    assert [folder.path for folder in bench.store.walk() if folder.error] == ["o"]
    for act in (lambda: bench.store.sight(Target(key, Shape.DIR, ())), lambda: bench.trash.retire(warrant, NOW)):
        with pytest.raises(Changed):
            act()


def test_a_directory_that_one_root_does_not_let_us_read(bench: UnionBench):
    key = save(bench)
    (bench.paths[1] / key).chmod(0)
    with as_user(NOBODY):
        store = bench.reopen()[0]
        errors = {folder.path: folder.error for folder in store.walk() if folder.error}
        assert set(errors) == {key} and str(bench.paths[1]) in errors[key]
        with pytest.raises(StoreError):
            store.sight(Target(key, Shape.DIR, ()))


def test_a_change_in_the_root_whose_clock_is_behind_is_seen(bench: UnionBench):
    key = save(bench)
    for number, root in enumerate(bench.paths):
        os.utime(root / "o", ns=(T0 - number, T0 - number))
    stamps = {root: (root / "o").stat().st_mtime_ns for root in bench.paths}
    memory = remember(bench.store, "o")
    assert bench.store.same("o", memory)
    assert not bench.store.same("o", memory._replace(inside=(*memory.inside, "nowhere")))
    late = bench.paths[1]
    os.utime(late / "o", ns=(T0 - 9, T0 - 9))
    assert max(stamps.values()) == (bench.paths[0] / "o").stat().st_mtime_ns
    assert not bench.store.same("o", memory)
    memory = remember(bench.store, "o")
    shutil.rmtree(late / key)
    (late / key).touch()
    assert not bench.store.same("o", memory)


def test_one_number_on_two_disks_is_two_files(bench: UnionBench):
    save(bench)
    seen = [folder for folder in bench.store.walk() if folder.path == "other"]
    tokens = dict(zip(seen[0].names, seen[0].tokens, strict=True))
    assert tokens["kept-0"] == (bench.paths[0] / "other/kept-0").stat().st_ino
    assert tokens["kept-1"] == (bench.paths[1] / "other/kept-1").stat().st_ino ^ (1 << 56)


def test_tags_of_a_directory_in_two_roots(bench: UnionBench):
    key = save(bench)
    for i, root in enumerate(bench.paths):
        os.setxattr(root / key, f"user.tag.own{i}", b"x")
        os.setxattr(root / key, "user.tag.keep", b"yes")
    assert bench.store.tags(key) == {"own0": "x", "own1": "x", "keep": "yes"}
    os.setxattr(bench.paths[1] / key, "user.tag.keep", b"no")
    with pytest.raises(StoreError) as caught:
        bench.store.tags(key)
    assert caught.value.code == "metadata_unavailable"


def test_what_a_copy_must_hold_is_of_all_roots(bench: UnionBench):
    key = save(bench)
    found = bench.store.contents(Target(key, Shape.DIR, ()))
    assert [m.key for m in found.members] == [f"{key}/{name}" for name in (".metadata", "__0_0.distcp", "__1_0.distcp")]
    assert [d.key for d in found.directories] == [key]
    assert b"".join(bench.store.stream(f"{key}/__1_0.distcp", 10)) == b"shardshard"
    bench.put("c/m.index", b"1")
    bench.put("c/m.data", b"22")
    members = ("c/m.index", "c/m.data")
    assert [m.size_bytes for m in bench.store.contents(Target("c/m", Shape.GROUP, members)).members] == [2, 1]
    with pytest.raises(NotFound):
        bench.store.contents(Target("c/m", Shape.GROUP, (*members, "c/m.more")))
    assert bench.store.states([key]) == {} == dict(bench.store.copies()) == dict(bench.store.incoming())


# Notes and clocks.


def test_a_lost_root_loses_no_hold_and_an_unreadable_one_holds_all(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    bench.trash.write_note("hold-h1.json", b"one")
    for root in bench.paths:
        assert (root / ".lifecycle/notes/hold-h1.json").read_bytes() == b"one"
    (bench.paths[0] / ".lifecycle/notes/hold-h1.json").unlink()
    assert dict(bench.store.notes()) == {"hold-h1.json": b"one"}
    (bench.paths[0] / ".lifecycle/notes/hold-h1.json").write_bytes(b"two")
    names = set(bench.store.notes())
    assert names == {"hold-h1.json", "hold-h1.json~1"}
    assert all(hold and hold.target == "hot:" for hold in (read_hold("hot", name, b"{}") for name in names))
    (bench.paths[0] / ".lifecycle/notes").rename(bench.paths[0] / ".lifecycle/old")
    (bench.paths[0] / ".lifecycle/notes").touch()
    with pytest.raises(StoreError):
        bench.store.notes()


def test_clocks_of_roots_that_disagree(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    told = {root.path: NOW for root in bench.store.roots}
    monkeypatch.setattr(LocalTrash, "told_ns", lambda trash: told[trash.store.path])
    told[bench.store.roots[1].path] = NOW + 10 * SECOND
    assert bench.trash.told_ns() == NOW + 5 * SECOND
    told[bench.store.roots[1].path] = NOW - 3600 * SECOND
    with pytest.raises(StoreError, match="1h apart") as caught:
        bench.trash.told_ns()
    assert caught.value.code == "clock_unknown"


# Copies.


def test_it_takes_no_copies(bench: UnionBench):
    intake = open_intake(bench.store)
    manifest: Any = None
    member = Member("a", 1, 0)
    for ask in (
        lambda: intake.begin(manifest),
        lambda: intake.put("c", member, []),
        lambda: intake.staged("c", member),
        lambda: intake.publish(manifest),
    ):
        with pytest.raises((Refused, StoreError)) as caught:
            ask()
        assert caught.value.code == "takes_no_copies"
    with pytest.raises(Refused):
        intake.change_class(manifest, "COLD")
    intake.end_change(manifest)
    assert intake.ask_back(manifest, Speed.BULK, 1) == 0
    assert not isinstance(intake, Records) and isinstance(open_trash(bench.store), UnionTrash)


def test_what_a_root_knew_of_copies_can_be_cleared(bench: UnionBench):
    area = bench.paths[1] / ".lifecycle"
    (area / "copies").mkdir(parents=True)
    (area / "copies" / "c1.json").write_bytes(b"{}")
    assert dict(bench.store.copies()) == {"c1": b"{}"}
    intake = open_intake(bench.store)
    intake.forget("c1")
    intake.abandon("c2")
    assert dict(bench.store.copies()) == {}


# Retiring.


def test_the_proof_goes_first_and_comes_back_last(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    key = save(bench)
    before = pictures(bench)
    moves: list[tuple[str, bool]] = []
    real = beneath.move

    def move(name: str, fd: int, to: str, into: int) -> None:
        real(name, fd, to, into)
        moves.append((to, (bench.paths[1] / key / ".metadata").exists()))

    monkeypatch.setattr(beneath, "move", move)
    freed = bench.trash.retire(leave(bench, key), NOW)
    assert (freed.bytes, freed.files) == (18, 3)
    assert moves == [("0", False), ("0", False)]
    moves.clear()
    bench.trash.restore("t1")
    assert moves == [("step-2", False), ("step-2", True)]
    assert pictures(bench) == before


def test_a_piece_that_cannot_go_brings_the_others_back(place: Path):
    """At each of the pieces but the first, whatever is the matter."""
    bench = UnionBench(place, 3)
    key = save(bench)
    before = pictures(bench)
    warrant = leave(bench, key)
    for root in (0, 2):
        aside = entry(bench, root)
        aside.mkdir(parents=True)
        with pytest.raises(Occupied):
            bench.trash.retire(warrant, NOW)
        assert pictures(bench) == before and bench.trash.trash() == []
        assert not aside.exists()
    assert bench.trash.retired(warrant.action, "t1") is False


def test_a_piece_that_vanishes_meanwhile_brings_the_others_back(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    key = save(bench)
    warrant = leave(bench, key)
    real = LocalTrash.retire

    def retire(trash: LocalTrash, *args: Any) -> Freed:
        if trash.store.path == str(bench.paths[0]):
            shutil.rmtree(bench.paths[0] / key)
        return real(trash, *args)

    monkeypatch.setattr(LocalTrash, "retire", retire)
    with pytest.raises(Changed, match="vanished"):
        bench.trash.retire(warrant, NOW)
    assert (bench.paths[1] / key / ".metadata").exists() and bench.trash.trash() == []


@pytest.mark.parametrize("stuck", [0, 1, 2])
def test_a_piece_that_can_neither_go_nor_come_back(place: Path, stuck: int, monkeypatch: pytest.MonkeyPatch):
    """Everything stays where it is then, and an undo brings it together."""
    bench = UnionBench(place, 3)
    key = save(bench)
    before = pictures(bench)
    warrant = leave(bench, key)
    real, failing = beneath.move, [False]

    def move(name: str, fd: int, to: str, into: int) -> None:
        here = os.readlink(f"/proc/self/fd/{fd}"), os.readlink(f"/proc/self/fd/{into}")
        if str(bench.paths[2]) in here[0] and name == "step-2":
            failing[0] = True
            if stuck == 2:
                real(name, fd, to, into)
            raise OSError(5, "injected")
        if failing[0] and any(str(bench.paths[stuck]) in path for path in here):
            raise OSError(5, "injected")
        real(name, fd, to, into)

    with monkeypatch.context() as patch:
        patch.setattr(beneath, "move", move)
        with pytest.raises(StoreError):
            bench.trash.retire(warrant, NOW)
    assert failing[0]
    assert not (bench.paths[1] / key).exists(), "the head stays where it is known that the rest cannot come back"
    trash = bench.reopen()[1]
    whole = stuck == 2  # only its answer was lost: then all of it is there
    assert trash.retired(warrant.action, "t1") is (True if whole else None)
    assert [(e.whole, e.replaced, e.bytes) for e in trash.trash()] == [(whole, False, warrant.action.bytes)]
    trash.restore("t1")
    assert pictures(bench) == before and trash.trash() == []
    assert not any(list((root / ".lifecycle/trash").iterdir()) for root in bench.paths)


def test_what_is_changed_or_replaced_in_any_root_stays(bench: UnionBench):
    key = save(bench)
    for change in (
        lambda: (bench.paths[0] / key / "__0_0.distcp").write_bytes(b"more"),
        (bench.paths[0] / key / "new").touch,
        lambda: bench.replace(f"{key}/__0_0.distcp"),
    ):
        warrant = leave(bench, key)
        change()
        before = pictures(bench)
        with pytest.raises(Changed):
            bench.trash.retire(warrant, NOW)
        assert pictures(bench) == before and bench.trash.trash() == []


# Bringing back.


def test_nothing_comes_back_without_a_piece(bench: UnionBench):
    """A root that is not there, or another one, looks like a piece that is lost."""
    key = gone(bench)
    for root in (0, 1):
        aside = bench.paths[root].with_name("aside")
        entry(bench, root).rename(aside)
        before = pictures(bench)
        with pytest.raises(StoreError) as caught:
            bench.trash.restore("t1")
        assert caught.value.code == ("broken_manifest" if root else "partial_delete")
        assert pictures(bench) == before
        (told,) = bench.trash.trash()
        assert (told.key, told.whole, told.ends) == (key, False, False)
        assert bench.trash.retired(act_on_nothing(key), "t1") is None
        if root:
            with pytest.raises(StoreError) as caught:
                bench.trash.purge(purge_warrant())
            assert caught.value.code == "broken_manifest"
        aside.rename(entry(bench, root))
    bench.trash.restore("t1")


def test_nothing_comes_back_while_a_root_is_not_mounted(bench: UnionBench):
    gone(bench)
    away = bench.paths[0].with_name("away")
    bench.paths[0].rename(away)
    bench.paths[0].mkdir()
    store, trash = bench.reopen()
    for act in (lambda: trash.restore("t1"), lambda: trash.purge(purge_warrant()), store.identity):
        with pytest.raises(Refused) as caught:
            act()
        assert caught.value.code == "source_unavailable"
    bench.paths[0].rmdir()
    away.rename(bench.paths[0])
    bench.reopen()[1].restore("t1")


def test_what_was_saved_again_in_any_root_is_not_mixed(place: Path):
    """A root that had nothing of it is none of its places, either."""
    bench = UnionBench(place, 3)
    key = save(bench)
    shutil.rmtree(bench.paths[2] / key)
    bench.trash.retire(leave(bench, key), NOW)
    for root in bench.paths:
        (root / key).mkdir()
        before = pictures(bench)
        with pytest.raises(Occupied):
            bench.trash.restore("t1")
        assert pictures(bench) == before
        assert [(e.whole, e.replaced) for e in bench.trash.trash()] == [(True, False)]
        (root / key).rmdir()
    bench.trash.restore("t1")
    assert (bench.paths[1] / key / ".metadata").exists()


def test_half_of_it_whose_step_was_saved_again_is_freed_in_its_time(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    """A kill came between the pieces; the trainer went on and saved the same step over what was left."""
    key = save(bench)
    warrant = leave(bench, key)
    kill_before(bench, 0, monkeypatch, lambda: bench.trash.retire(warrant, NOW))
    trash = bench.reopen()[1]
    assert trash.retired(warrant.action, "t1") is None and [e.ends for e in trash.trash()] == [False]
    (bench.paths[1] / key).mkdir()
    (bench.paths[1] / key / ".metadata").write_bytes(b"new")
    assert [(e.whole, e.replaced, e.ends) for e in trash.trash()] == [(False, True, True)]
    before = pictures(bench)
    with pytest.raises(Occupied):
        trash.restore("t1")
    freed = trash.purge(purge_warrant())
    assert freed.files == 2 and pictures(bench) == before and trash.trash() == []


def test_half_of_a_group_goes_back_or_is_known_to_be_lost(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    fill(bench)
    before = shown(bench)
    key, members, proof = UNITS[Shape.GROUP]
    warrant = warrant_for(bench.store, act_on(bench.store, key, Shape.GROUP, members, proof))
    head = next(i for i, root in enumerate(bench.paths) if (root / members[0]).exists())
    kill_before(bench, 1 - head, monkeypatch, lambda: bench.trash.retire(warrant, NOW))
    assert bench.trash.retired(warrant.action, "t1") is None
    assert [(e.members, e.bytes, e.whole) for e in bench.trash.trash()] == [(members, warrant.action.bytes, False)]
    rest = [member for member in members if (bench.paths[1 - head] / member).exists()]
    kept = {member: (bench.paths[1 - head] / member).read_bytes() for member in rest}
    bench.remove(rest[0])
    if rest[1:]:
        bench.remove(rest[1])
    with pytest.raises(StoreError) as caught:
        bench.trash.restore("t1")
    assert caught.value.code == "partial_delete"
    for member, content in kept.items():
        path = bench.paths[1 - head] / member
        path.write_bytes(content)
        os.utime(path, ns=(T0 + 2, T0 + 2))
    bench.trash.restore("t1")
    assert shown(bench).files == before.files


def test_a_part_of_a_checkpoint_that_is_gone_from_all_roots(bench: UnionBench):
    key = save(bench)
    part = f"{key}/__0_0.distcp"
    bench.trash.retire(warrant_for(bench.store, act_on(bench.store, key, Shape.GROUP, (part,)), "part"), NOW)
    bench.trash.retire(leave(bench, key), NOW)
    with pytest.raises(StoreError) as caught:
        bench.trash.restore("part")
    assert caught.value.code == "unit_gone"
    bench.trash.restore("t1")
    bench.trash.restore("part")
    assert (bench.paths[0] / part).exists()


# Shells, broken manifests, and what is of another time.


def test_shells_that_a_crash_left_go_with_the_next_act(bench: UnionBench):
    key = save(bench)
    action = leave(bench, key).action
    for act in (lambda: bench.trash.restore("t1"), lambda: bench.trash.purge(purge_warrant())):
        for root in (0, 1):
            (entry(bench, root) / "payload").mkdir(parents=True)
        assert bench.trash.trash() == [] and bench.trash.retired(action, "t1") is False
        with suppress(NotFound):
            assert act() == (0, 0, "already_gone")
        assert not any(entry(bench, root).exists() for root in (0, 1))


def test_an_entry_that_holds_nothing_is_not_there(bench: UnionBench):
    """What is left where the very last step of an undo did not come about, of the head or of another piece."""
    key = gone(bench)
    kept = {root: (entry(bench, root) / "manifest.json").read_bytes() for root in (0, 1)}
    bench.trash.restore("t1")
    for roots in ((0,), (1,), (0, 1)):
        for root in roots:
            (entry(bench, root) / "payload").mkdir(parents=True)
            (entry(bench, root) / "manifest.json").write_bytes(kept[root])
        assert bench.trash.trash() == [] and bench.trash.retired(leave(bench, key).action, "t1") is False
        with suppress(NotFound):
            bench.trash.restore("t1")
        assert not any(entry(bench, root).exists() for root in (0, 1))


def test_a_manifest_that_cannot_be_read(bench: UnionBench):
    key = gone(bench)
    (entry(bench, 0) / "manifest.json").write_bytes(b"{")
    assert bench.trash.retired(act_on_nothing(key), "t1") is None
    assert [(e.key, e.whole) for e in bench.trash.trash()] == [("", False)]
    for act in (lambda: bench.trash.restore("t1"), lambda: bench.trash.purge(purge_warrant())):
        with pytest.raises(StoreError) as caught:
            act()
        assert caught.value.code == "broken_manifest"


@pytest.mark.parametrize(
    "whole",
    [
        [2, [1, 1], 1, 1, []],
        [0, [], 1, 1, []],
        [0, [-1], 1, 1, []],
        [0, ["x"], 1, 1, []],
        [0, [1], 1, 1, [7]],
        [0, [1]],
        7,
    ],
)
def test_a_manifest_of_a_piece_that_makes_no_sense(bench: UnionBench, whole: Any):
    gone(bench)
    path = entry(bench, 0) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"whole": whole}))
    assert [(e.key, e.whole) for e in bench.trash.trash()] == [("", False)]


def test_another_process_is_at_it(bench: UnionBench):
    key = gone(bench)
    for root in (0, 1):
        fd = os.open(entry(bench, root), os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        for act in (
            lambda: bench.trash.restore("t1"),
            lambda: bench.trash.purge(purge_warrant()),
            lambda: bench.trash.retired(act_on_nothing(key), "t1"),
        ):
            with pytest.raises(StoreError) as caught:
                act()
            assert caught.value.code == "busy"
        os.close(fd)


def test_another_process_was_first(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    """Between the first look at an entry and its lock."""
    key = gone(bench)
    real = LocalTrash.existing

    def existing(trash: LocalTrash, trash_id: str) -> Any:
        monkeypatch.setattr(LocalTrash, "existing", real)
        bench.reopen()[1].restore(trash_id)
        return real(trash, trash_id)

    monkeypatch.setattr(LocalTrash, "existing", existing)
    with pytest.raises(NotFound):
        bench.trash.restore("t1")
    assert (bench.paths[0] / key).exists()
    bench.trash.retire(leave(bench, key), NOW)
    monkeypatch.setattr(LocalTrash, "existing", existing)
    assert bench.trash.purge(purge_warrant()).note == "already_gone"
    assert (bench.paths[0] / key).exists()


def test_a_purge_that_was_begun_goes_on_and_is_no_undo(bench: UnionBench, monkeypatch: pytest.MonkeyPatch):
    key = gone(bench)
    monkeypatch.setattr(LocalTrash, "purge", kill)
    with pytest.raises(KeyboardInterrupt):
        bench.trash.purge(purge_warrant())
    monkeypatch.undo()
    trash = bench.reopen()[1]
    assert trash.retired(act_on_nothing(key), "t1") is True and [e.whole for e in trash.trash()] == [True]
    with pytest.raises(StoreError) as caught:
        trash.restore("t1")
    assert caught.value.code == "partial_delete" and not any((root / key).exists() for root in bench.paths)
    with pytest.raises(Changed):
        trash.purge(issue_purge("t1", retired_at_ns=NOW - 1, trash_s=0, now_ns=NOW, held=False))
    assert trash.purge(purge_warrant()).files == 3
    assert not any(entry(bench, root).exists() for root in (0, 1))


@pytest.mark.parametrize("act", ["restore", "purge"])
def test_what_a_root_had_in_its_trash_before_it_was_one(bench: UnionBench, place: Path, act: str):
    """An entry of a store by itself is one here, too; two of one name are none."""
    key = save(bench)
    plain, own = bench.store.roots[0], LocalTrash(bench.store.roots[0])
    other = (bench.paths[1] / key).rename(place / "other")
    before = pictures(bench)
    own.retire(warrant_for(plain, act_on(plain, key)), NOW)
    assert [(e.key, e.whole, e.files) for e in bench.trash.trash()] == [(key, True, 1)]
    assert bench.trash.retired(act_on_nothing(key), "t1") is True
    if act == "purge":
        assert bench.trash.purge(purge_warrant()).files == 1
    else:
        bench.trash.restore("t1")
        assert pictures(bench) == before
        other.rename(bench.paths[1] / key)
        for root in bench.store.roots:
            LocalTrash(root).retire(warrant_for(root, act_on(root, key)), NOW)
        assert [e.whole for e in bench.trash.trash()] == [False]
        with pytest.raises(StoreError):
            bench.trash.restore("t1")


def test_a_piece_is_no_whole_for_its_root_by_itself(bench: UnionBench):
    gone(bench)
    for root in bench.store.roots:
        assert [e.whole for e in LocalTrash(root).trash()] == [False]


@pytest.mark.parametrize("roots", [1, 3])
def test_roots_that_came_or_went_since(bench: UnionBench, roots: int):
    """One that is added at the end changes nothing; without one of those that were there nothing comes back."""
    gone(bench)
    more = LocalStore("hot", bench.paths[0].with_name("n2"))
    Path(more.path).mkdir()
    (Path(more.path) / "any").touch()
    trash = UnionTrash(UnionStore("hot", [*bench.store.roots, more][:3] if roots == 3 else bench.store.roots[1:], ""))
    if roots == 3:
        trash.restore("t1")
        assert trash.trash() == []
        return
    with pytest.raises(StoreError):
        trash.restore("t1")
    assert [e.whole for e in trash.trash()] == [False]


def kill(*_: object) -> Freed:
    raise KeyboardInterrupt


def kill_before(bench: UnionBench, root: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """What a kill leaves just before a root's piece is retired."""
    real = LocalTrash.retire

    def retire(trash: LocalTrash, *args: Any) -> Freed:
        return kill() if trash.store.path == str(bench.paths[root]) else real(trash, *args)

    with monkeypatch.context() as patch:
        patch.setattr(LocalTrash, "retire", retire)
        with pytest.raises(KeyboardInterrupt):
            act()


def act_on_nothing(key: str) -> Action:
    """The action of something that stands nowhere any more."""
    return Action(Verb.RETIRE, "hot", "o", key, Shape.DIR, (), f"{key}/.metadata", "", 1, 0, 0, 3600, ())
