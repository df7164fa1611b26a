"""Histories of saves drawn from a number, and the policies that are asked of them, in words that no engine owns.

A policy is a list of parts, each a word with its numbers; any part keeps. The same seed draws the same questions in
every Python, so a recording can be made again and its diff read.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

MINUTE, HOUR, DAY = 60, 3600, 86400
Part = list[Any]
Policy = list[Part]


class History(NamedTuple):
    """Saves of one run in the order of the peer's own list: by step for Orbax, by time for the others."""

    zone: str
    now_s: int
    steps: list[int]
    times_s: list[int]
    loss: Sequence[float | None] = ()
    tags: Sequence[str] = ()
    offsets_min: Sequence[int] = ()
    """Minutes east of UTC of the clock that each was saved by, where these differ within the history."""

    def only(self, places: list[int]) -> History:
        """Those saves alone."""
        lists = (self.steps, self.times_s, self.loss, self.tags, self.offsets_min)
        return History(self.zone, self.now_s, *([one[i] for i in places] if one else [] for one in lists))  # type: ignore[arg-type]  # each list keeps its type


class Case(NamedTuple):
    """A question with the peer's answer: one letter a save, ``k`` kept or ``.`` not."""

    history: History
    policy: Policy
    kept: str
    finite: str = ""
    """The answer when the saves whose metric is not a finite number are left out, where there are any."""


def pack(history: History) -> dict[str, Any]:
    """As JSON, times as steps from one to the next."""
    times = history.times_s
    gaps = [b - a for a, b in zip([history.now_s, *times], times, strict=False)]
    packed = {"zone": history.zone, "now": history.now_s, "steps": history.steps, "gaps": gaps}
    loss = [x if x is None or x - x == 0 else str(x) for x in history.loss]
    return packed | {k: v for k, v in (("loss", loss), ("tags", history.tags), ("east", history.offsets_min)) if v}


def unpack(packed: dict[str, Any]) -> History:
    """What ``pack`` packed."""
    at, times = packed["now"], []
    for gap in packed["gaps"]:
        at += gap
        times.append(at)
    loss = [None if x is None else float(x) for x in packed.get("loss", [])]
    return History(
        packed["zone"], packed["now"], packed["steps"], times, loss, packed.get("tags", []), packed.get("east", [])
    )


NOW_S = 1_764_504_000
"""2025-11-30T12:00:00Z: in the past for every peer that looks at the clock by itself."""

CHANGES = {
    "UTC": 1_764_000_000,
    "Europe/Berlin": int(datetime(2025, 10, 26, 1, tzinfo=ZoneInfo("UTC")).timestamp()),
    "America/New_York": int(datetime(2025, 11, 2, 6, tzinfo=ZoneInfo("UTC")).timestamp()),
    "Asia/Kolkata": 1_735_669_800,  # a new year there, half an hour off
    "Pacific/Auckland": int(datetime(2025, 9, 27, 14, tzinfo=ZoneInfo("UTC")).timestamp()),
}
"""Zones, each with a moment at which something happens to its clocks or its calendar."""


