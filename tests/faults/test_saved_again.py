"""An act is killed half-way and training saves under its key again: the next run closes it, and nothing is lost."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.listing import Flavour
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Last, Limits
from lifecycle.core.policy import Place as Where
from lifecycle.flows.propose import propose
from lifecycle.flows.recover import recover
from lifecycle.flows.site import Site
from lifecycle.flows.undo import Tally, free_due, undo
from lifecycle.ports import Trashed
from lifecycle.render.listing import undo_left
from lifecycle.stores import s3_delete, s3_trash
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.s3_intake import S3Intake
from lifecycle.stores.s3_trash import S3Trash
from tests.flows.place import HOUR, LAST_ONE, NOW, TIERED, Clock, Place, S, place
from tests.servers import Server
from tests.stores.s3_bench import S3Bench

UNIT = "t/ckpt-1"
PARTS = ("t/ckpt-1.index", "t/ckpt-1.data-00000-of-00002", "t/ckpt-1.data-00001-of-00002")
"""The proof first, as it goes."""
DAY = 24 * HOUR
ARCHIVED = replace(TIERED, place=(Where(on=("warm@GLACIER",), older=TIERED.place[0].older), TIERED.place[1]))


class Killed(BaseException):
    """The process is gone: nothing of it cleans up."""


def die(*_: object, **__: object) -> None:
    raise Killed


def save(store: MemoryStore, number: int, word: bytes, at_ns: int, keys: tuple[str, ...] = PARTS) -> None:
    for key in keys:
        store.put(key.replace("ckpt-1", f"ckpt-{number}"), word + key.encode(), at_ns)


def contents(store: MemoryStore) -> dict[str, bytes]:
    return {key: file.content for key, file in store.files.items()}


def lying(store: MemoryStore) -> dict[str, bytes]:
    return {key: file.content for entry in store.trash.values() for key, file in entry.files.items()}


def recovered(made: Place) -> Any:
    site = made.site
    return recover(site.journal, site.stores, site.trashes, site.intakes, made.clock.now)


def run(made: Place) -> Any:
    """What a night does: close what is open, scan, plan, apply."""
    assert not recovered(made).open
    return made.apply(made.plan())


def purged(made: Place) -> Tally:
    return free_due(made.site.trashes, made.index.journal, (), made.clock.now)


def undone(made: Place, what: str) -> Tally:
    site = made.site
    return undo(site.trashes, site.journal, what, made.clock.now, site.intakes, site.stores)


@pytest.fixture(params=Flavour)
def hot(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Of two groups of files the older one is to go; an apply is killed when its proof is in the trash."""
    made = place(tmp_path, flavour=request.param)
    store = made.stores["hot"]
    save(store, 1, b"old", NOW - 50 * HOUR)
    save(store, 2, b"new", NOW - 40 * HOUR)
    plan = made.plan()
    assert [a.key for a in plan.actions] == [UNIT]
    store.seam.at("change", 3, die)
    with pytest.raises(Killed):
        made.apply(plan)
    assert store.seam.fired() and [*lying(store)] == [PARTS[0]] and {*PARTS[1:]} <= {*store.files}
    made.clock.now += HOUR // 2
    yield made
    made.index.close()


AGAIN = [PARTS, PARTS[:1], PARTS[:2]]
"""What training has saved anew by the time of the next run: all of it, or as much as it came to."""


@pytest.mark.parametrize("keys", AGAIN, ids=["all", "proof", "two"])
def test_a_retire_cut_short_does_not_block_what_follows(hot: Place, keys: tuple[str, ...]):
    store = hot.stores["hot"]
    save(store, 1, b"again", hot.clock.now, keys)
    stands, took = contents(store), lying(store)

    found = recovered(hot)
    assert (found.open, found.aside) == ((), 1) and "something else was saved there since" in found.notes[0][2]
    assert (contents(store), lying(store)) == (stands, took), "nothing is lost, of either of them"
    [row] = hot.index.journal.rows()
    assert row.outcome == "failed" and "lies in the trash" in row.note
    assert recovered(hot) == ((0, 0, 0, (), (), 0, 0, 0)), "a second recovery has nothing to do"

    refused = undone(hot, f"hot:{UNIT}")
    assert not refused.done and refused.failed[0][1] == "occupied"
    assert (contents(store), lying(store)) == (stands, took)
    assert hot.apply(hot.plan()).exit_code == 0, "later applies go on"


