"""What had no say: every part of every policy is spoken of, either by a mark or here, and never by both."""

from hypothesis import given

from lifecycle.core.model import Kind
from lifecycle.core.policy import Ended, Incomplete, Last, Match
from lifecycle.core.rules import write
from lifecycle.core.select import applies, covers
from lifecycle.review.unasked import unasked
from tests.core.scenes import policy
from tests.core.worlds import HOUR, World, checkpoint, run_of, worlds


@given(worlds(most=3))
def test_every_rule_of_every_policy_is_spoken_of_once(world: World):
    runs = {c.id: run for run in world.runs for c in run.checkpoints}
    for decision in world.judge().decisions:
        c, run = decision.checkpoint, runs[decision.checkpoint.id]
        rows = unasked(decision, run, world.policies)
        assert len(rows) == len({row[:2] for row in rows})
        assert all(row.why for row in rows)
        for one in world.policies:
            marked = {mark.rule for whose, mark in decision.marks if whose == one.name}
            parts = {row.part for row in rows if row.policy == one.name}
            if not (applies(one, run) and covers(one, c)):
                assert parts == {"match"}
                continue
            assert not parts & marked
            rules = {write(rule) for rule in one.keep or ()}
            assert rules <= parts | marked
            assert one.incomplete is None or "incomplete" in parts | marked
            assert one.ended is None or "ended" in parts | marked


def test_the_reason_is_the_true_one():
    def why(c, by, **fields):
        run = run_of("r", c, checkpoint("r/step-2", 2, 2 * HOUR), **fields)
        decision = next(d for d in World((run,), (by,)).judge().decisions if d.checkpoint.id == c.id)
        return {row.part: row.why for row in unasked(decision, run, (by,))}

    done = checkpoint("r/step-1", 1)
    rules = policy(Last(1), incomplete=Incomplete(60))
    assert why(done, rules) == {"incomplete": "it does not count as unfinished"}
    assert "could not be judged" in why(done, rules, complete=False)["last: 1"]
    export = checkpoint("r/export", 1, kind=Kind.EXPORT)
    assert "does not name its kind (export)" in why(export, rules)["last: 1"]
    assert "is over" in why(done, policy(Last(1), ended=Ended(60)))["last: 1"]
    assert "not over" in why(done, policy(Last(1), ended=Ended(10**6)))["ended"]
    assert why(done, policy(Last(1), match=Match(owners=frozenset({7}), layouts=frozenset({"hf"})))) == {
        "match": "its match is for other layouts, owners"
    }
    assert "cannot" not in why(done, policy(keep=None))
