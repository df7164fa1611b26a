"""``index backup``, ``index restore`` and ``index restored``: copies of the index, and going on from one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.desk import Desk
from lifecycle.core.units import escape, format_bytes

if TYPE_CHECKING:
    from lifecycle.index.backup import Restored


def copy_index(desk: Desk, file: Path) -> int:
    """``lifecycle index backup``"""
    from lifecycle.index.backup import back_up

    made = back_up(desk.settings.database, file.absolute())
    value = {"backup": str(made.path), "schema": made.revision, "bytes": made.bytes}
    size = format_bytes(made.bytes)
    desk.answer(value, [f"The index is kept in {escape(str(file))} ({size}, schema {made.revision})."])
    return 0


def bring_back(desk: Desk, file: Path, *, replace: bool) -> int:
    """``lifecycle index restore``

    Raises:
        LeaseHeld: somebody is at work on the index that is there.
    """
    from lifecycle.index.backup import put_back

    now_ns = desk.clock.now_ns()
    stamp = f"{datetime.fromtimestamp(now_ns // 1_000_000_000, UTC):%Y%m%dT%H%M%SZ}"
    made = put_back(desk.settings.database, file.absolute(), stamp=stamp, now_ns=now_ns, replace=replace)
    value = {"schema": made.revision, "aside": str(made.aside or ""), "current": made.current}
    desk.answer(value, _restored_lines(desk, made, file))
    return 0


def _restored_lines(desk: Desk, made: Restored, file: Path) -> Iterator[str]:
    yield f"The index is now the one in {escape(str(file))}."
    if made.aside is not None:
        yield "The one that was there is kept as"
        yield f"  {escape(str(made.aside))}"
    yield from _next_lines(desk, made.current)


def _next_lines(desk: Desk, current: bool) -> Iterator[str]:
    yield "Plans that were made before are stale, and whoever was at work begins nothing more."
    yield ""
    yield desk.look.bold("Next")
    if not current:
        yield desk.look.dim("  # it is of an older version")
        yield f"  {desk.typing('db upgrade')}"
    yield desk.look.dim("  # what has changed since; it also closes acts that are open in it")
    yield f"  {desk.typing('scan')}"


def note_restored(desk: Desk) -> int:
    """``lifecycle index restored``"""
    from lifecycle.index.backup import restored

    current = restored(desk.settings.database, now_ns=desk.clock.now_ns())
    desk.answer({"restored": True, "current": current}, ["Noted.", *_next_lines(desk, current)])
    return 0
