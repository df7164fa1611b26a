"""What shows that two runs have written the same names: settings, the ``-v1`` of who came second, two of a moment."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

from lifecycle.layouts.heads import unknown_pairs

VERSION = re.compile(r"(?P<stem>.+)-v\d+(?P<end>(?:\.ckpt)?)")

Moment = tuple[int | None, float | None]
"""Step and epoch, as far as they are known."""


class Save(NamedTuple):
    """What a unit's name says of it, and when it was written."""

    key: str
    moment: Moment
    metrics: dict[str, float]
    saved_at_ns: int


def settings(units: Iterable[tuple[str, Moment]]) -> frozenset[str]:
    """The keys of pairs whose values differ between runs, from the heads and moments of all units of a directory.

    A metric changes from save to save and is measured once at a time. So a key with several values is a setting
    where each of them was saved twice, or one moment was saved under two of them.
    """
    held: dict[str, dict[str, list[Moment]]] = defaultdict(lambda: defaultdict(list))
    for text, moment in units:
        for key, value in unknown_pairs(text):
            held[key][value].append(moment)
    return frozenset(key for key, values in held.items() if len(values) > 1 and is_setting(list(values.values())))


def is_setting(values: Collection[list[Moment]]) -> bool:
    """Whether the moments of each value show that it is no measure."""
    seen = [moment for moments in values for moment in set(moments) if moment != (None, None)]
    return all(len(moments) > 1 for moments in values) or len(seen) > len(set(seen))


def doubled(keys: Collection[str]) -> list[tuple[str, str]]:
    """(key, key with ``-v1``) of all that is there in both forms."""
    found = ((match["stem"] + match["end"], key) for key in keys if (match := VERSION.fullmatch(key)))
    return sorted((stem, key) for stem, key in found if stem in keys)


def rivals(saves: Iterable[Save]) -> list[tuple[str, str]]:
    """Keys of two that were saved at one moment with another value of one metric; none where that shows no two jobs.

    One job has one value at a step. It may come to a step again after a restart, but then all of what it saved
    before is older than all that it saves again. So two jobs show where both saves of an earlier moment are older
    than both of a later one, and of two such moments at least.
    """
    held: dict[Moment, list[Save]] = defaultdict(list)
    for save in saves:
        if save.moment[0] is not None and save.metrics:
            held[save.moment].append(save)
    twice = sorted(
        (moment[0] or 0, moment[1] or 0.0, sorted(found, key=lambda save: save.saved_at_ns))
        for moment, found in held.items()
        if any(differ(found[0], other) for other in found[1:])
    )
    alternating = any(one[-1].saved_at_ns < other[0].saved_at_ns for (_, _, one), (_, _, other) in pairwise(twice))
    return [(found[0].key, other.key) for _, _, found in twice for other in found[1:]] if alternating else []


def differ(one: Save, other: Save) -> bool:
    """Whether both know a metric and say another value of it."""
    return any(one.metrics[name] != value for name, value in other.metrics.items() if name in one.metrics)
