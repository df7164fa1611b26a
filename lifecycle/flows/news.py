"""Decides what of a tick is news to a receiver: pure, from the tick and from what that receiver was told before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.flows.stages import Ticked
from lifecycle.ports.news import Event, Filling, Left, News

SECOND_NS = 1_000_000_000
AGAIN_NS = 20 * 3600 * SECOND_NS
"""What goes on is told again once a day. A day less some hours: nightly ticks do not begin at the very same second."""
CHANCE = 0.1
"""From this chance on a store is told of as soon full, as `forecast --fail-if-full-within` does; below half of it that
is over, so that a chance which goes up and down by a little is no news each night."""
CLOSER = 4
"""A date is clearly nearer when it comes by this part of the time that was left, and by a day at the least."""
DAY_NS = 86_400 * SECOND_NS

WAITING = ("awaiting_approval", "announced", "dry_tick")
"""Codes of an apply that leaves a plan, or some of it, to somebody."""
NO_FAILURE = frozenset({"asked_to_stop"})
"""Codes of what did not come to its end and is nobody's failure."""
NO_TURN = frozenset({"asked_to_stop", "no_time"})
"""Codes of stages that had no turn: nothing shows whether they would fail."""
KEYS_MAX = 100


class Seen(NamedTuple):
    """What there is to tell of one tick, as values that can be compared from tick to tick."""

    at_ns: int
    ready: str = ""
    """Names the content of a plan that is left to somebody; empty where there is none."""
    asks: bool = False
    """Whether it waits for a person's word, and not only for a look."""
    planned: bool = False
    """Whether a plan was made, so that it is known whether it is over its limits."""
    refused: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    sure: bool = True
    """Whether all stages had their turn, so that what did not fail is known to be well."""
    fillings: tuple[Filling, ...] | None = None
    """None: nobody looked ahead."""


class Entry(NamedTuple):
    """What a receiver was told last under one name."""

    keys: tuple[str, ...]
    at_s: int
    early_s: int = 0
    """Of a store that fills: the moment from which on it may be full, as it was told."""


Memory = Mapping[str, Entry]
"""By event, and for stores by ``full_soon`` and their names."""


def see(made: Ticked, now_ns: int, fillings: Sequence[Filling] | None) -> Seen:
    """What there is to tell of a tick that is at its end."""
    plan, codes, left = made.plan, {stage.code for stage in made.stages}, left_of(made)
    refused = {f"{f.code} {f.subject}" for f in plan.refusals} if plan else set()
    failing = {
        f"{stage.name} {stage.subject} {stage.code}"
        for stage in made.stages
        if stage.exit_code and stage.code not in NO_FAILURE and not (stage.name == "plan" and refused)
    }
    return Seen(
        now_ns,
        content_of(left.actions) if left.actions else "",
        left.asks,
        plan is not None,
        _named(refused),
        _named(failing),
        not codes & NO_TURN,
        None if fillings is None else tuple(fillings),
    )


def left_of(made: Ticked) -> Left:
    """What a tick left to somebody of its plan: what waits for a yes or a date, or all, where none was carried out."""
    gate = made.gate
    if gate is not None and gate.waiting and not made.dry and not (made.plan and made.plan.refusals):
        return Left(tuple(one.action for one in gate.waiting), gate.code, gate.request)
    plan, codes = made.plan, {stage.code for stage in made.stages if stage.name == "apply"}
    code = next((code for code in WAITING if code in codes), "")
    if plan is None or plan.refusals or not code:
        return Left()
    return Left(plan.actions, code)


def content_of(actions: Sequence[Action]) -> str:
    """Names what is to be done, whenever it was planned: 16 hex digits.

    A plan's own id is another one each night, for it was made at another time.
    """
    digest = sha256()
    for a in actions:
        words = (a.verb, a.store, a.key, a.fingerprint, a.home, a.to, a.storage_class, a.part, str(a.trash_s))
        digest.update(("\0".join(words) + "\n").encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _named(texts: Collection[str]) -> tuple[str, ...]:
    """Short names in place of the texts: they are written down with each tick."""
    digests = sorted(sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12] for text in texts)
    return tuple(digests[:KEYS_MAX])


