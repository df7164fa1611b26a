"""What every store and its trash promise, tried on each adapter through a bench that works behind its back.

An adapter's test module subclasses `StoreContract` and gives one fixture, `bench`, with an empty store.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple, Protocol

import pytest

from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import Flavour, Listing, Stamp, Totals, join, stamps_digest
from lifecycle.core.model import Shape
from lifecycle.core.warrant import WARRANT_NS, PurgeWarrant, Warrant, issue, issue_purge
from lifecycle.errors import Changed, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Freed, Memory, Store, Target, Trash

SECOND = 1_000_000_000
T0 = 1_700_000_000 * SECOND + 123_456_789
NOW = 1_800_000_000 * SECOND
PLAN = "plan-1"


class Bench(Protocol):
    """An empty store under test, and a hand that changes things without asking it."""

    @property
    def store(self) -> Store: ...

    @property
    def trash(self) -> Trash: ...

    @property
    def keeps_times(self) -> bool:
        """Whether a file's mtime is what `put` said, and comes back with a restore."""
        ...

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        """Write a file or object, with the directories above it."""
        ...

    def replace(self, key: str) -> None:
        """Another unit now stands at `key`: another inode there, or another ETag in it."""
        ...

    def remove(self, key: str) -> None:
        """Remove a file, an object or everything below `key`."""
        ...

    def tag(self, key: str, tags: dict[str, str]) -> None:
        """Set the tags of a file or object."""
        ...

    def reopen(self) -> tuple[Store, Trash]:
        """The same store as another process opens it: nothing remembered."""
        ...

    def cut(self, k: int) -> AbstractContextManager[Callable[[], bool]]:
        """The k-th change (from 1) that the store makes inside fails as an I/O error, and every later one.

        The value tells whether it came to that: a fault that never fired proves nothing.
        """
        ...


class Shown(NamedTuple):
    """Everything a store shows, to compare before with after."""

    files: dict[str, tuple[bytes, int]]
    dirs: dict[str, int]


def remember(store: Store, run: str) -> Memory:
    """What a scan remembers of the directories of a run."""
    folders = scan(store, run).folders
    inside = [path for path in folders if path != run]
    stamps = [folders[path].stamp or Stamp(0, 0, 0, 0) for path in (run, *inside)]
    return Memory(tuple(path.removeprefix(f"{run}/") for path in inside), stamps_digest(stamps))


def scan(store: Store, start: str = "") -> Listing:
    folders = {folder.path: folder for folder in store.walk(start)}
    return Listing(store.flavour, folders, complete=not any(f.error for f in folders.values()))


def shown(bench: Bench) -> Shown:
    """Files with content and mtime, directories with mtime; times only where they are kept."""
    files: dict[str, tuple[bytes, int]] = {}
    dirs: dict[str, int] = {}
    for folder in bench.store.walk():
        assert not folder.error
        if folder.stamp is not None and folder.path:
            dirs[folder.path] = folder.stamp.mtime_ns
        for name, mtime_ns in zip(folder.names, folder.mtimes_ns, strict=True):
            key = join(folder.path, name)
            files[key] = (bench.store.read(key), mtime_ns if bench.keeps_times else 0)
    return Shown(files, dirs)


def same_but_dir_times(one: Shown, other: Shown) -> bool:
    """After a cut: the fault may have struck just where a directory was to get its time back."""
    return one.files == other.files and set(one.dirs) == set(other.dirs)


def below(view: Shown, key: str) -> dict[str, tuple[bytes, int]]:
    return {k: v for k, v in view.files.items() if k == key or k.startswith(key + "/")}


def act_on(
    store: Store, key: str, shape: Shape = Shape.DIR, members: tuple[str, ...] = (), proof: str | None = None
) -> Action:
    """The action that a plan made right now would hold."""
    seen, inode = store.sight(Target(key, shape, members))
    return Action(
        verb=Verb.RETIRE,
        store=store.name,
        run=key.rpartition("/")[0],
        key=key,
        shape=shape,
        members=members,
        proof=proof,
        fingerprint=seen.fingerprint,
        inode=inode,
        bytes=seen.bytes,
        files=seen.files,
        trash_s=3600,
        policies=("p",),
    )


