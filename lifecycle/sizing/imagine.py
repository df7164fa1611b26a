"""An imagined world: runs that go on saving as they did, and what plans do to them, one action after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import NamedTuple, assert_never

from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint, Evidence, Kind, Pointer, PointerRole, Run
from lifecycle.core.places import assemble
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.thin import SPARE
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.meter import Load, Meter, load_of

FOLLOWING = frozenset({PointerRole.LATEST, PointerRole.LISTED})
"""Pointers that a framework moves along when it saves: they name the newest, or one of the newest."""


def following(run: Run) -> tuple[Pointer, ...]:
    """Its pointers that move along with it while it goes on."""
    return tuple(p for p in run.pointers if p.role in FOLLOWING and p.target)


class _Joined(NamedTuple):
    """One checkpoint wherever it stands, and the run that it would be, were there no other."""

    there: list[Checkpoint]
    """The one at home first, then its copies; the same objects are put together to the same."""
    seen: Run


@dataclass(slots=True)
class Track:
    """One run on its way."""

    run: Run
    """Without its checkpoints."""
    home: dict[str, Checkpoint]
    """What stands at home, by key."""
    copies: dict[tuple[str, str], Checkpoint]
    """By store and key."""
    habits: list[Habit]
    numbers: list[int] = field(default_factory=list)
    """Of the last save of each habit."""
    saved: int = 0
    """All saves so far."""
    following: tuple[Pointer, ...] = ()
    joined: dict[str, _Joined] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By key: a checkpoint put together with its copies, as it was last seen. Most of them are the same every night."""

    @classmethod
    def start(cls, run: Run, copies: Iterable[Checkpoint], habits: Iterable[Habit]) -> Track:
        """A run as it stands, without copies in it, and its copies."""
        mine = list(habits)
        return cls(
            run=replace(run, checkpoints=()),
            home={c.key: c for c in run.checkpoints},
            copies={(c.store, c.key): c for c in copies},
            habits=mine,
            numbers=[0] * len(mine),
            following=following(run) if mine else (),
        )

    @property
    def id(self) -> tuple[str, str]:
        """Store and path."""
        return self.run.store, self.run.path

    def standing(self) -> Iterator[Checkpoint]:
        """Every copy of every checkpoint of it."""
        yield from self.home.values()
        yield from self.copies.values()

    def goes_on(self, at_ns: int) -> bool:
        """Whether it will save again after ``at_ns``, or has just done so."""
        return any(h.end_ns is None or at_ns < h.end_ns for h in self.habits)

    def due(self, until_ns: int) -> list[tuple[int, Checkpoint]]:
        """What it saves until then, with when; it stands in the run from now on."""
        found = []
        for i, habit in enumerate(self.habits):
            end_ns = until_ns if habit.end_ns is None else min(until_ns, habit.end_ns)
            at_ns = habit.next_ns + self.numbers[i] * habit.interval_ns
            while at_ns <= end_ns:
                self.numbers[i] += 1
                c = habit.save(self.numbers[i], at_ns)
                self.home[c.key] = c
                found.append((at_ns, c))
                at_ns += habit.interval_ns
        self.saved += len(found)
        return found

    def seen(self, at_ns: int) -> Run:
        """The run as it is judged: with its copies, and as active as a training that goes on."""
        run = replace(self.run, checkpoints=tuple(self.home.values()), active_at_ns=self._active_at_ns(at_ns))
        if self.saved:
            # Uploads and leases of today are over by then.
            run = replace(run, writing=(), pointers=self._pointers())
        return self._assembled(run) if self.copies else run

    def _assembled(self, run: Run) -> Run:
        """What ``core.places.assemble`` makes of it; only what has changed since is put together again."""
        copies: dict[str, list[Checkpoint]] = {}
        for copy in self.copies.values():
            copies.setdefault(copy.key, []).append(copy)
        # What stands at home comes first, in its order, and then what is nowhere but in copies.
        keys = dict.fromkeys((*self.home, *copies))
        self.joined = {key: self._one(key, copies.get(key, [])) for key in keys}
        return replace(
            run,
            checkpoints=tuple(c for one in self.joined.values() for c in one.seen.checkpoints),
            active_at_ns=max(run.active_at_ns, *(one.seen.active_at_ns for one in self.joined.values())),
            flags=(*run.flags, *(flag for one in self.joined.values() for flag in one.seen.flags)),
        )

    def _one(self, key: str, copies: list[Checkpoint]) -> _Joined:
        home = (self.home[key],) if key in self.home else ()
        there = [*home, *copies]
        known = self.joined.get(key)
        if known and len(known.there) == len(there) and all(map(is_, known.there, there)):
            return known
        alone = Run(*self.id, home)
        return _Joined(there, next(assemble((alone,), {self.id: copies} if copies else {})))

    def _active_at_ns(self, at_ns: int) -> int:
        """A training that goes on writes logs at every moment; one that has ended stopped when it did."""
        if not self.saved:
            return self.run.active_at_ns
        if self.goes_on(at_ns):
            return at_ns
        ends = [h.end_ns for h in self.habits if h.end_ns is not None]
        return max([self.run.active_at_ns, *(end for end in ends if end <= at_ns)])

    def _pointers(self) -> tuple[Pointer, ...]:
        return tuple(p for p in self.run.pointers if p not in self.following) + tuple(self.moved())

    def moved(self) -> Iterator[Pointer]:
        """Pointers that follow, at what they name by now: as far behind the newest as ever."""
        if not (self.following and self.saved):
            yield from self.following
            return
        newest = sorted(self.home.values(), key=lambda c: (c.saved_at_ns, c.id), reverse=True)
        for rank, pointer in enumerate(sorted(self.following, key=lambda p: (p.role is not PointerRole.LATEST, p.key))):
            at = 0 if pointer.role is PointerRole.LATEST else rank
            if at < len(newest):
                yield replace(pointer, target=newest[at].id)

    # -- what a plan does

    def read(self, action: Action) -> Checkpoint:
        """The copy that an action is about, as it stands."""
        return self.copies[action.store, action.key] if action.home else self.home[action.key]

    def act(self, action: Action, meter: Meter, at_ns: int, copied_as: Mapping[str, str]) -> None:
        """Carry out one action of a plan, without fail."""
        found = self.copies if action.home else self.home
        key = (action.store, action.key) if action.home else action.key
        c: Checkpoint = found[key]  # type: ignore[index]  # the two kinds of keys go with the two dictionaries
        due_ns = None if action.trash_s is None else at_ns + action.trash_s * SECOND_NS
        match action.verb:
            case Verb.RETIRE | Verb.DELETE:
                del found[key]  # type: ignore[arg-type]  # as above
                meter.drop(c, load_of(c), due_ns)
            case Verb.COPY:
                storage_class = action.storage_class or copied_as.get(action.to, "")
                copy = _copied(c, action, storage_class, at_ns)
                self.copies[copy.store, copy.key] = copy
                meter.copy(copy)
            case Verb.RECLASS:
                meter.drop(c, load_of(c), None)
                changed = replace(c, storage_class=action.storage_class, online=action.storage_class not in ARCHIVES)
                found[key] = changed  # type: ignore[index]  # as above
                meter.copy(changed)
            case Verb.SLIM:
                meter.drop(c, Load(action.bytes, 0), due_ns)
                found[key] = _thin(c, c.bytes - action.bytes)  # type: ignore[index]  # as above
            case _:
                assert_never(action.verb)


def _copied(c: Checkpoint, action: Action, storage_class: str, at_ns: int) -> Checkpoint:
    copy = replace(
        c,
        store=action.to,
        home=c.home or c.store,
        copy_id=f"forecast {action.to} {c.key}",
        evidence=Evidence.PROVEN,
        changed_at_ns=at_ns,
        inode=0,
        storage_class=storage_class,
        online=storage_class not in ARCHIVES,
        elsewhere=(),
        here=True,
        flags=(),
    )
    return _thin(copy, action.bytes) if action.part and c.kind is Kind.FULL else copy


def _thin(c: Checkpoint, size_bytes: int) -> Checkpoint:
    parts = tuple((role, size) for role, size in c.parts if role not in SPARE)
    return replace(c, kind=Kind.WEIGHTS, bytes=size_bytes, parts=parts)
