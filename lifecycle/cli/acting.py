"""The commands that change something: apply, undo and purge; each tells what it did in numbers that add up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import FrameType

from lifecycle.cli.desk import Desk
from lifecycle.cli.holding import owner_name, recorder_of
from lifecycle.cli.look import bring_up_to_date, find_plan, is_terminal
from lifecycle.cli.progress import Meter, bytes_of, pace_of, readings
from lifecycle.cli.selecting import SECOND_NS, identity
from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan, load
from lifecycle.core.units import escape, format_age, format_bytes, format_seconds
from lifecycle.errors import ConfigInvalid, LifecycleError, NotFound, Refused, StalePlan
from lifecycle.flows.apply import Outcome, apply
from lifecycle.flows.consents import Gate, by_hand
from lifecycle.flows.holds import hold_id, place
from lifecycle.flows.recover import settle
from lifecycle.flows.renewal import RENEWED
from lifecycle.flows.site import Site, check
from lifecycle.flows.undo import Tally, clear_trash, due_in, lying, undo
from lifecycle.render.report import plural
from lifecycle.world import World, only

PLAN_MAX_BYTES = 2 * 1024**3
"""A plan of a million decisions is a quarter of this."""

UNDO_HOLD_S = 7 * 86_400


def apply_plan(desk: Desk, name: str, *, yes: bool, unannounced: bool = False) -> int:
    """``lifecycle apply``: whoever does this by hand has said yes to all of it; dates are kept all the same."""
    plan = read_plan(find_plan(desk, name))
    with desk.world(write=True) as world:
        site = site_of(world)
        try:
            check(plan, site, desk.settings.plan_age_max_s)
        except StalePlan as e:
            e.hint = f"make a new plan: {desk.typing('plan')}"
            raise
        world.refuse_state_in_runs()
        if not plan.actions:
            desk.answer(_outcome_value(Outcome(plan.id), 0), ["This plan drops nothing: there is nothing to do."])
            return 0
        consent = by_hand(world.index.consents, world.rules, desk.clock.now_ns(), announces=not unannounced)
        gate = Gate.of(world.index.consents, consent, plan)
        if len(gate.waiting) < len(plan.actions):
            confirm(desk, _question([a for a in plan.actions if gate.goes(a)]), yes)
        with stopping() as stop, bytes_of("Copying", desk.as_json) as meter:
            told = gate.noting(_Progress(desk, plan, meter))
            pace = pace_of(world.settings.transfer, meter)
            site = replace(site, pace=pace, window=desk.settings.transfer.window)
            age_max_s = desk.settings.plan_age_max_s
            try:
                outcome = apply(plan, site, age_max_s=age_max_s, stop=stop, progress=told, goes=gate.goes)
            finally:  # of whatever was done before it was broken off
                gate.spend()
        renewed = any(code == RENEWED for _, code, _ in outcome.notes)
        if renewed or outcome.copied_bytes or outcome.reclassed_bytes:
            _see_copies(desk, world, plan, full=renewed)
    lines = [*_outcome_lines(outcome, plan, desk), *_waiting_lines(gate, desk)]
    desk.answer({**_outcome_value(outcome, len(plan.actions)), "dated": [w.value() for w in gate.waiting]}, lines)
    return outcome.exit_code


def _see_copies(desk: Desk, world: World, plan: Plan, *, full: bool) -> None:
    """Look at the places that took copies: what has left its home is known by them from now on.

    In full where no file has changed but what a manifest says of it.
    """
    names = sorted({a.to or a.store for a in plan.actions if a.to or a.storage_class})
    try:
        bring_up_to_date(desk, only(world, names), full=full)
    except LifecycleError as e:
        desk.warn(f"the copies are made, but the index will only know them after a scan: {escape(str(e))}")


def read_plan(path: Path) -> Plan:
    """The plan in a file.

    Raises:
        ConfigInvalid: it cannot be read. Refused: others may have written it. StalePlan: it is no whole plan.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as stream:
            _refuse_foreign(os.fstat(stream.fileno()), path)
            text = stream.read(PLAN_MAX_BYTES + 1)
    except OSError as e:
        raise ConfigInvalid(f"the plan cannot be read: {e}", code="no_such_plan") from e
    if len(text) > PLAN_MAX_BYTES:
        raise ConfigInvalid(f"{str(path)!a} is too large to be a plan", code="no_such_plan")
    return load(text)


