"""What a plan as a whole says about its policies and holds."""

from lifecycle.core.lint import ENOUGH, SOON_NS, Census, ending_holds
from lifecycle.core.model import Hold
from lifecycle.core.policy import Every, Last, Match, Name, Pick, Policy, Rule, Unit
from tests.core.worlds import DAY, HOUR, NOW, World, checkpoint, run_of


def told(policy: Policy, *sizes: int) -> list[tuple[str, str]]:
    census = Census()
    for n, size in enumerate(sizes):
        saves = [checkpoint(f"r{n}/s{i}", i * 700, 400 * HOUR - i * 3 * HOUR) for i in range(1, size + 1)]
        census.add(World((run_of(f"r{n}", *saves),), (policy,)).judge())
    return [(f.code, f.text) for f in census.findings([policy])]


def codes(policy: Policy, *sizes: int) -> list[str]:
    return [code for code, _ in told(policy, *sizes)]


def policy(*keep: Rule, **fields: object) -> Policy:
    return Policy("p", Match(), keep, **fields)  # type: ignore[arg-type]  # fields of one dataclass


def test_saving_every_700_and_keeping_every_1000():
    exact = told(policy(Every(Unit.STEPS, 1000, Pick.EXACT), Last(1)), 14)
    assert [code for code, _ in exact] == ["rule_matches_little"]
    assert exact[0][1].startswith("every: 1000 steps, exact: matches 1 of 14 checkpoints; saves and milestones are out")
    assert codes(policy(Every(Unit.STEPS, 1000), Last(1)), 14) == []


def test_a_share_of_few_says_nothing():
    assert codes(policy(Every(Unit.STEPS, 10**6, Pick.EXACT)), ENOUGH - 1) == []
    assert codes(policy(Every(Unit.STEPS, 10**6, Pick.EXACT)), ENOUGH) == ["rule_matches_little"]


def test_names_are_spoken_of_as_names():
    found = told(policy(Name("*exact*")), 20)
    assert found == [("rule_matches_little", "name: *exact*: matches 0 of 20 checkpoints")]


def test_last_may_match_few():
    assert codes(policy(Last(1)), 20) == []


def test_a_policy_that_matches_nothing():
    assert codes(policy(Last(1))) == ["policy_matches_nothing"]


def test_groups_of_one_release_nothing():
    assert codes(policy(Last(1)), 1, 1, 1) == ["rule_never_bites"]
    assert codes(policy(Last(1)), 1, 1) == []
    assert codes(policy(Last(1)), 1, 1, 2) == []
    assert codes(Policy("p", Match(), None), 1, 1, 1) == []


def test_holds_that_end():
    def hold(until_ns: int | None) -> Hold:
        return Hold("h", "hot:r/s1", "ann", "paper", 0, until_ns)

    assert ending_holds([hold(None), hold(NOW + SOON_NS)], NOW) == []
    soon, over = ending_holds([hold(NOW + 2 * DAY), hold(NOW)], NOW)
    assert (soon.code, soon.text) == ("hold_ends_soon", "the hold of ann ends in 2d")
    assert (over.code, over.text) == ("hold_ended", "the hold of ann ended 0s ago: it protects no more")