def training(seed: int) -> History:
    """A run as Orbax sees it: what may go wrong with steps, times and metrics goes wrong in one of two."""
    draw = random.Random(f"training {seed}")
    count = draw.choice([draw.randint(1, 20), draw.randint(1, 20), draw.randint(1, 4)])
    save = draw.choice([100, 100, 250, 500, 700, 1000])
    gap = draw.choice([5 * MINUTE, 37 * MINUTE, HOUR, 6 * HOUR, 26 * HOUR])
    step, at = draw.choice([0, save, save, save // 2]), 0
    steps, times = [], []
    jitter = draw.random() < 0.4
    for _ in range(count):
        steps.append(step)
        times.append(at)
        step += save if not jitter else draw.choice([save, save, save // 2, save + 1, 2 * save + 50, 1])
        at += gap if not jitter else draw.choice([gap, gap, 0, 1, gap // 3, 4 * gap])
    if draw.random() < 0.25 and count > 4:  # rewound: what lies between the old steps was saved last
        back = draw.randrange(1, count - 1)
        fresh = [s for s in (x + save // 3 for x in steps[:back]) if s not in steps][-5:]
        steps += fresh
        times += [times[-1] + (n + 1) * gap for n in range(len(fresh))]
    now_s = NOW_S + draw.choice([0, 0, gap, 3 * DAY])
    if draw.random() < 0.5:
        times = [t + NOW_S - max(times) for t in times]
    else:
        times = [t + NOW_S - max(times) - draw.choice([DAY, 40 * DAY]) for t in times]
    if draw.random() < 0.06:
        times[-1] = now_s + 2 * HOUR
    order = sorted(range(len(steps)), key=lambda i: steps[i])
    values = draw.choice([[0.5, 1.0, 2.0], [n / 100 for n in range(1, 400)]])
    loss: list[float | None] = [draw.choice(values) for _ in steps]
    if draw.random() < 0.3:
        loss = [x if draw.random() < 0.7 else None for x in loss]
    if draw.random() < 0.2:
        loss = [x if draw.random() < 0.7 else draw.choice([float("nan"), float("inf"), -float("inf")]) for x in loss]
    if draw.random() < 0.05:
        loss = [None] * len(loss)
    return History("UTC", now_s, [steps[i] for i in order], [times[i] for i in order], loss)


def training_policy(seed: int, history: History) -> Policy:
    """What Orbax can be asked; where metrics are not finite, nothing but the best."""
    draw = random.Random(f"training policy {seed}")
    interval = draw.choice([100, 300, 500, 1000, 1000, 2000])
    most = draw.choice([None, None, None, 1, 3])
    best = ["best", draw.randint(1, 4), draw.random() < 0.5, draw.random() < 0.7]
    if any(x is not None and x - x != 0 for x in history.loss):
        return [best]
    ages = [history.now_s - t for t in history.times_s]
    parts: Policy = [
        ["latest", draw.randint(1, 6)],
        ["duration", draw.choice([*ages, HOUR, DAY, 7 * DAY])],
        ["steps", interval, True, most],
        ["steps", interval, False, most],
        ["closest", interval, most],
        ["seconds", draw.choice([HOUR, 2 * HOUR, DAY])],
        best,
        ["custom", sorted([*draw.sample(history.steps, min(2, len(history.steps))), 7])],
    ]
    parts[1][1] = max(parts[1][1], 1)
    return draw.sample(parts, draw.choice([1, 1, 1, 2, 3]))


def backups(seed: int) -> History:
    """A history as restic and borg see it: only times count; clock changes, gaps, equal seconds, a future date."""
    draw = random.Random(f"backups {seed}")
    zone = draw.choice([*CHANGES, "UTC"])
    at = CHANGES[zone] - draw.choice([2 * HOUR, 3 * DAY, 20 * DAY])
    times = []
    for _ in range(draw.randint(6, 16)):
        times.append(at)
        at += draw.choice([30 * MINUTE, 30 * MINUTE, HOUR, 5 * HOUR, 5 * HOUR, DAY, DAY + HOUR, 9 * DAY, 45 * DAY])
        at -= DAY if draw.random() < 0.02 else 0
        if draw.random() < 0.06:
            times.append(times[-1])
    while times[-1] > NOW_S:
        times.pop()
    if draw.random() < 0.12:
        times.append(4_102_444_800)  # 2100
    times.sort()
    tags = [draw.choice(["", "", "keep", "t1"]) for _ in times]
    return History(zone, NOW_S, list(range(1, len(times) + 1)), times, [], tags)


def travelled(seed: int) -> History:
    """The same written by clocks of two zones, so far apart that their order is never in doubt."""
    draw = random.Random(f"travelled {seed}")
    start = NOW_S - 90 * DAY
    times = [start + n * 9 * HOUR for n in range(12)]
    times.insert(0, times[-1] - 30 * DAY - 12 * HOUR)  # within a month of 31 days, and not within 30 days
    east = [draw.choice([0, 480]) for _ in times]
    return History("UTC", NOW_S, list(range(1, 14)), times, [], [""] * 13, east)


PERIODS = ("hourly", "daily", "weekly", "monthly", "yearly")


def backup_policy(seed: int, peer: str) -> Policy:
    """What restic or borg can be asked."""
    draw = random.Random(f"{peer} policy {seed}")
    parts: Policy = [["last", draw.randint(1, 5)]]
    parts += [[period, draw.randint(1, 4 if period != "daily" else 8)] for period in PERIODS]
    if peer == "restic":
        parts += [["within", draw.choice([5, 24, 48, 24 * 9])], ["tag", "keep"], ["within-month", 1]]
        parts += [["within-daily", draw.choice([2, 9, 30])]]
        parts.remove(draw.choice([part for part in parts if part[0] in ("within", "within-month")]))  # one option
    else:
        parts.append(["within", draw.choice([24, 24 * 7, 24 * 31, 24 * 40])])
    return draw.sample(parts, draw.choice([1, 1, 2, 3, 4]))
