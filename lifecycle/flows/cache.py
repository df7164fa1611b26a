"""Fills a node's cache: one process brings an entry, all others wait for it, and what is idle makes room."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_bytes
from lifecycle.errors import Refused, StoreError
from lifecycle.flows.cache_source import Source
from lifecycle.flows.carry import Carrier
from lifecycle.flows.pace import Tick, unwatched
from lifecycle.flows.recover import finish
from lifecycle.ports import Clock
from lifecycle.ports.cache import Cache, Lease
from lifecycle.sizing.room import Choice, Entry, make_room

TRIES = 3
"""An entry that is gone again each time it was filled is somebody's fault: it is not filled for ever."""
ROUNDS_MAX = 100
"""Of choosing what goes: who comes into use meanwhile, if only to be looked at, makes one more."""

Say = Callable[[str], None]


class Wish(NamedTuple):
    """How a cache is to be filled."""

    budget_bytes: int
    free_min_bytes: int
    wait_s: float
    holder: str
    lease_s: int | None
    """0: no lease; None: one without end."""


class Filled(NamedTuple):
    """An entry that is ready."""

    path: str
    entry: str
    entry_id: str
    bytes: int
    how: str
    """``hit``: it was there; ``filled``: we brought it; ``waited``: another process did while we waited."""
    source: str
    verified: str
    """See ``ports.cache.About``."""
    evicted: tuple[str, ...]


class Evicted(NamedTuple):
    """What was evicted, and what is missing still."""

    entries: tuple[Entry, ...]
    freed_bytes: int
    short_bytes: int


def fill(
    cache: Cache,
    source: Source,
    wish: Wish,
    clock: Clock,
    keep: ExitStack,
    *,
    tick: Tick = unwatched,
    say: Say = lambda _text: None,
) -> Filled:
    """Have ``source`` in the cache, whole, and held from eviction.

    Args:
        cache: of this node.
        source: what is wanted.
        wish: budget, patience and lease.
        clock: the only source of now.
        keep: until it is closed, no eviction takes the entry; a lease lasts longer.
        tick: told of bytes.
        say: told what is going on.

    Raises:
        Refused: ``cache_full``: it would not fit even if all that is idle went, so nothing does, unless a disk gives
            back less than what was evicted; ``cache_damaged``: what stands there is not what was put, and is in use
            or not ours.
        LeaseHeld: another process is still filling it.
        Changed, Occupied, StoreError: as ``carry`` raises them.
    """
    entry, entry_id, how = source.entry, source.entry_id, "hit"
    evicted: tuple[str, ...] = ()
    for _ in range(TRIES):
        with ExitStack() as using:
            using.enter_context(cache.using(entry_id))
            if not cache.fault(entry_id):
                hold(cache, entry_id, wish, clock.now_ns())
                keep.push(using.pop_all())
                return _filled(cache, source, how, evicted)
        with cache.filling(entry_id, wish.wait_s):
            if not cache.fault(entry_id):
                how = "waited"
                continue
            evicted = _bring(cache, source, wish, clock, tick, say)
            how = "filled"
    raise StoreError(f"{entry} is gone again each time it was filled", code="cache_damaged")


def hold(cache: Cache, entry_id: str, wish: Wish, now_ns: int) -> None:
    """Note that an entry is used now, and lease it as long as was asked for."""
    cache.touch(entry_id, now_ns)
    if wish.lease_s != 0:
        until_ns = None if wish.lease_s is None else now_ns + wish.lease_s * SECOND_NS
        cache.lease(entry_id, Lease(wish.holder, until_ns))


def _filled(cache: Cache, source: Source, how: str, evicted: tuple[str, ...]) -> Filled:
    about = cache.about(source.entry_id)
    return Filled(
        path=f"{cache.path.rstrip('/')}/{source.entry}",
        entry=source.entry,
        entry_id=source.entry_id,
        bytes=source.stands.bytes,
        how=how,
        source=source.url,
        verified=about.verified,
        evicted=evicted,
    )