def warrant_for(store: Store, action: Action, trash_id: str = "t1", now_ns: int = NOW) -> Warrant:
    seen = store.sight(Target(action.key, action.shape, action.members)).totals
    return issue(action, plan=PLAN, trash_id=trash_id, seen=seen, standing=frozenset(), held=False, now_ns=now_ns)


def purge_warrant(trash_id: str = "t1") -> PurgeWarrant:
    return issue_purge(trash_id, retired_at_ns=NOW, trash_s=0, now_ns=NOW, held=False)


def retire(bench: Bench, action: Action, trash_id: str = "t1") -> Freed:
    return bench.trash.retire(warrant_for(bench.store, action, trash_id), NOW)


UNITS = {
    Shape.DIR: ("runs/a/step-2", (), "runs/a/step-2/DONE"),
    Shape.FILE: ("runs/b/step=2.ckpt", ("runs/b/step=2.ckpt",), None),
    Shape.GROUP: (
        "runs/c/m-2",
        ("runs/c/m-2.index", "runs/c/m-2.data", "runs/c/deep/m-2.meta"),
        "runs/c/m-2.index",
    ),
}
"""Key, members and proof of one unit of each shape in the tree of `fill`."""


def fill(bench: Bench) -> None:
    """Three runs of two checkpoints each, one run a shape, and names that are a prefix of another."""
    for step in (1, 2):
        bench.put(f"runs/a/step-{step}/w/0.bin", b"x" * (step * 10), T0 + step)
        bench.put(f"runs/a/step-{step}/DONE", b"", T0 + step)
        bench.put(f"runs/b/step={step}.ckpt", b"y" * (step * 10), T0 + step)
        for member in ("m-{}.index", "m-{}.data", "deep/m-{}.meta"):
            bench.put("runs/c/" + member.format(step), b"z" * (step * 10), T0 + step)
    bench.put("runs/a/step-20/DONE", b"", T0)
    bench.put("runs/a/latest", b"step-2", T0)


def unit_action(bench: Bench, shape: Shape) -> Action:
    key, members, proof = UNITS[shape]
    return act_on(bench.store, key, shape, members, proof)


def unit_keys(shape: Shape) -> set[str]:
    key, members, _ = UNITS[shape]
    return set(members) or {f"{key}/w/0.bin", f"{key}/DONE"}


every_shape = pytest.mark.parametrize("shape", list(Shape))

SLICES = [
    (0, 4, b"0123"),
    (3, 4, b"3456"),
    (8, 4, b"89"),
    (10, 4, b""),
    (99, 4, b""),
    (0, 0, b""),
    (0, 99, b"0123456789"),
    (-3, 99, b"789"),
    (-3, 2, b"78"),
    (-10, 2, b"01"),
    (-99, 4, b"0123"),
]
"""Offset, limit and what comes of the ten digits."""

ODD_NAMES = [
    " lead",
    "new\nline",
    "tab\t",
    "50%2F",
    "a+b",
    "q?x=1&y",
    "<b>&amp;",
    "ä",
    "a\u0308",
    "日本",
    "'\"`$(x)",
]


