"""Gives back the memory that a tick took."""

from __future__ import annotations

from contextlib import suppress


def give_back() -> None:
    """Let the C library return to the system what nobody uses; a library that cannot is left alone.

    Ten thousand ticks in one process else keep 3 kB each, though nothing of them is in use: what SQLite and the reader
    of YAML take and free leaves holes of odd sizes in the heap.
    """
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