def _bring(cache: Cache, source: Source, wish: Wish, clock: Clock, tick: Tick, say: Say) -> tuple[str, ...]:
    """Bring an entry that is not there, with its filling locked; names of those that made room."""
    entry_id = source.entry_id
    if finish(cache.store, cache.intake(), entry_id):
        if not (why := cache.fault(entry_id)):
            return ()  # a process was killed between proving it and putting it in its place
        if cache.evict(entry_id, clock.now_ns()) is None:
            text = f"{cache.path}/{source.entry} cannot be used ({why}), and is in use or holds what is not ours"
            raise Refused(text, code="cache_damaged", hint="end what uses it, or move it away; then fill again")
    size_bytes = source.stands.bytes
    with cache.budgeting():
        cache.sweep(entry_id)
        gone = _free(cache, wish, size_bytes, entry_id, clock)
        cache.expect(entry_id, size_bytes, source.about)
    say(f"filling {source.entry} from {source.url} ({format_bytes(size_bytes)})")
    Carrier(source.store, cache.store, cache.intake_of(source.entry, source.top), tick, source.base).carry(
        entry_id, source.stands, source.stands, plan="cache", now_ns=clock.now_ns(), origin=source.origin
    )
    return tuple(entry.name for entry in gone.entries)


def _free(cache: Cache, wish: Wish, size_bytes: int, mine: str, clock: Clock) -> Evicted:
    """Make room for an entry, or refuse before anything goes."""
    done: list[Entry] = []
    freed = 0
    for _ in range(ROUNDS_MAX):
        choice, entries = _choice(cache, wish.budget_bytes, wish.free_min_bytes, size_bytes, mine, clock.now_ns())
        if choice.short_bytes:
            raise _full(cache, wish, size_bytes, choice, entries)
        if not choice.going:
            return Evicted(tuple(done), freed, 0)
        for entry in choice.going:
            gone = cache.evict(entry.id, clock.now_ns())
            if gone is not None:
                done.append(entry)
                freed += gone.bytes
    raise StoreError(f"what was to make room in {cache.path} comes into use again and again", code="busy")


def _choice(
    cache: Cache, budget_bytes: int, free_min_bytes: int, size_bytes: int, mine: str, now_ns: int
) -> tuple[Choice, list[Entry]]:
    room = cache.room(budget_bytes, free_min_bytes, mine)
    entries = cache.entries(now_ns, closely=False)
    choice = make_room(entries, room, size_bytes)
    if choice.going:
        entries = cache.entries(now_ns)
        choice = make_room(entries, room, size_bytes)
    return choice, entries


def _full(cache: Cache, wish: Wish, size_bytes: int, choice: Choice, entries: list[Entry]) -> Refused:
    room = cache.room(wish.budget_bytes, wish.free_min_bytes)
    used = [f"{entry.name} ({format_bytes(entry.bytes)}: {entry.in_use})" for entry in entries if entry.in_use]
    text = (
        f"{format_bytes(size_bytes)} do not fit into {cache.path}: {format_bytes(choice.short_bytes)} are lacking, "
        f"with a budget of {format_bytes(wish.budget_bytes)} and {format_bytes(room.free_bytes)} free, "
        f"of which {format_bytes(wish.free_min_bytes)} stay free"
    )
    if room.coming_bytes:
        text += f"; {format_bytes(room.coming_bytes)} are coming in"
    if used:
        text += f"; in use: {', '.join(used)}"
    hint = "`lifecycle cache status` shows who uses what; `lifecycle cache release` ends leases of pods that are gone"
    return Refused(text, code="cache_full", hint=hint)


def evict(cache: Cache, budget_bytes: int, free_min_bytes: int, clock: Clock) -> Evicted:
    """Bring a cache under its budget, as far as what is idle reaches."""
    done, freed = [], 0
    with cache.budgeting():
        cache.sweep()
        choice, _ = _choice(cache, budget_bytes, free_min_bytes, 0, "", clock.now_ns())
        short_bytes = choice.short_bytes
        for entry in choice.going:
            gone = cache.evict(entry.id, clock.now_ns())
            if gone is None:
                short_bytes += entry.bytes
                continue
            done.append(entry)
            freed += gone.bytes
    return Evicted(tuple(done), freed, short_bytes)
