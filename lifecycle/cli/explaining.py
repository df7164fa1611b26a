"""The command that tells why: judges one checkpoint's group afresh and shows every reason."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.cli.desk import Desk
from lifecycle.cli.listing import metrics_value
from lifecycle.cli.selecting import find, identity
from lifecycle.core.evaluate import Judgement
from lifecycle.core.model import Hold, Run
from lifecycle.core.places import standing
from lifecycle.core.plan import Draft
from lifecycle.core.protect import pointing
from lifecycle.core.reasons import instead, why
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, NotFound
from lifecycle.flows.consents import consent_of
from lifecycle.flows.fates import Bench
from lifecycle.flows.money import Ledger, currency_of, told_backs
from lifecycle.flows.upcoming import When
from lifecycle.ports import JournalRow
from lifecycle.render.archive import copy_value
from lifecycle.render.explain import Case, explain_lines, history_lines, history_value
from lifecycle.render.fate import fate_value
from lifecycle.render.regret import want_lines, want_value
from lifecycle.review.regret import Wanted
from lifecycle.review.unasked import unasked
from lifecycle.world import World


def explain(desk: Desk, text: str) -> int:
    """``lifecycle explain``"""
    with desk.world(write=False, create=False) as world:
        try:
            found = find(world, text)
        except NotFound:
            gone = identity(world, text)
            if rows := done_with(world, gone.partition(":")[2]):
                return _tell_gone(desk, gone, rows, world.index.reader.wanted(gone))
            raise
        if found.checkpoint is None or found.run is None:
            hint = desk.typing("ls", found.id)
            raise ConfigInvalid(f"{found.id!a} is no checkpoint", code="usage", hint=f"its checkpoints: {hint}")
        case = judge(world, found.id, found.run)
    desk.answer(case_value(case), explain_lines(case, desk.look))
    return 0


def bench_of(world: World, run: Run, holds: Sequence[Hold], now_ns: int) -> Bench:
    """What a run is judged by, and together with."""
    return Bench.of(
        run,
        world.index.reader,
        world.rules,
        tuple(world.stores),
        holds=holds,
        now_ns=now_ns,
        prices=dict(world.settings.prices),
        lying=world.lying,
    )


def judge(world: World, identity: str, run: Run) -> Case:
    """One checkpoint of a run with every reason for what becomes of it, and when."""
    now_ns, holds, ticking = world.clock.now_ns(), world.holds(), world.settings.tick
    bench = bench_of(world, run, holds, now_ns)
    judgement = bench.at(now_ns)
    decision = next(d for d in judgement.decisions if d.checkpoint.id == identity)
    c, prices = decision.checkpoint, dict(world.settings.prices)
    consent = consent_of(world.index.consents, world.rules, now_ns, approve_all=ticking.approves)
    when = When(ticking.schedule.after if ticking.schedule else None, ticking.applies)
    return Case(
        decision,
        run,
        pointing(c, bench.around),
        tuple(hold for hold in holds if hold.covers(c)),
        now_ns,
        bench.ahead(identity, consent, when, judgement),
        unasked(decision, run, world.rules.policies),
        unpaying=_unpaying(world, judgement, c.id, now_ns),
        restores=world.index.reader.restores(),
        back=told_backs(prices, c, decision.places),
        currency=currency_of(prices),
        history=done_with(world, c.key),
        wants=tuple(world.index.reader.wanted(c.id)),
    )


def done_with(world: World, key: str) -> tuple[JournalRow, ...]:
    """What was done with a checkpoint on any store, oldest first."""
    rows = (row for store in world.stores for row in world.index.journal.rows(key=f"{store}:{key}"))
    return tuple(sorted(rows, key=lambda row: (row.started_at_ns, row.id)))


def _tell_gone(desk: Desk, name: str, rows: Sequence[JournalRow], wants: Sequence[Wanted]) -> int:
    """What is left to say of one that the index knows no more: what was done with it."""
    lying = rows[-1].outcome == "done" and rows[-1].trash_id
    back = ["", f"To bring it back: {desk.typing('undo', name)}"] if lying else []
    again = ["", *want_lines(wants, desk.look)] if wants else []
    lines = [f"{escape(name)} is not there any more.", "", *history_lines(rows, desk.look), *again, *back]
    told = {"history": history_value(rows), "wanted_again": want_value(wants)}
    desk.answer({"id": name, "verdict": "gone", **told}, lines)
    return 0


def _unpaying(world: World, judgement: Judgement, identity: str, now_ns: int) -> str:
    """Why a plan would not bring it to where it is wanted, if that is for the money."""
    prices, policies = dict(world.settings.prices), world.rules.policies
    if not prices:
        return ""
    draft = Draft(policies, frozenset(world.stores), world.rules.nodes)
    draft.add(judgement, Ledger(prices, policies, now_ns).against(judgement))
    return next((f.text for f in draft.findings if (f.subject, f.code) == (identity, "does_not_pay")), "")


def case_value(case: Case) -> dict[str, object]:
    """All that is known of one checkpoint, for programs."""
    decision = case.decision
    c = decision.checkpoint
    return {
        "id": c.id,
        "run": case.run.id,
        "verdict": "keep" if decision.keep else "expire",
        "status": decision.status,
        "marks": [
            {
                "policy": policy,
                "rule": mark.rule,
                "keeps": mark.keeps,
                "code": mark.code,
                "why": why(mark),
                "instead": instead(mark),
            }
            for policy, mark in decision.marks
        ],
        "unasked": [row._asdict() for row in case.unasked],
        **fate_value(case.ahead),
        "floor": decision.floor,
        "policies": decision.policies,
        "layout": c.layout,
        "kind": c.kind,
        "evidence": c.evidence,
        "evidence_why": c.why,
        "step": c.step,
        "epoch": c.epoch,
        "bytes": c.bytes,
        "files": c.files,
        "saved_at_ns": c.saved_at_ns,
        "changed_at_ns": c.changed_at_ns,
        "parts": dict(c.parts),
        **metrics_value(c),
        "members": c.members,
        "flags": c.flags,
        "on": [copy.store for copy in standing(c)],
        "copies": [copy_value(copy, case.restores) for copy in standing(c)],
        "places": decision.places,
        "thin": decision.thin,
        "history": history_value(case.history),
        "wanted_again": want_value(case.wants),
        "pinned": decision.pinned,
        "does_not_pay": case.unpaying or None,
        "getting_back": [back.encode() for back in case.back],
        "pointers": [{"key": p.key, "role": p.role, "on_dangle": p.on_dangle, "text": p.text} for p in case.pointers],
        "holds": [hold.id for hold in case.holds],
    }
