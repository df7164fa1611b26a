"""The cases that come with the shipped policies: they hold, and no policy and no rule is without one."""

from functools import cache
from pathlib import Path

from lifecycle.config.cases import CasesRead
from lifecycle.config.policies import load_policies
from lifecycle.core.protect import Around
from lifecycle.core.rules import write
from lifecycle.layouts.conduct import rotating
from lifecycle.layouts.slim import refusal
from lifecycle.review.cases import Verdict, judge

POLICIES = Path(__file__).parent.parent.parent / "policies"
FILES = sorted((POLICIES / "tests").glob("*.yaml"))
AROUND = Around(0, thinning=refusal, rotating=rotating)


@cache
def verdicts() -> list[Verdict]:
    policies = load_policies([POLICIES])
    return [judge(case, policies, AROUND) for path in FILES for case in CasesRead(path).cases]


def test_they_hold():
    found = verdicts()
    assert len(found) > 30
    assert [(v.case.name, v.failures + v.unknown) for v in found if v.failures or v.unknown] == []


def test_each_shipped_policy_has_cases_of_things_that_stay_and_things_that_go():
    names = {policy.name for policy in load_policies([POLICIES])}
    decided = {(name, d.keep) for v in verdicts() for d in v.decisions for name in d.policies}
    assert decided == {(name, keep) for name in names for keep in (True, False)}


def test_each_rule_of_a_shipped_policy_keeps_something_in_some_case():
    """A rule that no case needs could be lost without a test to tell; ages and times are in the cases as well."""
    rules = {(p.name, write(rule)) for p in load_policies([POLICIES]) for rule in p.keep or ()}
    used = {(name, m.rule) for v in verdicts() for d in v.decisions for name, m in d.marks if m.keeps and m.rule}
    assert rules - used == set()