def _refuse_foreign(found: os.stat_result, path: Path) -> None:
    """Refuse a plan that is not ours and that more than its owner can write: who made it cannot be told."""
    if found.st_uid not in (os.geteuid(), 0) and found.st_mode & 0o022:
        raise Refused(
            f"{str(path)!a} belongs to user {found.st_uid}, and others may write to it",
            code="plan_not_ours",
            hint="make a plan of your own, or look at a copy of this one and apply the copy",
        )


def site_of(world: World) -> Site:
    """The world as the flows take it."""
    index = world.index
    return Site(
        reader=index.reader,
        journal=index.journal,
        stores=world.stores,
        trashes=world.trashes,
        intakes=world.intakes,
        conventions=world.settings.conventions,
        rules=world.rules,
        holds=world.holds,
        clock=world.clock,
        host=world.host,
        engine=world.engine,
        told=world.told,
    )


def _waiting_lines(gate: Gate, desk: Desk) -> Iterator[str]:
    """What was announced, or will be, and is not due."""
    if gate.waiting:
        yield f"Left where it is: {gate.text()}. A tick announces, and does it after that:"
        yield f"  {desk.typing('upcoming')}"


def _question(actions: Sequence[Action]) -> str:
    gone = [a for a in actions if a.verb is Verb.DELETE]
    moved = [a for a in actions if a.verb is Verb.RETIRE]
    copied = [a for a in actions if a.verb is Verb.COPY]
    slimmed = [a for a in actions if a.verb is Verb.SLIM]
    parts = []
    if copied:
        size = format_bytes(sum(a.bytes for a in copied))
        parts.append(f"Copy {plural(len(copied), 'checkpoint')} ({size})")
    if reclassed := [a for a in actions if a.verb is Verb.RECLASS]:
        size = format_bytes(sum(a.bytes for a in reclassed))
        parts.append(f"Change the class of {len(reclassed)} {'copy' if len(reclassed) == 1 else 'copies'} ({size})")
    if moved:
        size = format_bytes(sum(a.bytes for a in moved))
        undo_s = min(a.trash_s or 0 for a in moved)
        parts.append(f"Move {plural(len(moved), 'checkpoint')} ({size}) to the trash, {format_seconds(undo_s)} to undo")
    if slimmed:
        size = format_bytes(sum(a.bytes for a in slimmed))
        undo_s = min(a.trash_s or 0 for a in slimmed)
        undo = f"{format_seconds(undo_s)} to undo" if undo_s else "with no way back"
        parts.append(f"Slim {plural(len(slimmed), 'checkpoint')} ({size}), {undo}")
    if gone:
        size = format_bytes(sum(a.bytes for a in gone))
        parts.append(f"DELETE {plural(len(gone), 'checkpoint')} ({size}) with no way back")
    return " and ".join(parts) + "?"


