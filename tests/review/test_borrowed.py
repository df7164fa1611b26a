"""Other tools' retention in our words: what is written can be used, and means what the recorded oracles hold it to."""

import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.config.load import parse
from lifecycle.config.policies import compile_policy
from lifecycle.core.policy import Best, Every, Last, Pick, Policy, Unit
from lifecycle.review.borrowed import Borrowed, Options, Unclear, lightning, orbax, restic, trainer
from tests.oracles.__main__ import read
from tests.oracles.ask_restic import OPTION, UNIT
from tests.oracles.histories import Part
from tests.oracles.ours import ruled_by


def compiled(found: Borrowed) -> Policy:
    text = yaml.safe_dump({"policy": "p", **found.body})
    return compile_policy(parse(text.encode(), "p.yaml"))


def as_call(part: Part) -> tuple[str, dict[str, object]]:
    """A part of a recorded question as Orbax's own policy."""
    match part:
        case ["latest", n]:
            return "LatestN", {"n": n}
        case ["duration", seconds]:
            return "LatestDuration", {"duration": seconds}
        case ["steps", n, exact, most]:
            return "EveryNSteps", {"interval_steps": n, "exact_interval": exact, "max_to_keep": most}
        case ["closest", n, most]:
            return "EveryNStepsClosest", {"interval_steps": n, "max_to_keep": most}
        case ["seconds", n]:
            return "EveryNSeconds", {"interval_secs": n}
        case ["best", n, smallest, keep]:
            return "BestN", {"n": n, "reverse": smallest, "keep_checkpoints_without_metrics": keep}
        case ["custom", steps]:
            return "CustomSteps", {"steps": steps}
        case _:
            raise AssertionError(part)


def unique(parts: list[Part]) -> list[Part]:
    return [part for i, part in enumerate(parts) if part not in parts[:i]]


def test_orbax_means_what_the_recorded_answers_are_held_to():
    """The oracles hold ``ours.rules`` against the real program; what we import has to be those rules."""
    parts = unique([part for case in read("orbax")[1] for part in case.policy])
    assert {part[0] for part in parts} == {"latest", "duration", "steps", "closest", "seconds", "best", "custom"}
    for part in parts:
        if part in (["latest", 0], ["custom", []]):
            continue
        rules = compiled(orbax(Options({"best_metric": "loss"}), [as_call(part)])).keep
        assert rules == tuple(ruled_by("orbax", part)), part


def test_restic_means_what_the_recorded_answers_are_held_to():
    parts = unique([part for case in read("restic")[1] for part in case.policy])
    assert {"last", "daily", "within", "within-month", "within-daily", "tag"} <= {part[0] for part in parts}
    for word, count in parts:
        flag = (OPTION.get(word, f"--keep-{word}"), f"{count}{UNIT.get(word, '')}")
        if word == "within-daily":
            with pytest.raises(Unclear, match="has no word here"):
                restic([flag])
        else:
            assert compiled(restic([flag])).keep == tuple(ruled_by("restic", [word, count])), flag


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({"save_total_limit": 3}, (Last(3),)),
        ({"save_total_limit": "2", "load_best_model_at_end": True}, (Last(2), Best("eval_loss", "min", 1))),
        (
            {"save_total_limit": 1, "load_best_model_at_end": "true", "metric_for_best_model": "eval_f1"},
            (Last(1), Best("eval_f1", "max", 1)),
        ),
        (
            {"save_total_limit": 1, "load_best_model_at_end": 1, "greater_is_better": False,
             "metric_for_best_model": "wer"},
            (Last(1), Best("eval_wer", "min", 1)),
        ),
        ({"save_total_limit": 3, "metric_for_best_model": "wer_loss"}, (Last(3), Best("eval_wer_loss", "min", 1))),
        ({"save_total_limit": None, "learning_rate": 1e-4}, None),
        ({"save_total_limit": 0}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_trainer(given: dict[str, object], rules: object):
    assert compiled(trainer(Options(given))).keep == rules


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({}, (Last(1),)),
        ({"save_top_k": 3, "monitor": "val_loss"}, (Best("val_loss", "min", 3),)),
        ({"save_top_k": "3", "monitor": "acc", "mode": "max", "save_last": "link"}, (Best("acc", "max", 3), Last(1))),
        ({"save_top_k": -1}, None),
        ({"save_top_k": 0}, ()),
        ({"save_top_k": 0, "save_last": True}, (Last(1),)),
        ({"save_top_k": 1, "save_last": "False", "monitor": "None"}, (Last(1),)),
    ],
)
def test_lightning(given: dict[str, object], rules: object):
    assert compiled(lightning(Options(given))).keep == rules


