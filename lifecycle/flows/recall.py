"""Brings a checkpoint back from its copies: verified on the way, into place at once, over nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.copies import CopyManifest, copy_name, payload
from lifecycle.core.model import Checkpoint
from lifecycle.core.places import WHOLE
from lifecycle.errors import LeaseHeld, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.flows.carry import Carrier, Unsaid
from lifecycle.flows.pace import LEASE_NS, UNHURRIED, Pace, Turn
from lifecycle.flows.recover import CARRIED, finish
from lifecycle.flows.staged import go_on
from lifecycle.flows.views import Views
from lifecycle.ports import Clock, Intake, Journal, Store, Writer


class Source(NamedTuple):
    """A copy to bring back."""

    manifest: CopyManifest
    stands: Checkpoint


class Recalled(NamedTuple):
    """What was brought back, and where it stands now."""

    id: str
    source: str
    key: str
    bytes: int
    files: int
    part: str = ""
    """``weights`` where that is all that there was."""


class Desk(NamedTuple):
    """The parts of the world that a recall needs."""

    stores: Mapping[str, Store]
    intakes: Mapping[str, Intake]
    journal: Journal
    views: Views
    clock: Clock
    host: str
    engine: str
    pace: Pace = UNHURRIED
    writer: Writer | None = None


def copies_of(desk: Desk, home: str, key: str, *, weights_only: bool = True) -> list[Source]:
    """Copies that can be read now, those in full first, then the smallest store name; those out of an archive last.

    Raises:
        Refused: ``only_weights``: there are thin copies alone, and ``weights_only`` does not say that they will do.
        NotFound: there is none, with what there is in the sentence: ``copy_archived`` where one can be asked for, else
            ``no_copy``.
    """
    found, archived, why = find(desk, home, key)
    full = [source for source in (*found, *archived) if not source.manifest.part]
    if (found or archived) and not (full or weights_only):
        raise _only_weights([*found, *archived])
    usable = [source for source in found if weights_only or source in full]
    if not usable:
        detail = "; ".join(why) or "no store holds one"
        code = "copy_archived" if archived else "no_copy"
        raise NotFound(f"{home}:{key} has no copy that can be read now: {detail}", code=code)
    return sorted(usable, key=lambda source: source.manifest.part != "")


def find(desk: Desk, home: str, key: str) -> tuple[list[Source], list[Source], list[str]]:
    """Whole copies: those that can be read now, those in archives, and why each of the others cannot be used."""
    found, restored, archived, why = [], [], [], []
    for name in sorted(desk.stores):
        for manifest in desk.views.held(name).manifests:
            if (manifest.checkpoint.store, manifest.key) != (home, key):
                continue
            stands = _stands(desk, name, manifest)
            if stands is None:
                why.append(f"the one on {name} is gone")
            elif stands.evidence not in WHOLE:
                why.append(f"the one on {name} is damaged: {stands.why}")
            elif stands.online:
                found.append(Source(manifest, stands))
            elif _is_restored(desk.stores[name], manifest):
                restored.append(Source(manifest, stands))
            else:
                archived.append(Source(manifest, stands))
                why.append(f"the one on {name} is in an archive class and must be restored first")
    return found + restored, archived, why


def _is_restored(store: Store, manifest: CopyManifest) -> bool:
    keys = [member.key for member in payload(manifest.members)]
    states = store.states(keys)
    return all(key in states and states[key].readable for key in keys)


def _only_weights(sources: list[Source]) -> Refused:
    where, c = ", ".join(source.stands.store for source in sources), sources[0].manifest.checkpoint
    text = f"only the weights of {c.id} are kept, on {where}: no training can resume from them"
    return Refused(text, code="only_weights", hint="--weights-only brings back what there is")


def _stands(desk: Desk, store: str, manifest: CopyManifest) -> Checkpoint | None:
    try:
        return desk.views.checkpoint(store, manifest.checkpoint.run, manifest.key)
    except NotFound:
        return None


def recall(desk: Desk, home: str, key: str, *, weights_only: bool = False) -> Recalled:
    """Bring a checkpoint back to its home; a copy in full is preferred always.

    What an earlier try that was cut short had sent is not sent again.

    Raises:
        Refused: ``only_weights``: there are thin copies alone, and ``weights_only`` does not say that they will do.
        NotFound: no copy can be read now. Occupied: something stands at home. StoreError: the last copy's failure,
            after all were tried. LeaseHeld: an apply is at work.
    """
    if home not in desk.stores:
        raise NotFound(
            f"its home, store {home}, is not configured", code="no_home", hint="--to DIR brings it elsewhere"
        )
    if home not in desk.intakes:
        text = f"its home, store {home}, can only be read"
        raise Refused(text, code="read_only_store", hint="--to DIR brings it elsewhere")

    def one(source: Source) -> Recalled:
        stands, manifest = source.stands, source.manifest
        now_ns = desk.clock.now_ns()
        plan = f"recall {now_ns}"
        action = Action.upon(stands, trash_s=None, policies=(), to=home)
        with desk.journal.lease(f"{desk.host} recall", now_ns, LEASE_NS) as fence:
            turn = Turn(desk.journal, fence, desk.clock, desk.pace)
            if (size_bytes := _finished(desk, home, key)) is not None:
                return Recalled(f"{home}:{key}", stands.id, key, size_bytes, len(manifest.members))
            begun = go_on(desk.journal, desk.stores[home], desk.intakes[home], manifest.checkpoint)
            name = begun or copy_name(plan, manifest.checkpoint, home)
            row = desk.journal.start(
                plan=plan, trash_id=name, action=action, now_ns=now_ns, fence=fence, host=desk.host, engine=desk.engine
            )
            try:
                carrier = _carrier(desk, source, desk.stores[home], desk.intakes[home], "", turn)
                made = carrier.carry(name, manifest.checkpoint, stands, plan=plan, now_ns=now_ns, origin=manifest)
            except (Unsaid, LeaseHeld):
                raise
            except LifecycleError as e:
                desk.journal.end(row, "failed", e.code, desk.clock.now_ns())
                raise
            # What is back at home is the original again, and no copy of itself; thin, it is not all of that.
            if not made.part:
                desk.intakes[home].forget(name)
            desk.journal.end(row, "done", "", desk.clock.now_ns())
        return Recalled(f"{home}:{key}", stands.id, key, made.size_bytes, len(made.members), made.part)

    return _first(copies_of(desk, home, key, weights_only=weights_only), one)


def _finished(desk: Desk, home: str, key: str) -> int | None:
    """Close recalls of this checkpoint that a crash left open; its bytes when one of them could be finished.

    Raises:
        StoreError: the store does not say.
    """
    found = None
    for row in desk.journal.started():
        action = row.action
        if action.verb is not Verb.COPY or (action.to, action.key) != (home, key):
            continue
        stands = finish(desk.stores[home], desk.intakes[home], row.trash_id)
        outcome, note = CARRIED[stands]
        desk.journal.end(row.id, outcome, note, desk.clock.now_ns())
        found = action.bytes if stands else found
    return found


def recall_to(
    desk: Desk,
    home: str,
    key: str,
    place: Store,
    intake: Intake,
    *,
    by_name: bool = True,
    weights_only: bool = False,
) -> Recalled:
    """Bring a checkpoint to a directory of the caller's, by its own name or by its whole key; see ``recall``."""

    def one(source: Source) -> Recalled:
        manifest, stands = source
        c, now_ns = manifest.checkpoint, desk.clock.now_ns()
        name = copy_name("recall", c, place.url)
        carrier = _carrier(desk, source, place, intake, f"{c.run}/" if c.run and by_name else "")
        made = carrier.carry(name, c, stands, plan="recall", now_ns=now_ns, origin=manifest)
        intake.forget(name)
        return Recalled(f"{home}:{key}", stands.id, made.key, made.size_bytes, len(made.members), made.part)

    return _first(copies_of(desk, home, key, weights_only=weights_only), one)


def _carrier(desk: Desk, source: Source, place: Store, intake: Intake, base: str, turn: Turn | None = None) -> Carrier:
    desk.pace.due(2 * source.manifest.size_bytes)
    return Carrier(
        desk.stores[source.stands.store],
        place,
        intake,
        turn.tick if turn else desk.pace.tick,
        base,
        spared=desk.pace.spared,
        confirm=turn.confirm if turn else lambda: None,
        at_once=desk.pace.at_once,
    )


def _first(sources: list[Source], one: Callable[[Source], Recalled]) -> Recalled:
    """Try one copy after the other."""
    for source in sources[:-1]:
        try:
            return one(source)
        except Occupied:
            raise
        except StoreError:
            continue
    return one(sources[-1])
