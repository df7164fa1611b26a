"""Where two features meet: each of these once lost a checkpoint, a hold, or the truth about what is left."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.cli.progress import readings
from lifecycle.core.calendar import Window
from lifecycle.core.listing import Flavour
from lifecycle.core.model import Hold
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Policy
from lifecycle.core.policy import Place as Where
from lifecycle.errors import StoreError
from lifecycle.flows.copies import forget_gone
from lifecycle.flows.recall import recall
from lifecycle.flows.recover import recover
from lifecycle.flows.scan import Wish as Scan
from lifecycle.flows.undo import free_due, undo
from lifecycle.flows.verify import Wish as Reading
from lifecycle.flows.verify import verify_copies
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.memory import MemoryStore
from tests.flows import test_classes as classes
from tests.flows.place import HOUR, Place, S, place
from tests.flows.test_nodes import Node
from tests.flows.test_thin import LOADED, OLD, ONE, SLIM, WEIGHTS, desk, judged, names, policy, save

WARM = Where(on=("warm",), older=OLD)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    """Three checkpoints at home, a warm place beside it."""
    made = place(tmp_path, ("hot", "warm"))
    made.conventions = Conventions(hold_files=frozenset({"HOLD"}))
    for step, days in ((1, 30), (2, 20), (3, 3)):
        save(made, step, days)
    yield made
    made.index.close()


def only_warm(made: Place, trash_s: int | None) -> None:
    """The two older ones stand on warm alone, and a later policy lets the oldest of them go."""
    made.policy = policy(WARM, trash_s=trash_s)
    assert made.apply(made.plan()).counts["done"] == 4
    free_due(made.site.trashes, made.index.journal, (), made.clock.now + 2 * HOUR)
    made.policy = replace(made.policy, keep=(Last(2),), digest="less")


# -- what people say at home is said of copies


def hold_file(made: Place) -> None:
    made.stores["hot"].put("r/HOLD", b"", made.clock.now)


def pointer(made: Place) -> None:
    made.stores["hot"].put("r/latest", b"checkpoint-1", made.clock.now)


def test_a_hold_file_at_home_keeps_the_copy_elsewhere(both: Place):
    only_warm(both, None)
    plan = both.plan()
    hold_file(both)
    outcome = both.apply(plan)
    assert outcome.counts["kept"] == 1 and outcome.notes[0][1] == "held"
    assert names(both, "warm", 1)


@pytest.mark.parametrize("where", ["r/HOLD", "HOLD"])
def test_a_hold_file_keeps_the_copies_of_what_has_left_that_home_for_good(both: Place, where: str):
    both.policy = policy(Where(on=("warm",)), trash_s=None)
    both.apply(both.plan())
    assert not both.stores["hot"].files, "nothing is left at home"
    both.policy = replace(both.policy, keep=(Last(2),), digest="less")
    plan = both.plan()
    assert [a.id for a in plan.actions] == ["warm:r/checkpoint-1"]
    both.stores["hot"].put(where, b"", both.clock.now)
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("warm:r/checkpoint-1", "held")]
    assert names(both, "warm", 1)
    assert not both.plan().actions, "the next plan knows"
    both.stores["hot"].remove(where)
    assert [a.id for a in both.plan().actions] == ["warm:r/checkpoint-1"]


def test_a_home_that_cannot_be_asked_keeps_it_too(both: Place):
    only_warm(both, None)
    plan = both.plan()
    site = both.site
    away = {name: store for name, store in site.stores.items() if name != "hot"}
    plan = replace(plan, basis=replace(plan.basis, stores=tuple(s for s in plan.basis.stores if s.name != "hot")))
    outcome = both.apply(plan, stores=away)
    assert outcome.counts["done"] == 0 and names(both, "warm", 1)


def test_a_hold_by_its_own_name_keeps_a_copy_in_another_trash(both: Place):
    only_warm(both, 3600)
    assert both.apply(both.plan()).counts["done"] == 1
    held = Hold("h", "hot:r/checkpoint-1", "ann", "paper", both.clock.now)
    found = free_due(both.site.trashes, both.index.journal, (held,), both.clock.now + 2 * HOUR)
    assert (found.done, found.waiting) == ([], 1)


# -- what comes back is known for what it is


def purge(made: Place) -> list[str]:
    """As the command does it: what is freed is forgotten."""
    site = made.site
    done = free_due(site.trashes, made.index.journal, (), made.clock.now).done
    for name, store in made.stores.items():
        keys = {key for where, _, key in (one.partition(":") for one in done) if where == name}
        forget_gone(store, site.intakes[name], site.trashes[name], keys)
    return done


def test_a_copy_that_still_lies_in_the_trash_keeps_its_manifest(both: Place):
    both.policy = policy(Where(on=("hot", "warm"), older=OLD))
    both.apply(both.plan())
    both.policy = policy(Where(on=("hot",)))
    both.apply(both.plan())
    both.clock.now += 1800 * S
    both.policy = policy(WARM, trash_s=None)
    both.apply(both.plan())
    both.policy = replace(policy(WARM, trash_s=7200), keep=(Last(2),), digest="less")
    plan = both.plan()
    assert both.apply(plan).counts["done"] == 1
    both.clock.now += 2000 * S
    assert "warm:r/checkpoint-1" in purge(both)
    assert undo(both.site.trashes, both.index.journal, plan.id, both.clock.now, both.site.intakes, both.stores).done
    assert recall(desk(both), "hot", "r/checkpoint-1").source == "warm:r/checkpoint-1"


def test_what_was_taken_out_goes_back_into_the_very_same_one(both: Place):
    both.policy = policy(SLIM)
    both.apply(both.plan())
    hot = both.stores["hot"]
    hot.remove("r/checkpoint-1")
    both.clock.now += 60 * S
    for name in WEIGHTS:
        content = b'{"global_step": 1}' if name.startswith("tr") else name.upper().encode() * 9
        hot.put(f"r/checkpoint-1/{name}", content, both.clock.now)
    found = undo(both.site.trashes, both.index.journal, ONE, both.clock.now, both.site.intakes, both.stores)
    assert found.done == [] and "is not the one any more" in found.failed[0][2]
    both.scan("hot")
    assert judged(both, 1).kind == "weights"


def cut_short(made: Place) -> None:
    """A slimming is killed when the first of three files is in the trash."""
    made.policy = policy(SLIM)
    plan = made.plan()
    made.stores["hot"].seam.at("change", 4, die)
    with pytest.raises(classes.Killed):
        made.apply(plan)
    assert names(made, "hot", 1) >= WEIGHTS and not names(made, "hot", 1) >= {*LOADED}
    made.clock.now += HOUR


def die() -> None:
    raise classes.Killed


@pytest.mark.parametrize("soon", [True, False], ids=["a save in progress", "a save that is whole"])
def test_half_of_a_slimming_does_not_go_back_into_another_one(both: Place, soon: bool):
    cut_short(both)
    hot = both.stores["hot"]
    gone = {*LOADED} - names(both, "hot", 1)
    assert len(gone) == 1
    hot.remove("r/checkpoint-1")
    for name in {*LOADED} - (gone if soon else set()):
        hot.put(f"r/checkpoint-1/{name}", LOADED[name], both.clock.now)
    site, stands = both.site, names(both, "hot", 1)
    found = recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now)
    assert (found.open, found.aside, found.undone) == ((), 1, 0) and "something else was saved" in found.notes[0][2]
    assert names(both, "hot", 1) == stands and len(hot.trash) == 1
    tally = undo(site.trashes, site.journal, ONE, both.clock.now, site.intakes, both.stores)
    assert not tally.done and names(both, "hot", 1) == stands, "nor does an undo put it there"


def test_half_of_a_slimming_waits_for_a_store_that_does_not_say(both: Place):
    cut_short(both)
    site = both.site
    both.stores["hot"].fail("walk", 1, StoreError("no answer", code="io_error"))
    assert len(recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now).open) == 1
    assert recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now).undone == 1
    assert names(both, "hot", 1) == {*LOADED}


# -- what is called proven was read


def tiered(*on: str, digest: str) -> Policy:
    places = (Where(on=on, older=Age(classes.WEEK_S, Anchor.NOW)), Where(on=("hot",)))
    limits = Limits(trash_s=None)
    return Policy("tier", Match(stores=frozenset({"hot"})), (Last(9),), limits=limits, place=places, digest=digest)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Place]:
    """One old checkpoint that stands in a bucket as well, in a class that can be read."""
    made = place(tmp_path, ("hot", "warm"))
    made.stores["warm"] = MemoryStore("warm", Flavour.OBJECT)
    for step, days in ((1, 30), (3, 3), (4, 2)):
        made.save("hot", "r", step, days * classes.DAY, v=b"v" * 9)
    made.policy = tiered("hot", "warm@STANDARD", digest="a")
    assert made.apply(made.plan()).counts["done"] == 1
    yield made
    made.index.close()


def rot(made: Place) -> None:
    """A file of the copy rots, and the bucket's own rule closes it before anybody reads it."""
    file = made.stores["warm"].files["r/step-1/v"]
    file.storage_class, file.content = "GLACIER", b"x" * 9


