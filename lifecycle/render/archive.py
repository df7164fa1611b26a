"""Shows what is in archives: how each copy stands, what was asked for and when it may be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lifecycle.core.model import Checkpoint
from lifecycle.core.units import escape, format_age, format_minute
from lifecycle.ports import Restore
from lifecycle.render.table import Look, wrap
from lifecycle.sizing.waits import WAITS, Speed

Restores = Mapping[str, Restore]
"""What is known of copies that were asked for, by copy id."""


class Pending(NamedTuple):
    """A copy that was asked for and is not there yet."""

    source: str
    storage_class: str
    restore: Restore
    just_now: bool
    ready_at_ns: int
    """When it is usually there at the latest; 0 where that is not known."""
    again: str
    """The line to type then."""


def pending_lines(pending: Pending, now_ns: int, look: Look) -> Iterator[str]:
    """What was asked for, when it may be there, and what to type then."""
    restore = pending.restore
    where = f"{escape(pending.source)} is in {escape(pending.storage_class)}"
    if pending.just_now:
        text = f"{where}: it was asked for just now and is pending."
    elif restore.asked_at_ns:
        text = f"{where}: it was asked for {format_age(now_ns - restore.asked_at_ns)} ago and is still pending."
    else:
        text = f"{where}: it was asked for, when and by whom is not known, and is still pending."
    yield from wrap(text, look)
    if pending.ready_at_ns:
        wait = WAITS[pending.storage_class][Speed(restore.speed)]
        usual = f"That usually takes {wait.words} ({restore.speed})"
        late = (
            "it is later than that" if now_ns > pending.ready_at_ns else f"until {format_minute(pending.ready_at_ns)}"
        )
        yield from wrap(f"{usual}: {late}. Nothing is brought back yet.", look)
    else:
        yield "Nothing is brought back yet."
    yield ""
    yield look.bold("Next")
    yield look.dim("  # bring it home once it is there; until then this tells how long it has been pending")
    yield f"  {pending.again}"


def standing_text(copy: Checkpoint, restores: Restores, *, thin: bool = False) -> str:
    """The store of a copy; of a thin one that it is, and of one in an archive also how it stands."""
    words = ", ".join(word for word in ("weights" if thin else "", archive_text(copy, restores)) if word)
    return f"{copy.store} ({words})" if words else copy.store


def archive_text(copy: Checkpoint, restores: Restores) -> str:
    """``archived``, ``asked for``, ``readable until ...``; empty where it can be read anyway."""
    if copy.online:
        return ""
    restore = restores.get(copy.copy_id)
    if restore is None or restore.state == "ended":
        return "archived"
    return "asked for" if restore.state == "asked" else f"readable until {format_minute(restore.until_ns)}"


def copy_value(copy: Checkpoint, restores: Restores) -> dict[str, object]:
    """The same for programs."""
    restore = None if copy.online else restores.get(copy.copy_id)
    states = {"asked": "restore_requested", "there": "restored"}
    return {
        "store": copy.store,
        "storage_class": copy.storage_class,
        "state": "online" if copy.online else states.get(restore.state if restore else "", "archived"),
        "restore_requested_at_ns": restore.asked_at_ns if restore else 0,
        "restored_until_ns": restore.until_ns if restore else 0,
    }