class ReadContract:
    """What `Store` promises."""

    def test_an_empty_store_shows_its_root_only(self, bench: Bench):
        assert [(f.path, f.names, f.dirs, f.error) for f in bench.store.walk()] == [("", [], [], "")]

    def test_identity_stays_and_is_the_same_in_another_process(self, bench: Bench):
        before = bench.store.identity()
        fill(bench)
        assert before and bench.store.identity() == before == bench.reopen()[0].identity()

    def test_walk_shows_every_file_once_and_parents_first(self, bench: Bench):
        fill(bench)
        seen: set[str] = {""}
        keys: list[str] = []
        for folder in bench.store.walk():
            assert folder.path in seen, "a folder came before the one that names it"
            seen |= {join(folder.path, d) for d in folder.dirs}
            assert len(folder.names) == len(folder.sizes) == len(folder.mtimes_ns) == len(folder.tokens)
            keys += [join(folder.path, name) for name in folder.names]
        assert len(keys) == len(set(keys)) == 14
        assert set().union(*map(unit_keys, Shape)) <= set(keys)
        assert {"", "runs", "runs/a", "runs/a/step-2", "runs/a/step-2/w", "runs/c/deep"} <= seen

    def test_walk_tells_sizes_and_times(self, bench: Bench):
        bench.put("r/one", b"12345", T0 + 7)
        bench.put("r/none", b"", T0 + 8)
        folder = scan(bench.store).folders["r"]
        assert dict(zip(folder.names, folder.sizes, strict=True)) == {"one": 5, "none": 0}
        if bench.keeps_times:
            assert dict(zip(folder.names, folder.mtimes_ns, strict=True)) == {"one": T0 + 7, "none": T0 + 8}

    def test_walk_from_below_keeps_keys_and_leaves_name_prefixes_out(self, bench: Bench):
        fill(bench)
        assert set(scan(bench.store, "runs/a/step-2").folders) == {"runs/a/step-2", "runs/a/step-2/w"}

    def test_walk_from_where_nothing_is_shows_nothing(self, bench: Bench):
        fill(bench)
        assert list(bench.store.walk("runs/zzz")) == []

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_names_come_through(self, bench: Bench, name: str):
        bench.put(f"{name}/{name}", b"odd")
        assert scan(bench.store).folders[name].names == [name]
        assert bench.store.read(f"{name}/{name}") == b"odd"
        assert bench.store.sight(Target(name, Shape.DIR, ())).totals.bytes == 3

    def test_a_memory_never_hides_a_change(self, bench: Bench):
        fill(bench)
        before = bench.store.same("runs/a", memory := remember(bench.store, "runs/a"))
        assert before is (bench.store.flavour is Flavour.POSIX)
        bench.put("runs/a/step-1/w/1.bin", b"new")
        assert not bench.store.same("runs/a", memory)
        assert bench.store.same("runs/a", remember(bench.store, "runs/a")) is before
        for nowhere in ("runs/zzz", "/runs/a", "runs/../runs/a", "runs//a"):
            assert not bench.store.same(nowhere, memory), "where nothing is, nothing is as it was"

    def test_what_is_passed_over_is_not_shown(self, bench: Bench):
        fill(bench)
        everything = scan(bench.store).folders
        passing = {"runs/a/step-2", "runs/zzz"} if bench.store.flavour is Flavour.POSIX else set()
        folders = {f.path: f for f in bench.store.walk("", passing)}
        assert folders.keys() == {p for p in everything if not (passing and f"{p}/".startswith("runs/a/step-2/"))}
        assert ("step-2" in folders["runs/a"].dirs) is (not passing)

    @pytest.mark.parametrize(("offset", "limit", "expected"), SLICES)
    def test_read_is_bounded(self, bench: Bench, offset: int, limit: int, expected: bytes):
        bench.put("r/file", b"0123456789")
        assert bench.store.read("r/file", offset, limit) == expected

    @pytest.mark.parametrize("offset", [0, 5, -5])
    def test_read_of_an_empty_file(self, bench: Bench, offset: int):
        bench.put("r/file", b"")
        assert bench.store.read("r/file", offset) == b""

    def test_read_of_nothing_or_of_a_directory(self, bench: Bench):
        fill(bench)
        for key in ("nothing", "runs/nothing", "runs/a/latest/below"):
            with pytest.raises((NotFound, Changed)):
                bench.store.read(key)
        with pytest.raises((NotFound, Changed)):
            bench.store.read("runs/a")

    @every_shape
    def test_a_fresh_look_has_the_identity_of_a_scan(self, bench: Bench, shape: Shape):
        fill(bench)
        key, members, _ = UNITS[shape]
        totals: Totals = bench.store.sight(Target(key, shape, members)).totals
        assert totals == scan(bench.store).unit(key, members)
        assert totals.files == len(unit_keys(shape)) and totals.bytes > 0

    @every_shape
    def test_a_fresh_look_sees_every_change(self, bench: Bench, shape: Shape):
        fill(bench)
        key, members, _ = UNITS[shape]
        target = Target(key, shape, members)
        seen = [bench.store.sight(target).totals.fingerprint]
        for change in self.changes(bench, shape):
            change()
            seen.append(bench.store.sight(target).totals.fingerprint)
        assert len(set(seen)) == len(seen)

    @staticmethod
    def changes(bench: Bench, shape: Shape) -> Iterator[Callable[[], None]]:
        one = max(unit_keys(shape))
        yield lambda: bench.put(one, b"longer than it was before", T0 + 2)
        yield lambda: bench.put(one, b"other content, as long  .", T0 + 2 + SECOND)
        if len(unit_keys(shape)) > 1:
            yield lambda: bench.remove(one)
        if shape is Shape.DIR:
            yield lambda: bench.put(UNITS[shape][0] + "/another", b"")

    @every_shape
    def test_a_fresh_look_where_nothing_is(self, bench: Bench, shape: Shape):
        fill(bench)
        key, members, _ = UNITS[shape]
        for gone in members or (key,):
            bench.remove(gone)
        with pytest.raises(NotFound):
            bench.store.sight(Target(key, shape, members))

    def test_a_fresh_look_below_no_run_at_all(self, bench: Bench):
        with pytest.raises(NotFound):
            bench.store.sight(Target("a/b/c", Shape.DIR, ()))
        with pytest.raises(NotFound):
            bench.store.sight(Target("a/b/c", Shape.FILE, ("a/b/c",)))

    def test_tags(self, bench: Bench):
        fill(bench)
        assert dict(bench.store.tags("runs/b/step=2.ckpt")) == {}
        bench.tag("runs/b/step=2.ckpt", {"keep": "yes", "owner": "ä b"})
        assert dict(bench.store.tags("runs/b/step=2.ckpt")) == {"keep": "yes", "owner": "ä b"}
        with pytest.raises(StoreError):
            bench.store.tags("runs/nothing")

    def test_usage_and_probe_change_nothing(self, bench: Bench):
        fill(bench)
        before = shown(bench)
        usage = bench.store.usage()
        assert all(n is None or n >= 0 for n in usage)
        powers = bench.store.probe()
        assert powers.rename == (bench.store.flavour is Flavour.POSIX) and bench.store.probe() == powers
        assert shown(bench) == before