def test_a_copy_that_a_rule_closed_in_part_lets_nothing_leave(bucket: Place):
    rot(bucket)
    bucket.policy = tiered("warm@GLACIER", digest="b")
    outcome = bucket.apply(bucket.plan())
    assert [code for _, code, _ in outcome.notes] == ["read_in_part", "copy_unproven"]
    assert "r/step-1/v" in bucket.stores["hot"].files


def test_a_change_of_class_that_a_crash_cut_short_lets_nothing_leave(bucket: Place):
    def dies() -> None:
        raise classes.Killed

    bucket.policy = tiered("hot", "warm@GLACIER", digest="b")
    plan = bucket.plan()
    bucket.stores["warm"].seam.at("stream", 1, dies)
    with pytest.raises(classes.Killed):
        bucket.apply(plan)
    for file in bucket.stores["warm"].files.values():
        file.storage_class = "GLACIER"
    rot(bucket)
    bucket.clock.now += HOUR
    site = bucket.site
    recover(site.journal, site.stores, site.trashes, site.intakes, bucket.clock.now)
    bucket.policy = tiered("warm@GLACIER", digest="c")
    outcome = bucket.apply(bucket.plan())
    assert outcome.counts["done"] == 0 and "r/step-1/v" in bucket.stores["hot"].files