def test_what_cannot_go_back_is_freed_when_its_time_is_over(hot: Place):
    store = hot.stores["hot"]
    hot.policy = replace(LAST_ONE, keep=(Last(9),))
    save(store, 1, b"again", hot.clock.now)
    hot.clock.now += HOUR
    early = purged(hot)
    assert not early.done and early.failed[0][1] == "trash_doubtful", "nobody has written down yet what became of it"
    assert run(hot).counts == {}
    stands = contents(store)
    assert purged(hot).done == [f"hot:{UNIT}"]
    assert not store.trash and contents(store) == stands
    assert (purged(hot).exit_code, purged(hot).done) == (0, [])
    assert not hot.plan().actions


def test_it_waits_in_the_trash_for_its_time(hot: Place):
    save(hot.stores["hot"], 1, b"again", hot.clock.now)
    recovered(hot)
    hot.clock.now = NOW + HOUR - S
    tally = purged(hot)
    assert (tally.done, tally.failed, tally.waiting) == ([], [], 1)


def test_once_the_new_one_is_out_of_the_way_it_comes_back(hot: Place):
    store = hot.stores["hot"]
    save(store, 1, b"again", hot.clock.now, PARTS[:1])
    recovered(hot)
    store.remove(PARTS[0])
    assert undone(hot, f"hot:{UNIT}").done == [f"hot:{UNIT}"]
    assert {contents(store)[key] for key in PARTS} == {b"old" + key.encode() for key in PARTS}


def test_what_nobody_saved_again_comes_back(hot: Place):
    found = recovered(hot)
    assert (found.undone, found.aside) == (1, 0)
    assert (
        all(contents(hot.stores["hot"])[key] == b"old" + key.encode() for key in PARTS) and not hot.stores["hot"].trash
    )


def test_a_trash_emptied_by_hand_is_told_as_it_is(hot: Place):
    """All of it is taken, the journal does not know, and then both places are cleared by hand."""
    store = hot.stores["hot"]
    store.trash.clear()
    for key in PARTS[1:]:
        store.remove(key)
    found = recovered(hot)
    assert (found.open, found.gone, found.not_begun) == ((), 1, 0) and "neither at its place" in found.notes[0][2]
    assert run(hot).counts == {} and not hot.plan().actions


@pytest.mark.parametrize(
    ("flavour", "again", "word"),
    [
        *((flavour, "", "closed after a crash") for flavour in Flavour),
        *((flavour, "files", "something else stands") for flavour in Flavour),
        (Flavour.POSIX, "a link", "something else stands"),
    ],
)
def test_a_delete_whose_end_nobody_wrote_down(tmp_path: Path, flavour: Flavour, again: str, word: str):
    made = place(tmp_path, flavour=flavour)
    store = made.stores["hot"]
    save(store, 1, b"old", NOW - 50 * HOUR)
    save(store, 2, b"new", NOW - 40 * HOUR)
    made.policy = replace(LAST_ONE, limits=Limits(trash_s=None))
    site = made.site
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(site.journal), "end", die)
        made.apply(made.plan())
    assert not store.trash and not {*PARTS} & {*store.files}
    if again == "files":
        save(store, 1, b"again", made.clock.now)
    for key in PARTS if again == "a link" else ():
        store.link(key, "elsewhere")
    stands = contents(store), {*store.links}
    found = recovered(made)
    assert not found.open and word in found.notes[0][2]
    assert (found.gone, found.done) == (int(bool(again)), int(not again))
    made.policy = replace(LAST_ONE, keep=(Last(9),))
    assert run(made).counts == {} and (contents(store), {*store.links}) == stands
    made.index.close()


# -- a purge


