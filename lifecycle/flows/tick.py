"""One tick: recover, scan, plan, apply, purge, verify; a stage that fails or refuses stops no safe one after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lifecycle.core.action import Action, Verb
from lifecycle.core.plan import Plan
from lifecycle.core.units import format_age, format_bytes
from lifecycle.errors import LifecycleError
from lifecycle.flows.apply import apply
from lifecycle.flows.consents import TICKS_SEEN, Leave, is_latest, seek
from lifecycle.flows.fills import Lying, volume_of
from lifecycle.flows.money import Prices
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.propose import propose
from lifecycle.flows.recover import recover
from lifecycle.flows.renewal import RENEWED
from lifecycle.flows.scan import Wish as Looking
from lifecycle.flows.scan import asks_tags, scan
from lifecycle.flows.site import Site
from lifecycle.flows.skew import SKEW_MAX_NS, refuse_skew, tell_skew
from lifecycle.flows.stages import Ticked
from lifecycle.flows.turn import Keeper
from lifecycle.flows.undo import clear_trash
from lifecycle.flows.verify import Wish as Reading
from lifecycle.flows.verify import verify_copies
from lifecycle.ports import Sample, Writer
from lifecycle.ports.consents import Consents
from lifecycle.ports.ticks import Lease, Stage, Ticks

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a tick may do and for how long; it always recovers, scans and plans."""

    applies: bool = False
    purges: bool = False
    reading: Reading | None = None
    """Which copies are read again; None for none."""
    stop_after_s: int | None = None
    """Nothing is begun later than this after the beginning; what is open is finished."""
    plan_age_max_s: int = 86_400
    approves: bool = False
    """Whether all that takes something away needs a yes, whatever its policies say."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a tick works with."""

    site: Site
    writer: Writer
    ticks: Ticks
    turn: Lease
    consents: Consents
    lying: Lying
    prices: Prices
    save: Callable[[Plan], str]
    """Keeps a plan that somebody may want to read; gives its name. What cannot be kept is not applied."""
    monotonic_ns: Callable[[], int]
    """A clock that is never set."""
    stop: Callable[[], bool] = lambda: False
    """Whether somebody has asked to stop."""
    begun: Callable[[int], None] = lambda _number: None
    """Told of the tick's number, before anything else."""
    told: Callable[[Stage], None] = lambda _stage: None
    """Told of each stage as it ends."""
    acted: Callable[[Action, str], None] = lambda _action, _word: None
    notify: Callable[[Ticked, Callable[[], bool]], Stage] | None = None
    """Tells people elsewhere, when all else is done and however late it is; None where nobody wants to be told."""
    closing: Callable[[Ticked, Callable[[], bool]], Stage | None] = lambda _made, _asked: None
    """Told of all that the tick came to, and how to ask whether to end at once; what it gives is its last stage."""


class _AskedError(LifecycleError):
    """Somebody asked to stop, and nothing is open."""

    exit_code = 3


def tick(given: Round, wishes: Wishes, before: tuple[Stage, ...] = ()) -> Ticked:
    """One tick, written down; safe to repeat, to kill and to begin twice at once.

    Args:
        given: what it works with.
        wishes: what it may do.
        before: what is to be told of the time before it began.

    Raises:
        LeaseHeld: another tick is at work; nothing was done. LifecycleError: the index cannot be written.
    """
    site, now_ns = given.site, given.site.clock.now_ns()
    with given.turn.lease(f"{site.host} tick", now_ns, LEASE_NS) as fence:
        last = given.ticks.last(1)
        number = given.ticks.begin(started_at_ns=now_ns, host=site.host, engine=site.engine)
        given.begun(number)
        made = Ticked(number, now_ns, dry=not wishes.applies)
        one = _Tick(given, wishes, made, Keeper(given.turn, fence, site))
        for stage in before:
            one.tell(stage)
        if last and last[0].started_at_ns > now_ns + SKEW_MAX_NS:
            age = format_age(last[0].started_at_ns - now_ns)
            text = f"by this clock the last tick began {age} from now: one of the two clocks is, or was, wrong"
            one.tell(Stage("clock", code="clock_back", text=text))
        one.run()
        made.ended_at_ns = site.clock.now_ns()
        if (last_one := given.closing(made, one.halt)) is not None:
            one.tell(last_one)
        told = {"plan": made.plan.id if made.plan else "", "facts": made.facts()}
        try:
            given.ticks.end(number, ended_at_ns=made.ended_at_ns, exit_code=made.exit_code, **told)
        except LifecycleError as e:
            one.tell(Stage("record", "", e.exit_code, e.code, f"it is not written down what this tick did: {e}"))
        return made


