"""Written cases: a history, a moment, and what a policy is to make of it. The core judges them, as it judges a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lifecycle.core.evaluate import Decision, evaluate
from lifecycle.core.gauge import Fill
from lifecycle.core.lint import over_limits
from lifecycle.core.model import Checkpoint, Finding
from lifecycle.core.places import standing, word
from lifecycle.core.plan import Draft
from lifecycle.core.policy import Measure, Policy
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around, by_target
from lifecycle.core.reasons import CODES, Mark, why
from lifecycle.core.select import clusters
from lifecycle.review.imagined import History, World, imagine
from lifecycle.review.remarks import Loc

BP = 10_000


class Wish(NamedTuple):
    """One thing that a case expects."""

    at: Loc
    """Where in its file."""
    what: str
    """A step, or a name; ``rest``: all that no other wish of ``keep`` and ``drop`` speaks of."""
    keep: bool | None = None
    """Whether it is to stay; None: nothing is said of that."""
    because: tuple[str, ...] = ()
    """Words of rules or codes of reasons: each of them is to be among what decided."""
    on: tuple[str, ...] | None = None
    """Where it is to stand in the end; None: nothing is said of that. Empty: where it stands."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case as its file tells it."""

    name: str
    at: Loc
    now_ns: int
    history: History
    policies: tuple[str, ...]
    """Names of those that judge; empty for all there are."""
    wishes: tuple[Wish, ...]
    full_bp: tuple[tuple[str, int], ...] = ()
    """How full stores are (hundredths of a percent), where the case says so."""
    refused: bool | None = None
    """Whether a limit is to refuse the plan; None: nothing is said of that."""


class Failure(NamedTuple):
    """One expectation that did not come out."""

    at: Loc
    text: str
    checkpoints: tuple[Decision, ...] = ()
    """What it is about, with all reasons."""


class Verdict(NamedTuple):
    """What became of a case."""

    case: Case
    failures: tuple[Failure, ...]
    unknown: tuple[Failure, ...]
    """What cannot be meant: steps that do not exist, words that are no reasons."""
    decisions: tuple[Decision, ...]
    refusals: tuple[Finding, ...]
    """Limits that forbid the plan."""


def judge(case: Case, policies: Sequence[Policy], around: Around) -> Verdict:
    """Judge one case.

    Args:
        case: the history and what is expected of it.
        policies: those that there are.
        around: what a judgement needs besides; its time, holds and pointers are the case's own.
    """
    mine = [p for p in policies if not case.policies or p.name in case.policies]
    world = imagine(case.history, case.now_ns)
    here = replace(around, now_ns=case.now_ns, holds=world.holds, pointers=by_target(world.pointers))
    decisions, refusals = decided(world, mine, here, dict(case.full_bp))
    unknown = tuple(_unknown(case, decisions))
    failures = () if unknown else tuple(_failures(case, decisions, refusals))
    return Verdict(case, failures, unknown, tuple(decisions), refusals)


def decided(
    world: World, policies: Sequence[Policy], around: Around, full_bp: Mapping[str, int]
) -> tuple[list[Decision], tuple[Finding, ...]]:
    """All decisions as a plan would have them, in the order of their age, and the limits that forbid it."""
    checkpoints = [c for run in world.runs for c in run.checkpoints]
    stores = frozenset(copy.store for c in checkpoints for copy in standing(c))
    stores |= {place.partition("@")[0] for p in policies for item in p.place for place in item.on}
    relief = Relief(policies, stores, _fills(checkpoints, full_bp), {})
    groups = list(clusters(world.runs, policies))
    judged = [relief.look(evaluate(runs, mine, around)) for runs, mine in groups]
    draft = Draft(policies, stores, around.node_local, telling=False)
    for judgement in judged:
        draft.add(judgement)
    if relief.settle([action for _, action in draft.actions]):
        judged = [relief.relieve(evaluate(runs, mine, around)) for runs, mine in groups]
        draft = Draft(policies, stores, around.node_local, telling=False)
        for judgement in judged:
            draft.add(judgement)
    over = [
        f for p in policies for f in over_limits(p.name, p.limits, draft.covered[p.name], draft.run_deletes[p.name])
    ]
    found = [d for judgement in judged for d in judgement.decisions]
    return sorted(found, key=lambda d: (d.checkpoint.saved_at_ns, d.checkpoint.id)), tuple(over)