CLOSE = tiered("warm@GLACIER", digest="close")
"""What stands at home as well leaves it for the bucket's archive."""


def nights(made: Place) -> None:
    for _ in range(2):
        made.clock.now += HOUR
        site = made.site
        assert not recover(site.journal, site.stores, site.trashes, site.intakes, made.clock.now).open
        made.apply(made.plan())


def at_home(made: Place) -> set[int]:
    return {int(key.split("/")[1].removeprefix("step-")) for key in made.stores["hot"].files}


def verified(made: Place) -> None:
    done = verify_copies(made.stores, made.index.reader, made.index.writer, Reading(), now_ns=made.clock.now)
    assert {check.outcome for check in done.checks} <= {"whole"}


@pytest.mark.parametrize("fault", [classes.Killed(), StoreError("no answer", code="io_error")], ids=["kill", "failure"])
@pytest.mark.parametrize("change", [1, 2])
@pytest.mark.parametrize("fresh", [False, True], ids=["a copy that stood", "a copy made just now"])
def test_a_class_change_that_was_cut_short_converges(bucket: Place, fault: BaseException, change: int, fresh: bool):
    if fresh:
        bucket.save("hot", "r", 0, 40 * classes.DAY, v=b"v" * 9)
    bucket.policy = CLOSE
    plan, seam = bucket.plan(), bucket.stores["warm"].seam
    seam.at("change_class", 1, lambda: seam.fail("change", change, fault))  # type: ignore[arg-type]  # a kill as well
    with suppress(classes.Killed):
        bucket.apply(plan)
    closed_by_then = [key for key, file in bucket.stores["warm"].files.items() if file.storage_class == "GLACIER"]
    assert seam.fired() and (fault.__class__ is StoreError or len(closed_by_then) == change - 1)
    seam.mend()
    nights(bucket)
    assert at_home(bucket) == {3, 4} and not bucket.plan().actions
    assert {f.storage_class for k, f in bucket.stores["warm"].files.items() if not k.endswith("DONE")} == {"GLACIER"}


@pytest.mark.parametrize("which", [["v"], ["v", "w"]], ids=["in part", "in whole"])
@pytest.mark.parametrize("read", [True, False], ids=["verified before", "never read"])
def test_what_a_rule_of_the_bucket_closed_counts_once_it_was_read_before(bucket: Place, which: list[str], read: bool):
    if read:
        verified(bucket)
    for name in which:
        bucket.stores["warm"].files[f"r/step-1/{name}"].storage_class = "GLACIER"
    bucket.policy = CLOSE
    outcome = bucket.apply(bucket.plan())
    assert (1 in at_home(bucket)) is not read
    if not read:
        assert any(
            "removed there, it is copied anew" in text for _, code, text in outcome.notes if code == "copy_unproven"
        )
    nights(bucket)
    assert (1 in at_home(bucket)) is not read