@pytest.mark.parametrize("flavour", Flavour)
@pytest.mark.parametrize("again", [False, True], ids=["gone", "saved again"])
def test_a_purge_cut_short_whose_trash_was_emptied_by_hand(tmp_path: Path, flavour: Flavour, again: bool):
    made = place(tmp_path, flavour=flavour)
    store = made.stores["hot"]
    save(store, 1, b"old", NOW - 50 * HOUR)
    save(store, 2, b"new", NOW - 40 * HOUR)
    assert made.apply(made.plan()).counts == {"done": 1}
    made.clock.now += 2 * HOUR
    store.seam.at("change", 3, die)
    with pytest.raises(Killed):
        purged(made)
    assert store.seam.fired() and store.trash
    store.trash.clear()
    made.policy = replace(LAST_ONE, keep=(Last(9),))
    if again:
        save(store, 1, b"again", made.clock.now)
    stands = contents(store)
    assert run(made).counts == {}
    [row] = made.index.journal.rows()
    # What stands there may have been saved before or after the trash was emptied: then nobody knows.
    assert row.outcome == ("done" if again else "purged")
    assert (purged(made).exit_code, contents(store)) == (0, stands)
    assert not made.plan().actions
    made.index.close()


# -- copies


@pytest.fixture(params=[(Flavour.POSIX, Flavour.OBJECT), (Flavour.OBJECT, Flavour.POSIX), (Flavour.OBJECT,) * 2])
def tiers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.stores = {n: MemoryStore(n, f) for n, f in zip(("hot", "warm"), request.param, strict=True)}
    made.policy = TIERED
    save(made.stores["hot"], 1, b"old", NOW - 30 * DAY)
    save(made.stores["hot"], 2, b"new", NOW - DAY)
    yield made
    made.index.close()


def cut_copy(made: Place) -> None:
    warm = made.stores["warm"]
    warm.seam.at("put", 3, die)
    with pytest.raises(Killed):
        made.apply(made.plan())
    assert warm.seam.fired() and warm.stages
    made.clock.now += HOUR


@pytest.mark.parametrize("again", [False, True], ids=["gone", "saved again"])
def test_a_copy_cut_short_whose_source_is_gone_or_another(tiers: Place, again: bool):
    cut_copy(tiers)
    hot, warm = tiers.stores["hot"], tiers.stores["warm"]
    for key in PARTS:
        hot.remove(key)
    if again:
        save(hot, 1, b"again", NOW - DAY)  # too new to move
    stands = contents(hot)
    assert run(tiers).counts == {}, "what was sent waits, and blocks nothing"
    assert [(r.outcome, "cut short" in r.note) for r in tiers.index.journal.rows() if r.action.verb is Verb.COPY] == [
        ("failed", True)
    ]
    tiers.clock.now += 4 * DAY
    tiers.policy = replace(TIERED, place=())
    assert run(tiers).counts == {}
    assert not warm.stages and not contents(warm) and contents(hot) == stands
    assert not tiers.plan().actions and run(tiers).counts == {}


def test_a_copy_cut_short_goes_on_with_what_was_saved_again(tiers: Place):
    cut_copy(tiers)
    hot, warm = tiers.stores["hot"], tiers.stores["warm"]
    for key in PARTS:  # a new file, not the old one written over: that a quick scan may see some nights later only
        hot.remove(key)
    save(hot, 1, b"again", NOW - 20 * DAY)
    assert run(tiers).counts == {"done": 2}
    assert {contents(warm)[key] for key in PARTS} == {b"again" + key.encode() for key in PARTS}
    assert not tiers.plan().actions


# -- a change of class


@pytest.mark.parametrize("by", [0, 1])
def test_a_change_of_class_cut_short_whose_key_was_saved_again(tmp_path: Path, by: int):
    """Something else at a key of the copy is neither changed nor taken for changed, though it may be in that class."""
    made = place(tmp_path, ("hot", "warm"), Flavour.OBJECT)
    made.policy = ARCHIVED
    hot, warm = made.stores["hot"], made.stores["warm"]
    save(hot, 1, b"old", NOW - 30 * DAY)
    save(hot, 2, b"new", NOW - DAY)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(made.site.intakes["warm"]), "change_class", _change_some(by))
        made.apply(made.plan())
    made.clock.now += HOUR
    save(warm, 1, b"another", made.clock.now, PARTS[1:])
    for key in PARTS[1:]:
        warm.files[key].storage_class = "GLACIER"
    stands = contents(warm)
    found = recovered(made)
    assert not found.open and "the next plan goes on" in found.notes[0][2], found
    outcomes = [run(made) for _ in range(3)]
    assert all(outcome.exit_code in (0, 3) for outcome in outcomes), outcomes
    assert contents(warm) == stands and not warm.trash
    assert {contents(hot)[key] for key in PARTS} == {b"old" + key.encode() for key in PARTS}, "the original stays"
    assert outcomes[1].counts == outcomes[2].counts, outcomes
    made.index.close()


