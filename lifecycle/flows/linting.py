"""Asks the index what policies mean for the runs that there are; touches nothing but its read side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.policy import Rules
from lifecycle.core.select import clusters
from lifecycle.flows.propose import runs_of, surroundings
from lifecycle.flows.read_only import spare
from lifecycle.layouts.own_limits import own_limit
from lifecycle.ports import Reader
from lifecycle.review.lint import lint
from lifecycle.review.remarks import Remark
from lifecycle.review.rotation import rotated
from lifecycle.review.stale import HoldCensus, above
from lifecycle.review.tally import Tally


class Looked(NamedTuple):
    """What was found."""

    remarks: list[Remark]
    runs: int
    """So many were judged."""


def look_over(reader: Reader, rules: Rules, stores: Sequence[str], users: Mapping[str, int], now_ns: int) -> Looked:
    """What is to be said of policies, and of holds, on the runs of an index.

    Args:
        reader: the index.
        rules: the policies, and what a plan would judge by besides.
        stores: names of the stores to look at.
        users: user ids by the names of owners of holds, as far as this machine knows them.
        now_ns: the moment ages are measured from.
    """
    holds = reader.holds()
    around = surroundings(reader, rules, stores, holds, now_ns)
    tally, census = Tally(rules.policies), HoldCensus(holds, users, now_ns)
    gone = _gone(reader, stores)
    for runs, policies in clusters(runs_of(reader, stores), rules.policies):
        tally.add(runs, spare(evaluate(runs, policies, around), rules.read_only))
        for run in runs:
            census.add(run)
            _note_rotation(reader, tally, run)
        if not gone.keys().isdisjoint((run.store, run.path) for run in runs):
            back = [_with(run, gone.get((run.store, run.path), ())) for run in runs]
            ids = {c.id for run in back for c in run.checkpoints} - {c.id for run in runs for c in run.checkpoints}
            tally.add_gone(evaluate(tuple(back), policies, around), frozenset(ids))
    return Looked([*lint(tally, own_limit), *census.remarks()], len(tally.runs))


def _gone(reader: Reader, stores: Sequence[str]) -> dict[tuple[str, str], list[Checkpoint]]:
    """By run: what a complete scan found gone that nobody of ours had retired, as it was when it was last seen."""
    keys: dict[str, set[str]] = defaultdict(set)
    for store, key, _ in reader.missing(stores):
        keys[store].add(key)
    found: dict[tuple[str, str], list[Checkpoint]] = {}
    for store, mine in keys.items():
        for path in reader.marks(store).keys() & {path for key in mine for path in (key, *above(key))}:
            lost = [c for c, _ in reader.history(store, path) if c.key in mine]
            if lost:
                found[store, path] = lost
    return found


def _with(run: Run, gone: Sequence[Checkpoint]) -> Run:
    """The run as it would be, were those still there."""
    there = {c.key for c in run.checkpoints}
    return replace(run, checkpoints=(*run.checkpoints, *(c for c in gone if c.key not in there)))


def _note_rotation(reader: Reader, tally: Tally, run: Run) -> None:
    seen = rotated(run)
    if seen is None or not own_limit(seen.layout):
        return
    steps = [c.step for c, _ in reader.history(run.store, run.path) if c.step is not None]
    if min(steps, default=seen.oldest) >= seen.oldest:  # nobody ever saw an earlier one: none of ours went
        tally.add_rotated(run, seen)