def confirm(desk: Desk, question: str, yes: bool) -> None:
    """Ask. Raises ConfigInvalid: nobody is there to ask; Abort: the answer was no."""
    if yes:
        return
    if desk.as_json or not is_terminal():
        hint = "add --yes where nobody can be asked"
        raise ConfigInvalid(f"nobody is here to confirm: {question}", code="not_confirmed", hint=hint)
    import typer

    typer.confirm(question, abort=True, err=True)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Whether somebody asks to stop, by SIGTERM or SIGINT, while this lasts."""
    stop = Stop()
    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, stop.ask) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Stop:
    """Whether somebody asked to stop. The first signal is a request; the second one ends the process."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        """Whether to stop now."""
        return self.asked

    def ask(self, number: int, _frame: FrameType | None) -> None:
        """The handler: sets the flag, and gives the signal its own meaning back."""
        self.asked = True
        signal.signal(number, signal.SIG_DFL)
        os.write(2, b"lifecycle: stopping after this checkpoint; the same signal again stops at once\n")


_WORDS = {"done": "dropped", "kept": "kept", "gone": "was gone", "failed": "FAILED", "waits": "not due"}


class _Progress:
    """A line for each action as it ends, below which the bytes of those that are left go on."""

    def __init__(self, desk: Desk, plan: Plan, meter: Meter) -> None:
        self.desk, self.count, self.number, self.meter = desk, len(plan.actions), 0, meter
        self.left = list(accumulate(reversed(readings(plan.actions)), initial=0))[::-1]
        meter.due(self.left[0])

    def __call__(self, action: Action, word: str) -> None:
        self.number += 1
        self.meter.left(self.left[self.number])
        number = f"{self.number:>{len(str(self.count))}}/{self.count}"
        said = {Verb.COPY: "copied", Verb.RECLASS: "changed", Verb.SLIM: "slimmed"}
        word = said.get(action.verb, "moved" if action.copies else word) if word == "done" else word
        self.desk.say(f"{number}  {_WORDS.get(word, word):<8}  {format_bytes(action.bytes):>7}  {escape(action.id)}")


def _outcome_lines(outcome: Outcome, plan: Plan, desk: Desk) -> Iterator[str]:
    look = desk.look
    yield ""
    for identity_, code, text in outcome.notes:
        yield look.odd(f"note: {escape(identity_)}: {escape(text)} [{code}]")
    counts = outcome.counts
    parts = [
        f"{counts[word]} {said}"
        for word, said in (
            ("done", "done" if any(a.keeps for a in plan.actions) else "dropped"),
            ("kept", "kept after all"),
            ("gone", "gone already"),
            ("failed", "failed"),
            ("left", "not reached"),
            ("waits", "not due"),
        )
        if counts[word]
    ]
    yield f"{plural(len(plan.actions), 'action')}: {', '.join(parts)}."
    if outcome.copied_bytes:
        yield f"{format_bytes(outcome.copied_bytes)} were copied, read back and found equal."
    if outcome.reclassed_bytes:
        yield f"{format_bytes(outcome.reclassed_bytes)} are in the storage class that was asked for."
    if outcome.spared_bytes:
        yield f"{format_bytes(outcome.spared_bytes)} of that had been sent by an earlier try, and were only read back."
    if outcome.waiting:
        window = desk.settings.transfer.window
        yield f"{plural(outcome.waiting, 'action')} wait: bytes move at {window} only. Make a new plan then."
    if outcome.retired_bytes:
        time = format_seconds(max(a.trash_s or 0 for a in plan.actions))
        yield f"{format_bytes(outcome.retired_bytes)} are in the trash and still use space; after {time} they can go:"
        yield f"  {desk.typing('purge')}"
    if outcome.freed_bytes:
        yield f"{format_bytes(outcome.freed_bytes)} were freed."
    if outcome.stopped:
        yield look.bad(f"Stopped before the end: {escape(outcome.stopped)}. Make a new plan for the rest.")
    if counts["done"] and any(a.verb is Verb.RETIRE for a in plan.actions):
        yield ""
        yield look.bold("Next")
        yield look.dim("  # bring everything back")
        yield f"  {desk.typing('undo', outcome.plan[:12])}"


def _outcome_value(outcome: Outcome, actions: int) -> dict[str, object]:
    words = ("done", "kept", "gone", "failed", "left", "waits")
    return {
        "plan": outcome.plan,
        "actions": actions,
        "counts": {word: outcome.counts[word] for word in words},
        "copied_bytes": outcome.copied_bytes,
        "reclassed_bytes": outcome.reclassed_bytes,
        "spared_bytes": outcome.spared_bytes,
        "waiting": outcome.waiting,
        "retired_bytes": outcome.retired_bytes,
        "freed_bytes": outcome.freed_bytes,
        "stopped": outcome.stopped,
        "notes": [{"id": identity_, "code": code, "text": text} for identity_, code, text in outcome.notes],
        "exit_code": outcome.exit_code,
    }


# -- undo and purge


def bring_back(desk: Desk, what: str, *, hold: bool) -> int:
    """``lifecycle undo``"""
    with desk.world(write=True) as world:
        now_ns = desk.clock.now_ns()
        settle(world.index.journal, world.index.reader, world.stores, world.trashes, now_ns, world.intakes)
        try:
            wanted, journal = _wanted(world, what), world.index.journal
            tally = undo(world.trashes, journal, wanted, now_ns, world.intakes, world.stores, recorder_of(world))
        except NotFound as e:
            hint = f"{desk.typing('ls', '--trash')} lists what can come back"
            raise NotFound(f"nothing in the trash answers to {what!a}", code=e.code, hint=hint) from e
        held: list[Hold] = []
        for identity_ in tally.done if hold else ():
            one = Hold(
                id=hold_id(identity_, owner_name(), now_ns),
                target=identity_,
                owner=owner_name(),
                reason="undone",
                created_at_ns=now_ns,
                until_ns=now_ns + UNDO_HOLD_S * SECOND_NS,
            )
            if failure := place(one, world.index.writer, world.trashes):
                desk.warn(f"{escape(identity_)} is held in the index only: {escape(failure)}")
            held.append(one)
    for problem in dict.fromkeys(tally.unrecorded):
        desk.warn(escape(problem))
    value = {
        "restored": tally.done,
        "bytes": tally.bytes,
        "failed": _failures(tally),
        "holds": [one.id for one in held],
        "exit_code": tally.exit_code,
    }
    desk.answer(value, _undone_lines(tally, held, desk))
    return tally.exit_code


def _wanted(world: World, what: str) -> str:
    """A plan's id, from itself or its file, or the id of a checkpoint or of all below a directory."""
    path = Path(what)
    if path.is_file() and what.endswith(".json"):
        return read_plan(path).id
    plans = {entry.plan for _, entry in lying(world.trashes)}
    if any(plan.startswith(what) for plan in plans) and len(what) >= 8:
        return what
    return identity(world, what)


