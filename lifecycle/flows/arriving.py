"""Reads from the index which runs started and ended on each store, and lets a forecast start and end some as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lifecycle.core.policy import Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_seconds
from lifecycle.ports import Reader, StoreRow
from lifecycle.sizing.arrivals import DONORS, STARTS_MIN, WATCHED_MIN_DAYS, Donor, Few, Start, Turnover, Watched, learn
from lifecycle.sizing.habits import from_birth
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.meter import Column, Tier
from lifecycle.sizing.newcomers import JUDGED_MAX, Newcomers, newcomers, stand_ins
from lifecycle.sizing.replay import Setting


@dataclass(frozen=True, slots=True)
class Coming:
    """What runs that start unannounced will hold."""

    found: tuple[Newcomers, ...] = ()
    beside: bool = False
    """They were replayed beside the runs that are there, and are counted with them already."""

    def expected(self) -> dict[Tier, Column]:
        """What is to be added to what the runs hold that are there."""
        total: dict[Tier, Column] = {}
        for one in () if self.beside else self.found:
            for tier, column in one.expected().items():
                total.setdefault(tier, Column()).add(column)
        return total

    def drawn(self, stores: Iterable[str]) -> list[list[float]]:
        """How far they may be off before each plan on these stores together, in each of some courses."""
        mine = frozenset(stores)
        each = [one.drawn(mine, salt) for salt, one in enumerate(self.found)]
        return [[sum(values) for values in zip(*courses, strict=True)] for courses in zip(*each, strict=True)]


@dataclass(slots=True)
class Arrivals:
    """What is known of starts and ends, by store."""

    turnovers: dict[str, Turnover] = field(default_factory=dict)
    few: dict[str, Few] = field(default_factory=dict)
    """Stores of which too little is known."""
    starts: dict[tuple[str, str], Start] = field(default_factory=dict)
    ended: int = 0
    """Runs that were given an end."""

    @classmethod
    def read(cls, reader: Reader, names: Sequence[str], rows: dict[str, StoreRow], now_ns: int) -> Arrivals:
        """What the index tells of these stores."""
        found = cls()
        for store in names:
            watched = reader.watched(store)
            if not (watched.since_ns and store in rows):
                found.few[store] = Few(0, 0.0)
                continue
            seen_ns = min(now_ns, rows[store].scanned_at_ns)
            learnt = learn(watched.starts, watched.since_ns, seen_ns)
            if isinstance(learnt, Few):
                found.few[store] = learnt
                continue
            donors = tuple(_donors(reader, store, donors_of(watched, seen_ns), seen_ns))
            if not donors:
                found.few[store] = Few(0, learnt.days)
                continue
            found.turnovers[store] = replace(learnt, donors=donors)
            found.starts |= {(store, start.path): start for start in watched.starts}
        return found

    def end_ns(self, store: str, path: str) -> int | None:
        """When a run that goes on ends, if it is like others; None where that is not known."""
        turnover, start = self.turnovers.get(store), self.starts.get((store, path))
        if turnover is None or start is None:
            return None
        self.ended += 1
        return turnover.end_ns(self.ended, start.first_ns, start.last_ns)

    def stand_ins(self, policies: Sequence[Policy], ticks: Sequence[int]) -> list[Track]:
        """Runs to come that have to be replayed beside those that are there; none where they can be alone."""
        if not _beside(policies):
            return []
        return [track for _, turnover in sorted(self.turnovers.items()) for track in stand_ins(turnover, ticks)]

    def coming(self, setting: Setting, ticks: Sequence[int]) -> Coming:
        """Replay them alone."""
        judged_max = JUDGED_MAX // max(1, len(self.turnovers))
        found = [newcomers(turnover, setting, ticks, judged_max) for _, turnover in sorted(self.turnovers.items())]
        return Coming(tuple(found), _beside(setting.policies))

    def words(self, *, told: bool) -> Iterator[str]:
        """What is taken for granted of starts and ends."""
        for store, turnover in sorted(self.turnovers.items()):
            lasting = turnover.lasting
            yield (
                f"Runs start on {store} as often as in the last {turnover.days:.0f} days ({turnover.counted} did), and "
                f"save as the newest {len(turnover.donors)} of them; when, and like which, is drawn for the band."
            )
            half_ns = lasting.until(0.5)
            half = (
                f"half of them within {format_seconds(half_ns // SECOND_NS)}" if half_ns is not None else "most go on"
            )
            yield (
                f"Runs on {store} end as those did that started since its first scan: "
                f"{lasting.ended} of {lasting.count} have ended, {half}."
            )
        if self.few:
            counts = [
                f"{store} ({few.counted} started in {few.days:.0f} days of scans)"
                for store, few in sorted(self.few.items())
            ]
            yield (
                f"By itself no run starts or ends on {' and '.join(counts)}: only {STARTS_MIN} starts in "
                f"{WATCHED_MIN_DAYS} days or more tell how often runs do."
            )
        if told and self.turnovers:
            yield (
                "Runs of --run come on top of those that start by themselves; where they are among them, "
                "--no-arrivals counts them once."
            )


def donors_of(watched: Watched, seen_ns: int) -> list[Start]:
    """The newest runs that started while their store was looked at: those to come are like them."""
    return sorted((s for s in watched.starts if watched.since_ns < s.first_ns <= seen_ns), key=_age)[-DONORS:]


def _age(start: Start) -> tuple[int, str]:
    return start.first_ns, start.path


def _beside(policies: Sequence[Policy]) -> bool:
    """Whether what becomes of a run depends on others."""
    return any(policy.pressure or policy.group_by is not None for policy in policies)


def _donors(reader: Reader, store: str, starts: Iterable[Start], seen_ns: int) -> Iterator[Donor]:
    for start in starts:
        found = from_birth(checkpoint for checkpoint, _ in reader.history(store, start.path))
        if found:
            yield Donor(min(h.next_ns for h in found), start.life(seen_ns), found)