def _change_some(by: int) -> Callable[..., str]:
    def change(self: Any, manifest: Any, storage_class: str) -> str:
        for member in manifest.members[:by]:
            self.store.files[member.key].storage_class = storage_class
        raise Killed

    return change


# -- real buckets


@dataclass
class Bucket(Place):
    """The same on a bucket, which says itself when an object was saved."""

    @property
    def site(self) -> Site:
        site = super().site
        return replace(
            site,
            trashes={name: S3Trash(store) for name, store in self.stores.items()},  # type: ignore[arg-type]  # a bucket
            intakes={name: S3Intake(store) for name, store in self.stores.items()},  # type: ignore[arg-type]
            told=lambda _store: None,  # days pass here that do not pass there
        )

    def propose(self) -> Plan:
        lying = {name: trash.trash for name, trash in self.site.trashes.items()}
        return propose(
            self.index.reader,
            self.rules,
            tuple(self.stores),
            holds=(),
            now_ns=self.clock.now,
            engine="1",
            lying=lying,
        )


@pytest.fixture
def bucket(tmp_path: Path, seaweed: Server) -> Iterator[tuple[Bucket, S3Bench]]:
    """On SeaweedFS, which holds every condition."""
    bench = S3Bench(seaweed)
    clock = Clock(time.time_ns() + 5 * DAY)
    made = Bucket(place(tmp_path).index, {"s": bench.store}, clock=clock)  # type: ignore[dict-item]
    for number in (1, 2):
        lay(bench, number, b"old")
    yield made, bench
    made.index.close()


def lay(bench: S3Bench, number: int, word: bytes, keys: tuple[str, ...] = PARTS) -> None:
    for key in keys:
        bench.put(key.replace("ckpt-1", f"ckpt-{number}"), word + key.encode())


def standing(bench: S3Bench) -> dict[str, bytes]:
    return {key: bench.store.read(key) for key in PARTS if bench.keys(key)}


def kill(made: Bucket, *, after: bool) -> None:
    """An apply ends just before or just after the proof is taken out of the bucket."""
    real = s3_delete.delete_one

    def deadly(*args: Any) -> None:
        if after:
            real(*args)
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(s3_trash, "delete_one", deadly)
        made.apply(made.plan())
    made.clock.now += HOUR // 2


@pytest.mark.parametrize(("after", "keys"), [(True, PARTS), (True, PARTS[:1]), (False, PARTS)])
def test_in_a_bucket(bucket: tuple[Bucket, S3Bench], after: bool, keys: tuple[str, ...]):
    made, bench = bucket
    kill(made, after=after)
    lay(bench, 1, b"new", keys)
    stands = standing(bench)
    assert [stands[key][:3] for key in PARTS] == [b"new" if key in keys else b"old" for key in PARTS]

    found = recovered(made)
    assert (found.open, found.aside) == ((), 1) and standing(bench) == stands
    [(_, entry)] = lying_in(made)
    assert (entry.whole, entry.replaced) == (False, True)
    assert undo_left(entry, made.clock.now) == "no: saved again"
    assert undone(made, f"s:{UNIT}").failed[0][1] == "occupied"
    made.policy = replace(LAST_ONE, keep=(Last(9),))
    assert run(made).counts == {} and purged(made).waiting == 1
    made.clock.now += HOUR
    assert purged(made).done == [f"s:{UNIT}"] and standing(bench) == stands
    assert run(made).counts == {} and not lying_in(made) and purged(made).exit_code == 0


