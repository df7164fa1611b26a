"""Rates of interruptions: what is published, what an own log says, and how sure that is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.errors import ConfigInvalid
from lifecycle.sizing import failures
from lifecycle.sizing.failures import HOUR_S, RATES, from_count, from_restarts


def hours(name: str, gpus: int) -> float:
    return RATES[name].mtbf_s(gpus) / HOUR_S


def test_published_rates_are_what_their_sources_say():
    """Each figure as its source prints it, in its own unit."""
    assert hours("llama3", 16_384) == pytest.approx(3.09, abs=0.005)
    assert RATES["llama3"].gpu_hours == pytest.approx(50_677, abs=1)
    assert hours("llama3", 1_024) == pytest.approx(49.5, abs=0.05)
    assert hours("rsc-1", 16_384) == pytest.approx(1.8, abs=0.005)
    assert hours("rsc-1", 131_072) == pytest.approx(0.23, abs=0.005)
    assert hours("rsc-1-1024", 1_024) == pytest.approx(7.9)
    assert 12 <= hours("opt-175b", 992) <= 13.5
    assert hours("titan", 10_000) == pytest.approx(27.1)
    assert hours("generic", 100_000) == 0.5


def test_every_rate_names_its_day_and_source():
    assert all(name == rate.name and rate.as_of and rate.source for name, rate in RATES.items())
    assert failures.find_rate("llama3") is RATES["llama3"]
    with pytest.raises(ConfigInvalid, match="neither a published rate nor a time") as told:
        failures.find_rate("lama3")
    assert "llama3" in told.value.hint


@given(st.integers(1, 2000), st.floats(100, 1e7))
def test_a_count_lies_within_its_bounds(count: int, gpu_hours: float):
    rate = from_count(gpu_hours, count)
    assert rate.low_gpu_hours is not None and rate.high_gpu_hours is not None
    assert rate.low_gpu_hours < rate.gpu_hours == gpu_hours / count < rate.high_gpu_hours
    low, high = rate.bounds_s(64) or (0, 0)
    assert low < rate.mtbf_s(64) < high


def test_none_seen_gives_a_bound_and_no_guess():
    """The rule of three: with none seen, the time between them exceeds a third of the watch with 95 % certainty."""
    rate = from_count(3000, 0)
    assert rate.gpu_hours == pytest.approx(3000 / -math.log(0.05)) == pytest.approx(1001.4, abs=0.1)
    assert (rate.low_gpu_hours, rate.high_gpu_hours) == (rate.gpu_hours, math.inf)
    assert "none was seen" in rate.note


LOG = """\
# run a
2026-01-01T00:00:00Z 1024
2026-01-02T00:00:00Z        # a link
2026-01-04 512              # smaller from here on
2026-01-05T02:00:00+02:00
"""


def test_a_log_of_restarts_counts_gpu_hours_and_interruptions():
    rate = from_restarts(LOG.splitlines(), 8, "log")
    assert rate.gpu_hours == (3 * 24 * 1024 + 24 * 512) / 3
    assert "3 interruptions in 86,016 GPU-hours" in rate.source
    ended = from_restarts([*LOG.splitlines(), "2026-01-08 end"], 8, "log")
    assert ended.gpu_hours == (3 * 24 * 1024 + 4 * 24 * 512) / 3
    assert rate.low_gpu_hours == pytest.approx(from_count(86_016, 3, ends_with_event=True).low_gpu_hours)
    assert ended.low_gpu_hours == pytest.approx(from_count(122_880, 3).low_gpu_hours)
    assert from_restarts(["2026-01-01", "2026-01-02 end"], 100, "log").gpu_hours == pytest.approx(
        2400 / -math.log(0.05)
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "one start alone"),
        ("2026-01-01\n", "one start alone"),
        ("2026-01-01\nyesterday\n", "log:2:1: 'yesterday' is no time"),
        ("2026-01-01\n  2026-13-01\n", "log:2:3: '2026-13-01' is no time"),
        ("2026-01-01\n2026-01-01\n", "log:2:1: this time is not later"),
        ("2026-01-01\n2026-01-02 end\n2026-01-03\n", "log:3:1: nothing can follow the end"),
        ("2026-01-01 0\n", "log:1:1: '0' is no number of GPUs"),
        ("2026-01-01 8 9\n", "log:1:1: '8 9' is no number of GPUs"),
        ("2026-01-01 99999999999\n", "is no number of GPUs"),
        ("2026-01-01 ²\n", "is no number of GPUs"),
    ],
)
def test_a_bad_line_is_told_with_its_place(text: str, told: str):
    with pytest.raises(ConfigInvalid, match=told) as error:
        from_restarts(text.splitlines(), 8, "log")
    assert error.value.hint
