"""Brings a checkpoint back from its copies: verified on the way, into place at once, over nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.copies import CopyManifest, copy_name, payload
from lifecycle.core.model import Checkpoint
from lifecycle.core.places import WHOLE
from lifecycle.errors import LifecycleError, NotFound, Occupied, StoreError
from lifecycle.flows.apply import LEASE_NS
from lifecycle.flows.carry import Carrier, Tick, Unsaid
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


class Desk(NamedTuple):
    """The parts of the world that a recall needs."""

    stores: Mapping[str, Store]
    intakes: Mapping[str, Intake]
    journal: Journal
    views: Views
    clock: Clock
    host: str
    engine: str
    tick: Tick = lambda _bytes: None
    writer: Writer | None = None


def copies_of(desk: Desk, home: str, key: str) -> list[Source]:
    """Whole copies that can be read now, the smallest store name first; those out of an archive last.

    Raises:
        NotFound: there is none, with what there is in the sentence: ``copy_archived`` where one can be asked for, else
            ``no_copy``.
    """
    found, archived, why = find(desk, home, key)
    if not found:
        detail = "; ".join(why) or "no store holds one"
        code = "copy_archived" if archived else "no_copy"
        raise NotFound(f"{home}:{key} has no copy that can be read now: {detail}", code=code)
    return found


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


def _stands(desk: Desk, store: str, manifest: CopyManifest) -> Checkpoint | None:
    try:
        return desk.views.checkpoint(store, manifest.checkpoint.run, manifest.key)
    except NotFound:
        return None


def recall(desk: Desk, home: str, key: str) -> Recalled:
    """Bring a checkpoint back to its home.

    Raises:
        NotFound: no copy can be read. Occupied: something stands at home. StoreError: the last copy's failure,
            after all were tried. LeaseHeld: an apply is at work.
    """
    if home not in desk.stores:
        raise NotFound(
            f"its home, store {home}, is not configured", code="no_home", hint="--to DIR brings it elsewhere"
        )

    def one(source: Source) -> Recalled:
        stands, manifest = source.stands, source.manifest
        now_ns = desk.clock.now_ns()
        plan = f"recall {now_ns}"
        action = Action.upon(stands, trash_s=None, policies=(), to=home)
        name = copy_name(plan, manifest.checkpoint, home)
        with desk.journal.lease(f"{desk.host} recall", now_ns, LEASE_NS) as fence:
            row = desk.journal.start(
                plan=plan, trash_id=name, action=action, now_ns=now_ns, fence=fence, host=desk.host, engine=desk.engine
            )
            try:
                made = _carry(desk, source, desk.stores[home], desk.intakes[home], name, plan)
            except Unsaid:
                raise
            except LifecycleError as e:
                desk.journal.end(row, "failed", e.code, desk.clock.now_ns())
                raise
            # What is back at home is the original again, and no copy of itself.
            desk.intakes[home].forget(name)
            desk.journal.end(row, "done", "", desk.clock.now_ns())
        return Recalled(f"{home}:{key}", stands.id, key, made.size_bytes, len(made.members))

    return _first(copies_of(desk, home, key), one)


def recall_to(desk: Desk, home: str, key: str, place: Store, intake: Intake, *, by_name: bool = True) -> Recalled:
    """Bring a checkpoint to a directory of the caller's, by its own name or by its whole key; see ``recall``."""

    def one(source: Source) -> Recalled:
        c = source.manifest.checkpoint
        name = copy_name("recall", c, place.url)
        made = _carry(desk, source, place, intake, name, "recall", f"{c.run}/" if c.run and by_name else "")
        intake.forget(name)
        return Recalled(f"{home}:{key}", source.stands.id, made.key, made.size_bytes, len(made.members))

    return _first(copies_of(desk, home, key), one)


def _carry(
    desk: Desk, source: Source, place: Store, intake: Intake, name: str, plan: str, base: str = ""
) -> CopyManifest:
    manifest, stands = source
    carrier = Carrier(desk.stores[stands.store], place, intake, desk.tick, base)
    now_ns = desk.clock.now_ns()
    return carrier.carry(name, manifest.checkpoint, stands, plan=plan, now_ns=now_ns, origin=manifest)


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