def due(now: Seen, memory: Memory, events: Collection[Event], within_ns: int) -> list[News]:
    """What a receiver is to be told.

    Args:
        now: the tick.
        memory: what it was told before.
        events: what it wants to hear of.
        within_ns: how far ahead a full store is worth a word.
    """
    found = [*_ready(now, memory), *_bad(Event.PLAN_REFUSED, now.refused, now, memory)]
    found += [*_bad(Event.FAILED, now.failing, now, memory), *_over(now, memory), *_full(now, memory, within_ns)]
    return [news for news in found if news.event in events]


def _ready(now: Seen, memory: Memory) -> Iterator[News]:
    last = memory.get(Event.PLAN_READY)
    if not now.ready or (last and now.ready in last.keys):
        return
    # A run that saves every hour has another plan every hour: who only wants to look does not want each of them.
    if now.asks or last is None or _again(last, now):
        yield News(Event.PLAN_READY, "", (now.ready,))


def _bad(event: Event, keys: tuple[str, ...], now: Seen, memory: Memory) -> Iterator[News]:
    last = memory.get(event)
    if keys and (last is None or not set(keys) <= set(last.keys) or _again(last, now)):
        yield News(event, "", keys, again=last is not None and set(keys) <= set(last.keys))


def _over(now: Seen, memory: Memory) -> Iterator[News]:
    if ended := _ended(now, memory):
        yield News(Event.RECOVERED, " and ".join(ended), tuple(ended))


def _ended(now: Seen, memory: Memory) -> list[Event]:
    over = {Event.FAILED: now.sure and not now.failing, Event.PLAN_REFUSED: now.planned and not now.refused}
    return [event for event, is_over in over.items() if is_over and event in memory]


def _full(now: Seen, memory: Memory, within_ns: int) -> Iterator[News]:
    by_ns = now.at_ns + within_ns
    for filling in now.fillings or ():
        if filling.full.by(by_ns) < CHANCE:
            continue
        last = memory.get(_slot(filling.stores))
        early_ns = _early(filling, by_ns)
        if last is None or early_ns < _nearer(last):
            again = last is not None
            yield News(Event.FULL_SOON, " and ".join(filling.stores), (), again, filling, by_ns)


def _slot(stores: Sequence[str]) -> str:
    return f"{Event.FULL_SOON} {'+'.join(stores)}"


def _early(filling: Filling, by_ns: int) -> int:
    return by_ns if filling.full.early is None else filling.full.early


def _nearer(last: Entry) -> int:
    """Before this moment a date is clearly nearer than the one that was told."""
    told_ns = last.early_s * SECOND_NS
    return told_ns - max(DAY_NS, (told_ns - last.at_s * SECOND_NS) // CLOSER)


def _again(last: Entry, now: Seen) -> bool:
    """Whether it was told so long ago that it is told again; so, too, where a clock was set back since."""
    return not 0 <= now.at_ns - last.at_s * SECOND_NS < AGAIN_NS


def remember(now: Seen, memory: Memory, told: Collection[News], events: Collection[Event], within_ns: int) -> Memory:
    """What a receiver has been told by now: ``told`` is what reached it.

    What ended is forgotten once that was told, or where nobody wants to hear of it.
    """
    at_s, kept = now.at_ns // SECOND_NS, dict(memory)
    if now.planned and not now.ready:
        kept.pop(Event.PLAN_READY, None)
    for event in _ended(now, memory):
        if Event.RECOVERED not in events or any(news.event is Event.RECOVERED for news in told):
            kept.pop(event)
    for filling in now.fillings or ():
        if filling.full.by(now.at_ns + within_ns) < CHANCE / 2:
            kept.pop(_slot(filling.stores), None)
    for news in told:
        if news.filling is not None:
            kept[_slot(news.filling.stores)] = Entry((), at_s, _early(news.filling, news.by_ns) // SECOND_NS)
        elif news.event is not Event.RECOVERED:
            kept[news.event] = Entry(news.keys, at_s)
    return kept


# -- as it is written down


def written(memory: Memory) -> dict[str, list[object]]:
    """The same as JSON."""
    return {name: [list(entry.keys), entry.at_s, entry.early_s] for name, entry in sorted(memory.items())}


def read(raw: object) -> Memory:
    """What was written; what has another form was never told."""
    found: dict[str, Entry] = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        match entry:
            case [list() as keys, int() as at_s, int() as early_s] if all(isinstance(key, str) for key in keys):
                found[str(name)] = Entry(tuple(keys), at_s, early_s)
            case _:
                pass
    return found
