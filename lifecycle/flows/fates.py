"""Tells what becomes of one checkpoint if nothing changes: the same is judged by the same rules at later moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lifecycle.core.action import Action
from lifecycle.core.consent import Consent
from lifecycle.core.evaluate import Judgement, evaluate
from lifecycle.core.model import Hold, Run
from lifecycle.core.moves import unopposed
from lifecycle.core.plan import Draft
from lifecycle.core.policy import Policy, Rules
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around
from lifecycle.core.select import Group, clusters
from lifecycle.flows.fills import Lying
from lifecycle.flows.money import Ledger, Prices
from lifecycle.flows.propose import relieved, runs_of, slimming, surroundings
from lifecycle.flows.read_only import spare
from lifecycle.flows.upcoming import When, before
from lifecycle.layouts.conduct import turns
from lifecycle.ports import Reader
from lifecycle.ports.consents import Ahead, Coming
from lifecycle.review.fate import Fate, Turn, fate
from lifecycle.review.moments import Scene


@dataclass(frozen=True)
class Bench:
    """What is judged together with one run, and by what; the files, holds and fills are those of now."""

    runs: Group
    policies: tuple[Policy, ...]
    around: Around
    relief: Relief
    rules: Rules
    stores: frozenset[str]
    slims: frozenset[str]
    prices: Prices

    @classmethod
    def of(  # noqa: PLR0913  # everything that a judgement is made from, by name
        cls,
        run: Run,
        reader: Reader,
        rules: Rules,
        stores: Sequence[str],
        *,
        holds: Sequence[Hold],
        now_ns: int,
        prices: Prices,
        lying: Lying,
    ) -> Bench:
        """Arguments are those of ``propose``; only policies with group_by need more runs than ``run``."""
        around = surroundings(reader, rules, stores, holds, now_ns)
        joined = any(policy.group_by is not None for policy in rules.policies)
        every = runs_of(reader, stores) if joined else iter((run,))
        runs, policies = next(pair for pair in clusters(every, rules.policies) if any(r.id == run.id for r in pair[0]))
        relief = relieved(reader, rules, stores, around, lying, prices)
        return cls(runs, policies, around, relief, rules, frozenset(stores), slimming(reader, stores), prices)

    def at(self, at_ns: int) -> Judgement:
        """What the next plan would make of it at a moment."""
        judged = evaluate(self.runs, self.policies, replace(self.around, now_ns=at_ns))
        return self.relief.relieve(spare(judged, self.rules.read_only))

    def actions(self, judgement: Judgement, at_ns: int, identity: str) -> tuple[Action, ...]:
        """What a plan of that judgement would do with one checkpoint."""
        mine = next(d for d in judgement.decisions if d.checkpoint.id == identity)
        if mine.keep and not mine.places:
            return ()
        draft = Draft(self.policies, self.stores, self.rules.nodes, self.slims, telling=False)
        near = {identity, *mine.floor}
        few = judgement._replace(decisions=[d for d in judgement.decisions if d.checkpoint.id in near])
        ledger = Ledger(self.prices, self.policies, at_ns).against(judgement) if self.prices else unopposed
        draft.add(few, ledger)
        found = sorted(draft.actions, key=lambda pair: pair[0])
        return tuple(action for _, action in found if action.checkpoint == identity)

    def ahead(self, identity: str, consent: Consent, when: When, first: Judgement) -> Ahead:
        """What becomes of one checkpoint.

        Args:
            identity: its id.
            consent: what was announced and said so far.
            when: when ticks come, and what they may do.
            first: the judgement of now.
        """
        c = next(d.checkpoint for d in first.decisions if d.checkpoint.id == identity)
        if any(not hold.id and hold.covers(c) for hold in self.around.holds):
            # It stands for holds that cannot be read just now: the next plan may read them, and find none.
            now_ns = self.around.now_ns
            return Ahead(Fate(None, None, goes_unknown_ns=now_ns, moves_unknown_ns=now_ns))
        found = fate(
            Scene(self.runs, self.policies, self.around, turns),
            identity,
            self.at,
            lambda judgement, at_ns: self.actions(judgement, at_ns, identity),
            first,
        )
        goes, moves = (_coming(turn, consent, when) for turn in (found.goes, found.moves))
        return Ahead(found, goes, moves)


def _coming(turn: Turn | None, consent: Consent, when: When) -> tuple[Coming, ...]:
    """Of what comes later nothing was announced and asked: the first tick that wants it does that."""
    if turn is None:
        return ()
    if turn.at_ns > consent.now_ns:
        consent = replace(consent, now_ns=turn.at_ns - 1, notices={}, approved=lambda _signature: False)
    c = turn.decision.checkpoint
    return tuple(Coming(action, c, *before(action, consent, when)) for action in turn.actions)