def test_orbax_options():
    given = {"max_to_keep": 5, "keep_period": 1000, "keep_time_interval": 3600}
    kept = (Last(5), Every(Unit.STEPS, 1000, Pick.EXACT), Every(Unit.TIME, 3600, Pick.FIRST))
    assert compiled(orbax(Options(given), [])).keep == kept
    assert compiled(orbax(Options({}), [])).keep is None
    for period in ({"keep_period": 1000}, {"keep_time_interval": 3600}, {"best_metric": "acc"}):  # all stays there
        assert compiled(orbax(Options(period), [])).keep is None
    assert compiled(orbax(Options({"max_to_keep": 1}), [("PreserveAll", {})])).keep is None
    best = orbax(Options({"max_to_keep": 2, "best_metric": "acc", "best_mode": "max"}), [])
    assert compiled(best).keep == (Best("acc", "max", 2),)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: trainer(Options({"save_total_limit": "three"})),
        lambda: trainer(Options({"save_total_limit": True})),
        lambda: trainer(Options({"save_total_limit": 1, "load_best_model_at_end": "perhaps"})),
        lambda: lightning(Options({"save_top_k": 2})),
        lambda: orbax(Options({"max_to_keep": 3, "best_fn": "lambda m: m['acc']"}), []),
        lambda: lightning(Options({"save_top_k": -2})),
        lambda: lightning(Options({"monitor": "a", "mode": "auto"})),
        lambda: orbax(Options({}), [("LatestN", {})]),
        lambda: orbax(Options({}), [("BestN", {"n": 1})]),
        lambda: orbax(Options({}), [("CustomSteps", {"steps": ["a"]})]),
        lambda: orbax(Options({}), [("Mine", {})]),
        lambda: orbax(Options({"best_metric": "a", "best_mode": "best", "max_to_keep": 1}), []),
        lambda: restic([("--keep-last", "")]),
        lambda: restic([("--keep-last", "-2")]),
        lambda: restic([("--keep-within", "3")]),
        lambda: restic([("--keep-within", "h3")]),
        lambda: restic([("--keep-tag", "a,b")]),
    ],
)
def test_what_cannot_be_meant_is_said(wrong: object):
    with pytest.raises(Unclear):
        wrong()  # type: ignore[operator]  # each is a call to be made


def test_counts_without_end():
    assert compiled(restic([("--keep-last", "unlimited")])).keep is None
    assert compiled(restic([("--keep-last", "0")])).keep is None
    found = restic([("--keep-daily", "-1"), ("--keep-last", "2")])
    assert any("without end" in note for note in found.notes) and Last(2) in (compiled(found).keep or ())


TEXT = st.text(string.printable, max_size=8) | st.integers(-3, 10**12).map(str) | st.booleans() | st.none()


@given(
    st.sampled_from([trainer, lightning, lambda of: orbax(of, [])]),
    st.dictionaries(
        st.sampled_from(["save_total_limit", "load_best_model_at_end", "metric_for_best_model", "save_top_k", "monitor",
                         "mode", "save_last", "max_to_keep", "keep_period", "best_metric", "best_mode"]),
        TEXT,
    ),
)  # fmt: skip
def test_whatever_is_written_is_a_sentence_or_no_crash(tool: object, given: dict[str, object]):
    """Zero, negatives and odd names: said to be unclear here, or refused by the one reader of policies."""
    try:
        found = tool(Options(given))  # type: ignore[operator]  # one of the three
    except Unclear:
        return
    assert all(isinstance(note, str) for note in found.notes)
    yaml.safe_load(yaml.safe_dump(dict(found.body)))
