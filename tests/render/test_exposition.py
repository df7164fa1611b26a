"""Metrics as Prometheus reads them: every name by its conventions, no hostile name that breaks a scrape."""

import shutil
import subprocess
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from lifecycle.core.model import Kind, Status
from lifecycle.ports.measures import (
    About,
    Ahead,
    Group,
    LiveRun,
    Measures,
    Room,
    StageMeasures,
    StoreMeasures,
    TickMeasures,
    Waiting,
)
from lifecycle.render.exposition import FAMILIES, exposition, negotiated
from lifecycle.render.families import LABEL_MAX, label
from lifecycle.review.regret import Line

S = 1_000_000_000
AT = 1_900_000_000 * S

STORE = StoreMeasures(
    store="hot",
    scanned_at_ns=AT,
    room=Room(AT, 100, 50, 10, 5),
    ahead=Ahead(AT, 90, AT + 9 * S, AT + 10 * S, None),
    groups=(Group(Kind.FULL, Status.COMPLETE, True, 3, 30), Group(Kind.WEIGHTS, Status.INCOMPLETE, False, 1, 5)),
    waiting=Waiting(2, 20, AT - 5 * S),
    missing=1,
    below_min=4,
    read={"whole": 2, "rotten": 1},
    read_at_ns=AT,
    exposed_runs=1,
    exposed_bytes=7,
    exposed_since_ns=AT,
    live=3,
    runs=(LiveRun("team/run", AT, 60 * S), LiveRun("new", None, None)),
)
TICK = TickMeasures(
    begun_ns=AT,
    running=False,
    ended_ns=AT + 2 * S,
    started_ns=AT,
    exit_code=4,
    dry=False,
    refused=True,
    stages=(StageMeasures("scan", "hot", 0), StageMeasures("plan", "", 4)),
    actions={"done": 1, "failed": 0},
    bytes={"freed": 9},
)
LINE = Line("p", "last: 3", 9, 90, 20, undone=1, missed=1, back=1, lost=1, usual_age_ns=S)
FULL = Measures(AT, About("1.0", "sqlite", "0006"), (STORE,), TICK, 2, AT - S, (LINE,))
EMPTY = Measures(AT, About("1.0", "sqlite", "0006"), (StoreMeasures("hot", 0),), None, 0, 0)


def samples(found: Measures) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    told = [s for family in families(exposition(found).decode()) for s in family.samples]
    made = {(s.name, frozenset(s.labels.items())): s.value for s in told}
    assert len(made) == len(told), "one series twice breaks the whole scrape"
    return made


def value(found: Measures, name: str, **labels: str) -> float | None:
    return samples(found).get((name, frozenset(labels.items())))


def test_every_family_is_told_once_there_is_something_to_tell():
    assert {name for name, _ in samples(FULL)} == {family.name for family in FAMILIES}


def test_values_and_labels():
    assert value(FULL, "lifecycle_build_info", version="1.0", database="sqlite", schema="0006") == 1
    assert value(FULL, "lifecycle_store_full_timestamp_seconds", store="hot", bound="early") == AT / S + 9
    assert value(FULL, "lifecycle_store_full_timestamp_seconds", store="hot", bound="late") == inf
    group = {"store": "hot", "kind": "full", "status": "complete", "role": "copy"}
    assert value(FULL, "lifecycle_store_checkpoints", **group) == 3
    assert value(FULL, "lifecycle_store_checkpoint_bytes", **group) == 30
    assert value(FULL, "lifecycle_store_copies_read", store="hot", outcome="unread") == 0
    assert value(FULL, "lifecycle_run_newest_checkpoint_timestamp_seconds", store="hot", run="new") == 0
    assert value(FULL, "lifecycle_run_save_interval_seconds", store="hot", run="new") is None
    assert value(FULL, "lifecycle_runs_omitted", store="hot") == 1
    assert value(FULL, "lifecycle_tick_stage_exit_code", stage="plan") == 4
    assert value(FULL, "lifecycle_tick_duration_seconds") == 2
    assert value(FULL, "lifecycle_journal_oldest_open_timestamp_seconds") == AT / S - 1
    rules = {"policy": "p", "rule": "last: 3"}
    assert value(FULL, "lifecycle_released_bytes", **rules) == 90
    assert value(FULL, "lifecycle_released_wanted_checkpoints", **rules, sign="missed") == 1
    assert value(FULL, "lifecycle_released_wanted_checkpoints", **rules, sign="recalled") == 0
    assert value(FULL, "lifecycle_released_lost_checkpoints", **rules) == 1


def test_what_is_not_known_is_not_told_and_what_never_was_is_0_where_alerts_rest_on_it():
    assert value(EMPTY, "lifecycle_store_scan_timestamp_seconds", store="hot") == 0
    told = {name for name, _ in samples(EMPTY)}
    assert "lifecycle_store_size_bytes" not in told and "lifecycle_journal_oldest_open_timestamp_seconds" not in told
    assert not any(name.startswith("lifecycle_tick") for name in told)
    begun = EMPTY._replace(tick=TickMeasures(AT, running=True))
    assert value(begun, "lifecycle_tick_running") == 1
    assert value(begun, "lifecycle_tick_exit_code") is None


def test_names_follow_the_conventions():
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family.name.startswith("lifecycle_") and family.help.endswith(".")
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket")), "all of it are gauges"
        if "timestamp" in family.name or "duration" in family.name:
            assert family.name.endswith("_seconds")


def test_the_page_has_each_of_them_and_no_other():
    page = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    told = [line for line in page.splitlines() if line.startswith("| `lifecycle_")]
    cells = [(one.name, ", ".join(f"`{name}`" for name in one.labels), one.help) for one in FAMILIES]
    assert told == [f"| `{name}` | {labels} | {text} |" for name, labels, text in cells]
    explained = page.partition("## What a label holds")[2].partition("\n## ")[0]
    names = {name for one in FAMILIES for name in one.labels}
    assert {name for name in names if f"`{name}`" not in explained} == {"version", "database", "schema"}


@settings(max_examples=60)
@given(
    st.lists(st.text(st.characters(codec=None, categories=["L", "N", "P", "S", "Z", "C"]), max_size=300), max_size=5)
)
def test_no_name_breaks_a_scrape(names: list[str]):
    runs = tuple(LiveRun(name, AT, 60 * S) for name in dict.fromkeys(names))
    found = FULL._replace(stores=(STORE._replace(runs=runs),))
    name = "lifecycle_run_newest_checkpoint_timestamp_seconds"
    assert sum(told == name for told, _ in samples(found)) == len(runs)


def test_a_label_is_bounded_and_no_name_can_pass_for_another():
    long, longer = "x" * 400, "x" * 401
    assert len(label(long)) == LABEL_MAX and label(long) != label(longer)
    assert label(label(long)) != label(long), "a name that looks as one that was cut is cut itself"
    assert label('a"b\n') == 'a"b\\x0a' and label("caf\udce9") == "caf\\xe9"


def test_openmetrics_where_it_is_asked_for():
    plain, kind = negotiated(FULL, "text/plain;version=0.0.4")
    assert plain == exposition(FULL) and kind == "text/plain; version=0.0.4; charset=utf-8"
    body, kind = negotiated(FULL, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert kind.startswith("application/openmetrics-text") and body.endswith(b"# EOF\n")
    told = [s for family in open_families(body.decode()) for s in family.samples]
    assert {(s.name, frozenset(s.labels.items())): s.value for s in told} == samples(FULL)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("found", [FULL, EMPTY], ids=["full", "empty"])
def test_promtool_finds_nothing(found: Measures):
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=exposition(found), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
