"""Rows of files that grow while a run goes on, JSON objects a line or CSV: the end of each, within a cap."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lifecycle.layouts.peek import Look, Peek, parse_json
from lifecycle.layouts.table import STEP_MAX

TAIL_MAX_BYTES = 16 * 1024 * 1024
"""Of all files of one source: some hundred thousand rows, more than a run has checkpoints."""
HEAD_MAX_BYTES = 64 * 1024
"""In which the header of a CSV and its first row must end."""
LINE_MAX_BYTES = 64 * 1024
"""A longer line holds more than metrics."""
LINES_MAX = 200_000
COLUMNS_MAX = 512

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE)
"""What ``float`` takes, without its underscores and foreign digits."""

Row = Mapping[str, object]


class Rows(NamedTuple):
    """What a file tells, oldest first."""

    rows: Sequence[Row] = ()
    first: Row | None = None
    """The very first row of a CSV, whether or not it is among those."""
    look: Look = Look.SEEN
    cut: bool = False
    """Only the end of the file was read."""


def read_rows(peek: Peek, key: str, size_bytes: int, room: int = TAIL_MAX_BYTES) -> Rows:
    """The rows in the last ``room`` bytes of a file; what somebody is writing at the moment is not among them."""
    if peek.read is None:
        return Rows(look=Look.BLIND)
    start = max(0, size_bytes - room)
    data = peek.bytes(key, start, size_bytes - start)
    if data is None:
        return Rows(look=Look.FAILED)
    lines = data.rsplit(b"\n", LINES_MAX)
    cut = start > 0 or len(lines) > LINES_MAX
    if cut:
        del lines[0]  # it may begin in the middle of one
    if not key.endswith(".csv"):
        return Rows([row for line in lines if (row := json_row(line))], cut=cut)
    head = data if not start else peek.bytes(key, 0, HEAD_MAX_BYTES)
    if head is None:
        return Rows(look=Look.FAILED)
    names, *firsts = [line.rstrip(b"\r") for line in head[:HEAD_MAX_BYTES].split(b"\n")[:3]]
    header = once(fields(names))
    if len(firsts) < 2 or not any(header):
        return Rows(cut=cut)
    # A number that is cut short is another number, so the last line counts only when it is ended.
    rows = (csv_row(header, line.rstrip(b"\r")) for line in lines[:-1])
    return Rows([row for row in rows if row], csv_row(header, firsts[0]), cut=cut)


def json_row(line: bytes) -> Row:
    """The JSON object in a line, empty where there is none: one that is cut short is none."""
    return parse_json(line).data if len(line) <= LINE_MAX_BYTES and b"{" in line else {}


def fields(line: bytes) -> list[str]:
    """The fields of one line of CSV, without the spaces around them; none of what is no CSV."""
    if len(line) > LINE_MAX_BYTES:
        return []
    try:
        found = next(csv.reader([line.decode("utf-8", "replace")]), [])
    except csv.Error:
        return []
    return [field.strip() for field in found] if len(found) <= COLUMNS_MAX else []


def once(header: Sequence[str]) -> list[str]:
    """The same, without names that stand there twice: nobody knows which one is meant."""
    return [name if header.count(name) == 1 else "" for name in header]


def csv_row(header: Sequence[str], line: bytes) -> Row:
    """The numbers of a line by name, empty where it does not have the header's columns."""
    values = fields(line)
    if len(values) != len(header):
        return {}
    return {name: float(value) for name, value in zip(header, values, strict=True) if name and NUMBER.fullmatch(value)}


def count(value: object) -> int | None:
    """A whole number of steps or epochs, None where it is none that can be counted to."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= STEP_MAX
    return value if whole and isinstance(value, int) else None
