"""What shows that two runs have written the same names: settings in pairs, and the ``-v1`` of who came second."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from lifecycle.layouts.heads import unknown_pairs

VERSION = re.compile(r"(?P<stem>.+)-v\d+(?P<end>(?:\.ckpt)?)")

Moment = tuple[int | None, float | None]
"""Step and epoch, as far as they are known."""


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
