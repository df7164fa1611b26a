"""What the index keeps for forecasts: which runs started when, and what was forecast before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifecycle.core.model import Checkpoint, Evidence, Kind
from lifecycle.errors import LifecycleError
from lifecycle.index.open import Index, open_index
from lifecycle.sizing.arrivals import Start, Watched
from lifecycle.sizing.records import Scope, Told
from tests.index.scenes import STORE, S, checkpoint, run_of, scan

DAY_S = 86_400


def at(key: str, saved_s: int, **fields: object) -> Checkpoint:
    return replace(checkpoint(key), saved_at_ns=saved_s * S, **fields)  # type: ignore[arg-type]  # fields of one dataclass


def put(index: Index, scan_s: int, *found: Checkpoint, complete: bool = True) -> None:
    paths = dict.fromkeys(c.run for c in found)
    runs = [replace(run_of(path), checkpoints=tuple(c for c in found if c.run == path)) for path in paths]
    scan(index, runs, at_s=scan_s, complete=complete)


def test_runs_are_known_by_all_that_they_ever_saved(index: Index):
    put(index, 100, at("old/a", 10), at("old/b", 50))
    put(index, 200, at("new/a", 150), at("old/b", 50))
    put(index, 300, at("new/a", 150), at("new/b", 180), at("new/c", 190))
    assert index.reader.watched(STORE) == Watched(
        100 * S, (Start("new", 150 * S, 190 * S, 3), Start("old", 10 * S, 50 * S, 2))
    )


def test_what_is_no_save_of_a_training_does_not_count(index: Index):
    odd = (
        at("run/part", 5, evidence=Evidence.PARTIAL),
        at("run/export", 500, kind=Kind.EXPORT),
        at("run/copy", 600, home="warm", copy_id="c"),
    )
    put(index, 100, at("run/a", 10), *odd)
    assert index.reader.watched(STORE).starts == (Start("run", 10 * S, 10 * S, 1),)


def test_a_store_is_watched_from_the_first_scan_that_saw_all_of_it(index: Index):
    assert index.reader.watched(STORE) == Watched(0, ())
    put(index, 100, at("run/a", 10), complete=False)
    assert index.reader.watched(STORE).since_ns == 0
    put(index, 200, at("run/a", 10))
    put(index, 300, at("run/a", 10))
    assert index.reader.watched(STORE).since_ns == 200 * S
    assert index.reader.watched("other") == Watched(0, ())


def told(day: float, days: int = 7, **fields: object) -> Told:
    given: dict[str, object] = {"store": STORE, "every_s": DAY_S, "scope": Scope.USED}
    band = {"low_bytes": 1, "middle_bytes": 2, "high_bytes": 3}
    return Told(made_at_ns=int(day * DAY_S) * S, days=days, **{**given, **band, **fields})  # type: ignore[arg-type]  # as above


def test_a_forecast_comes_back_as_it_was_made(index: Index):
    put(index, 100, at("run/a", 10))
    made = [told(1), told(1, 28), told(1, every_s=3600), told(1, scope=Scope.OURS), told(2)]
    serial = index.reader.serial()
    index.writer.add_told(made)
    assert sorted(index.reader.told(STORE)) == sorted(made)
    assert index.reader.serial() == serial, "no plan rests on it"
    index.writer.add_told([told(3, store="never scanned"), told(3, middle_bytes=2**70)])
    assert index.reader.told("never scanned") == []
    assert index.reader.told(STORE)[-1].middle_bytes == 2**63 - 1


def test_one_a_day_is_kept_and_later_one_a_week(index: Index):
    put(index, 100, at("run/a", 10))
    for hours in range(0, 24 * 21, 6):
        index.writer.add_told([told(hours / 24), told(hours / 24, 28)])
    days = [one.made_at_ns / S / DAY_S for one in index.reader.told(STORE) if one.days == 7]
    assert days == list(range(21))
    index.writer.add_told([told(420)])
    days = [one.made_at_ns / S / DAY_S for one in index.reader.told(STORE) if one.days == 7]
    assert days == [0, 7, 14, 420], "weeks, each by its first"


def test_what_cannot_be_written_is_an_error_of_its_own(index: Index, url: str):
    put(index, 100, at("run/a", 10))
    with open_index(url, create=False, readonly=True) as other, pytest.raises(LifecycleError) as raised:
        other.writer.add_told([told(1)])
    assert raised.value.code == "index_readonly"
