"""The commands for holds: place, release, list."""

from __future__ import annotations

import getpass

from lifecycle.cli.desk import Desk
from lifecycle.cli.selecting import find, moment
from lifecycle.core.model import Hold
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid
from lifecycle.flows.holds import hold_id, place, release
from lifecycle.flows.regret import Recorder
from lifecycle.render.listing import hold_lines, until
from lifecycle.render.report import plural
from lifecycle.world import World

PARTLY = 3


def owner_name() -> str:
    """Who is at the keyboard, as the system knows them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return "unknown"


def recorder_of(world: World) -> Recorder:
    """Who writes down that something is wanted again."""
    index = world.index
    return Recorder(index.writer, index.journal, tuple(world.stores), world.clock, owner_name(), world.host)


def place_hold(desk: Desk, text: str, reason: str, until_text: str | None, owner: str | None) -> int:
    """``lifecycle hold``"""
    now_ns = desk.clock.now_ns()
    until_ns = moment(until_text, now_ns) if until_text is not None else None
    if until_ns is not None and until_ns <= now_ns:
        raise ConfigInvalid(f"--until {until_text} is in the past: such a hold protects nothing", code="usage")
    if not reason.strip():
        raise ConfigInvalid("--reason is empty: whoever finds this hold needs to know what it is for", code="usage")
    owner = owner or owner_name()
    with desk.world(write=True) as world:
        found = find(world, text)
        hold = Hold(
            id=hold_id(found.id, owner, now_ns),
            target=found.id,
            owner=owner,
            reason=reason,
            created_at_ns=now_ns,
            until_ns=until_ns,
            inode=found.checkpoint.inode if found.checkpoint is not None else 0,
        )
        failure = place(hold, world.index.writer, world.trashes)
    what = "This checkpoint is" if found.checkpoint is not None else "Everything at and below this is"
    lines = [
        f"Held {escape(found.id)} until {until(hold, now_ns)}, hold {hold.id}.",
        f"{what} kept whatever any policy says. A plan made before this hold leaves it alone too.",
        f"To end it: {desk.typing('release', hold.id)}",
    ]
    if failure:
        desk.warn(f"the hold is in the index only, not beside the data: {escape(failure)}")
    desk.answer({**_value(hold), "beside_data": not failure, "problem": failure}, lines)
    return PARTLY if failure else 0


def release_hold(desk: Desk, wanted: str) -> int:
    """``lifecycle release``"""
    with desk.world(write=True) as world:
        hold = release(wanted, world.holds(), world.index.writer, world.trashes)
    lines = [f"Released {escape(hold.target)}: it was held by {escape(hold.owner)} ({escape(hold.reason)})."]
    lines.append("Whether it stays is up to the policies again.")
    desk.answer({"released": _value(hold)}, lines)
    return 0


def list_holds(desk: Desk) -> int:
    """``lifecycle holds``"""
    now_ns = desk.clock.now_ns()
    with desk.world(write=False, create=False) as world:
        holds = world.holds()
    lines = (
        [*hold_lines(holds, now_ns, desk.look), "", plural(len(holds), "hold")] if holds else ["There are no holds."]
    )
    desk.answer({"holds": [_value(hold) for hold in holds]}, lines)
    return 0


def _value(hold: Hold) -> dict[str, object]:
    return {
        "id": hold.id,
        "target": hold.target,
        "owner": hold.owner,
        "reason": hold.reason,
        "created_at_ns": hold.created_at_ns,
        "until_ns": hold.until_ns,
    }
