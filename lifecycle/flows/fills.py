"""Finds out how full stores are, from their last scans and their trash; what is not known is said, and is no fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.gauge import BP, SPACE, Fill, Gauge, percent
from lifecycle.core.model import Finding, Shape
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Measure, Policy
from lifecycle.core.units import format_age, format_bytes
from lifecycle.errors import LifecycleError, StalePlan
from lifecycle.ports import Reader, Sample, Store, Trashed, Usage

FRESH_NS = 6 * 3600 * 1_000_000_000
"""How long a look at a store's usage counts, from the start of its scan: it covers a scan of hundreds of millions of
files, and is short beside the time in which people free space by hand and forget about it."""

Lying = Mapping[str, Callable[[], Sequence[Trashed]]]
"""By store: tells what lies in its trash."""


class Fills(NamedTuple):
    """How full stores are, and what is not known of that."""

    known: dict[tuple[str, Measure], Fill]
    """By store; those on one file system have the same."""
    volumes: dict[str, str]
    """By store: the same for those on one file system."""
    findings: list[Finding]


def read_fills(reader: Reader, policies: Iterable[Policy], stores: Sequence[str], lying: Lying, now_ns: int) -> Fills:
    """How full those of ``stores`` are that some policy has a mark for, as of their last scans.

    The trash is only asked about on a store that is over a mark: below it nothing goes, whatever lies there.
    """
    rows = reader.stores()
    volumes = {name: volume_of(name, rows[name].identity) if name in rows else name for name in stores}
    marks: dict[tuple[str, Measure], dict[str, int]] = {}
    for item in (item for policy in policies for item in policy.pressure if item.quota_bytes is None):
        for store in set(item.on).intersection(stores):
            mine = marks.setdefault((volumes[store], item.of), {})
            mine[store] = min(mine.get(store, BP), item.above_bp)
    fills = Fills({}, volumes, [])
    for (volume, of), marked in sorted(marks.items()):
        mates = sorted(name for name in stores if volumes[name] == volume)
        try:
            size, free = _measured([reader.sample(name) for name in mates], of, now_ns)
            over = (size - free) * BP > min(marked.values()) * size
            trash = sum(_trash(lying, name, of) for name in mates) if over else 0
            fills.known.update(((store, of), Fill(size, size - free, trash)) for store in marked)
        except _UnknownError as e:
            text = f"how much of {SPACE[of]} is used is not known: {e}; nothing goes for a mark on that"
            fills.findings.append(Finding(f"{min(marked)}:", "usage_unknown", "warning", text))
    return fills


def volume_of(name: str, identity: str) -> str:
    """What stores on one file system share: their identities differ in the root's inode alone.

    Some file systems have no number: of a store on such a one it is not known what it shares.
    """
    volume, _, _ = identity.rpartition("-")
    return volume if volume.startswith("posix-") and volume != "posix-0" else name


class _UnknownError(Exception):
    """Why something is not known."""


def _measured(samples: Iterable[Sample | None], of: Measure, now_ns: int) -> tuple[int, int]:
    """(size, free) by the last look at any store of a file system. Raises _UnknownError."""
    known = [sample for sample in samples if sample is not None]
    if not known:
        raise _UnknownError("it was never scanned")
    sample = max(known, key=lambda s: s.at_ns)
    size, free = _of(sample.usage, of)
    if size is None or free is None or size <= 0:
        raise _UnknownError("the store does not say")
    age_ns = now_ns - sample.at_ns
    if not 0 <= age_ns <= FRESH_NS:
        raise _UnknownError(f"the last scan was {format_age(age_ns)} ago, at most {format_age(FRESH_NS)} count")
    if max(s.acted_at_ns for s in known) > sample.at_ns:
        raise _UnknownError("something was dropped, brought back or purged there since the last scan")
    return size, free


def _of(usage: Usage, of: Measure) -> tuple[int | None, int | None]:
    return (usage.inodes, usage.inodes_free) if of is Measure.INODES else (usage.size_bytes, usage.free_bytes)


def _trash(lying: Lying, store: str, of: Measure) -> int:
    """What a purge will free. Raises _UnknownError."""
    if store not in lying:
        raise _UnknownError("nobody tells what lies in its trash")
    try:
        entries = lying[store]()
    except LifecycleError as e:
        raise _UnknownError(f"its trash cannot be read: {e}") from e
    if any(not entry.plan for entry in entries):
        raise _UnknownError("its trash holds something of which nothing is known")
    if of is Measure.BYTES:
        return sum(entry.bytes for entry in entries)
    return sum(entry.files + (entry.shape is Shape.DIR) for entry in entries)


def tell_gauges(gauges: Iterable[Gauge]) -> list[Finding]:
    """A line for each goal that is over its mark."""
    found = []
    for gauge in gauges:
        code, severity = ("store_full", "warning") if gauge.reachable else ("goal_unreachable", "error")
        found.append(Finding(f"{gauge.stores[0]}:", code, severity, told(gauge)))
    return found


def told(gauge: Gauge) -> str:
    """A gauge in words."""
    amount = (lambda n: f"{n} inodes") if gauge.of == "inodes" else format_bytes
    whose = f"{'policy' if len(gauge.policies) == 1 else 'policies'} {', '.join(gauge.policies)}"
    part = f"{gauge.used} of {gauge.size}" if gauge.of == "inodes" else f"{amount(gauge.used)} of {amount(gauge.size)}"
    text = f"{percent(gauge.used, gauge.size):.1f} % of {SPACE[gauge.of]} used ({part})"
    text += f", over the {gauge.above_bp / 100:g} % of {whose}"
    if others := ", ".join(gauge.stores[1:]):
        text += f" (and {others}: the same file system)"
    other = [f"{amount(gauge.trash)} lie in the trash"] if gauge.trash else []
    other += [f"{amount(gauge.planned)} go anyway"] if gauge.planned else []
    if other:
        text += f"; {' and '.join(other)}, which leaves {percent(gauge.expected, gauge.size):.1f} %"
    if not gauge.pressing:
        return f"{text}: nothing more has to go"
    until = f"{gauge.until_bp / 100:g} %"
    if not gauge.reachable:
        lack = f"{amount(gauge.need)} more, and all that yields is {amount(gauge.yielding)}"
        return f"{text}: to reach {until} takes {lack}: nothing goes for it"
    which = "1 checkpoint" if gauge.checkpoints == 1 else f"{gauge.checkpoints} checkpoints"
    return f"{text}: {which} more ({amount(gauge.released)}) must go to reach {until} once the trash is purged"


def still_pressed(plan: Plan, stores: Mapping[str, Store]) -> None:
    """Ask the stores once more whether what goes only because they are too full still has to.

    Raises:
        StalePlan: ``pressure_gone``: so much has come free since that a store would not be over its mark any more.
        StoreError: a store does not answer.
    """
    for gauge in plan.pressure:
        if not gauge.released or gauge.of == "quota":
            continue
        size, free = _of(stores[gauge.stores[0]].usage(), Measure(gauge.of))
        known = size is not None and free is not None
        if not known or not gauge._replace(size=size or 0, used=(size or 0) - (free or 0)).pressing:
            text = f"{gauge.stores[0]} is not as full as when the plan was made: not all that goes for it has to"
            raise StalePlan(text, code="pressure_gone")
