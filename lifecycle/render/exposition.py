"""Shows measures as metrics: one table of names, and the text formats that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf, isfinite

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from lifecycle.ports.measures import Ahead, Measures, Room, StoreMeasures, TickMeasures
from lifecycle.render.families import Family, Point, label
from lifecycle.render.regret_families import RELEASED

SECOND_NS = 1_000_000_000


def _s(at_ns: int | None) -> float | None:
    return None if at_ns is None else at_ns / SECOND_NS


def _known(at_ns: int) -> float | None:
    """A moment; none where it is 0, which says that it never was."""
    return at_ns / SECOND_NS if at_ns else None


def _alone(read: Callable[[Measures], float | int | None]) -> Callable[[Measures], Iterator[Point]]:
    def points(found: Measures) -> Iterator[Point]:
        yield (), read(found)

    return points


def _store(read: Callable[[StoreMeasures], float | int | None]) -> Callable[[Measures], Iterator[Point]]:
    def points(found: Measures) -> Iterator[Point]:
        for one in found.stores:
            yield (one.store,), read(one)

    return points


def _room(read: Callable[[Room], float | int | None]) -> Callable[[Measures], Iterator[Point]]:
    return _store(lambda one: None if one.room is None else read(one.room))


def _tick(read: Callable[[TickMeasures], float | int | None]) -> Callable[[Measures], Iterator[Point]]:
    return _alone(lambda found: None if found.tick is None else read(found.tick))


def _ended(read: Callable[[TickMeasures], float | int | None]) -> Callable[[Measures], Iterator[Point]]:
    return _tick(lambda tick: None if tick.ended_ns is None else read(tick))


def _mapped(read: Callable[[TickMeasures], Mapping[str, int]]) -> Callable[[Measures], Iterator[Point]]:
    def points(found: Measures) -> Iterator[Point]:
        if found.tick is not None:
            for name, value in read(found.tick).items():
                yield (name,), value

    return points


def _about(found: Measures) -> Iterator[Point]:
    yield found.about, 1


def _groups(value: str) -> Callable[[Measures], Iterator[Point]]:
    def points(found: Measures) -> Iterator[Point]:
        for one in found.stores:
            for group in one.groups:
                role = "copy" if group.copied else "original"
                yield (one.store, group.kind.value, group.status.value, role), getattr(group, value)

    return points


def _full(found: Measures) -> Iterator[Point]:
    for one in found.stores:
        if one.ahead is not None:
            for bound, at_ns in _bounds(one.ahead):
                yield (one.store, bound), inf if at_ns is None else _s(at_ns)


def _bounds(ahead: Ahead) -> Iterator[tuple[str, int | None]]:
    yield from (("early", ahead.early_ns), ("middle", ahead.middle_ns), ("late", ahead.late_ns))


def _read(found: Measures) -> Iterator[Point]:
    for one in found.stores:
        for outcome in ("whole", "rotten", "unread", "never"):
            yield (one.store, outcome), one.read.get(outcome, 0)


def _stages(found: Measures) -> Iterator[Point]:
    for stage in found.tick.stages if found.tick else ():
        yield (stage.stage, stage.store), stage.exit_code


def _newest(found: Measures) -> Iterator[Point]:
    for one in found.stores:
        for run in one.runs:
            yield (one.store, run.path), _s(run.newest_ns) or 0.0


def _interval(found: Measures) -> Iterator[Point]:
    for one in found.stores:
        for run in one.runs:
            yield (one.store, run.path), _s(run.interval_ns)


S, R = ("store",), ("store", "run")
GROUPED = ("store", "kind", "status", "role")

FAMILIES = (
    Family(
        "lifecycle_build_info",
        "Version of the engine, kind of database and its schema; always 1.",
        ("version", "database", "schema"),
        _about,
    ),
    Family(
        "lifecycle_measured_timestamp_seconds",
        "When all of this was read from the index.",
        (),
        _alone(lambda m: _s(m.at_ns)),
    ),
    Family(
        "lifecycle_store_scan_timestamp_seconds",
        "When the last complete scan of the store began; 0: there was none.",
        S,
        _store(lambda one: _s(one.scanned_at_ns)),
    ),
    Family(
        "lifecycle_store_usage_timestamp_seconds",
        "When it was last asked how full the store is.",
        S,
        _room(lambda room: _s(room.at_ns)),
    ),
    Family("lifecycle_store_size_bytes", "All that the store holds.", S, _room(lambda room: room.size_bytes)),
    Family(
        "lifecycle_store_free_bytes", "What is free of what the store holds.", S, _room(lambda room: room.free_bytes)
    ),
    Family("lifecycle_store_inodes", "Inodes of the store's file system.", S, _room(lambda room: room.inodes)),
    Family(
        "lifecycle_store_inodes_free",
        "Free inodes of the store's file system.",
        S,
        _room(lambda room: room.inodes_free),
    ),
    Family(
        "lifecycle_store_forecast_timestamp_seconds",
        "When the last kept forecast of the store was made.",
        S,
        _store(lambda one: _s(one.ahead.made_at_ns) if one.ahead else None),
    ),
    Family(
        "lifecycle_store_full_timestamp_seconds",
        "When the store is full by its last kept forecast, and the ends of its 80 % band; +Inf: not within it.",
        (*S, "bound"),
        _full,
    ),
    Family("lifecycle_store_checkpoints", "Checkpoints that stand on the store.", GROUPED, _groups("checkpoints")),
    Family(
        "lifecycle_store_checkpoint_bytes", "Bytes of checkpoints that stand on the store.", GROUPED, _groups("bytes")
    ),
    Family(
        "lifecycle_store_checkpoints_missing",
        "Checkpoints that a scan found gone and that nobody of ours dropped.",
        S,
        _store(lambda one: one.missing),
    ),
    Family(
        "lifecycle_store_trash_checkpoints",
        "Checkpoints in the trash of the store, as the index knows it.",
        S,
        _store(lambda one: one.waiting.checkpoints),
    ),
    Family("lifecycle_store_trash_bytes", "Bytes in the trash of the store.", S, _store(lambda one: one.waiting.bytes)),
    Family(
        "lifecycle_store_trash_oldest_timestamp_seconds",
        "When the oldest of what lies in the trash came there.",
        S,
        _store(lambda one: _known(one.waiting.since_ns)),
    ),
    Family(
        "lifecycle_store_copies_below_min",
        "Checkpoints at home on the store with fewer whole copies than copies_min asks for, though they are due.",
        S,
        _store(lambda one: one.below_min),
    ),
    Family(
        "lifecycle_store_copies_read",
        "Copies that stand on the store, by what reading them again gave last.",
        (*S, "outcome"),
        _read,
    ),
    Family(
        "lifecycle_store_verify_timestamp_seconds",
        "When a copy on the store was last read again.",
        S,
        _store(lambda one: _known(one.read_at_ns)),
    ),
    Family(
        "lifecycle_store_exposed_runs",
        "Runs on the store that lose something if their node dies.",
        S,
        _store(lambda one: one.exposed_runs),
    ),
    Family(
        "lifecycle_store_exposed_bytes",
        "Bytes that stand on the store and nowhere that outlives a node.",
        S,
        _store(lambda one: one.exposed_bytes),
    ),
    Family(
        "lifecycle_store_exposed_oldest_timestamp_seconds",
        "When the oldest checkpoint was saved that is lost if its node dies.",
        S,
        _store(lambda one: _known(one.exposed_since_ns)),
    ),
    Family(
        "lifecycle_runs_live",
        "Runs in which something was being written when their store was scanned.",
        S,
        _store(lambda one: one.live),
    ),
    Family(
        "lifecycle_runs_omitted",
        "Live runs that are not told of by name.",
        S,
        _store(lambda one: one.live - len(one.runs)),
    ),
    Family(
        "lifecycle_run_newest_checkpoint_timestamp_seconds",
        "When the newest whole checkpoint of a live run was saved; 0: it has none.",
        R,
        _newest,
    ),
    Family("lifecycle_run_save_interval_seconds", "Usual time of a live run from save to save.", R, _interval),
    Family(
        "lifecycle_tick_begun_timestamp_seconds",
        "When the last tick began.",
        (),
        _tick(lambda tick: _s(tick.begun_ns)),
    ),
    Family(
        "lifecycle_tick_running",
        "1: the last tick has not ended, or was cut short.",
        (),
        _tick(lambda t: int(t.running)),
    ),
    Family(
        "lifecycle_tick_ended_timestamp_seconds",
        "When the last tick ended that came to its end.",
        (),
        _ended(lambda tick: _s(tick.ended_ns)),
    ),
    Family(
        "lifecycle_tick_duration_seconds",
        "How long the last tick took that came to its end.",
        (),
        _ended(lambda tick: _s((tick.ended_ns or 0) - tick.started_ns)),
    ),
    Family(
        "lifecycle_tick_exit_code",
        "Exit code of the last tick that came to its end.",
        (),
        _ended(lambda tick: tick.exit_code),
    ),
    Family(
        "lifecycle_tick_dry",
        "1: the last tick that came to its end was not allowed to apply anything.",
        (),
        _ended(lambda tick: int(tick.dry)),
    ),
    Family(
        "lifecycle_tick_plan_refused",
        "1: the plan of that tick was over its limits, or refused for another reason.",
        (),
        _ended(lambda tick: int(tick.refused)),
    ),
    Family(
        "lifecycle_tick_stage_exit_code",
        "Exit code of each stage of that tick, the worst where it came twice.",
        ("stage", "store"),
        _stages,
    ),
    Family(
        "lifecycle_tick_actions",
        "Actions of that tick's plan, by what came of them.",
        ("outcome",),
        _mapped(lambda t: t.actions),
    ),
    Family(
        "lifecycle_tick_bytes",
        "Bytes that that tick dealt with, by what was done.",
        ("act",),
        _mapped(lambda t: t.bytes),
    ),
    Family(
        "lifecycle_journal_open_rows",
        "Acts that were begun and not closed: at work now, or cut short.",
        (),
        _alone(lambda m: m.open_rows),
    ),
    Family(
        "lifecycle_journal_oldest_open_timestamp_seconds",
        "When the oldest open act was begun.",
        (),
        _alone(lambda m: _known(m.open_since_ns)),
    ),
    *RELEASED,
)


class _Told(Collector):
    """Measures as prometheus-client collects them: read at that moment, none is kept from one scrape to the next."""

    def __init__(self, found: Measures) -> None:
        self.found = found

    def collect(self) -> Iterator[Metric]:
        """Families that have something to tell."""
        for family in FAMILIES:
            metric = Metric(family.name, family.help, "gauge")
            for values, value in family.read(self.found):
                if value is not None:
                    labels = {
                        name: shown for name, text in zip(family.labels, values, strict=True) if (shown := label(text))
                    }
                    metric.add_sample(family.name, labels, float(value))
            if metric.samples:
                yield metric


def points(found: Measures) -> Iterator[dict[str, object]]:
    """The same for programs; what is not a number in JSON is written out."""
    for metric in _Told(found).collect():
        for sample in metric.samples:
            value = sample.value if isfinite(sample.value) else "+Inf"
            yield {"name": sample.name, "labels": dict(sample.labels), "value": value}


def exposition(found: Measures) -> bytes:
    """Prometheus' text format, version 0.0.4: what the textfile collector, the pushgateway and scrapes read."""
    return generate_latest(_registry(found))


def negotiated(found: Measures, accept: str) -> tuple[bytes, str]:
    """The body and its content type for a scrape: OpenMetrics where ``Accept`` asks for it, else the text format."""
    if any(part.split(";")[0].strip() == "application/openmetrics-text" for part in accept.split(",")):
        body: bytes = openmetrics.generate_latest(_registry(found))  # type: ignore[no-untyped-call]  # theirs has none
        return body, openmetrics.CONTENT_TYPE_LATEST
    return exposition(found), CONTENT_TYPE_PLAIN_0_0_4


def _registry(found: Measures) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Told(found))
    return registry
