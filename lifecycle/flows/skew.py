"""Holds our clock against those of the stores, and stops what rests on ages where they differ.

Every age is our clock minus a store's stamp: grace, ``younger`` and ``ended`` rules, leases, the time in the trash. A
clock of ours that is an hour ahead lets a checkpoint that is being written look an hour quiet, so that a grace of an
hour is none, and what was retired a moment ago by another host due for the purge. One that is behind keeps too much,
and writes times into the trash that are over too soon for everybody else. Both stop here, before the first act.

What a store does not tell stops as well: a missing fact never deletes. Only a store that has no clock but this
process's, one in memory, has nothing to be compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lifecycle.core.model import Finding
from lifecycle.core.units import escape, format_age, format_time
from lifecycle.errors import LifecycleError, Refused
from lifecycle.ports import Ask, Clock, Dated, ask

SKEW_MAX_NS = 300 * 1_000_000_000
"""Where kopia's maintenance refuses as well: far more than NTP leaves and an answer takes, and less than any grace."""
TRIES = 3
"""How often a store is asked whose answer took so long that it says little."""

HINT = "set both clocks (NTP); nothing that rests on ages is done until they agree"


class Skew(NamedTuple):
    """What two clocks said at one moment."""

    store: str
    ours_ns: int
    """In the middle of the asking."""
    theirs_ns: int
    loose_ns: int
    """How far from that middle the store may have looked at its clock."""

    @property
    def worst_ns(self) -> int:
        """The most that the clocks may differ by."""
        return abs(self.theirs_ns - self.ours_ns) + self.loose_ns

    @property
    def agrees(self) -> bool:
        """Whether ages may be counted between them."""
        return self.worst_ns <= SKEW_MAX_NS

    def __str__(self) -> str:
        apart_ns = self.theirs_ns - self.ours_ns
        way = "ahead" if apart_ns > 0 else "behind"
        told = f"the clock of store {self.store} says {format_time(self.theirs_ns)}, ours {format_time(self.ours_ns)}"
        if abs(apart_ns) <= self.loose_ns + SKEW_MAX_NS:
            return f"{told}, but it took {format_age(2 * self.loose_ns)} to say so"
        return f"{told}: it is {format_age(abs(apart_ns))} {way}; at most {format_age(SKEW_MAX_NS)} may be between them"


def look(name: str, store: Dated, clock: Clock, told: Ask = ask) -> Skew | None:
    """Compare the clock of a store with ours; None where it has none of its own.

    Raises:
        Refused, StoreError: it does not say.
    """
    found: Skew | None = None
    for _ in range(TRIES):
        before_ns = clock.now_ns()
        theirs_ns = told(store)
        if theirs_ns is None:
            return None
        half_ns = (clock.now_ns() - before_ns) // 2
        # Our own clock may be set in the middle of it: then the answer says nothing either.
        seen = Skew(name, before_ns + half_ns, theirs_ns, abs(half_ns))
        if found is None or seen.worst_ns < found.worst_ns:
            found = seen
        if found.agrees or found.loose_ns < SKEW_MAX_NS // 10:
            break
    return found


def refuse_skew(names: Iterable[str], stores: Mapping[str, Dated], clock: Clock, told: Ask = ask) -> None:
    """Stop before anything is done to these stores, unless their clocks are near enough to ours.

    Raises:
        Refused: ``clock_skew``: one is too far away; ``clock_unknown``: one does not say.
    """
    for name in sorted({*names}.intersection(stores)):
        try:
            found = look(name, stores[name], clock, told)
        except LifecycleError as e:
            text = f"what time it is on store {name} is not known: {e}"
            hint = e.hint or "ages are only as good as its clock: make it tell, or leave its checkpoints alone"
            raise Refused(text, code="clock_unknown", hint=hint) from e
        if found is not None and not found.agrees:
            raise Refused(str(found), code="clock_skew", hint=HINT)


def tell_skew(name: str, store: object, clock: Clock, told: Ask = ask) -> tuple[Finding, ...]:
    """A finding where a store that is only looked at tells the time, and it is another one than ours.

    Only what costs no write is asked. What does not tell is not told of here: acts ask once more, and stop.
    """
    if not isinstance(store, Dated):
        return ()
    try:
        found = look(name, store, clock, told)
    except LifecycleError:
        return ()
    if found is None or found.agrees:
        return ()
    text = f"{escape(str(found))}; ages are not to be trusted, and nothing will be applied or purged"
    return (Finding(f"{name}:", "clock_skew", "warning", text),)
