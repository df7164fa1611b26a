"""Where places with classes meet thin copies, nodes and pressure."""

from dataclasses import replace

from lifecycle.core.evaluate import Decision, evaluate
from lifecycle.core.exposure import names_durable
from lifecycle.core.model import Checkpoint, Kind, Status
from lifecycle.core.moves import Move
from lifecycle.core.policy import Last, Match, Place, Policy
from lifecycle.core.protect import Around
from lifecycle.core.select import clusters
from lifecycle.core.steps import Step, steps_of
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
