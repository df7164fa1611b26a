"""Where places with classes meet thin copies, nodes and pressure."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from lifecycle.core.classes import archives, parted
from lifecycle.core.evaluate import Decision, evaluate
from lifecycle.core.exposure import names_durable
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint, Evidence, Kind, Status
from lifecycle.core.moves import Move
from lifecycle.core.places import WHOLE, standing
from lifecycle.core.policy import Last, Match, Place, Policy
from lifecycle.core.protect import Around
from lifecycle.core.select import clusters
from lifecycle.core.steps import COPYING, LEAVING, RECLASSING, Step, steps_of
from lifecycle.core.thin import wish
from tests.core.test_places import copy_of
from tests.core.worlds import NOW, checkpoint, run_of

NODE = frozenset({"hot"})
STORES = frozenset({"hot", "warm", "cold"})
OLD = replace(checkpoint("r/step-1", 1), bytes=100, parts=(("optimizer", 60), ("weights", 40)))
WARM, COLD = copy_of(OLD, "warm"), copy_of(OLD, "cold")


def decided(c: Checkpoint, *places: str, thin: tuple[str, ...] = (), pinned: bool = False) -> Decision:
    return Decision(c, Status.COMPLETE, True, (), (), (), places, pinned, thin=thin)


def told(steps: list[Step]) -> list[tuple[str, str, str, str]]:
    actions = [step.action(3600, (), ()) for step in steps]
    return [(a.verb.value, a.store, a.to, a.storage_class) for a in actions]


def test_what_is_copied_from_is_closed_by_a_later_plan():
    alone = replace(OLD, here=False, elsewhere=(WARM,))
    found = steps_of(decided(alone, "warm@GLACIER", "cold"), STORES, 1)
    assert told(found.steps) == [("copy", "warm", "cold", "")]
    both = replace(OLD, here=False, elsewhere=(WARM, COLD))
    found = steps_of(decided(both, "warm@GLACIER", "cold"), STORES, 1)
    assert told(found.steps) == [("reclass", "warm", "", "GLACIER")]


def test_a_class_is_changed_before_something_leaves():
    c = replace(OLD, elsewhere=(WARM,))
    steps = steps_of(decided(c, "warm@GLACIER_IR"), STORES, 1).steps
    assert told(sorted(steps, key=lambda step: step.turn)) == [
        ("reclass", "warm", "", "GLACIER_IR"),
        ("retire", "hot", "", ""),
    ]


def test_an_archive_nobody_asked_for_lets_nothing_readable_leave():
    closed = replace(WARM, online=False, storage_class="GLACIER")
    c = replace(OLD, elsewhere=(closed,))
    assert steps_of(decided(c, "warm"), STORES, 1).steps == []
    assert told(steps_of(decided(c, "warm@GLACIER"), STORES, 1).steps) == [("retire", "hot", "", "")]


def test_a_thin_copy_may_go_into_an_archive():
    found = steps_of(decided(OLD, "hot", "warm@GLACIER", thin=("warm",)), STORES, 1)
    [step] = found.steps
    assert told(found.steps) == [("copy", "hot", "warm", "GLACIER")] and (step.part, step.bytes) == ("weights", 40)


def test_of_two_wishes_for_a_store_the_full_and_the_readable_one_win():
    full = replace(OLD, kind=Kind.FULL)
    wishes = Place(("warm@GLACIER",)), Place(("warm@STANDARD_IA", "cold@GLACIER"), part="weights", gives_up_full=True)
    assert wish(full, wishes, may=True) == (("warm@STANDARD_IA", "cold@GLACIER"), ("cold",))


def test_a_node_is_nothing_to_read_from_when_all_else_is_closed():
    policy = Policy("p", Match(), (Last(1),), place=(Place(("hot", "warm@GLACIER")),))
    run = run_of("r", replace(OLD, elsewhere=(replace(WARM, storage_class="STANDARD"),)))
    assert names_durable(policy, NODE) and not names_durable(policy, NODE | {"warm"})
    for nodes, found in ((frozenset[str](), False), (NODE, True)):
        [(runs, policies)] = clusters([run], (policy,))
        [decision] = evaluate(runs, policies, Around(NOW, (), node_local=nodes)).decisions
        assert decision.pinned is found, nodes
        closes = [step for step in steps_of(decision, STORES, 1, node_local=nodes).steps if step.storage_class]
        assert bool(closes) is not found


def test_a_change_of_class_is_objected_to_by_itself():
    """What else is done stays done: leaving home does not rest on the class."""
    c = replace(OLD, elsewhere=(WARM, COLD))
    asked: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    def against(_decision: Decision, move: Move) -> str:
        asked.append((move.source.id, move.coming, tuple(one.id for one in move.leaving)))
        return "" if move.source.store == "cold" else "it does not pay"

    found = steps_of(decided(c, "warm@GLACIER_IR", "cold@STANDARD_IA"), STORES, 1, against)
    assert asked == [
        ("warm:r/step-1", ("warm@GLACIER_IR",), ("warm:r/step-1",)),
        ("cold:r/step-1", ("cold@STANDARD_IA",), ("cold:r/step-1",)),
    ]
    assert told(found.steps) == [("reclass", "cold", "", "STANDARD_IA"), ("retire", "hot", "", "")]
    assert [(f.subject, f.code, f.text) for f in found.findings] == [(c.id, "does_not_pay", "it does not pay")]


GOOD: dict[str, object] = {"storage_class": "STANDARD"}
STATES: list[dict[str, object] | None] = [
    GOOD,
    {**GOOD, "evidence": Evidence.DOUBTFUL},
    {**GOOD, "kind": Kind.WEIGHTS},
    {"storage_class": "GLACIER", "online": False},
    None,
]
WANTED = [
    ("hot", "warm@GLACIER"),
    ("warm", "cold@GLACIER"),
    ("cold", "warm@GLACIER"),
    ("warm@GLACIER",),
    ("warm@GLACIER", "cold@GLACIER"),
    ("hot", "warm@STANDARD_IA", "cold@GLACIER"),
]


def scattered() -> Iterator[Decision]:
    """Every way in which one can stand and be wanted, in full or thin."""
    for hot, warm, cold in product(STATES, repeat=3):
        copies = [copy_of(OLD, store, **seen) for store, seen in (("warm", warm), ("cold", cold)) if seen]
        c = replace(OLD, here=hot is not None, elsewhere=tuple(copies))
        if hot or copies:
            if hot and hot.get("online", True):  # a home has no archive here
                c = replace(c, **hot)  # type: ignore[arg-type]  # its fields
            for places in WANTED:
                for thin in ((), (first(places[0]),)):
                    yield decided(c, *places, thin=thin)


def readable(decision: Decision, nodes: frozenset[str]) -> set[str] | None:
    """Ids of what can be read where it is wanted so, all of it unless weights are all that is; None: nowhere is it."""
    c, thin = decision.checkpoint, decision.thin
    durable = [place for place in decision.places if first(place) not in nodes] or [*decision.places]
    stores = {store for store, name in map(parted, durable) if name not in ARCHIVES}
    whole = [copy for copy in standing(c) if copy.online and copy.evidence in WHOLE and copy.store in stores]
    if stores <= set(thin):
        return {copy.id for copy in whole} if stores else None
    full = any(copy.kind is Kind.FULL for copy in standing(c))
    return {o.id for o in whole if o.store not in thin and (o.kind is Kind.FULL or not full)}


@pytest.mark.parametrize("nodes", [frozenset[str](), NODE])
def test_what_is_wanted_readable_is_closed_only_where_it_can_be_read_elsewhere(nodes: frozenset[str]):
    closed = 0
    for decision in scattered():
        ready = readable(decision, nodes)
        for step in steps_of(decision, STORES, 1, node_local=nodes).steps:
            if step.turn == RECLASSING and step.storage_class in ARCHIVES and ready is not None:
                closed += 1
                assert ready and ready >= {*step.copies}, decision
                same_kind = {o.id for o in standing(decision.checkpoint) if o.kind in (Kind.FULL, step.copy.kind)}
                assert step.copies or not ready & same_kind, decision
    assert closed


def test_what_can_be_read_leaves_only_for_what_can():
    left = 0
    for decision in scattered():
        c, places = decision.checkpoint, decision.places
        steps = steps_of(decision, STORES, 1).steps
        coming = any(step.turn == COPYING and step.storage_class not in ARCHIVES for step in steps)
        ready = coming or any(copy.online and copy.store in map(first, places) for copy in standing(c))
        for step in steps:
            if step.turn == LEAVING and step.copy.online:
                left += 1
                assert ready or archives(places), decision
    assert left


def first(place: str) -> str:
    return parted(place)[0]
