"""One session of the engine, as a timer would start it: recover, scan, propose, apply, purge; and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lifecycle.config.compile import Settings
from lifecycle.core.action import Action, Verb
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Tagged
from lifecycle.errors import LeaseHeld, LifecycleError
from lifecycle.flows.apply import Outcome, apply
from lifecycle.flows.propose import propose
from lifecycle.flows.recover import recover
from lifecycle.flows.scan import Wish, scan
from lifecycle.flows.site import Site
from lifecycle.flows.undo import free_due
from lifecycle.world import World, open_world
from tests.cases.seams import CaseIntake, CaseStore, CaseTrash, FrozenClock, Watch


@dataclass
class Report:
    """What one session told."""

    flags: set[tuple[str, str]] = field(default_factory=set)
    """(id in the case's spelling, code)."""
    errors: list[str] = field(default_factory=list)
    """Codes of what stopped everything."""
    unjudged: list[str] = field(default_factory=list)
    """Codes of groups that were not judged."""
    acted: int = 0
    planned: int = 0
    exit_code: int = 0
    lease_held: bool = False
    told: list[str] = field(default_factory=list)


ALSO = dict.fromkeys(("root_changed", "held", "leased", "floor_gone"), "changed_since_plan")
"""What was kept or refused while applying, for a reason of its own, has changed since the plan."""


def _nothing(_world: World) -> AbstractContextManager[None]:
    return nullcontext()


class Engine:
    """The engine on one case's files: every session opens everything anew."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        clock: FrozenClock,
        roots: dict[str, str],
        capacity: dict[str, Any] | None = None,
    ) -> None:
        self.home, self.settings, self.clock, self.roots, self.capacity = home, settings, clock, roots, capacity
        self.watch = Watch()
        self.put_right: Callable[[Any], None] = lambda _store: None
        """Told of each store that is opened: servers date objects themselves."""

    def case_id(self, subject: str) -> str:
        """``store:key`` in the case's spelling."""
        store, colon, key = subject.partition(":")
        if not colon or store not in self.roots:
            return subject
        return "/".join(part for part in (self.roots[store], key) if part)

    def open(self, write: bool = True) -> World:
        """The world of one session, with the case's seams in it."""

        def wrap(store: Any) -> Any:
            self.put_right(store)
            root = self.roots[store.name]
            return CaseStore(store, self.watch, lambda key: "/".join(p for p in (root, key) if p), self.capacity)

        world = open_world(self.settings, self.clock, write=write, wrap=wrap)
        trashes = {name: CaseTrash(trash, self.watch) for name, trash in world.trashes.items()}
        intakes = {name: CaseIntake(intake, self.watch) for name, intake in world.intakes.items()}
        return replace(world, trashes=trashes, intakes=intakes)

    def scan(self, world: World, report: Report) -> list[Any]:
        """Scan every store; what goes wrong is told, and is the end of the session."""
        tags = any(isinstance(rule, Tagged) for policy in world.rules.policies for rule in policy.keep or ())
        findings: list[Any] = []
        for store in world.stores.values():
            try:
                done = scan(
                    store,
                    world.index.reader,
                    world.index.writer,
                    self.settings.conventions,
                    now_ns=self.clock.now_ns(),
                    wish=Wish(tags=tags),
                )
                findings += done.findings
            except LifecycleError as e:
                self.fail(report, e, self.roots[store.name] or ".")
        return findings

    def fail(self, report: Report, error: LifecycleError, subject: str) -> None:
        report.errors.append(error.code)
        report.flags.add((subject, error.code))
        if error.code in ALSO:
            report.flags.add((subject, ALSO[error.code]))
        report.exit_code = max(report.exit_code, error.exit_code, 1)
        report.told.append(f"{error.code}: {error}")

    def propose(self, world: World, findings: list[Any], report: Report) -> Plan:
        plan = propose(
            world.index.reader,
            world.rules,
            tuple(world.stores),
            holds=world.holds(),
            now_ns=self.clock.now_ns(),
            engine=world.engine,
            findings=findings,
            lying=world.lying,
        )
        for finding in plan.findings:
            report.flags.add((self.case_id(finding.subject), finding.code))
            report.told.append(f"{finding.subject} {finding.code}: {finding.text}")
        report.unjudged += [finding.code for finding in plan.unjudged]
        report.planned = len(plan.actions)
        return plan

    def apply(self, world: World, plan: Plan, report: Report) -> Outcome | None:
        uncopied: set[str] = set()

        def note(action: Action, word: str) -> None:
            if action.verb is Verb.COPY and word == "failed":
                uncopied.add(action.id)

        try:
            outcome = apply(plan, self.site(world), age_max_s=self.settings.plan_age_max_s, progress=note)
        except LeaseHeld as e:
            report.lease_held, report.exit_code = True, e.exit_code
            return None
        except LifecycleError as e:
            self.fail(report, e, next(iter(self.roots.values())) or ".")
            return None
        for identity, code, text in outcome.notes:
            report.flags.add((self.case_id(identity), code))
            report.flags.add((self.case_id(identity), ALSO.get(code, code)))
            report.told.append(f"{identity} {code}: {text}")
        report.flags |= {(self.case_id(identity), "copy_failed") for identity in uncopied}
        if outcome.stopped:
            code = next((code for _, code, text in outcome.notes if text == outcome.stopped), "stopped")
            report.errors.append(code)
            report.flags.add((next(iter(self.roots.values())) or ".", ALSO.get(code, code)))
        report.acted = outcome.counts["done"]
        report.exit_code = max(report.exit_code, outcome.exit_code)
        return outcome

    def site(self, world: World) -> Site:
        return Site(
            reader=world.index.reader,
            journal=world.index.journal,
            stores=world.stores,
            trashes=world.trashes,
            intakes=world.intakes,
            conventions=self.settings.conventions,
            rules=world.rules,
            holds=world.holds,
            clock=self.clock,
            host=world.host,
            engine=world.engine,
            told=lambda _store: None,
        )

    def run(
        self,
        *,
        scanning: Callable[[World], AbstractContextManager[None]] = _nothing,
        planned: Callable[[World, Plan], None] = lambda _world, _plan: None,
        applying: Callable[[World], AbstractContextManager[None]] = _nothing,
        free: bool = False,
    ) -> Report:
        """A whole session; ``free`` also frees what has been in the trash long enough."""
        report = Report()
        try:
            with self.open() as world:
                return self.session(world, report, scanning, planned, applying, free)
        except LifecycleError as e:
            self.fail(report, e, next(iter(self.roots.values())) or ".")
        return report

    def session(
        self,
        world: World,
        report: Report,
        scanning: Callable[[World], AbstractContextManager[None]] = _nothing,
        planned: Callable[[World, Plan], None] = lambda _world, _plan: None,
        applying: Callable[[World], AbstractContextManager[None]] = _nothing,
        free: bool = False,
    ) -> Report:
        """The same in a world that is open already."""
        try:
            self.recover(world, report)
            with scanning(world):
                findings = self.scan(world, report)
            if report.errors:
                return report
            plan = self.propose(world, findings, report)
        except LifecycleError as e:
            self.fail(report, e, next(iter(self.roots.values())) or ".")
            return report
        planned(world, plan)
        with applying(world):
            self.apply(world, plan, report)
            if free and not report.errors:
                self.purge(world, report)
        if report.unjudged:
            report.exit_code = report.exit_code or 3
        return report

    def recover(self, world: World, report: Report) -> None:
        if not world.index.journal.started():
            return
        found = recover(world.index.journal, world.stores, world.trashes, world.intakes, self.clock.now_ns())
        for identity, code, text in getattr(found, "notes", ()):
            report.flags.add((self.case_id(identity), code))
            report.told.append(f"{identity} {code}: {text}")

    def purge(self, world: World, report: Report) -> None:
        tally = free_due(world.trashes, world.index.journal, world.holds(), self.clock.now_ns())
        for identity, code, text in tally.failed:
            report.flags.add((self.case_id(identity), code))
            report.told.append(f"{identity} {code}: {text}")
