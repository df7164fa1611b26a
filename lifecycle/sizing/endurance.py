"""How much flash a stream of checkpoints wears out, how much room it takes, and what redundancy adds to both."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lifecycle.errors import ConfigInvalid

DAYS_A_YEAR = 365
"""As drives are rated."""
USABLE = 0.8
"""How full a storage may be before it slows down: "80 % is the new 100 %" (stas00/ml-engineering, storage)."""
WARRANTY_YEARS = 5.0
AMPLIFICATION = 1.0
"""Flash writes for each byte sent, on large sequential writes: assumed. On mixed work NERSC measured 2.68 in the
middle and 3.17 for the 95th percentile (Lockwood et al., HPC-IODC 2019)."""


class Redundancy(NamedTuple):
    """A scheme, and how many raw bytes it takes for each usable one."""

    name: str
    factor: float


NAMED = {"none": 1.0, "raid0": 1.0, "raid1": 2.0, "raid10": 2.0, "mirrored": 2.0}


def coded(data: int, parity: int) -> float:
    """Raw for usable of an erasure code or a parity RAID: ``(k + m) / k``."""
    return (data + parity) / data


def redundancy(text: str) -> Redundancy:
    """``none``, ``raid1``, ``8+2`` (data and parity) or ``3x`` (copies). Raises ConfigInvalid: it is none of these."""
    word = text.lower()
    if word in NAMED:
        return Redundancy(word, NAMED[word])
    if match := re.fullmatch(r"([1-9][0-9]{0,2})\+([0-9]{1,2})", word):
        return Redundancy(word, coded(int(match[1]), int(match[2])))
    if match := re.fullmatch(r"([1-9])x", word):
        return Redundancy(word, float(match[1]))
    raise ConfigInvalid(
        f"{text!a} is no redundancy known here", code="usage", hint="none, raid1, 8+2 (data and parity) or 3x (copies)"
    )


def drive_writes(capacity_bytes: float, written_bytes: float, years: float = WARRANTY_YEARS) -> float:
    """Drive writes a day (DWPD), from what a drive may be sent over its warranty (TBW)."""
    return written_bytes / (capacity_bytes * DAYS_A_YEAR * years)


class Wear(NamedTuple):
    """What is written a day, and how the drives stand it."""

    daily_bytes: float
    """By the clients."""
    redundancy: float
    amplification: float = AMPLIFICATION

    @property
    def raw_a_day(self) -> float:
        """What reaches the flash."""
        return self.daily_bytes * self.redundancy * self.amplification

    def least_raw(self, rated_dwpd: float) -> float:
        """Raw bytes that all drives must have in all to last their warranty."""
        return self.raw_a_day / rated_dwpd

    def dwpd(self, raw_bytes: float) -> float:
        """Drive writes a day on so much flash."""
        return self.raw_a_day / raw_bytes

    def life_years(self, raw_bytes: float, rated_dwpd: float, warranty_years: float = WARRANTY_YEARS) -> float:
        """Years until the drives have taken what they are rated for."""
        return rated_dwpd * warranty_years * raw_bytes / self.raw_a_day


def raw_needed(held_bytes: float, factor: float, usable: float = USABLE) -> float:
    """Raw bytes for so much: with redundancy, and no fuller than ``usable``."""
    return held_bytes * factor / usable


# How NERSC sized Perlmutter's file system (Lockwood et al., HPC-IODC 2019; NERSC/lustre-design-analysis).


def mean_growth(fullness: Sequence[float], size_bytes: float) -> float:
    """Bytes a day by which a file system grows on the days on which it does not shrink.

    Args:
        fullness: of each day in turn, 0 to 1.
        size_bytes: of the file system.
    """
    steps = [after - before for before, after in pairwise(fullness) if after >= before]
    return math.fsum(steps) / len(steps) * size_bytes if steps else 0.0


def capacity(growth: float, a_day_bytes: float, purge_days: float, purge_part: float) -> float:
    """Bytes that a file system needs if every ``purge_days`` a purge frees ``purge_part`` of it.

    Args:
        growth: how many times more the new system will write.
        a_day_bytes: by which the old one grows.
        purge_days: from purge to purge.
        purge_part: what a purge frees, 0 to 1.
    """
    return growth * a_day_bytes * purge_days / purge_part


def writes_a_day(daily_bytes: Sequence[float], size_bytes: float) -> float:
    """How often a day a file system is written over as a whole (FSWPD), on average."""
    return math.fsum(daily_bytes) / len(daily_bytes) / size_bytes


def dwpd_needed(
    growth: float, fs_writes_a_day: float, amplification: float, raw_old: float, usable_new: float
) -> float:
    """Drive writes a day that a new system's drives must stand.

    Args:
        growth: how many times more the new system will write.
        fs_writes_a_day: of the old one.
        amplification: flash writes for each byte sent.
        raw_old: drives times capacity times code rate of the old one, in bytes.
        usable_new: bytes of the new one, formatted.
    """
    return growth * fs_writes_a_day * amplification * raw_old / usable_new
