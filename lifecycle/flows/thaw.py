"""Asks for copies out of archives and tells how far that is: nobody waits here, whoever asks again is told again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from lifecycle.core.copies import CopyManifest, payload
from lifecycle.core.protect import SECOND_NS
from lifecycle.errors import ConfigInvalid, StoreError
from lifecycle.flows.recall import Desk, find
from lifecycle.ports import ObjectState, Reader, Restore, Store, Writer
from lifecycle.sizing.cost import Load
from lifecycle.sizing.waits import WAITS, Speed, Wait

DAYS = 7
"""How long a restored copy can be read, if nothing else is wished: long enough for somebody on leave."""


class Wish(NamedTuple):
    """How a copy is to be asked for."""

    speed: Speed = Speed.STANDARD
    days: int = DAYS


class Asked(NamedTuple):
    """A copy that was asked for, now or before."""

    id: str
    """Of the checkpoint."""
    source: str
    storage_class: str
    restore: Restore
    again: bool
    """It had been asked for before, as a whole."""
    ready_at_ns: int
    """When it is usually there at the latest; 0 where that is not known."""


Tell = Callable[[str, str, Load], None]
"""Told of a store, a storage class and what is about to be asked for out of it."""


def ask_back(
    desk: Desk, home: str, key: str, wish: Wish, tell: Tell = lambda _store, _storage_class, _load: None
) -> Asked:
    """Ask for one copy of a checkpoint that is in an archive: one in full if there is any, one on its
    way already, else the quickest. ``tell`` is called before anything is asked for that may cost money.

    Raises:
        ConfigInvalid: its class knows no such speed. NotFound: no copy is in an archive. StoreError: as stores say;
            asking again is safe.
    """
    archived = find(desk, home, key)[1]
    full = [source for source in archived if not source.manifest.part]
    found = [(source, states_of(desk.stores[source.stands.store], source.manifest)) for source in full or archived]
    coming = [pair for pair in found if any(state.restoring for state in pair[1].values())]
    source, states = min(coming or found, key=lambda pair: _wait_s(pair[1], wish.speed))
    wait = _wait(states, wish.speed)
    manifest, store = source.manifest, source.stands.store
    if wait is None and not coming:
        text = f"--tier {wish.speed}: {_class(states)} knows only {', '.join(WAITS[_class(states)])}"
        raise ConfigInvalid(text, code="usage")
    asleep = [m for m in payload(manifest.members) if (state := states.get(m.key)) and not state.readable]
    asleep = [m for m in asleep if not states[m.key].restoring]
    if asleep:
        tell(store, _class(states), Load(sum(m.size_bytes for m in asleep), len(asleep)))
    count = desk.intakes[store].ask_back(manifest, wish.speed, wish.days)
    now_ns = desk.clock.now_ns()
    known = desk.views.reader.restores().get(manifest.copy_id)
    if count or known is None or known.state != "asked":
        asked_ns, speed = (now_ns, wish.speed.value) if count else (0, "")
        known = Restore(store, key, manifest.copy_id, now_ns, "asked", asked_ns, 0, speed)
    known = _seen(known, states_of(desk.stores[store], manifest).values(), now_ns)
    if desk.writer is not None:
        desk.writer.add_restore(known)
    return Asked(
        f"{home}:{key}", source.stands.id, _class(states), known, not count, ready_at_ns(known, _class(states))
    )


def ready_at_ns(restore: Restore, storage_class: str) -> int:
    """When something asked for is usually there at the latest; 0 where that is not known."""
    waits = WAITS.get(storage_class, {})
    if not restore.asked_at_ns or restore.speed not in waits:
        return 0
    return restore.asked_at_ns + waits[Speed(restore.speed)].most_s * SECOND_NS


def states_of(store: Store, manifest: CopyManifest) -> Mapping[str, ObjectState]:
    """Each object of a copy with its class. Raises StoreError."""
    return store.states([member.key for member in payload(manifest.members)])


def _class(states: Mapping[str, ObjectState]) -> str:
    """The class that keeps it from being read; the coldest where there are several."""
    closed = {state.storage_class for state in states.values() if not state.readable}
    return max(closed, key=lambda name: (list(WAITS).index(name) if name in WAITS else -1, name), default="")


def _wait(states: Mapping[str, ObjectState], speed: Speed) -> Wait | None:
    waits = WAITS.get(_class(states))
    return Wait("", 0) if waits is None else waits.get(speed)


def _wait_s(states: Mapping[str, ObjectState], speed: Speed) -> float:
    wait = _wait(states, speed)
    return float("inf") if wait is None else wait.most_s


def _seen(restore: Restore, states: Iterable[ObjectState], now_ns: int) -> Restore:
    """What is known of a restore after a look at its objects."""
    found = list(states)
    ends = [state.until_ns for state in found if state.until_ns]
    if found and all(state.readable for state in found):
        state, until_ns = ("there", min(ends)) if ends else ("ended", 0)
    else:
        state, until_ns = ("asked" if any(state.restoring for state in found) else "ended"), 0
    if (state, until_ns) == (restore.state, restore.until_ns):
        return restore
    return restore._replace(at_ns=now_ns, state=state, until_ns=until_ns)


def watch(store: Store, manifests: Iterable[CopyManifest], reader: Reader, writer: Writer, now_ns: int) -> None:
    """Write down how far what was asked for is by now; what cannot be told stays as it was."""
    copies = {manifest.copy_id: manifest for manifest in manifests}
    for restore in reader.restores().values():
        if restore.store == store.name and restore.state != "ended":
            with suppress(StoreError):
                manifest = copies.get(restore.copy_id)
                now = _seen(restore, states_of(store, manifest).values() if manifest else (), now_ns)
                if now != restore:
                    writer.add_restore(now)
