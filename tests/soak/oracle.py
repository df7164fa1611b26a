"""What must be true, whatever happens: known from what was saved and from the bytes that lie about, never asked.

V1 nothing is lost; V2 the newest complete one stays; V3 what is protected stays; V4 nothing outside changes; V5 no act
without a row before it; V6 all converges; V7 no half looks whole; V8 a plan writes nothing; V9 the same facts, the same
plan; V10 more protection never lets more go. V5 and V8 to V10 are checked where engines are driven.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.soak.disks import Bytes, Disk

S = 1_000_000_000
STALE_NS = 60 * S
"""How old the last look at pointers and leases may be when an act rests on it."""
SKEW_NS = 120 * S
"""How far the clocks of engines that act may be from the true time."""
LEASE_TTL_NS = 1800 * S
LEASE_NS = 900 * S
"""The longest that an act may take; its time in the trash counts from its beginning."""
CONFLICT_NS = 3600 * S
"""Steps and times that disagree by more than this belong to two attempts."""


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(eq=False)
class Save:
    """One save of one checkpoint: its files by their path in it (empty for a single file), as its trainer wrote them.

    `dropped` says that somebody who is no engine has removed it or broken it: nothing is promised of it any more.
    """

    number: int
    store: str
    run: str
    key: str
    step: int
    files: dict[str, bytes] = field(default_factory=dict)
    ended_ns: int | None = None
    dropped: str = ""
    left_ns: int | None = None
    freed: bool = False
    strayed: bool = False
    """It went from a directory of another name, and so lies in the trash under a name that people do not know."""

    @property
    def complete(self) -> bool:
        return self.ended_ns is not None and not self.dropped

    def __str__(self) -> str:
        return f"#{self.number} {self.store}:{self.key!a}"


@dataclass(eq=False)
class Guard:
    """A hold, a lease or a pointer: since which event and moment it protects, and until when."""

    kind: str
    store: str
    key: str
    since: int
    since_ns: int
    until_ns: int | None = None
    name: str = ""

    def covers(self, save: Save) -> bool:
        mine, theirs = save.key + "/", self.key + "/"
        return (
            not save.strayed
            and self.store == save.store
            and (not self.key or mine.startswith(theirs) or theirs.startswith(mine))
        )


class Where(NamedTuple):
    """Where the files of one save are: by (store, base) those that stand there, and those in any trash."""

    at: dict[tuple[str, str], set[str]]
    lying: set[str]

    def home(self, save: Save) -> bool:
        """Whether it stands whole in the store it was saved to, under whatever name."""
        return any(store == save.store and rels >= save.files.keys() for (store, _), rels in self.at.items())


NOWHERE = Where({}, set())


class Oracle:
    """All that was ever saved, and who protects what."""

    def __init__(self, disks: list[Disk], trash_ns: int) -> None:
        self.disks, self.trash_ns = {disk.name: disk for disk in disks}, trash_ns
        self.saves: list[Save] = []
        self.known: dict[bytes, tuple[Save, str]] = {}
        self.guards: list[Guard] = []
        self.archived: set[tuple[str, str]] = set()
        self.before: dict[Save, Where] = {}
        self.times: dict[bytes, int] = {}
        self.looked_ns: dict[int, int] = {}
        """The true time at which an engine asked for the holds, by the number of the last event before that."""
        self.suspects: dict[object, list[tuple[Save, str]]] = defaultdict(list)

    # -- what actors tell

    def begin(self, store: str, run: str, key: str, step: int) -> Save:
        made = Save(len(self.saves) + 1, store, run, key, step)
        self.saves.append(made)
        return made

    def wrote(self, save: Save, rel: str, content: bytes, at_ns: int) -> None:
        """A file was saved; what it was put in the place of is gone."""
        save.files[rel] = content
        assert content not in self.known, "contents are told apart by nothing else"
        self.known[content] = (save, rel)
        self.times[content] = at_ns

    def drop(self, store: str, key: str, why: str) -> None:
        """Somebody removes or breaks what stands at or below a key."""
        for save in self.saves:
            seen = self.before.get(save)
            bases = [base for where, base in seen.at if where == store] if seen else [save.key] * (save.store == store)
            if not save.dropped and any(f"{base}/".startswith(f"{key}/") for base in bases):
                save.dropped = why

    def newest(self, store: str, run: str) -> list[Save]:
        """Of a run's complete saves that can be read now, at home or as a copy elsewhere, newest first.

        One of which a copy was taken or broken may still stand whole under its own name: engines see that it does.
        """
        mine = [s for s in self.saves if s.ended_ns is not None and not s.freed and (s.store, s.run) == (store, run)]
        standing = [s for s in mine if self.readable(s, self.before.get(s, NOWHERE), s.key if s.dropped else None)]
        return sorted(standing, key=lambda s: (s.ended_ns or 0, s.step), reverse=True)

    def readable(self, save: Save, seen: Where, key: str | None = None) -> bool:
        """Whether it stands whole somewhere, or somewhere at ``key``, and not in an archive."""
        whole = (at for at, rels in seen.at.items() if rels >= save.files.keys() and at not in self.archived)
        return any(key is None or base == key for _, base in whole)

    def promised(self, store: str, run: str) -> set[Save]:
        """Those that no engine may let go: the one of the highest step, and the newest by time.

        Steps order what was saved within an hour (core/lineage.py): a run that was wound back is known as that later.
        """
        found = self.newest(store, run)
        if not found:
            return set()
        newest, highest = found[0], max(found, key=lambda s: (s.step, s.ended_ns or 0))
        higher = [s.ended_ns or 0 for s in found if s.step > newest.step]
        rewound = higher and (newest.ended_ns or 0) - max(higher) > CONFLICT_NS
        return {save for save in ({highest, newest} if rewound else {highest}) if not save.dropped}

    # -- what is seen

    def look(self) -> dict[Save, Where]:
        seen: dict[Save, Where] = defaultdict(lambda: Where(defaultdict(set), set()))
        self.archived.clear()
        for name, disk in self.disks.items():
            for key, found in disk.standing().items():
                if (of := self.known.get(found.content)) is None:
                    continue
                save, rel = of
                base = key if not rel else key[: -len(rel) - 1] if key.endswith("/" + rel) else None
                if base is None:
                    raise Violation(f"V3: a file of {save} stands at {key!a}, which is another name")
                seen[save].at[name, base].add(rel)
                self._check_time(save, key, name, disk, found)
                if not found.readable:
                    self.archived.add((name, base))
            for content in disk.lying():
                if content in self.known:
                    save, rel = self.known[content]
                    seen[save].lying.add(rel)
        return dict(seen)

    def _check_time(self, save: Save, key: str, name: str, disk: Disk, found: Bytes) -> None:
        if disk.posix and not save.dropped and found.mtime_ns != self.times[found.content]:
            raise Violation(f"V3: the time of {name}:{key!a} is {found.mtime_ns}, not {self.times[found.content]}")

    def watch(self) -> None:
        """Actors were at work: what stands now is what engines find."""
        self.before = self.look()

    def judge(self, who: object, now_ns: int, looked: int) -> None:
        """An engine has changed something.

        Args:
            who: which engine, to whom it is put down.
            now_ns: the true time.
            looked: number of the last event before it asked what protects; what came later it need not know.
        """
        promised = {s for save in self.saves for s in self.promised(save.store, save.run)} if self.saves else set()
        before, self.before = self.before, self.look()
        for save in self.saves:
            was, now = before.get(save, NOWHERE), self.before.get(save, NOWHERE)
            self._check_half(save, now)
            if save.dropped or save.freed or not save.files:
                continue
            if not self._check_there(save, now, now_ns, looked):
                continue
            if was.home(save) and not now.home(save):
                self._left(who, save, now_ns, looked, save in promised, was)
        self._clear_suspects()

    def _check_there(self, save: Save, now: Where, now_ns: int, looked: int) -> bool:
        """V1: whole at a place, or a copy, or in the trash, or freed when its time there was over."""
        if any(rels >= save.files.keys() for rels in now.at.values()):
            save.left_ns = None if now.home(save) else save.left_ns
            return True
        if set().union(now.lying, *now.at.values()) >= save.files.keys():
            save.left_ns = now_ns if save.left_ns is None else save.left_ns
            return True
        if save.left_ns is None or now_ns - save.left_ns < self.trash_ns - 2 * SKEW_NS - LEASE_NS:
            since = "just now" if save.left_ns is None else f"{(now_ns - save.left_ns) // S} s"
            raise Violation(f"V1: {save} is lost: {len(save.files)} files, away for {since}, seen {now}")
        if guard := self._guarding(save, now_ns, looked, ("hold",)):
            raise Violation(f"V3: {save} was freed though held by {guard.name} since event {guard.since}")
        save.freed = True
        return False

    def _check_half(self, save: Save, now: Where) -> None:
        """V7: with part of it gone, what its framework asks for says so."""
        if save.dropped or save.ended_ns is None:
            return
        for (store, base), rels in now.at.items():
            if store == save.store and rels < save.files.keys() and looks_whole(save, rels):
                raise Violation(f"V7: half of {save} at {base!a} looks whole: {sorted(rels)}")

    def _left(self, who: object, save: Save, now_ns: int, looked: int, promised: bool, was: Where) -> None:
        save.strayed = save.strayed or not any(base == save.key for _, base in was.at)
        if promised and not self.readable(save, self.before.get(save, NOWHERE)):
            self.suspects[who].append((save, "V2: it was the newest complete one"))
        if guard := self._guarding(save, now_ns, looked, ("hold", "lease", "pointer")):
            self.suspects[who].append((save, f"V3: {guard.kind} {guard.name} since event {guard.since}"))

    def _guarding(self, save: Save, now_ns: int, looked: int, kinds: tuple[str, ...]) -> Guard | None:
        for guard in self.guards:
            lasting = guard.until_ns is None or guard.until_ns > now_ns + SKEW_NS
            # Pointers and leases are looked at just before holds; who is stopped after that knows of nothing newer.
            known = guard.kind == "hold" or guard.since_ns < self.looked_ns.get(looked, now_ns) - STALE_NS - SKEW_NS
            if guard.kind in kinds and lasting and known and guard.since <= looked and guard.covers(save):
                return guard
        return None

    def _clear_suspects(self) -> None:
        for who, found in self.suspects.items():
            self.suspects[who] = [(s, why) for s, why in found if not self.before.get(s, NOWHERE).home(s)]

    def settle(self, who: object, *, died: bool) -> None:
        """An engine has written what it did, or has ended: what it should not have taken is back by now.

        Of one that was killed in the middle of an act nothing is asked: what it took lies in the trash, see V1.
        """
        found = [] if died else [(s, why) for s, why in self.suspects[who] if not s.dropped]
        self.suspects[who] = []
        if found:
            save, why = found[0]
            raise Violation(f"{why}: {save} was let go, and is not brought back")


LAST = {"hf": {"trainer_state.json", "model.safetensors"}, "dcp": {".metadata"}, "pl": {""}}
"""Files without which no framework takes a checkpoint for complete."""


def looks_whole(save: Save, rels: set[str]) -> bool:
    """Whether its framework would load it, going by what stands there."""
    kind = next(kind for kind, needs in LAST.items() if needs <= save.files.keys())
    return rels >= LAST[kind]