def test_a_class_change_waits_for_the_time_at_which_bytes_may_move(bucket: Place):
    bucket.policy = CLOSE
    plan, minute = bucket.plan(), bucket.clock.now // S // 60
    later = Window((minute + 60) % 1440, (minute + 120) % 1440, "UTC")
    before = dict(bucket.stores["warm"].files)
    outcome = bucket.apply(plan, window=later)
    assert (outcome.counts, outcome.waiting) == ({"left": 2}, 2), "what leaves for it waits as well"
    assert bucket.stores["warm"].files == before and 1 in at_home(bucket)
    assert readings(plan.actions) == [19, 0], "it is read before it is closed, and not again when its source leaves"
    assert bucket.apply(plan).counts == {"done": 2}


def test_what_somebody_put_in_the_place_of_a_closed_object_proves_nothing(bucket: Place):
    verified(bucket)
    for name in ("v", "w"):
        bucket.stores["warm"].files[f"r/step-1/{name}"].storage_class = "GLACIER"
    bucket.stores["warm"].files["r/step-1/v"].copy_id = ""
    bucket.policy = CLOSE
    bucket.apply(bucket.plan())
    assert 1 in at_home(bucket)


# -- a copy whose original has come back, or is another one


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Place]:
    """A home in a bucket, and a place beside it; two of three stand on both."""
    made = place(tmp_path, ("hot", "warm"))
    made.stores["hot"] = MemoryStore("hot", Flavour.OBJECT)
    for step, days in ((1, 30), (2, 20), (3, 3)):
        made.save("hot", "r", step, days * classes.DAY, v=b"v" * 9)
    made.policy = tiered("hot", "warm", digest="a")
    assert made.apply(made.plan()).counts == {"done": 2}
    yield made
    made.index.close()


def left_and_came_back(made: Place) -> None:
    made.policy = replace(tiered("warm", digest="b"), limits=Limits(trash_s=3600))
    plan = made.plan()
    assert made.apply(plan).counts == {"done": 2}
    undo(made.site.trashes, made.index.journal, plan.id, made.clock.now, made.site.intakes, made.stores)
    made.policy = tiered("hot", "warm", digest="a")


def test_what_an_undo_in_a_bucket_dated_anew_is_known_again_by_its_content(apart: Place):
    left_and_came_back(apart)
    before, sent = dict(apart.stores["warm"].files), apart.stores["warm"].seam.calls["put"]
    plan = apart.plan()
    assert [(a.verb.value, a.id) for a in plan.actions] == [("copy", "hot:r/step-1"), ("copy", "hot:r/step-2")]
    outcome = apart.apply(plan)
    assert outcome.exit_code == 0 and {code for _, code, _ in outcome.notes} == {"copy_renewed"}
    assert apart.stores["warm"].files == before and apart.stores["warm"].seam.calls["put"] == sent
    apart.scan("warm", Scan(full=True))  # as the command does
    assert not apart.plan().actions, "and so it rests"
    apart.policy = tiered("warm", digest="c")
    assert apart.apply(apart.plan()).counts == {"done": 2}
    assert recall(desk(apart), "hot", "r/step-1").source == "warm:r/step-1"


@pytest.mark.parametrize("content", [b"V" * 9, b"v" * 8], ids=["of the same size", "of another size"])
def test_another_one_saved_under_the_key_of_an_old_copy_is_told_of_and_neither_is_lost(apart: Place, content: bytes):
    apart.save("hot", "r", 1, 10 * classes.DAY, v=content)
    home, there = dict(apart.stores["hot"].files), dict(apart.stores["warm"].files)
    outcome = apart.apply(apart.plan())
    [(identity, code, text)] = outcome.notes
    assert (identity, code, outcome.exit_code) == ("hot:r/step-1", "copy_differs", 3)
    assert "warm:r/step-1 is a copy of what was saved to hot:r/step-1 on" in text and "recall --to" in text
    assert (apart.stores["hot"].files, apart.stores["warm"].files) == (home, there)


def test_what_changes_while_it_is_compared_is_not_known_again(apart: Place):
    left_and_came_back(apart)
    hot = apart.stores["hot"]
    plan = apart.plan()
    kept = dict(apart.stores["warm"].kept_copies)
    hot.seam.at("stream", 2, lambda: hot.put("r/step-1/v", b"v" * 9, apart.clock.now))
    outcome = apart.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [
        ("hot:r/step-1", "changed_since_plan"),
        ("hot:r/step-2", "copy_renewed"),
    ]
    assert sum(kept[name] != content for name, content in apart.stores["warm"].kept_copies.items()) == 1


