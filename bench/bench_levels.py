"""How well fullness is forecast on two years of a real file system, beside what others do, each day from its past.

False alarms are counted beside hits: "full within so many days" at a line that the store did, or did not, then cross.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from lifecycle.sizing.levels import outlooks, record

TRACE = Path(__file__).parent.parent / "tests/data/capacity/cscratch_fullness-2017-02-14_2019-03-31.csv"
WARM_DAYS = 120
HORIZONS = (1, 7, 28, 90)
ALARM_DAYS = 28
LINES_PCT = (75, 85, 95)
ALARM_CHANCE = 0.5
Forecast = Callable[[Sequence[float], int], float]
"""From the past and a horizon in days to a level."""


def last_value(past: Sequence[float], days: int) -> float:
    """As full as today."""
    del days
    return past[-1]


def predict_linear(window_days: int) -> Forecast:
    """Least squares over a window, as Prometheus' function of that name."""

    def forecast(past: Sequence[float], days: int) -> float:
        seen = past[-window_days:]
        mid, mean = (len(seen) - 1) / 2, sum(seen) / len(seen)
        slope = sum((at - mid) * level for at, level in enumerate(seen)) / sum(
            (at - mid) ** 2 for at in range(len(seen))
        )
        return mean + slope * (len(seen) - 1 - mid + days)

    return forecast


def theil_sen(window_days: int) -> Forecast:
    """The median of all slopes, from today's level."""

    def forecast(past: Sequence[float], days: int) -> float:
        seen = past[-window_days:]
        slopes = [(seen[b] - seen[a]) / (b - a) for a in range(len(seen)) for b in range(a + 1, len(seen))]
        return past[-1] + days * median(slopes)

    return forecast


def drift(window_days: int) -> Forecast:
    """Brownian motion with drift: the mean change of a window, from today's level."""

    def forecast(past: Sequence[float], days: int) -> float:
        seen = past[-window_days - 1 :]
        return past[-1] + days * (seen[-1] - seen[0]) / (len(seen) - 1)

    return forecast


def holt(window_days: int, damping: float) -> Forecast:
    """Exponential smoothing of level and trend, with usual constants."""

    def forecast(past: Sequence[float], days: int) -> float:
        level, trend = past[-window_days], 0.0
        for seen in past[-window_days + 1 :]:
            before = level
            level = 0.8 * seen + 0.2 * (level + damping * trend)
            trend = 0.1 * (level - before) + 0.9 * damping * trend
        return level + trend * sum(damping**step for step in range(1, days + 1))

    return forecast


PEERS: dict[str, Forecast] = {
    "last value": last_value,
    "predict_linear 7 d": predict_linear(7),
    "predict_linear 28 d": predict_linear(28),
    "predict_linear 112 d": predict_linear(112),
    "Theil-Sen 28 d": theil_sen(28),
    "drift 112 d": drift(112),
    "Holt 112 d": holt(112, 1.0),
    "Holt damped 112 d": holt(112, 0.95),
}


def trace() -> list[float]:
    """Per cent full, day by day."""
    with TRACE.open(newline="") as file:
        return [float(row["ost_avg_full_pct"]) for row in csv.DictReader(file)]


def error_pct(levels: Sequence[float], points: Sequence[float], days: int) -> float:
    """Mean error in per cent of forecasts from day ``WARM_DAYS`` on."""
    off = [abs(points[at] / levels[at + days] - 1) for at in range(WARM_DAYS, len(levels) - days)]
    return 100 * sum(off) / len(off)


def alarms(levels: Sequence[float], rung: Sequence[bool], line_pct: float) -> str:
    """Hits, false alarms and misses of "over the line within 28 days", on days when it is not over it yet."""
    hits = false = missed = 0
    for at in range(WARM_DAYS, len(levels) - ALARM_DAYS):
        if levels[at] >= line_pct:
            continue
        true = max(levels[at + 1 : at + 1 + ALARM_DAYS]) >= line_pct
        hits += rung[at] and true
        false += rung[at] and not true
        missed += true and not rung[at]
    return f"{hits}/{false}/{missed}"


def show(
    name: str, levels: Sequence[float], points: Mapping[int, Sequence[float]], rung: Mapping[int, Sequence[bool]]
) -> None:
    """One line of the table."""
    errors = "".join(f"{error_pct(levels, points[days], days):7.1f}" for days in HORIZONS)
    told = "".join(f"{alarms(levels, rung[line], line):>12}" for line in LINES_PCT)
    print(f"{name:22}{errors}{told}")


def main() -> None:
    """One line a method, then how often our bands held."""
    levels = trace()
    print(f"NERSC scratch, {len(levels)} days: error in % at {HORIZONS} days, and")
    print(f"hits/false/missed alarms of crossing {LINES_PCT} % within {ALARM_DAYS} days")
    for name, peer in PEERS.items():
        pasts = [levels[: at + 1] for at in range(len(levels))]
        points = {days: [peer(past, days) if len(past) > WARM_DAYS else 0.0 for past in pasts] for days in HORIZONS}
        show(name, levels, points, {line: [p >= line for p in points[ALARM_DAYS]] for line in LINES_PCT})
    ours = {days: outlooks(levels, days) for days in HORIZONS}
    rung = {line: [o.chance_above(line) >= ALARM_CHANCE for o in ours[ALARM_DAYS]] for line in LINES_PCT}
    show("lifecycle", levels, {days: [o.middle for o in made] for days, made in ours.items()}, rung)
    for days in HORIZONS:
        told = record(levels, days, WARM_DAYS)
        print(f"our band of 80 % at {days:2} days held {told.inside_pct:.0f} % of {told.forecasts}")


if __name__ == "__main__":
    main()
