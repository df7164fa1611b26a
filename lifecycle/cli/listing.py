"""The command that lists: runs, checkpoints and the trash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from lifecycle.cli.desk import Desk
from lifecycle.cli.selecting import SECOND_NS, Wanted, identity, known_stores, matches
from lifecycle.core.model import Checkpoint, Hold, Run
from lifecycle.core.places import standing
from lifecycle.core.policy import Limits, Policy
from lifecycle.core.protect import status
from lifecycle.core.select import applies
from lifecycle.core.units import format_bytes, parse_duration
from lifecycle.errors import ConfigInvalid
from lifecycle.flows.propose import run_of, runs_of
from lifecycle.flows.undo import lying
from lifecycle.ports import Trashed
from lifecycle.render.archive import Restores, copy_value
from lifecycle.render.listing import RunLine, checkpoint_lines, run_lines, trash_lines
from lifecycle.render.report import plural
from lifecycle.sizing.exposed import exposure
from lifecycle.world import World


def list_known(desk: Desk, wanted: Wanted, *, checkpoints: bool) -> int:
    """``lifecycle ls``"""
    now_ns, look = desk.clock.now_ns(), desk.look
    with desk.world(write=False, create=False) as world:
        pattern, exact = _pattern(world, wanted)
        found = list(islice(_shown(world, wanted, pattern, now_ns), None if checkpoints or exact else wanted.limit))
        holds, restores = world.index.reader.holds(), world.index.reader.restores()
    if checkpoints or exact:
        rows = [pair for _, group in found for pair in group][: wanted.limit]
        value = [checkpoint_value(c, state, restores) for c, state in rows]
        size = format_bytes(sum(c.bytes for c, _ in rows))
        total = f"{plural(len(rows), 'checkpoint')}, {size}"
        desk.answer({"checkpoints": value}, _listed(checkpoint_lines(rows, now_ns, look, restores), len(rows), total))
        return 0
    nodes = world.rules.nodes
    lines = [run_line(run, [c for c, _ in group], holds, now_ns) for run, group in found]
    if nodes:
        lines = [line._replace(exposed=exposure(line.run, nodes)) for line in lines]
    values = [
        run_value(line) | ({"exposed": line.exposed and line.exposed._asdict()} if nodes else {}) for line in lines
    ]
    size = format_bytes(sum(line.bytes for line in lines))
    total = f"{plural(len(lines), 'run')}, {plural(sum(line.shown for line in lines), 'checkpoint')}, {size}"
    desk.answer({"runs": values}, _listed(run_lines(lines, now_ns, look), len(lines), total))
    return 0


def _listed(lines: Iterator[str], count: int, total: str) -> Iterator[str]:
    if not count:
        yield "Nothing here answers to that."
        return
    yield from lines
    yield ""
    yield total


def _pattern(world: World, wanted: Wanted) -> tuple[str | None, bool]:
    """The glob over run ids that the selector means, and whether it names one run."""
    if wanted.store is not None:
        known_stores(world, [wanted.store])
    if wanted.selector is None:
        return None, False
    text = wanted.selector
    store, colon, _ = text.partition(":")
    wild = any(char in text for char in "*?[")
    one = identity(world, text) if store in world.stores or not wild else ""
    store_of, _, key = one.partition(":")
    if one and run_of(world.index.reader, store_of, key) is not None:
        return _literal(one), True  # a run may have a name that looks like a pattern
    if wild:
        only = next(iter(world.stores))
        return (text if colon and (store in world.stores or "*" in store) else f"{only}:{text}"), False
    return f"{_literal(one)}/**" if key else f"{_literal(one)}**", False


def _literal(text: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in text)


def _shown(
    world: World, wanted: Wanted, pattern: str | None, now_ns: int
) -> Iterator[tuple[Run, list[tuple[Checkpoint, str]]]]:
    """Runs that were asked for, each with those of its checkpoints that were."""
    older_ns = None
    if wanted.older is not None:
        try:
            older_ns = parse_duration(wanted.older) * SECOND_NS
        except ValueError as e:
            raise ConfigInvalid(f"--older: {e}", code="usage") from e
    stores = [wanted.store] if wanted.store is not None else list(world.stores)
    narrow = any((wanted.layout, wanted.status, wanted.kind, wanted.older))
    for run in runs_of(world.index.reader, stores):
        if not matches(pattern, run.id):
            continue
        quiet_s = grace_of(run, world.rules.policies)
        group = []
        for c in run.checkpoints:
            state = status(c, now_ns, quiet_s).value
            if (
                matches(wanted.layout, c.layout)
                and wanted.status in (None, state, state.replace("_", " "))
                and wanted.kind in (None, c.kind.value)
                and (older_ns is None or now_ns - c.saved_at_ns > older_ns)
            ):
                group.append((c, state))
        if group or not narrow:
            yield run, sorted(group, key=lambda pair: (pair[0].saved_at_ns, pair[0].step or 0, pair[0].key))


def grace_of(run: Run, policies: tuple[Policy, ...]) -> int:
    """For how many seconds nothing may have changed in a run before what has no proof counts as settled."""
    return max((p.limits.grace_s for p in policies if applies(p, run)), default=Limits().grace_s)


def run_line(run: Run, group: Sequence[Checkpoint], holds: Sequence[Hold], now_ns: int) -> RunLine:
    """A run in numbers."""
    steps = [c.step for c in group if c.step is not None]
    held = bool(run.holds) or any(
        hold.covers(c) for hold in holds if hold.until_ns is None or hold.until_ns > now_ns for c in run.checkpoints
    )
    return RunLine(run, len(group), sum(c.bytes for c in group), max(steps, default=None), held)


def run_value(line: RunLine) -> dict[str, object]:
    """A run for programs."""
    return {
        "id": line.run.id,
        "checkpoints": line.shown,
        "bytes": line.bytes,
        "last_step": line.step,
        "active_at_ns": line.run.active_at_ns,
        "complete": line.run.complete,
        "held": line.held,
    }


def metrics_value(c: Checkpoint) -> dict[str, object]:
    """Its metrics, what is no number as text, and where each was read."""
    return {
        "metrics": {name: value if value - value == 0 else str(value) for name, value in c.metrics},
        "metrics_from": {name: source for (name, _), source in zip(c.metrics, c.metrics_from, strict=False)},
    }


def checkpoint_value(c: Checkpoint, state: str, restores: Restores) -> dict[str, object]:
    """A checkpoint for programs."""
    return {
        "id": c.id,
        "run": f"{c.store}:{c.run}",
        "name": c.name,
        "step": c.step,
        "epoch": c.epoch,
        "bytes": c.bytes,
        "files": c.files,
        "saved_at_ns": c.saved_at_ns,
        "changed_at_ns": c.changed_at_ns,
        "status": state,
        "kind": c.kind,
        "layout": c.layout,
        **metrics_value(c),
        "copies": [copy_value(one, restores) for one in standing(c)],
    }


def list_trash(desk: Desk, wanted: Wanted) -> int:
    """``lifecycle ls --trash``: a world with a trash is opened for writing, but nothing is written."""
    now_ns = desk.clock.now_ns()
    with desk.world(write=True) as world:
        names = known_stores(world, [wanted.store] if wanted.store is not None else [])
        pattern = None if wanted.selector is None else _below(world, wanted.selector)
        rows = [
            (store, entry)
            for store, entry in lying(world.trashes)
            if (not names or store in names) and matches(pattern, f"{store}:{entry.key}")
        ][: wanted.limit]
    size = format_bytes(sum(entry.bytes for _, entry in rows))
    total = f"{plural(len(rows), 'checkpoint')}, {size}"
    values = [{"id": f"{store}:{entry.key}", **_fields(entry)} for store, entry in rows]
    lines = trash_lines(rows, now_ns, desk.look)
    desk.answer({"trash": values}, _listed(lines, len(rows), total) if rows else ["The trash is empty."])
    return 0


def _below(world: World, selector: str) -> str:
    if any(char in selector for char in "*?["):
        return _pattern(world, Wanted(selector))[0] or "**"
    return f"{_literal(identity(world, selector))}/**"


def _fields(entry: Trashed) -> dict[str, object]:
    return {name: value for name, value in entry._asdict().items() if name != "key"}
