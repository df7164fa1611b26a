"""``missed``: writes down that a job failed to go on from what was let go, and tells at once how that comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lifecycle.cli.desk import Desk
from lifecycle.cli.explaining import done_with
from lifecycle.cli.holding import recorder_of
from lifecycle.cli.selecting import find, identity
from lifecycle.core.units import escape, format_time
from lifecycle.errors import LifecycleError, NotFound
from lifecycle.flows.recall import Desk as Place
from lifecycle.flows.regret import missed, releases_of
from lifecycle.flows.views import Views
from lifecycle.flows.way_back import WayBack, stands, way_back
from lifecycle.ports import JournalRow
from lifecycle.render.regret import release_text, want_text
from lifecycle.review.regret import How, Release, Sign, Wanted, Way
from lifecycle.world import World


def tell(desk: Desk, text: str, reason: str) -> int:
    """``lifecycle missed``"""
    with desk.world(write=False, create=False) as world:
        wanted = identity(world, text)
        release, rows = _last(world, wanted)
        if release is None:
            raise _never(desk, world, text, wanted)
        if stands(world.stores, release, rows):
            hint = f"what is wrong with it: {desk.typing('explain', release.id)}"
            told = f"{release.id} stands at its place: it came back, or was saved again, since it was let go"
            raise LifecycleError(told, code="not_missing", hint=hint)
        found = way_back(release, world.lying, _place(world))
        # A job hands over what it has, and that may be a log with a password in it.
        want = missed(release, found.way, desk.seams.secrets.hide(reason), recorder_of(world))
        before, problem = _record(world, want)
    lines = [*_head(release, before, problem), *_way_lines(release, found, desk)]
    code = LifecycleError.exit_code if problem else 0
    desk.answer(_value(want, before, found, desk, code), lines)
    return code


def _last(world: World, wanted: str) -> tuple[Release | None, Sequence[JournalRow]]:
    """The last release of what was named, or of what it was a part of, and what was done with that."""
    store, _, key = wanted.partition(":")
    while key:
        rows = [row for row in done_with(world, key) if row.action.checkpoint == f"{store}:{key}"]
        if found := releases_of(rows):
            return found[-1], rows
        key = key.rpartition("/")[0]
    return None, ()


def _never(desk: Desk, world: World, text: str, wanted: str) -> LifecycleError:
    """Why there is nothing to write down of a checkpoint that was never let go by us."""
    try:
        found = find(world, text)
    except NotFound as e:
        store, _, key = wanted.partition(":")
        if any((name, one) == (store, key) for name, one, _ in world.index.reader.missing([store])):
            told = f"{wanted} is gone, and it was not us: a scan found it gone, and the journal has no act on it"
            return LifecycleError(told, code="not_released", hint=f"a copy of it may be left: {_recall(desk, wanted)}")
        return NotFound(
            f"nothing is known of {wanted!a}: no scan has seen it, and the journal has no act on it",
            code=e.code,
            hint=e.hint,
        )
    told = f"{found.id} was never let go: the index knows it at its place"
    return LifecycleError(told, code="not_released", hint=f"what is wrong with it: {desk.typing('explain', found.id)}")


def _recall(desk: Desk, name: str) -> str:
    return desk.typing("recall", name)


def _place(world: World) -> Place:
    index = world.index
    views = Views(world.stores, index.reader, world.settings.conventions, world.clock)
    return Place(world.stores, world.intakes, index.journal, views, world.clock, world.host, world.engine)


def _record(world: World, want: Wanted) -> tuple[Wanted | None, str]:
    """Write it down: what was written down of the same before, if it was; and what kept us from it.

    It is looked for first: a thousand jobs that fail at once for one checkpoint shall not queue up for the turn at
    writing, and keep a tick from it.
    """
    try:
        before = _told_before(world, want)
        return (before, "") if before or world.index.writer.add_wanted(want) else (_told_before(world, want), "")
    except LifecycleError as e:  # who needs a checkpoint is told how it comes back all the same
        return None, str(e)


def _told_before(world: World, want: Wanted) -> Wanted | None:
    same = (w for w in world.index.reader.wanted(want.release.id) if w.release.key == want.release.key)
    return next((w for w in same if w.sign is Sign.MISSED), None)


def _head(release: Release, before: Wanted | None, problem: str) -> Iterator[str]:
    if problem:
        yield f"NOT written down: {escape(problem)}"
    elif before is not None:
        yield f"Written down before: {want_text(before)}."
    else:
        yield f"Written down: {escape(release.id)} was wanted, and is not there."
    yield f"It was {release_text(release)}."
    yield ""


def _way_lines(release: Release, found: WayBack, desk: Desk) -> Iterator[str]:
    look, command = desk.look, _command(release, found, desk)
    doubt = f": {escape(found.doubt)}" if found.doubt else ""
    if found.way is Way.UNDO:
        yield f"It can come back as it was, until {format_time(found.until_ns)} at least:"
    elif found.way is Way.RECALL:
        yield f"It can come back from {escape(found.source)}, checked against its checksums:"
    elif found.way is Way.ARCHIVE:
        yield f"A copy lies in an archive, {escape(found.source)}. This asks for it, and brings it back later:"
    elif found.way is Way.RECALL_THIN:
        yield look.odd("Only its weights are left: no training can resume from them. This brings them back:")
    elif found.way is Way.NONE:
        rest = "nothing but its weights was kept" if release.how is How.SLIMMED else "nothing of it is left"
        yield look.bad(f"It cannot come back: {rest}{doubt}.")
    else:
        yield look.bad(f"Whether it can come back is not known{doubt}.")
    if command:
        yield f"  {command}"


def _command(release: Release, found: WayBack, desk: Desk) -> str:
    words = {
        Way.UNDO: ("undo", found.source),
        Way.RECALL: ("recall", release.id),
        Way.ARCHIVE: ("recall", release.id),
        Way.RECALL_THIN: ("recall", release.id, "--weights-only"),
    }.get(found.way)
    return desk.typing(*words) if words else ""


def _value(want: Wanted, before: Wanted | None, found: WayBack, desk: Desk, code: int) -> dict[str, object]:
    release = want.release
    return {
        "id": release.id,
        "recorded": code == 0 and before is None,
        "told_before_ns": before.at_ns if before else None,
        "released_at_ns": release.at_ns,
        "how": release.how,
        "plan": release.plan,
        "policies": release.policies,
        "rule": release.rule,
        "bytes": release.bytes,
        "reason": want.reason,
        "way": found.way,
        "until_ns": found.until_ns,
        "command": _command(release, found, desk),
        "doubt": found.doubt,
        "exit_code": code,
    }