class NoteContract:
    """What is promised of the small files of ours beside the data."""

    def test_notes_come_and_go_and_are_never_shown(self, bench: Bench):
        fill(bench)
        before = shown(bench)
        assert dict(bench.store.notes()) == {}
        bench.trash.write_note("hold-1.json", b"one")
        bench.trash.write_note("hold-2.json", b"two")
        bench.trash.write_note("hold-1.json", b"three")
        assert dict(bench.store.notes()) == {"hold-1.json": b"three", "hold-2.json": b"two"}
        assert dict(bench.reopen()[0].notes()) == {"hold-1.json": b"three", "hold-2.json": b"two"}
        assert shown(bench) == before
        for _ in range(2):
            bench.trash.drop_note("hold-1.json")
            assert dict(bench.store.notes()) == {"hold-2.json": b"two"}
        bench.trash.drop_note("never")

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "nul\0"])
    def test_a_note_cannot_climb(self, bench: Bench, name: str):
        for act in (lambda: bench.trash.write_note(name, b"x"), lambda: bench.trash.drop_note(name)):
            with pytest.raises(LifecycleError):
                act()

    def test_a_note_is_bounded(self, bench: Bench):
        bench.trash.write_note("most", b"x" * 65536)
        assert len(bench.store.notes()["most"]) == 65536
        with pytest.raises(LifecycleError):
            bench.trash.write_note("more", b"x" * 65537)
        assert set(bench.store.notes()) == {"most"}