@pytest.mark.parametrize("after", [True, False], ids=["taken", "not taken yet"])
def test_in_a_bucket_that_nobody_touched(bucket: tuple[Bucket, S3Bench], after: bool):
    made, bench = bucket
    kill(made, after=after)
    found = recovered(made)
    assert (found.done, found.not_begun, found.open) == (int(after), int(not after), ())
    assert len(standing(bench)) == 3 - after
    [(_, entry)] = lying_in(made)
    assert entry.whole == after, "of an act that was not begun the entry waits: who only slept may still go on with it"
    if not after:
        assert purged(made) == Tally(waiting=1)
        made.clock.now += HOUR
        assert purged(made) == Tally() and not lying_in(made) and len(standing(bench)) == 3


def test_in_a_bucket_what_was_not_begun_is_no_hindrance(bucket: tuple[Bucket, S3Bench]):
    made, bench = bucket
    kill(made, after=False)
    assert recovered(made).not_begun == 1
    assert made.apply(made.plan()).counts == {"done": 1}
    [(_, entry)] = lying_in(made)
    assert entry.whole and len(standing(bench)) == 2


def test_in_a_bucket_one_that_woke_up_late_is_brought_back(bucket: tuple[Bucket, S3Bench]):
    """Recovery took it for dead; it has made the proof go since, and was killed then."""
    made, bench = bucket
    before = standing(bench)
    kill(made, after=False)
    assert recovered(made).not_begun == 1
    assert len(lying_in(made)) == 1
    bench.remove(next(key for key in PARTS if key.endswith(".index")))
    assert len(standing(bench)) == 2
    assert undone(made, f"s:{UNIT}").done == [f"s:{UNIT}"]
    assert standing(bench) == before


def test_in_a_bucket_what_was_retired_and_saved_again_is_not_doubted_for_ever(bucket: tuple[Bucket, S3Bench]):
    made, bench = bucket
    assert made.apply(made.plan()).counts == {"done": 1}
    lay(bench, 1, b"new", PARTS[:1])
    stands = standing(bench)
    made.clock.now += 2 * HOUR
    made.policy = replace(LAST_ONE, keep=(Last(9),))
    assert run(made).counts == {}
    assert purged(made).done == [f"s:{UNIT}"]
    [row] = made.index.journal.rows()
    assert (row.outcome, "all that stands there stays" in row.note) == ("purged", True)
    assert standing(bench) == stands and not lying_in(made) and purged(made) == Tally()


def test_in_a_bucket_half_of_a_delete_is_told_as_half(bucket: tuple[Bucket, S3Bench]):
    """Without a proof it goes at once, object by object: nothing of it can be brought back."""
    made, bench = bucket
    action = replace(made.plan().actions[0], verb=Verb.DELETE, trash_s=None, proof=None)
    with made.index.journal.lease("gone", made.clock.now, 1) as fence:
        made.index.journal.start(
            plan="p" * 64, trash_id="t1", action=action, now_ns=made.clock.now, fence=fence, host="h", engine="1"
        )
    bench.remove(PARTS[1])
    found = recovered(made)
    assert (found.open, found.undone, found.gone) == ((), 0, 1) and "part of it is gone" in found.notes[0][2]
    assert {*standing(bench)} == {PARTS[0], PARTS[2]}


def test_in_a_bucket_what_is_nowhere_is_told_so(bucket: tuple[Bucket, S3Bench]):
    """The apply is killed when it is in the trash; then the trash and the rest of it are removed by hand."""
    made, bench = bucket
    kill(made, after=True)
    for key in PARTS:
        bench.remove(key)
    pages = bench.client.list_objects_v2(Bucket=bench.bucket, Prefix=bench.store.shelf.area)
    for item in pages["Contents"]:
        bench.client.delete_object(Bucket=bench.bucket, Key=item["Key"])
    found = recovered(made)
    assert (found.open, found.gone) == ((), 1) and "neither at its place nor in the trash" in found.notes[0][2]
    assert run(made).counts == {}


def lying_in(made: Bucket) -> list[tuple[str, Trashed]]:
    return [(name, entry) for name, trash in made.site.trashes.items() for entry in trash.trash()]