def _undone_lines(tally: Tally, held: list[Hold], desk: Desk) -> Iterator[str]:
    look = desk.look
    for identity_ in tally.done:
        yield f"back  {escape(identity_)}"
    for identity_, code, text in (*tally.failed, *tally.unwritten):
        yield desk.look.bad(f"FAILED  {escape(identity_)}: {escape(text)} [{code}]")
    back = f"{plural(len(tally.done), 'checkpoint')} ({format_bytes(tally.bytes)})"
    yield f"{back} came back as they were." if len(tally.done) != 1 else f"{back} came back as it was."
    if held:
        days = UNDO_HOLD_S // 86_400
        what = "it" if len(held) == 1 else "each of them"
        yield f"A hold for {days} days was placed on {what}, so that the next plan does not drop it again."
        yield ""
        yield look.bold("Next")
        yield look.dim("  # what is held, and until when")
        yield f"  {desk.typing('holds')}"
        yield look.dim("  # end a hold")
        yield f"  {desk.typing('release', held[0].id)}"


def _failures(tally: Tally) -> list[dict[str, str]]:
    found = (*tally.failed, *tally.unwritten)
    return [{"id": identity_, "code": code, "text": text} for identity_, code, text in found]


def free(desk: Desk, *, yes: bool) -> int:
    """``lifecycle purge``"""
    with desk.world(write=True) as world:
        now_ns = desk.clock.now_ns()
        due = due_in(site_of(world))
        if due:
            size = format_bytes(sum(e.bytes for _, e in due))
            confirm(desk, f"Free {plural(len(due), 'checkpoint')} ({size}) for good?", yes)
        tally = clear_trash(site_of(world), agreed={entry.trash_id for _, entry in due})
        waiting = [e for _, e in lying(world.trashes) if e.ends]
    value = {
        "purged": tally.done,
        "bytes": tally.bytes,
        "waiting": tally.waiting,
        "failed": _failures(tally),
        "exit_code": tally.exit_code,
    }
    left = [e.retired_at_ns + e.trash_s * SECOND_NS - now_ns for e in waiting]
    desk.answer(value, _purged_lines(tally, [ns for ns in left if ns > 0], desk))
    return tally.exit_code


def _purged_lines(tally: Tally, left_ns: list[int], desk: Desk) -> Iterator[str]:
    for identity_ in tally.done:
        yield f"freed  {escape(identity_)}"
    for identity_, code, text in tally.failed:
        yield desk.look.bad(f"FAILED  {escape(identity_)}: {escape(text)} [{code}]")
    yield f"{plural(len(tally.done), 'checkpoint')} freed, {format_bytes(tally.bytes)} on disk."
    if tally.waiting:
        soon = f"; the next is due in {format_age(min(left_ns))}" if left_ns else ""
        yield f"{plural(tally.waiting, 'checkpoint')} still in the trash, not due or held{soon}."