class TrashContract:
    """What `Trash` promises."""

    def test_it_tells_the_time_and_leaves_nothing_behind(self, bench: Bench):
        """Every server of these tests has this machine's clock; a date is cut to the second, a stamp to a tick."""
        fill(bench)
        before, at_ns = shown(bench), time.time_ns()
        told_ns = bench.trash.told_ns()
        assert told_ns is None or at_ns - 2 * SECOND < told_ns < time.time_ns() + 2 * SECOND
        assert shown(bench) == before
        assert bench.trash.trash() == []

    @every_shape
    def test_retired_is_gone_and_nothing_else_is(self, bench: Bench, shape: Shape):
        fill(bench)
        before, action = shown(bench), unit_action(bench, shape)
        assert bench.trash.retired(action, "t1") is False
        moved = retire(bench, action)
        assert (moved.bytes, moved.files) == (action.bytes, action.files)
        after = shown(bench)
        assert after.files == {k: v for k, v in before.files.items() if k not in unit_keys(shape)}
        assert after.dirs == {k: v for k, v in before.dirs.items() if not (k + "/").startswith(action.key + "/")}
        assert bench.trash.retired(action, "t1") is True
        assert bench.reopen()[1].retired(action, "t1") is True
        assert bench.trash.retired(action, "t2") is not True
        with pytest.raises(NotFound):
            bench.store.sight(Target(action.key, action.shape, action.members))

    @every_shape
    def test_the_trash_lists_it(self, bench: Bench, shape: Shape):
        fill(bench)
        assert bench.trash.trash() == []
        action = unit_action(bench, shape)
        retire(bench, action)
        for trash in (bench.trash, bench.reopen()[1]):
            (entry,) = trash.trash()
            assert entry.trash_id == "t1" and entry.plan == PLAN and entry.whole
            assert (entry.key, entry.shape, entry.members) == (action.key, action.shape, action.members)
            assert (entry.retired_at_ns, entry.trash_s, entry.bytes) == (NOW, action.trash_s, action.bytes)

    @every_shape
    def test_restore_brings_back_what_was(self, bench: Bench, shape: Shape):
        fill(bench)
        before, action = shown(bench), unit_action(bench, shape)
        retire(bench, action)
        moved = bench.reopen()[1].restore("t1")
        assert (moved.bytes, moved.files) == (action.bytes, action.files)
        assert shown(bench) == before
        assert bench.trash.trash() == [] and bench.trash.retired(action, "t1") is False
        if bench.keeps_times:
            assert act_on(bench.store, action.key, shape, action.members, action.proof) == action
        with pytest.raises(NotFound):
            bench.trash.restore("t1")

    @every_shape
    def test_restore_never_overwrites(self, bench: Bench, shape: Shape):
        fill(bench)
        action = unit_action(bench, shape)
        retire(bench, action)
        bench.put(max(unit_keys(shape)), b"new")
        occupied = shown(bench)
        with pytest.raises(Occupied):
            bench.trash.restore("t1")
        assert shown(bench) == occupied
        assert [e.trash_id for e in bench.trash.trash()] == ["t1"]
        bench.remove(max(unit_keys(shape)) if action.members else action.key)
        bench.trash.restore("t1")
        assert unit_keys(shape) <= set(shown(bench).files)

    def test_a_part_of_a_checkpoint_goes_and_comes_back_into_it_only(self, bench: Bench):
        """Files out of a directory: without that, they would stand there as half a checkpoint."""
        if bench.store.flavour is Flavour.OBJECT:
            pytest.skip("in a bucket no part of a checkpoint is retired")
        fill(bench)
        key, _, _ = UNITS[Shape.DIR]
        before = shown(bench)
        some = tuple(sorted(k for k in before.files if k.startswith(f"{key}/")))[:2]
        bench.trash.retire(warrant_for(bench.store, act_on(bench.store, key, Shape.GROUP, some)), NOW)
        assert before.files.keys() - shown(bench).files.keys() == {*some}
        bench.trash.retire(warrant_for(bench.store, unit_action(bench, Shape.DIR), "t2"), NOW)
        with pytest.raises(StoreError) as caught:
            bench.trash.restore("t1")
        assert caught.value.code == "unit_gone" and not [k for k in shown(bench).files if k.startswith(f"{key}/")]
        bench.trash.restore("t2")
        bench.trash.restore("t1")
        assert shown(bench) == before

    def test_restore_into_a_run_that_is_gone(self, bench: Bench):
        fill(bench)
        before, action = shown(bench), unit_action(bench, Shape.DIR)
        retire(bench, action)
        bench.remove("runs/a")
        bench.trash.restore("t1")
        assert below(shown(bench), action.key) == below(before, action.key)

    @every_shape
    def test_purge_frees_it_for_good(self, bench: Bench, shape: Shape):
        fill(bench)
        action = unit_action(bench, shape)
        retire(bench, action)
        before = shown(bench)
        freed = bench.trash.purge(purge_warrant())
        assert freed.files == action.files and (freed.bytes >= action.bytes or freed.note)
        assert shown(bench) == before and bench.trash.trash() == []
        with pytest.raises(NotFound):
            bench.trash.restore("t1")
        again = bench.trash.purge(purge_warrant())
        assert (again.bytes, again.files) == (0, 0)

    def test_purge_takes_its_own_entry_only(self, bench: Bench):
        fill(bench)
        before = shown(bench)
        for shape, trash_id in zip(Shape, ("t1", "t10", "t2"), strict=True):
            retire(bench, unit_action(bench, shape), trash_id)
        bench.trash.purge(purge_warrant("t1"))
        assert {e.trash_id for e in bench.trash.trash()} == {"t10", "t2"}
        bench.trash.restore("t10")
        bench.trash.restore("t2")
        assert {k for k in before.files if k not in shown(bench).files} == unit_keys(Shape.DIR)

    @every_shape
    def test_another_unit_in_its_place_stays(self, bench: Bench, shape: Shape):
        fill(bench)
        warrant = warrant_for(bench.store, unit_action(bench, shape))
        bench.replace(max(unit_keys(shape)) if warrant.action.members else warrant.action.key)
        before = shown(bench)
        with pytest.raises(Changed):
            bench.trash.retire(warrant, NOW)
        assert shown(bench) == before
        assert bench.trash.retired(warrant.action, "t1") is False

    @every_shape
    def test_a_late_warrant_is_refused(self, bench: Bench, shape: Shape):
        fill(bench)
        before, warrant = shown(bench), warrant_for(bench.store, unit_action(bench, shape))
        with pytest.raises(Refused):
            bench.trash.retire(warrant, NOW + WARRANT_NS + 1)
        assert shown(bench) == before and bench.trash.trash() == []

    @every_shape
    def test_nothing_left_to_retire(self, bench: Bench, shape: Shape):
        fill(bench)
        warrant = warrant_for(bench.store, unit_action(bench, shape))
        for gone in warrant.action.members or (warrant.action.key,):
            bench.remove(gone)
        before = shown(bench)
        with pytest.raises(NotFound):
            bench.trash.retire(warrant, NOW)
        assert shown(bench) == before and bench.trash.trash() == []

    def test_a_member_that_vanished_is_no_failure(self, bench: Bench):
        fill(bench)
        warrant = warrant_for(bench.store, unit_action(bench, Shape.GROUP))
        bench.remove("runs/c/m-2.data")
        bench.trash.retire(warrant, NOW)
        assert not unit_keys(Shape.GROUP) & set(shown(bench).files)
        bench.trash.restore("t1")
        assert unit_keys(Shape.GROUP) - set(shown(bench).files) == {"runs/c/m-2.data"}

    def test_a_trash_name_is_used_once(self, bench: Bench):
        fill(bench)
        retire(bench, unit_action(bench, Shape.DIR))
        before, warrant = shown(bench), warrant_for(bench.store, unit_action(bench, Shape.FILE))
        with pytest.raises(Occupied):
            bench.trash.retire(warrant, NOW)
        assert shown(bench) == before
        assert [e.key for e in bench.trash.trash()] == [UNITS[Shape.DIR][0]]

    @pytest.mark.parametrize("trash_id", ["", ".", "..", "../t", "a/b", "nul\0"])
    def test_a_trash_name_cannot_climb(self, bench: Bench, trash_id: str):
        fill(bench)
        before, warrant = shown(bench), warrant_for(bench.store, unit_action(bench, Shape.DIR), trash_id)
        acts: list[Callable[[], object]] = [
            lambda: bench.trash.retire(warrant, NOW),
            lambda: bench.trash.restore(trash_id),
            lambda: bench.trash.purge(purge_warrant(trash_id)),
        ]
        for act in acts:
            with pytest.raises(LifecycleError):
                act()
        assert shown(bench) == before

    @every_shape
    def test_cut_short_anywhere_a_retire_can_be_undone(self, bench: Bench, shape: Shape):
        fill(bench)
        before, action = shown(bench), unit_action(bench, shape)
        for k in range(1, 99):
            trash_id = f"t{k}"
            action = unit_action(bench, shape)
            warrant = warrant_for(bench.store, action, trash_id)
            with bench.cut(k) as fired:
                try:
                    bench.trash.retire(warrant, NOW)
                except StoreError:
                    assert fired(), "it failed without a fault"
            trash = bench.reopen()[1]
            state, left = trash.retired(action, trash_id), shown(bench).files
            whole = unit_keys(shape) <= set(left)
            assert state is not False or whole, "said to be untouched, and is not"
            assert state is not True or not unit_keys(shape) & set(left), "said to be in the trash, and is not"
            assert whole or action.proof not in left, "half of it is left, and looks complete"
            if not whole:
                trash.restore(trash_id)
            assert same_but_dir_times(shown(bench), before)
            if not fired():
                return
        pytest.fail("the fault never stopped firing")

    def test_what_was_cut_short_and_saved_again_is_told_and_its_rest_freed(self, bench: Bench):
        fill(bench)
        action = unit_action(bench, Shape.GROUP)
        proof = UNITS[Shape.GROUP][2]
        assert proof is not None
        for k in range(1, 99):
            warrant = warrant_for(bench.store, action, f"t{k}")
            with bench.cut(k), suppress(StoreError):
                bench.trash.retire(warrant, NOW)
            if proof not in shown(bench).files:
                break
        trash = bench.reopen()[1]
        assert [e.replaced for e in trash.trash() if e.trash_id == f"t{k}"] == [False], "it can go back"
        bench.put(proof, b"saved again")
        (entry,) = (e for e in trash.trash() if e.trash_id == f"t{k}")
        assert (entry.whole, entry.replaced, entry.ends) == (False, True, True)
        assert trash.retired(action, f"t{k}") is None
        stands = shown(bench)
        with pytest.raises(Occupied):
            trash.restore(f"t{k}")
        trash.purge(purge_warrant(f"t{k}"))
        assert shown(bench) == stands and bench.store.read(proof) == b"saved again"
        assert not [e for e in trash.trash() if e.trash_id == f"t{k}"]

    @every_shape
    def test_cut_short_anywhere_a_restore_or_purge_goes_on(self, bench: Bench, shape: Shape):
        fill(bench)
        before = shown(bench)
        for k in range(1, 99):
            retire(bench, unit_action(bench, shape), f"t{k}")
            with bench.cut(k) as fired:
                try:
                    bench.trash.restore(f"t{k}")
                except StoreError:
                    assert fired(), "it failed without a fault"
            left = shown(bench).files
            proof = UNITS[shape][2]
            assert unit_keys(shape) <= set(left) or proof not in left, "half of it is back, and looks complete"
            if not unit_keys(shape) <= set(left):
                bench.reopen()[1].restore(f"t{k}")
            assert same_but_dir_times(shown(bench), before)
            if not fired():
                break
        else:
            pytest.fail("the fault never stopped firing")
        retire(bench, unit_action(bench, shape), "u")
        gone = shown(bench)
        for k in range(1, 99):
            with bench.cut(k) as fired:
                try:
                    bench.reopen()[1].purge(purge_warrant("u"))
                except StoreError:
                    assert fired(), "it failed without a fault"
            assert same_but_dir_times(shown(bench), gone)
            if not fired():
                break
        assert not [e for e in bench.trash.trash() if e.trash_id == "u"]


class StoreContract(ReadContract, NoteContract, TrashContract):
    """All of it."""
