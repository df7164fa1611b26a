"""Whether a msgpack file goes to its end: headers are read and what they announce is passed over, within limits."""

from __future__ import annotations

from collections.abc import Callable

READS_MAX = 512
"""A hundred layers with two moments each: enough for the models that are saved like this. Longer files are unknown."""
VALUES_MAX = 200_000
HEADER_MAX_BYTES = 6
WINDOW_BYTES = 16 * 1024
"""Small values stand together, and between large ones only the next header is of interest."""

Fetch = Callable[[int, int], bytes | None]
"""(offset, limit) -> bytes, None where they cannot be had."""

FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, **{0xCC + n: 1 << n for n in range(4)}}
FIXED |= {0xD0 + n: 1 << n for n in range(4)} | {0xD4 + n: 1 + (1 << n) for n in range(5)}
"""Bytes that follow the first one: nil, booleans, floats, integers, extensions of one to sixteen bytes."""
SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
"""Bytes of the length that follows, and of the extension's type after that: binaries, extensions, texts."""
COUNTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Bytes of the count that follows, and values each counts: arrays, maps."""


def extent(size: int, fetch: Fetch) -> int | None:
    """Where the one value of a file of that many bytes ends, beyond ``size`` where it was cut; None if unknown.

    Format: msgpack specification, "Formats". Nothing is kept, so neither depth nor number costs memory.
    """
    at, due, start, window = 0, 1, 0, b""
    reads = values = 0
    while due:
        if at >= size:
            return size + due
        left = start + len(window) - at
        if left <= 0 or (left < HEADER_MAX_BYTES and start + len(window) < size):
            reads += 1
            found = fetch(at, min(WINDOW_BYTES, size - at)) if reads <= READS_MAX else None
            if not found:
                return None
            start, window = at, found
        step = header(window[at - start : at - start + HEADER_MAX_BYTES])
        values += 1
        if step is None or values > VALUES_MAX:
            return None
        at += step[0]
        due += step[1] - 1
    return at


def header(head: bytes) -> tuple[int, int] | None:
    """Bytes that a value takes without those in it, and how many are in it; a cut header takes what is missing."""
    first, rest = head[0], head[1:]
    if first < 0x80 or first >= 0xE0:
        return 1, 0
    if first < 0x90:
        return 1, 2 * (first & 0x0F)
    if first < 0xA0:
        return 1, first & 0x0F
    if first < 0xC0:
        return 1 + (first & 0x1F), 0
    if first in FIXED:
        return 1 + FIXED[first], 0
    if first in SIZED:
        length, more = SIZED[first]
        return 1 + length + more + (int.from_bytes(rest[:length]) if len(rest) >= length else 0), 0
    if first in COUNTED:
        length, each = COUNTED[first]
        return 1 + length, each * (int.from_bytes(rest[:length]) if len(rest) >= length else 0)
    return None