def test_what_somebody_else_put_there_stays_and_is_told_of(apart: Place):
    apart.stores["warm"].put("r/step-3/w", b"theirs", apart.clock.now)
    apart.policy = replace(apart.policy, place=(Where(on=("hot", "warm")),), digest="all")
    outcome = apart.apply(apart.plan())
    assert [(i, code) for i, code, _ in outcome.notes] == [("hot:r/step-3", "occupied")]


def test_weights_that_stand_there_are_known_again_as_weights(both: Place):
    both.stores["hot"] = MemoryStore("hot", Flavour.OBJECT)
    for step, days in ((1, 30), (2, 20), (3, 3)):
        save(both, step, days)
    both.policy = policy(Where(on=("warm",), older=OLD, part="weights"))
    both.apply(both.plan())
    for name in ("optimizer.pt", "model.safetensors"):  # the same again, at another time
        file = both.stores["hot"].files[f"r/checkpoint-1/{name}"]
        both.stores["hot"].put(f"r/checkpoint-1/{name}", file.content, file.mtime_ns + 3600 * S)
    outcome = both.apply(both.plan())
    assert {code for _, code, _ in outcome.notes} == {"copy_renewed"}
    both.scan("warm", Scan(full=True))
    assert names(both, "warm", 1) == WEIGHTS and not both.plan().actions


# -- what is closed can still be read elsewhere


def newest_in_both(made: Place) -> None:
    """Everything stands at home and in the bucket; the next policy closes the bucket's copies."""
    made.policy = replace(tiered("hot", digest="all"), place=(Where(on=("hot", "warm@STANDARD")),))
    assert made.apply(made.plan()).exit_code == 0
    made.policy = replace(tiered("hot", digest="close"), place=(Where(on=("hot", "warm@GLACIER")),))


def closed(made: Place) -> list[int]:
    return [n for n in (1, 3, 4) if made.stores["warm"].files[f"r/step-{n}/w"].storage_class == "GLACIER"]


def test_what_has_rotted_elsewhere_stays_readable_in_the_bucket(bucket: Place):
    bucket.stores["cold"] = MemoryStore("cold")
    bucket.policy = replace(tiered("hot", digest="all"), place=(Where(on=("cold", "warm@STANDARD")),))
    assert bucket.apply(bucket.plan()).exit_code == 0 and not bucket.stores["hot"].files
    bucket.stores["cold"].files["r/step-4/w"].content = b"x" * 9
    verify_copies(bucket.stores, bucket.index.reader, bucket.index.writer, Reading(), now_ns=bucket.clock.now)
    bucket.policy = replace(tiered("hot", digest="close"), place=(Where(on=("cold", "warm@GLACIER")),))
    plan = bucket.plan()
    assert bucket.apply(plan).exit_code == 0 and closed(bucket) == [1, 3]
    assert ("hot:r/step-4", "copy_unproven") in {(f.subject, f.code) for f in plan.findings}


@pytest.mark.parametrize("harm", ["rots", "goes"])
def test_what_breaks_at_home_after_the_plan_stays_readable_in_the_bucket(bucket: Place, harm: str):
    newest_in_both(bucket)
    plan = bucket.plan()
    assert [a.copies for a in plan.actions] == [(f"hot:r/step-{n}",) for n in (1, 3, 4)]
    if harm == "rots":
        bucket.stores["hot"].files["r/step-4/w"].content = b"x" * 9
    else:
        bucket.stores["hot"].remove("r/step-4")
    outcome = bucket.apply(plan)
    assert closed(bucket) == [1, 3]
    assert [(i, code) for i, code, _ in outcome.notes] == [("warm:r/step-4", "copy_unproven")]


def test_weights_at_home_do_not_stand_for_all_of_it_in_the_bucket(both: Place):
    both.stores["warm"] = MemoryStore("warm", Flavour.OBJECT)
    both.policy = policy(Where(on=("hot", "warm@STANDARD")))
    both.apply(both.plan())
    for name in names(both, "hot", 3) - WEIGHTS:
        del both.stores["hot"].files[f"r/checkpoint-3/{name}"]
    both.policy = policy(Where(on=("hot", "warm@GLACIER")))
    both.apply(both.plan())
    stand = {key: file.storage_class for key, file in both.stores["warm"].files.items()}
    assert stand["r/checkpoint-3/optimizer.pt"] == "STANDARD" and stand["r/checkpoint-1/optimizer.pt"] == "GLACIER"


