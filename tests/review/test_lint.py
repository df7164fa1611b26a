"""What the lint says of policies: each of its words by an example, and laws that tie it to the core's own marks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Hold, Run
from lifecycle.core.policy import (
    Age,
    Anchor,
    Best,
    Every,
    Final,
    Last,
    Limits,
    Match,
    Name,
    Pick,
    Place,
    Policy,
    Rule,
    Steps,
    Unit,
    Younger,
)
from lifecycle.core.rules import write
from lifecycle.core.select import applies, clusters
from lifecycle.layouts.own_limits import OWN_LIMITS, own_limit
from lifecycle.layouts.registry import CATALOGUE
from lifecycle.review.lint import lint, static
from lifecycle.review.places import unreachable
from lifecycle.review.remarks import NOTE, WARNING, Remark, near
from lifecycle.review.rotation import rotated
from lifecycle.review.stale import HoldCensus
from lifecycle.review.tally import Tally
from tests.core.worlds import DAY, HOUR, NOW, World, checkpoint, run_of, worlds

ROOT = Path(__file__).parent.parent.parent


def policy(*keep: Rule, name: str = "p", **fields: object) -> Policy:
    return Policy(name, **{"match": Match(), "keep": keep, **fields})  # type: ignore[arg-type]  # fields of one dataclass


def series(path: str, *steps: int, age: int = 90 * HOUR, **fields: object) -> Run:
    found = [checkpoint(f"{path}/step-{s}", s, age + (len(steps) - n) * HOUR, **fields) for n, s in enumerate(steps)]
    return run_of(path, *found)


def tallied(world: World) -> Tally:
    tally = Tally(world.policies)
    for runs, policies in clusters(world.runs, world.policies):
        tally.add(runs, evaluate(runs, policies, world.around))
    return tally


def remarks(*runs: Run, policies: tuple[Policy, ...]) -> list[Remark]:
    return lint(tallied(World(runs, policies)), own_limit)


def codes(*runs: Run, keep: tuple[Rule, ...] = (), **fields: object) -> dict[str, tuple[str | int, ...]]:
    return {r.code: r.at for r in remarks(*runs, policies=(policy(*keep, **fields),))}  # type: ignore[arg-type]  # as above


R = series("a/r", *range(1000, 21000, 1000))


def test_a_sane_policy_is_left_alone():
    assert codes(R, keep=(Last(3), Every(Unit.STEPS, 5000), Younger(3600, Anchor.NOW))) == {}


def test_globs_that_match_nothing_and_what_may_have_been_meant():
    (told,) = remarks(R, policies=(policy(Last(1), match=Match(runs=("hot:a/**", "hot:aa/r"))),))
    assert (told.code, told.at, told.severity) == ("glob_matches_nothing", ("match", "runs", 1), WARNING)
    found = remarks(R, policies=(policy(Last(1), match=Match(runs=("hott:a/**",))),))
    assert [(r.code, r.policy, r.hint) for r in found] == [
        ("policy_matches_nothing", "p", "did you mean hot:a?"),
        ("runs_unmatched", "", ""),
    ]
    assert "1 run (2 kB) is matched by no policy" in found[1].text
    assert codes(R, keep=(Last(1),), match=Match(kinds=frozenset({"export"}))) == {"policy_covers_nothing": ("match",)}
    assert "policy_matches_nothing" in codes(R, keep=(Last(1),), match=Match(stores=frozenset({"warm"})))


def test_rules_that_keep_nothing():
    rules = (Last(1), Steps(frozenset({55})), Name("release-*"), Final(30 * 86400), Every(Unit.STEPS, 9999, Pick.EXACT))
    found = remarks(R, policies=(policy(*rules),))
    assert {(r.code, r.at) for r in found} == {
        ("rule_matches_nothing", ("keep", 1)),
        ("rule_matches_nothing", ("keep", 2)),
        ("rule_matches_nothing", ("keep", 4)),
    }, "final says nothing of a run that may go on"
    told = {r.at[1]: r.severity for r in found}
    assert told == {1: WARNING, 2: NOTE, 4: WARNING}, "a name may be for what is to come"
    (later,) = remarks(R, policies=(policy(Last(1), Steps(frozenset({55000, 60000}))),))
    assert (later.code, later.severity) == ("rule_matches_nothing", NOTE), "no run has come so far"
    assert next(r.hint for r in found if r.at == ("keep", 4)).endswith("every {steps: 10000}")


def test_facts_that_nobody_knows_keep_everything():
    assert codes(R, keep=(Last(1), Every(Unit.EPOCHS, 1))) == {"fact_unknown": ("keep", 1)}


@pytest.mark.parametrize(
    ("pick", "text"),
    [
        (Pick.EXACT, "only every 7th multiple of 1000 is ever saved: it keeps 2 of 20"),
        (Pick.CLOSEST, "12 of 13 (92 %) are stood for by another step, up to 300 away"),
        (Pick.FIRST, "12 of 13 (92 %) are stood for by another step, up to 600 away"),
    ],
)
def test_saving_every_700_and_keeping_every_1000(pick: Pick, text: str):
    run = series("a/r", *range(700, 14001, 700))
    (told,) = remarks(run, policies=(policy(Last(1), Every(Unit.STEPS, 1000, pick)),))
    assert (told.code, told.at) == ("milestones_misaligned", ("keep", 1))
    assert "saves come every 700 steps" in told.text and text in told.text
    assert told.hint.startswith("pick: closest, or every {steps: 700}" if pick is Pick.EXACT else "every {steps: 700}")


def test_milestones_on_saves_are_aligned_wherever_the_run_stands():
    for last in range(1, 40):
        run = series("a/r", *range(0, last * 500, 500))
        assert "milestones_misaligned" not in codes(run, keep=(Last(1), Every(Unit.STEPS, 2000)))


def test_groups_that_are_too_small():
    ones = [series(f"a/r{n}", 1000 * n) for n in range(1, 5)]
    assert codes(*ones, keep=(Last(3),)) == {"groups_of_one": ("policy",), "rule_never_bites": ("keep", 0)}
    assert codes(*ones, keep=(Last(3),), group_by="^(a)/") == {}
    twos = [series(f"a/r{n}", 1000, 2000) for n in range(1, 5)]
    assert codes(*twos, keep=(Last(3),)) == {"rule_never_bites": ("keep", 0)}
    assert codes(*twos, R, keep=(Last(3),)) == {}
    assert codes(*ones[:2], keep=(Last(3),)) == {}, "two runs may have just begun"


def test_metrics_that_no_run_has():
    run = series("a/r", 1000, 2000, metrics=(("eval_loss", 1.0), ("acc", 0.5)))
    best = Best("eval/loss", "min", 1, (("accuracy", "max"),))
    found = remarks(run, policies=(policy(best, place=(Place(("hot",), best=Best("lss", "min", 1)),)),))
    assert [(r.code, r.at) for r in found] == [
        ("metric_unknown", ("keep", 0, "best", "metric")),
        ("metric_unknown", ("keep", 0, "best", "ties")),
        ("metric_unknown", ("place", 0, "best", "metric")),
    ]
    assert "did you mean eval_loss?" in found[0].hint
    assert "acc" in found[1].hint and "eval_loss" in found[2].hint
    known = remarks(run, policies=(policy(Best("eval_loss", "min", 1)),))
    assert known == []


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("eval/loss", ["loss", "eval_loss", "step"], "did you mean eval_loss or loss?"),
        ("val-loss", ["val_loss"], "did you mean val_loss?"),
        ("Loss", ["loss", "LOSS_2"], "did you mean loss or LOSS_2?"),
        ("x", ["loss", "acc"], "there are acc, loss"),
        ("x", list("abcdefg"), "there are a, b, c, d, e, ..."),
        ("x", [], ""),
    ],
)
def test_near_names(word: str, known: list[str], hint: str):
    assert near(word, known) == hint


def test_overlaps_tell_who_keeps_more_and_which_limits_hold():
    one = policy(Last(5), name="a", limits=Limits(grace_s=60, trash_s=None))
    other = policy(Last(2), name="b", match=Match(runs=("hot:a/*",)), limits=Limits(grace_s=7200, trash_s=3600))
    (told,) = remarks(R, policies=(one, other))
    assert (told.code, told.policy, told.at) == ("policies_overlap", "b", ("match", "runs"))
    assert "both cover 20 checkpoints of 1 run: a keeps 5, b 2" in told.text
    assert "(grace 2h, 1h in the trash)" in told.text
    apart = remarks(R, series("b/r", 1, 2), policies=(replace(one, match=Match(runs=("hot:b/*",))), other))
    assert [r.code for r in apart] == []


def place(on: str = "hot", **fields: object) -> Place:
    return Place((on,), **fields)  # type: ignore[arg-type]  # fields of one dataclass


OLD, OLDER = Age(86400, Anchor.NOW), Age(86400 * 9, Anchor.NOW)


@pytest.mark.parametrize(
    ("first", "second", "hidden"),
    [
        (place(older=OLD), place(older=OLD), True),
        (place(older=OLD), place(older=OLDER), True),
        (place(older=OLDER), place(older=OLD), False),
        (place(older=OLD), place(older=Age(86400, Anchor.NEWEST)), False),
        (place(younger=OLDER), place(younger=OLD), True),
        (place(younger=OLD), place(younger=OLDER), False),
        (place(older=OLD), place(older=OLD, kinds=frozenset({"full"})), True),
        (place(older=OLD, kinds=frozenset({"full"})), place(older=OLD), False),
        (place(kept_by=frozenset({"last", "best"})), place(kept_by=frozenset({"last"})), True),
        (place(kept_by=frozenset({"last"})), place(kept_by=frozenset({"last", "best"})), False),
        (place(steps_min=10), place(steps_min=20, steps_max=30), True),
        (place(steps_min=10), place(steps_max=30), False),
        (place(steps_max=30), place(steps_min=0, steps_max=30), True),
        (place(bytes_min=10, bytes_max=20), place(bytes_min=10, bytes_max=21), False),
        (place(owners=frozenset({1, 2})), place(owners=frozenset({1})), True),
        (place(best=Best("l", "min", 3)), place(best=Best("l", "min", 2)), True),
        (place(best=Best("l", "min", 2)), place(best=Best("l", "min", 3)), False),
        (place(best=Best("l", "min", 2)), place(best=Best("l", "max", 2)), False),
        (place(), place(older=OLD), True),
    ],
)
def test_places_that_nothing_reaches(first: Place, second: Place, hidden: bool):
    rules = policy(Last(1), place=(first, second))
    assert [r.at for r in unreachable(rules)] == [("place", 1)] * hidden
    assert [r.code for r in static({"p": rules})] == ["place_unreachable"] * hidden


def test_places_that_take_nothing():
    rules = policy(Last(3), place=(place(older=Age(86400 * 99, Anchor.NOW)), place(older=OLD), place()))
    (told,) = remarks(R, policies=(rules,))
    assert (told.code, told.at) == ("place_takes_nothing", ("place", 0))


CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "older": st.sampled_from([OLD, OLDER, Age(3600, Anchor.NEWEST)]),
        "younger": st.sampled_from([OLD, OLDER, Age(3600 * 30, Anchor.RUN_END)]),
        "kept_by": st.sampled_from([frozenset({"last"}), frozenset({"last", "every"})]),
        "steps_min": st.sampled_from([0, 1000, 2000]),
        "steps_max": st.sampled_from([1500, 9000]),
        "kinds": st.sampled_from([frozenset({"full"}), frozenset({"full", "weights"})]),
        "best": st.sampled_from([Best("loss", "min", 1), Best("loss", "min", 2)]),
    },
)


@given(world=worlds(rules=True), items=st.lists(CONDITIONS, min_size=2, max_size=4))
def test_nothing_is_ever_placed_by_an_item_that_is_called_unreachable(world: World, items: list[dict[str, object]]):
    (p,) = world.policies
    p = replace(p, keep=(*(p.keep or ()), Last(2), Every(Unit.STEPS, 700)))
    p = replace(p, place=tuple(place(f"s{n}", **item) for n, item in enumerate(items)))
    hidden = {p.place[int(remark.at[1])] for remark in unreachable(p)}
    judgement = World(world.runs, (p,), world.around).plain()
    assert not hidden & {chosen for d in judgement.decisions for _, chosen in d.lodgings}


@given(world=st.one_of(worlds(), worlds(rules=True, most=3)))
def test_what_it_counts_is_what_the_core_says(world: World):
    judgement = evaluate(world.runs, world.policies, world.around)
    tally = Tally(world.policies)
    for runs, policies in clusters(world.runs, world.policies):
        tally.add(runs, evaluate(runs, policies, world.around))
    again = evaluate(world.runs, world.policies, world.around)
    assert again == judgement, "to look changes nothing"
    marks = [(name, m) for d in judgement.decisions for name, m in d.marks if m.rule]
    for p in world.policies:
        count = tally.counts[p.name]
        assert count.runs == sum(applies(p, run) for run in world.runs)
        labels = {write(rule) for rule in p.keep or ()}
        mine = [m for name, m in marks if name == p.name and m.rule in labels]
        assert sum(rule.asked for rule in count.rules.values()) == len(mine)
        assert sum(rule.kept + rule.unknown for rule in count.rules.values()) == sum(m.keeps for m in mine)
    for told in lint(tally, own_limit):
        match told.code, told.at:
            case "rule_matches_nothing", ("keep", int(i)):
                label = write((tally.policies[told.policy].keep or ())[i])
                assert not any(m.keeps for name, m in marks if (name, m.rule) == (told.policy, label))
            case "policy_matches_nothing", _:
                assert not any(applies(tally.policies[told.policy], run) for run in world.runs)
            case _:
                pass


# -- what goes without us


def test_what_a_rule_keeps_and_others_have_removed():
    gone = checkpoint("a/r/step-500", 500, 200 * HOUR, layout="hf_trainer")
    whole = replace(R, checkpoints=(gone, *R.checkpoints))
    rules = policy(Last(1), Steps(frozenset({500})))
    tally = tallied(World((R,), (rules,)))
    tally.add_gone(evaluate((whole,), (rules,), World((whole,), (rules,)).around), frozenset({gone.id}))
    told = next(r for r in lint(tally, own_limit) if r.code == "others_delete")
    assert told.at == ("keep", 1)
    assert "1 checkpoint that steps: [500] keeps went from 1 run (hf_trainer), and not by us" in told.text
    assert "save_total_limit" in told.hint


def test_runs_that_seem_to_have_lost_their_beginning():
    assert rotated(R) is None
    few = series("a/f", 9500, 9750, 10000, layout="hf_trainer")
    seen = rotated(few)
    assert seen is not None and (seen.standing, seen.oldest, seen.gap) == (3, 9500, 250)
    assert rotated(series("a/f", 9500, 9750, 10001)) is None, "uneven steps tell nothing"
    assert rotated(series("a/f", 500, 750)) is None, "one save before may never have been"
    rules = (policy(Last(10), Every(Unit.STEPS, 1000), Last(3)),)
    tally = tallied(World((few,), rules))
    tally.add_rotated(few, seen)
    told = [r for r in lint(tally, own_limit) if r.code == "others_may_delete"]
    assert [r.at for r in told] == [("keep", 0), ("keep", 1)]
    assert "hot:a/f has 3 checkpoints, saved every 250 steps, of which the oldest is step 9500" in told[0].text


def test_settings_of_frameworks_are_of_layouts_that_there_are():
    assert OWN_LIMITS.keys() <= {row.name for row in CATALOGUE.directories} | {row.name for row in CATALOGUE.files}


# -- holds


def hold(until: int | None, target: str = "hot:a/r/step-1000", owner: str = "ann") -> Hold:
    return Hold("h1", target, owner, "paper", NOW - DAY, until)


@pytest.mark.parametrize(
    ("held", "quiet", "code"),
    [
        (hold(NOW - DAY), 0, ["hold_ended"]),
        (hold(NOW + DAY), 0, []),
        (hold(None), 0, []),
        (hold(None), 100 * DAY, ["hold_outlives_run"]),
        (hold(NOW + 99 * DAY), 100 * DAY, ["hold_outlives_run"]),
        (hold(NOW + 9 * DAY), 100 * DAY, []),
        (hold(None, "hot:a/r/step-5"), 0, ["hold_holds_nothing"]),
        (hold(None, owner="bob"), 0, ["hold_owner_gone"]),
    ],
)
def test_holds_that_outlive_what_they_are_for(held: Hold, quiet: int, code: list[str]):
    census = HoldCensus([held], {"ann": 7, "bob": 8}, NOW + quiet)
    moved = replace(held, until_ns=None if held.until_ns is None else held.until_ns + quiet)
    census = HoldCensus([moved], {"ann": 7, "bob": 8}, NOW + quiet)
    census.add(series("a/r", 1000, 2000, owner=7))
    found = list(census.remarks())
    assert [r.code for r in found] == code
    assert all(r.subject == "hold h1" and "lifecycle release h1" in r.hint for r in found)


@given(world=worlds(), targets=st.lists(st.sampled_from(["", "a", "a/r1", "b/r1", "x", "a/r", "a/r1/p"]), max_size=3))
def test_what_each_hold_holds_is_what_it_covers(world: World, targets: list[str]):
    """Only runs near a hold are looked at; none that it covers is missed, be it by a rename."""
    more = [Hold(f"m{n}", f"hot:{target}", "ann", "", 0) for n, target in enumerate(targets)]
    files = [Hold(f"f{n}", f"{c.id}/x.bin", "ann", "", 0, inode=c.inode) for n, c in enumerate(world.checkpoints[:3])]
    census = HoldCensus([*world.around.holds, *more, *files], {}, NOW)
    for run in world.runs:
        census.add(run)
    for hold_, held in census.holds.items():
        assert held.checkpoints == sum(hold_.covers(c) for c in world.checkpoints)


def test_owners_that_nobody_knows_are_not_spoken_of():
    for users, owner in (({}, 7), ({"ann": 8}, None)):
        census = HoldCensus([hold(None)], users, NOW)
        census.add(series("a/r", 1000, owner=owner))
        assert list(census.remarks()) == []


def test_every_word_is_on_the_page():
    source = "".join((ROOT / f"lifecycle/review/{name}.py").read_text() for name in ("lint", "places", "stale"))
    words = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)", (?:WARNING|NOTE)', source))
    words |= set(re.findall(r'^\s+"([a-z]+_[a-z_]+)",$', source, re.MULTILINE))
    assert len(words) > 15
    page = (ROOT / "docs/reviewing.md").read_text()
    assert {word for word in words if f"`{word}`" not in page} == set()
