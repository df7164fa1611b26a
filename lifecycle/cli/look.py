"""The commands that look: scan and plan. Neither can change anything in what they look at."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.desk import Desk
from lifecycle.cli.progress import progress_of
from lifecycle.cli.selecting import known_stores, moment
from lifecycle.core.plan import Plan
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, LeaseHeld, Refused
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.propose import exposed_now, propose
from lifecycle.flows.recover import recover
from lifecycle.flows.scan import ScanReport, Wish, asks_tags, scan, scan_all
from lifecycle.flows.skew import refuse_skew, tell_skew
from lifecycle.render.bill import bill_lines
from lifecycle.render.plan import finding_lines, next_lines, plan_lines, summary_lines
from lifecycle.render.report import plural, reasons, runs_of, tell
from lifecycle.sizing.bill import read
from lifecycle.sizing.exposed import sum_up
from lifecycle.world import World, only

if TYPE_CHECKING:
    from lifecycle.ports import Store

UNJUDGED, REFUSED = 3, 4


def scan_stores(desk: Desk, names: list[str], *, full: bool, accept_empty: bool, workers: int | None) -> int:
    """``lifecycle scan``"""
    with desk.world(write=True, workers=workers) as opened:
        world = only(opened, known_stores(opened, names))
        open_acts = close_open_acts(desk, world)
        reports = bring_up_to_date(desk, world, full=full, accept_empty=accept_empty)
        findings = [f for report in reports for f in report.findings]
        lines = [line for report in reports for line in scanned_lines(report, world)]
        now_ns = world.clock.now_ns()
        risked = exposed_now(world.index.reader, world.rules, opened.stores, now_ns)
        findings += risked.findings
        lines += [
            f"Exposed: {text}: lost if that node dies before the upload."
            for text in filter(None, [sum_up(risked.totals(now_ns))])
        ]
        exposed = {"exposed": [risk._asdict() for risk in risked.risks]} if world.rules.node_local else {}
        desk.answer(
            {"stores": [_scan_value(report) for report in reports], "open_acts": open_acts, **exposed},
            [*lines, *finding_lines(sorted(findings), desk.look, everything=False)],
        )
    return 0 if all(report.complete for report in reports) and not open_acts else UNJUDGED


def close_open_acts(desk: Desk, world: World) -> list[str]:
    """Close what an interrupted apply left open; what could not be closed."""
    journal, now_ns = world.index.journal, world.clock.now_ns()
    if not journal.started():
        return []
    try:  # before the lease: whoever is ahead of the others would take one that is not over yet
        refuse_skew(world.trashes, world.trashes, world.clock, world.told)
    except Refused as e:
        desk.warn(f"open acts stay as they are: {escape(str(e))}")
        return [str(e)]
    try:
        with journal.lease(f"{world.host} recovery", now_ns, LEASE_NS):
            found = recover(journal, world.stores, world.trashes, world.intakes, now_ns)
    except LeaseHeld:
        desk.warn("an apply is at work; its open acts are left to it")
        return []
    closed = found.done + found.not_begun + found.undone + found.cut + found.aside + found.gone
    cut = f", {found.cut} cut short, and a later copy goes on from there" if found.cut else ""
    cut += f", {found.aside} left in the trash, for another checkpoint stands there now" if found.aside else ""
    cut += f", {found.gone} found gone, whole or in part" if found.gone else ""
    desk.say(
        f"Closed {plural(closed, 'act')} that an interrupted apply had left open: "
        f"{found.done} were done, {found.not_begun} never begun, {found.undone} brought back{cut}."
    )
    for text in found.open:
        desk.warn(f"still open: {escape(text)}")
    return list(found.open)


def bring_up_to_date(desk: Desk, world: World, *, full: bool = False, accept_empty: bool = False) -> list[ScanReport]:
    """Bring the index to what the stores show."""
    wish = Wish(full=full, accept_empty=accept_empty, tags=asks_tags(world.rules.policies))
    index, settings = world.index, world.settings
    with progress_of("scanning", desk.as_json) as progress:

        def one(store: Store) -> ScanReport:
            skew = tell_skew(store.name, store, world.clock, world.told)
            report = scan(
                store,
                index.reader,
                index.writer,
                settings.conventions,
                now_ns=world.clock.now_ns(),
                wish=wish,
                progress=progress,
                journal=index.journal,
            )
            return report._replace(findings=(*report.findings, *skew))

        return scan_all(world.stores.values(), one)


def scanned_lines(report: ScanReport, world: World) -> Iterator[str]:
    """What a scan of one store found, for people."""
    result = report.result
    changes = [
        f"{count} {word}"
        for count, word in ((result.added, "new"), (result.changed, "changed"), (result.missing, "gone"))
        if count
    ]
    known = world.index.reader.stores()[report.store].checkpoints
    seen = f"{plural(report.runs, 'run')}, {plural(known, 'checkpoint')}"
    told = f"{', '.join(changes)} since the last scan" if changes else "nothing changed since the last scan"
    if changes and result.added == known and not (result.changed or result.missing):
        told = "seen for the first time"
    cut = "" if report.complete else "; parts could not be listed, see below"
    yield f"Scanned {report.store}: {seen}, {told}{cut}."
    yield f"  {escape(world.stores[report.store].url)}"


def _scan_value(report: ScanReport) -> dict[str, object]:
    return {
        "store": report.store,
        "complete": report.complete,
        "runs": report.runs,
        "checkpoints": report.checkpoints,
        **report.result._asdict(),
        "findings": [f._asdict() for f in report.findings],
    }


def make_plan(desk: Desk, *, out: Path | None, rescan: bool, at: str | None, everything: bool) -> int:
    """``lifecycle plan``"""
    if out is not None and at is not None:
        raise ConfigInvalid("--at is a preview that cannot be applied, so --out has nothing to save", code="usage")
    with desk.world(write=False) as world:
        if world.index.journal.started():
            desk.warn("an interrupted apply left acts open: run `lifecycle scan` before you trust this plan")
        reports = bring_up_to_date(desk, world) if rescan else []
        for report in reports:
            for line in scanned_lines(report, world):
                desk.say(line)
        now_ns = moment(at, desk.clock.now_ns()) if at is not None else desk.clock.now_ns()
        plan = propose(
            world.index.reader,
            world.rules,
            tuple(world.stores),
            holds=world.holds(),
            now_ns=now_ns,
            engine=world.engine,
            findings=[f for report in reports for f in report.findings],
            prices=dict(world.settings.prices),
            lying=world.lying,
        )
        file = None if at is not None else save(plan, out or desk.plans / f"{plan.id[:12]}.json")
        code = REFUSED if plan.refusals else UNJUDGED if plan.unjudged else 0
        desk.answer(plan_value(plan, file, code), _plan_text(desk, plan, file, out, everything))
    return code


def save(plan: Plan, path: Path) -> Path:
    """Write a plan's file. Raises ConfigInvalid: it cannot be written there."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Readable as the umask says, so that others may review it; writable for nobody else, whatever the umask says.
        with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o644)) as stream:
            stream.writelines(plan.text())
    except OSError as e:
        raise ConfigInvalid(f"the plan cannot be saved: {e}", code="plan_unsaved", hint="--out FILE") from e
    return path


