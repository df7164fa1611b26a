"""How people write and read times and sizes, and how names are made safe for a screen."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal

DURATION_MAX_S = 36_525 * 86_400
"""A hundred years: whatever is longer is a slip of the pen."""
SIZE_MAX_BYTES = 10**21

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile("".join(f"(?:([0-9]{{1,12}}){unit})?" for unit in _SECONDS))
_MONTHS = re.compile(r"[0-9]+ ?(M|[Mm]o|[Mm]ons?|[Mm]onths?|[yY]|[yY]ears?)")
_BYTES = {"B": 1} | {f"{p}B": 1000 ** (i + 1) for i, p in enumerate(("k", "M", "G", "T", "P", "E"))}
_BYTES |= {"KB": 1000} | {f"{p}iB": 1024 ** (i + 1) for i, p in enumerate("KMGTPE")}
_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)")
_HALF = re.compile(r"([KMGTPEkmgtpe])i?[Bb]?")


def parse_duration(text: str) -> int:
    """Seconds meant by ``90s``, ``30m`` (minutes), ``36h``, ``7d``, ``2w`` or ``1d12h``: larger units first.

    Months and years have no fixed length and bare numbers have no unit, so both are refused.

    Raises:
        ValueError: with a sentence that says what to write instead.
    """
    match = _DURATION.fullmatch(text)
    if match and text:
        counts = [int(count or 0) for count in match.groups()]
        seconds = sum(n * unit for n, unit in zip(counts, _SECONDS.values(), strict=True))
        if 0 < seconds <= DURATION_MAX_S:
            return seconds
        if seconds:
            raise ValueError(f"{_shown(text)} is longer than a hundred years")
        raise ValueError(f"{_shown(text)} is no time: where zero is allowed it is spelled none")
    if text.isdecimal():
        raise ValueError(f"{_shown(text)} has no unit: write 90s, 30m (minutes), 36h, 7d or 2w")
    if _MONTHS.fullmatch(text):
        raise ValueError(f"{_shown(text)}: months and years differ in length, count days: 30d; m is minutes")
    if re.fullmatch(r"[0-9]+\.[0-9]+ ?[smhdw]", text):
        raise ValueError(f"{_shown(text)} has a fraction: write it in two units, such as 1h30m")
    raise ValueError(f"{_shown(text)} is not a duration: write 90s, 30m (minutes), 36h, 7d, 2w or 1d12h")


def format_seconds(seconds: int) -> str:
    """The exact text for a duration of at least a second: ``parse_duration`` gives ``seconds`` back."""
    parts = []
    for letter, unit in _SECONDS.items():
        if letter == "w" and seconds % unit:
            continue
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts) or "0s"


def format_age(age_ns: int) -> str:
    """An age for people, in its two largest units and rounded towards zero: ``45s``, ``3h20m``, ``18d4h``."""
    sign, whole = "-" if age_ns < 0 else "", abs(age_ns) // 1_000_000_000
    for letter, smaller in (("d", "h"), ("h", "m"), ("m", "s")):
        count, rest = divmod(whole, _SECONDS[letter])
        if count:
            part = rest // _SECONDS[smaller]
            return f"{sign}{count}{letter}{part}{smaller}" if part else f"{sign}{count}{letter}"
    return f"{sign}{whole}s" if whole else "0s"


def format_time(time_ns: int) -> str:
    """A moment in UTC to the second, ``2026-01-10T12:00:00Z``; ``@seconds`` beyond the calendar."""
    seconds = time_ns // 1_000_000_000
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"@{seconds}"
    return f"{moment.isoformat()}Z"


def format_minute(at_ns: int) -> str:
    """The same to the minute."""
    return f"{format_time(at_ns)[:16]}Z"


def parse_size(text: str) -> int:
    """Bytes meant by ``10GB`` (10^9) or ``10GiB`` (2^30); one space before the unit is fine.

    Raises:
        ValueError: with a sentence that says what to write instead; ``10G`` may mean either and is refused.
    """
    match = _SIZE.fullmatch(text)
    if match and (unit := _BYTES.get(match[2])):
        size = Decimal(match[1]) * unit
        if size != int(size):
            raise ValueError(f"{_shown(text)} is no whole number of bytes")
        if 0 < size <= SIZE_MAX_BYTES:
            return int(size)
        raise ValueError(f"{_shown(text)} is {'more than any store holds' if size else 'no size at all'}")
    if match and (half := _HALF.fullmatch(match[2])):
        n, p = match[1], half[1].upper()
        raise ValueError(f"{_shown(text)} may mean two sizes: write {n}{p}B (decimal) or {n}{p}iB (binary)")
    if text.isdecimal():
        raise ValueError(f"{_shown(text)} has no unit: write {text[:20]}B, or something like 10GB or 10GiB")
    raise ValueError(f"{_shown(text)} is not a size: write 10GB (decimal) or 10GiB (binary)")


def format_bytes(size: float) -> str:
    """A size for people in decimal units, three digits long: ``980 GB``, ``1.24 TB``."""
    value = abs(float(size))
    names = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    step = 0
    while step < len(names) - 1 and float(f"{value:.3g}") >= 1000:
        value /= 1000
        step += 1
    digits = f"{value:.0f}" if step == 0 or value >= 99.95 else f"{float(f'{value:.3g}'):g}"
    return f"{'-' if size < 0 and digits != '0' else ''}{digits} {names[step]}"


def escape(text: str) -> str:
    r"""``text`` with all that could move the cursor, turn the line, hide or break the encoding spelt out.

    Control characters and undecodable bytes become ``\xNN``; bidi marks, unusual spaces and whatever else has no
    sure shape become ``\uNNNN``. A backslash is doubled only where it could be taken for one of these, so that
    two different names never look the same.
    """
    if text.isprintable() and "\\" not in text:
        return text
    out: list[str] = []
    for char in reversed(text):
        if not char.isprintable():
            out.append(_spelt(ord(char)))
        elif char == "\\" and out and out[-1][0] in "\\xuU":
            out.append("\\\\")
        else:
            out.append(char)
    return "".join(reversed(out))


def _spelt(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as surrogateescape keeps it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _shown(text: str) -> str:
    return f'"{escape(text[:40])}{"..." if len(text) > 40 else ""}"'