def _fills(checkpoints: Sequence[Checkpoint], full_bp: Mapping[str, int]) -> dict[tuple[str, Measure], Fill]:
    """How full stores are, if nothing but these is on them."""
    found = {}
    for store, share in full_bp.items():
        used = sum(copy.bytes for c in checkpoints for copy in standing(c) if copy.store == store)
        found[store, Measure.BYTES] = Fill(used * BP // share, used)
    return found


def meant(what: str, decisions: Sequence[Decision]) -> list[Decision]:
    """The checkpoints that a step or a name means: of every run of the case."""
    if what.isdecimal():
        return [d for d in decisions if d.checkpoint.step == int(what)]
    return [d for d in decisions if what in (d.checkpoint.name, d.checkpoint.key, d.checkpoint.id)]


def _unknown(case: Case, decisions: Sequence[Decision]) -> Iterator[Failure]:
    for wish in case.wishes:
        if wish.what != "rest" and not meant(wish.what, decisions):
            steps = sorted({d.checkpoint.step for d in decisions if d.checkpoint.step is not None})
            there = f"steps go from {steps[0]} to {steps[-1]}" if steps else "there is no step at all"
            yield Failure(wish.at, f"nothing in the history is {_called(wish.what)}: {there}")
        for reason in wish.because:
            if reason not in WORDS:
                yield Failure(wish.at, f"{reason!a} is neither a keep rule nor a reason; see docs/reasons.md")


WORDS = frozenset(CODES) | {code.partition(".")[0] for code in CODES} | {
    "hourly", "daily", "weekly", "monthly", "yearly",
}  # fmt: skip
"""What ``why`` may say: a reason's code, its first part, or a keep rule's word."""


def _failures(case: Case, decisions: Sequence[Decision], refusals: Sequence[Finding]) -> Iterator[Failure]:
    named = {d.checkpoint.id for w in case.wishes if w.keep is not None for d in meant(w.what, decisions)}
    for wish in case.wishes:
        mine = meant(wish.what, decisions)
        if wish.what == "rest":
            mine = [d for d in decisions if d.checkpoint.id not in named]
        yield from _failed(wish, mine)
    if case.refused is not None and case.refused is not bool(refusals):
        over = "; ".join(f.text for f in refusals)
        text = f"the plan was to be within its limits, and is not: {over}" if refusals else "no limit refuses the plan"
        yield Failure((*case.at, "refused"), text)


def _failed(wish: Wish, mine: Sequence[Decision]) -> Iterator[Failure]:
    if wish.keep is not None and (other := tuple(d for d in mine if d.keep is not wish.keep)):
        was, does = ("stay", "go") if wish.keep else ("go", "stay")
        several = len(other) > 1
        who = f"{len(other)} of the rest" if wish.what == "rest" else _called(wish.what)
        text = f"{who} {'were' if several else 'was'} to {was}, and {does if several else _third(does)}"
        yield Failure(wish.at, text, other)
    for reason in wish.because:
        missing = tuple(d for d in mine if reason not in _reasons(d))
        if missing:
            verb = "stays" if missing[0].keep else "goes"
            yield Failure(wish.at, f"{_called(wish.what)} {verb}, and not because of {reason}", missing)
    for d in mine if wish.on is not None else ():
        stands, ends = _stands(d), _ends(d)
        if not d.keep:
            yield Failure(wish.at, f"{_called(wish.what)} goes, so it moves nowhere", (d,))
        elif ends != (set(wish.on or ()) or stands):
            said = "stays where it is" if ends == stands else f"is to stand on {', '.join(sorted(ends))}"
            was = f"on {', '.join(wish.on)}" if wish.on else "where it is"
            yield Failure(wish.at, f"{_called(wish.what)} was to end {was}, and {said}", (d,))


def _third(verb: str) -> str:
    return {"go": "goes", "stay": "stays"}[verb]


def _called(what: str) -> str:
    return f"step {what}" if what.isdecimal() else ascii(what)


def _reasons(decision: Decision) -> set[str]:
    """Words for all that decided."""
    marks = because(decision)
    return {text for _, m in marks for text in (m.code, m.code.partition(".")[0], word(m)) if text}


def because(decision: Decision) -> list[tuple[str, Mark]]:
    """The marks that decided: those that keep what stays, all others of what goes."""
    return [(policy, mark) for policy, mark in decision.marks if mark.keeps is decision.keep]


def _stands(d: Decision) -> set[str]:
    return {copy.store for copy in standing(d.checkpoint)}


def _ends(d: Decision) -> set[str]:
    """Where it stands once all has been carried out."""
    if not d.places:
        return _stands(d)
    return {*d.places, *(_stands(d) if d.pinned else ())}


def sentence(policy: str, mark: Mark) -> str:
    """One reason in a line, its policy before it where it speaks for one."""
    return ": ".join(part for part in (policy, mark.rule, why(mark)) if part)