@dataclass(slots=True)
class _Tick:
    """The stages of one tick."""

    given: Round
    wishes: Wishes
    made: Ticked
    keeper: Keeper
    site: Site = field(init=False)
    begun_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self.begun_ns = self.given.monotonic_ns()
        moved = self.given.site.pace.moved

        def both(count: int) -> None:
            self.keeper.beat()
            moved(count)

        self.site = replace(self.given.site, pace=self.given.site.pace._replace(moved=both))

    def run(self) -> None:
        """Every stage in its order, each on what those before it left."""
        self.stage("recover", self._recover)
        for name in self.site.stores:
            self.stage("scan", lambda name=name: self._scan(name), name)  # type: ignore[misc]  # bound at once
        self.stage("plan", self._plan)
        self.stage("apply", self._apply)
        self._see_copies()
        self.stage("purge", self._purge)
        self.stage("verify", self._verify)
        if (notify := self.given.notify) is not None:
            self.stage("notify", lambda: notify(self.made, self._asked), late=True)
        if e := self.keeper.lost:
            self.tell(Stage("turn", "", e.exit_code, e.code, f"another tick took over: {e}"))

    def tell(self, stage: Stage) -> None:
        """Take a stage down."""
        self.made.stages.append(stage)
        self.given.told(stage)

    def stage(self, name: str, act: Callable[[], Stage], subject: str = "", *, late: bool = False) -> None:
        """Carry one out, unless it is too late for it; a failure is its outcome and not the end."""
        try:
            if self._asked():
                raise _AskedError("not begun: asked to stop", code="asked_to_stop")
            if self._late() and not late:
                self.tell(Stage(name, subject, code="no_time", text="not begun: stop_after is over", skipped=True))
                return
            self.tell(act()._replace(subject=subject))
        except _AskedError as e:
            self.tell(Stage(name, subject, e.exit_code, e.code, str(e), skipped=True))
        except LifecycleError as e:
            hint = f" ({e.hint})" if e.hint else ""
            self.tell(Stage(name, subject, e.exit_code, e.code, f"{e}{hint}"))

    # -- whether to go on

    def _asked(self) -> bool:
        self.keeper.beat()
        return self.given.stop() or self.keeper.lost is not None

    def _late(self) -> bool:
        end_s = self.wishes.stop_after_s
        return end_s is not None and self.given.monotonic_ns() - self.begun_ns >= end_s * SECOND_NS

    def halt(self) -> bool:
        """Whether no act is to be begun any more."""
        return self._asked() or self._late()

    def _looking(self, _store: str, _count: int) -> None:
        """Entries were seen: nothing is open meanwhile, so a scan may be broken off anywhere."""
        if self._asked():
            raise _AskedError("broken off: asked to stop; nothing of it counts", code="asked_to_stop")

    # -- the stages

    def _recover(self) -> Stage:
        site, now_ns = self.site, self.site.clock.now_ns()
        if not site.journal.started():
            return Stage("recover", text="nothing was left open")
        # Before the lease: whoever is ahead of the others would take one that is not over yet, of an act under way.
        refuse_skew(site.trashes, site.trashes, site.clock, site.told)
        with site.journal.lease(f"{site.host} recovery", now_ns, LEASE_NS):
            found = recover(site.journal, site.stores, site.trashes, site.intakes, now_ns)
        counts = {"done": found.done, "not_begun": found.not_begun, "undone": found.undone, "cut": found.cut}
        counts |= {"aside": found.aside, "open": len(found.open)}
        text = f"closed {_many(sum(counts.values()) - counts['open'], 'act')} that an interrupted apply had left open"
        if found.open:
            return Stage("recover", "", 3, "journal_open", f"{text}; still open: {found.open[0]}", counts)
        return Stage("recover", text=text, counts=counts)

    def _scan(self, name: str, *, full: bool = False) -> Stage:
        site = self.site
        skew = tell_skew(name, site.stores[name], site.clock, site.told)
        report = scan(
            site.stores[name],
            site.reader,
            self.given.writer,
            site.conventions,
            now_ns=site.clock.now_ns(),
            wish=Looking(full=full, tags=asks_tags(site.rules.policies)),
            progress=self._looking,
            journal=site.journal,
        )
        report = report._replace(findings=(*report.findings, *skew))
        self.made.reports.append(report)
        known, result = site.reader.stores()[name].checkpoints, report.result
        changed = {"added": result.added, "changed": result.changed, "missing": result.missing}
        counts = {"runs": report.runs, "checkpoints": known, **changed}
        words = ", ".join(f"{changed[key]} {word}" for key, word in _CHANGES if changed[key]) or "nothing changed"
        full_text = _fullness(sample) if (sample := site.reader.sample(name)) else ""
        text = f"{_many(report.runs, 'run')}, {_many(known, 'checkpoint')}: {words}{full_text}"
        if not report.complete:
            return Stage("scan", "", 3, "listing_incomplete", f"{text}; parts of it could not be listed", counts)
        return Stage("scan", text=text, counts=counts)

    def _scanned(self) -> tuple[str, ...]:
        seen = {report.store for report in self.made.reports}
        return tuple(name for name in self.site.stores if name in seen)

    def _judged(self) -> tuple[str, ...]:
        """Stores to plan for: those scanned just now; where fullness decides, none on a disk with one that was not.

        How full that disk is, and what in its trash will free it, is only known of all who share it.
        """
        rows, scanned = self.site.reader.stores(), self._scanned()
        if not any(policy.pressure for policy in self.site.rules.policies):
            return scanned
        volumes = {name: volume_of(name, rows[name].identity) for name in self.site.stores if name in rows}
        dark = {volumes[name] for name in volumes if name not in scanned}
        return tuple(name for name in scanned if volumes[name] not in dark)

    def _plan(self) -> Stage:
        site, names = self.site, self._judged()
        if not names:
            why = "no store was scanned, or only such as share a disk with one that was not"
            return Stage("plan", code="nothing_scanned", text=f"not made: {why}", skipped=True)
        plan = propose(
            site.reader,
            site.rules,
            names,
            holds=site.holds(),
            now_ns=site.clock.now_ns(),
            engine=site.engine,
            findings=[f for report in self.made.reports for f in report.findings if report.store in names],
            prices=self.given.prices,
            lying=self.given.lying,
        )
        left_out = [name for name in site.stores if name not in names]
        without = f"; without {', '.join(left_out)}" if left_out else ""
        if plan.actions or plan.refusals or plan.unjudged:
            self.made.plan_file = self.given.save(plan)
        self.made.gate = seek(self.given.consents, plan, site.rules, names, self._leave(plan))
        self.made.plan = plan
        counts = {"actions": len(plan.actions), "bytes": sum(a.bytes for a in plan.actions)}
        verbs = Counter(action.verb for action in plan.actions)
        counts |= {verb.value: verbs[verb] for verb in Verb if verbs[verb]}
        kinds = ", ".join(f"{verbs[verb]} {verb}" for verb in Verb if verbs[verb])
        text = f"{_many(len(plan.actions), 'action')} ({kinds}), {format_bytes(counts['bytes'])}{without}"
        if plan.refusals:
            worst = plan.refusals[0]
            return Stage("plan", "", 4, worst.code, f"over its limits: {worst.subject}: {worst.text}", counts)
        if plan.unjudged:
            worst = plan.unjudged[0]
            text = f"{text}; {len(plan.unjudged)} not judged: {worst.subject}: {worst.text}"
            return Stage("plan", "", 3, worst.code, text, counts)
        return Stage("plan", text=text if plan.actions else f"nothing is to be done{without}", counts=counts)

    def _leave(self, plan: Plan) -> Leave:
        """A clock that is behind what was seen before, or apart from a store's, announces nothing."""
        doubt = any(f.code == "clock_skew" for report in self.made.reports for f in report.findings)
        latest = is_latest(plan.basis.made_at_ns, self.given.ticks.last(TICKS_SEEN))
        return Leave(self.wishes.approves, asks=self.wishes.applies, begins=latest and not doubt)

    def _apply(self) -> Stage:
        plan, gate = self.made.plan, self.made.gate
        if plan is None or gate is None or plan.refusals:
            why = "no plan was made" if plan is None else "the plan is over its limits"
            return Stage("apply", code="no_plan", text=f"not done: {why}", skipped=True)
        if not plan.actions:
            return Stage("apply", text="nothing to do")
        if not self.wishes.applies:
            text = "not done: tick.apply is never, so this was a dry tick"
            return Stage("apply", code="dry_tick", text=text, skipped=True)
        if len(gate.waiting) == len(plan.actions):
            return gate.stage()
        age_max_s, told = self.wishes.plan_age_max_s, gate.noting(self.given.acted)
        try:
            outcome = apply(plan, self.site, age_max_s=age_max_s, stop=self.halt, progress=told, goes=gate.goes)
        finally:  # of whatever was done before it was broken off
            gate.spend()
        self.made.outcome = outcome
        code = outcome.exit_code
        if outcome.stopped and not outcome.counts["failed"] and self._late() and not self._asked():
            code = 0  # the end of its time was planned, and the next tick goes on from there
        words = ("done", "kept", "gone", "failed", "left")
        counts = {word: outcome.counts[word] for word in words}
        counts |= {"retired_bytes": outcome.retired_bytes, "freed_bytes": outcome.freed_bytes}
        counts |= {"copied_bytes": outcome.copied_bytes, "reclassed_bytes": outcome.reclassed_bytes}
        text = f"{_many(len(plan.actions), 'action')}: " + ", ".join(f"{counts[w]} {w}" for w in words if counts[w])
        first = next((f"; {at}: {why}" for at, _, why in outcome.notes), "")
        stopped = f"; stopped: {outcome.stopped}" if outcome.stopped else ""
        word = _worst_note(outcome.notes) if code else ""
        return gate.told(Stage("apply", "", code, word, f"{text}{stopped}{first}", counts), outcome)

    def _see_copies(self) -> None:
        """Look at the places that took copies: what has left its home is known by them from now on."""
        plan, outcome = self.made.plan, self.made.outcome
        if plan is None or outcome is None:
            return
        renewed = any(code == RENEWED for _, code, _ in outcome.notes)
        if not (renewed or outcome.copied_bytes or outcome.reclassed_bytes):
            return
        for name in sorted({a.to or a.store for a in plan.actions if a.to or a.storage_class}):
            self.stage("scan", lambda name=name: self._scan(name, full=renewed), name)  # type: ignore[misc]  # bound at once

    def _purge(self) -> Stage:
        if not self.wishes.purges:
            return Stage("purge", code="not_allowed", text="not done: tick.purge is never", skipped=True)
        names = self._scanned()
        trashes = {name: trash for name, trash in self.site.trashes.items() if name in names}
        tally = self.made.freed = clear_trash(replace(self.site, trashes=trashes), self.halt)
        counts = {"purged": len(tally.done), "bytes": tally.bytes, "waiting": tally.waiting, "left": tally.left}
        freed = f"{_many(len(tally.done), 'checkpoint')} freed, {format_bytes(tally.bytes)}"
        text = freed if tally.done else "nothing is freed"
        text += "".join(f"; {n} {word}" for n, word in ((tally.waiting, _WAITING), (tally.left, "not reached")) if n)
        if failures := (*tally.failed, *tally.unwritten):
            at, code, why = failures[0]
            return Stage("purge", "", 3, code, f"{text}; {len(failures)} failed: {at}: {why}", counts)
        if tally.left and self._asked():
            return Stage("purge", "", 3, "asked_to_stop", text, counts)
        return Stage("purge", text=text, counts=counts)

    def _verify(self) -> Stage:
        if self.wishes.reading is None:
            return Stage("verify", code="not_asked", text="not done: there is no tick.verify", skipped=True)
        site = self.site
        stores = {name: site.stores[name] for name in self._scanned()}
        now_ns, wish = site.clock.now_ns(), self.wishes.reading
        found = verify_copies(
            stores, site.reader, self.given.writer, wish, now_ns=now_ns, pace=site.pace, stop=self.halt
        )
        self.made.verified = found
        bad = [check for check in found.checks if check.outcome != "whole"]
        counts = {"read": len(found.checks), "bytes": found.bytes, "bad": len(bad), "left": found.left}
        read = f"{_many(len(found.checks), 'copy')} read again, {format_bytes(found.bytes)}"
        text = (read if found.checks else "no copy is read") + (f"; {found.left} more are due" if found.left else "")
        if bad:
            worst = bad[0]
            text = f"{text}; {len(bad)} not as copied: {worst.store}:{worst.key}: {worst.note}"
            return Stage("verify", "", 3, f"copy_{worst.outcome}", text, counts)
        return Stage("verify", text=text, counts=counts)


_WAITING = "not due or held"
_CHANGES = (("added", "new"), ("changed", "changed"), ("missing", "gone"))


def _many(count: int, word: str) -> str:
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("y") else f"{count} {word}s"


def _fullness(sample: Sample) -> str:
    size, free = sample.usage.size_bytes, sample.usage.free_bytes
    return f"; {100 * (size - free) / size:.1f}% of {format_bytes(size)} used" if size and free is not None else ""


def _worst_note(notes: list[tuple[str, str, str]]) -> str:
    return notes[0][1] if notes else "asked_to_stop"