def _plan_text(desk: Desk, plan: Plan, file: Path | None, out: Path | None, everything: bool) -> Iterator[str]:
    look, runs = desk.look, runs_of(plan)
    yield ""
    if not runs:
        yield "No checkpoints were found here, so there is nothing to plan."
        yield "Nothing was changed."
        return
    yield from plan_lines(plan, runs, look, everything=everything)
    yield from summary_lines(plan, runs, look)
    yield ""
    if plan.bill:
        yield from bill_lines(read(plan.bill), look)
        yield ""
    if file is None:
        yield "Nothing was changed. This is a preview for another time: it is not saved and cannot be applied."
        return
    yield f"Nothing was changed. Plan {plan.id[:12]} is saved in"
    yield f"  {escape(str(file))}"
    yield ""
    yield from next_lines(plan, runs, str(out) if out else plan.id[:12], desk.typing, look)


def plan_value(plan: Plan, file: Path | None, code: int) -> dict[str, object]:
    """A plan for programs."""
    acted_on = {a.checkpoint for a in plan.actions}
    told = {t.id: t for t in map(tell, plan.lines) if t.id in acted_on}
    return {
        "plan": plan.id,
        "file": None if file is None else str(file),
        "made_at_ns": plan.basis.made_at_ns,
        "totals": dict(plan.totals),
        **({"costs": json.loads(plan.bill)} if plan.bill else {}),
        "actions": [
            {
                "id": a.id,
                "verb": a.verb,
                "checkpoint": a.checkpoint,
                "to": a.to,
                "storage_class": a.storage_class,
                "part": a.part,
                "run": f"{a.home or a.store}:{a.run}",
                "step": told[a.checkpoint].step,
                "bytes": a.bytes,
                "saved_at_ns": told[a.checkpoint].saved_at_ns,
                "trash_s": a.trash_s,
                "policies": a.policies,
                "why": reasons(told[a.checkpoint]),
            }
            for a in plan.actions
        ],
        "pressure": [g._asdict() for g in plan.pressure],
        "findings": [f._asdict() for f in plan.findings],
        "exit_code": code,
    }


def find_plan(desk: Desk, name: str) -> Path:
    """The file of the plan that ``name`` means: a path, or the beginning of the id of a saved one.

    Raises:
        ConfigInvalid: there is none, or several.
    """
    path = Path(name)
    if path.exists() or "/" in name or name.endswith(".json"):
        return path
    found: Sequence[Path] = [p for p in sorted(desk.plans.glob("*.json")) if p.name.startswith(name[:12])]
    if len(found) != 1:
        count = "no saved plan" if not found else f"{len(found)} saved plans"
        text = f"{count} begins with {name!a}" if len(found) < 2 else f"{count} begin with {name!a}"
        raise ConfigInvalid(text, code="no_such_plan", hint=f"saved plans are in {desk.plans}")
    return found[0]


def is_terminal() -> bool:
    """Whether somebody sits there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()