def test_an_archive_in_passing_is_nothing_to_leave_home_for(tmp_path: Path):
    made = place(tmp_path, ("hot", "warm", "cold"))
    for name in ("warm", "cold"):
        made.stores[name] = MemoryStore(name, Flavour.OBJECT)
    made.save("hot", "r", 1, 30 * classes.DAY)
    made.policy = replace(tiered("hot", digest="a"), place=(Where(on=("hot", "warm@GLACIER")),))
    made.apply(made.plan())
    made.policy = replace(tiered("hot", digest="b"), place=(Where(on=("warm", "cold@GLACIER")),))
    made.apply(made.plan())
    assert "r/step-1/w" in made.stores["hot"].files, "the only one that can be read"
    made.index.close()


# -- what dies with a node


def test_weights_in_a_bucket_are_no_durable_copy_of_what_a_node_has_in_full(tmp_path: Path):
    plain = place(tmp_path, ("nvme", "bucket"))
    made = Node(plain.index, plain.stores)
    made.conventions = Conventions()
    for step, hours in ((1, 30), (2, 20), (3, 10)):
        files = {**LOADED, "trainer_state.json": b'{"global_step": %d}' % step}
        for name, content in files.items():
            made.stores["nvme"].put(f"r/checkpoint-{step}/{name}", content, made.clock.now - hours * HOUR)
    first = Where(on=("bucket",), steps_max=1)
    third = Where(on=("nvme", "bucket"), steps_min=3)
    thin = Where(on=("bucket",), part="weights")
    match, limits = Match(stores=frozenset({"nvme"})), Limits(trash_s=None)
    made.policy = Policy("p", match, (Last(9),), limits=limits, place=(first, third, thin), digest="all")
    for _ in range(3):
        made.apply(made.plan())
    for store in made.stores.values():
        store.remove("r/checkpoint-3")
    made.clock.now += 3 * HOUR
    made.policy = replace(made.policy, keep=(Last(1),), digest="one")
    made.apply(made.plan())
    assert any(key.endswith("optimizer.pt") for key in made.stores["bucket"].files), "all that can resume after a node"
    made.index.close()


def test_the_weights_of_a_live_run_go_up_from_a_node_and_all_of_it_stays_there(tmp_path: Path):
    plain = place(tmp_path, ("nvme", "bucket"))
    made = Node(plain.index, plain.stores)
    made.conventions = Conventions()
    for step, minutes in ((1, 40), (2, 10)):
        for name, content in {**LOADED, "trainer_state.json": b'{"global_step": %d}' % step}.items():
            made.stores["nvme"].put(f"r/checkpoint-{step}/{name}", content, made.clock.now - minutes * 60 * S)
    thin = Where(on=("bucket",), part="weights", gives_up_full=True)
    match, limits = Match(stores=frozenset({"nvme"})), Limits(trash_s=None, grace_s=60)
    made.policy = Policy("p", match, (Last(9),), limits=limits, place=(thin,), digest="thin")
    before = dict(made.stores["nvme"].files)
    plan = made.plan()
    assert [(a.verb.value, a.key, a.to, a.part) for a in plan.actions] == [
        ("copy", f"r/checkpoint-{n}", "bucket", "weights") for n in (2, 1)
    ]
    assert made.apply(plan).counts == {"done": 2}
    assert names(made, "bucket", 2) == WEIGHTS and made.stores["nvme"].files == before
    assert not made.plan().actions
    made.index.close()


MEDDLING: list[Callable[[Place], None]] = [hold_file, pointer]


@pytest.mark.parametrize("meddle", MEDDLING)
def test_a_full_copy_elsewhere_is_not_given_up_when_home_protects_it(tmp_path: Path, meddle: Callable[[Place], None]):
    made = place(tmp_path, ("hot", "warm", "cold"))
    made.conventions = Conventions(hold_files=frozenset({"HOLD"}))
    for step, days in ((1, 30), (2, 20), (3, 3)):
        save(made, step, days)
    made.policy = policy(WARM, trash_s=None)
    made.apply(made.plan())
    given_up = Where(on=("cold",), older=OLD, part="weights", gives_up_full=True)
    made.policy = replace(policy(given_up, trash_s=None), digest="thin")
    plan = made.plan()
    assert any(a.part and not a.to for a in plan.actions)
    meddle(made)
    made.apply(plan)
    assert "optimizer.pt" in names(made, "warm", 1)
    made.index.close()
