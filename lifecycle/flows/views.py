"""What stores show at this moment, seen once for the actions that come together, and whether it proves a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lifecycle.core.action import Action, Verb
from lifecycle.core.copies import CopyManifest, payload
from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.places import WHOLE
from lifecycle.core.warrant import WARRANT_NS
from lifecycle.errors import NotFound, StoreError
from lifecycle.flows.carry import verify
from lifecycle.flows.copies import Held, held
from lifecycle.flows.handlers import look
from lifecycle.flows.pace import Tick, unwatched
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.slim import thinned
from lifecycle.ports import Clock, JournalRow, Reader, Store

ALL_READ = "all of it read before"
"""How notes end of a change of class that came after all of a copy had been read, whatever became of it."""
DONE_NOTES = frozenset({"", "version_remnant"})
"""Notes of one that was carried out after that."""
UNREAD = ": it is in an archive, and nobody is known to have read all of it before; removed there, it is copied anew"
VIEWS_MAX = 8
"""Runs that are remembered: a checkpoint's actions touch the same few, one after another."""


class Views:
    """Fresh looks at runs of all stores, at most as old as a warrant may be."""

    def __init__(
        self,
        stores: Mapping[str, Store],
        reader: Reader,
        conventions: Conventions,
        clock: Clock,
        tick: Tick = unwatched,
        rows: Callable[[str], Sequence[JournalRow]] = lambda _identity: (),
    ) -> None:
        self.stores, self.reader, self.conventions, self.clock, self.tick = stores, reader, conventions, clock, tick
        self.rows = rows
        """What the journal says of ``store:key``."""
        self._closed_unread: set[str] = set()
        """Ids of copies that cannot be read, and were not before they were closed."""
        self._proven: set[str] = set()
        """Ids of copies that were made or read again just now."""
        self._held: dict[str, Held] = {}
        self._runs: dict[tuple[str, str], tuple[Run | None, int]] = {}

    def run(self, store: str, path: str) -> Run | None:
        """A run as the store shows it. Raises StoreError."""
        now_ns = self.clock.now_ns()
        seen, at_ns = self._runs.get((store, path), (None, now_ns - WARRANT_NS - 1))
        if now_ns - at_ns <= WARRANT_NS:
            return seen
        known = self.stores[store], path, self.conventions, self.held(store)
        seen = look(*known)
        if self.clock.now_ns() - now_ns > WARRANT_NS:
            # The process was stopped in the middle of it, or the store is slow: what it saw first may be old, and
            # somebody may have spoken up for the run since. A store that really is so slow is not asked for ever.
            now_ns, seen = self.clock.now_ns(), look(*known)
        while len(self._runs) >= VIEWS_MAX:
            del self._runs[next(iter(self._runs))]
        self._runs[store, path] = seen, now_ns
        return seen

    def run_of(self, action: Action) -> Run | None:
        """The run of what an action is about; of a copy, with what protects it at its home, where people speak of it.

        Raises:
            StoreError: it cannot be seen.
        """
        run = self.run(action.store, action.run)
        if not action.home:
            return run
        if action.home not in self.stores:
            raise StoreError(f"{action.checkpoint} may be protected at {action.home}, which is not configured")
        home = self.run(action.home, action.run)
        if run is None or home is None:
            return run
        return replace(
            run,
            pointers=(*run.pointers, *home.pointers),
            holds=(*run.holds, *home.holds),
            leases=(*run.leases, *home.leases),
            writing=(*run.writing, *home.writing),
            active_at_ns=max(run.active_at_ns, home.active_at_ns),
        )

    def checkpoint(self, store: str, path: str, key: str) -> Checkpoint:
        """A checkpoint as its store shows it. Raises NotFound, StoreError."""
        run = self.run(store, path)
        for c in run.checkpoints if run else ():
            if c.key == key:
                return c
        raise NotFound(f"{store}:{key} is not there", code="not_found")

    def held(self, store: str) -> Held:
        """What a store says of its copies, as of the first time it was asked, and what was noted since."""
        if store not in self._held:
            self._held[store] = held(self.stores[store], self.reader.checks())
        return self._held[store]

    def manifest(self, c: Checkpoint) -> CopyManifest | None:
        """The manifest of a copy, or the record of what was made thin where it stands; None for an original."""
        if not c.copy_id:
            return None
        known = self.held(c.store)
        return next((m for m in (*known.manifests, *known.slimmed) if m.copy_id == c.copy_id), None)

    def note(self, store: str, made: CopyManifest) -> None:
        """A copy was made there just now."""
        known = self.held(store)
        if made.checkpoint.store != store:
            self._held[store] = replace(known, manifests=(*known.manifests, made))
        self._proven.add(made.copy_id)
        self._runs.pop((store, made.checkpoint.run), None)

    def renew(self, store: str, made: CopyManifest) -> None:
        """A copy there is told of anew."""
        known = self.held(store)
        others = (m for m in known.manifests if m.copy_id != made.copy_id)
        self._held[store] = replace(known, manifests=(*others, made))
        self._runs.pop((store, made.checkpoint.run), None)

    def proves(self, identity: str, action: Action) -> bool:
        """Whether a whole copy of the very content of ``action`` stands at ``identity``; what is not known does not.

        A copy that was not made by this very apply is read again: whatever proved it then, years may have passed.
        One in an archive cannot be: see ``bears_marks``.
        Two copies have manifests to compare. Of an original, its identity at the time of copying is compared; where
        that has changed, as after a recall, its bytes are read and summed. A thin copy proves nothing but another
        thin one, unless the action itself says that weights are enough.
        """
        store, _, key = identity.partition(":")
        try:
            other = self.checkpoint(store, action.run, key)
            mine = self.checkpoint(action.store, action.run, action.key)
            theirs, ours = self.manifest(other), self.manifest(mine)
            if other.evidence not in WHOLE or mine.fingerprint != action.fingerprint:
                return False
            if theirs is not None and not self._is_whole(other, theirs):
                return False
            if theirs is not None and ours is not None:
                if ours.part:
                    return theirs.holds(ours)
                return (thinned(ours) if action.part and theirs.part else ours).content == theirs.content
            if theirs is not None:
                if theirs.part and not action.part:
                    return False
                known = theirs.checkpoint
                same = known.store == mine.store and known.fingerprint == mine.fingerprint
                return same or not verify(self.stores[mine.store], theirs, self.tick)
            return ours is not None and not verify(self.stores[store], ours, self.tick)
        except (StoreError, KeyError):
            return False

    def _is_whole(self, stands: Checkpoint, copy: CopyManifest) -> bool:
        """Whether a copy is what was copied. Raises StoreError: it cannot be told."""
        if stands.online:
            return self._reads_whole(stands.store, copy)
        if self.was_read(stands, copy, stands.storage_class) and bears_marks(self.stores[stands.store], copy):
            return True
        self._closed_unread.add(stands.id)
        return False

    def was_read(self, stands: Checkpoint, copy: CopyManifest, storage_class: str) -> bool:
        """Whether all of a copy was read and compared before any of it was closed in a class.

        By an act of ours that was to bring it there, finished or not; or by ``verify``, whose reading is as good.
        """
        check = self.reader.checks().get(copy.copy_id)
        if check is not None and check.outcome != "unread":
            return check.outcome == "whole" and "+" not in storage_class
        return any(
            (row.action.verb, row.trash_id) == (Verb.RECLASS, copy.copy_id)
            and row.action.storage_class == storage_class
            and (row.note.endswith(ALL_READ) or (row.outcome == "done" and row.note in DONE_NOTES))
            for row in self.rows(stands.id)
        )

    def doubt(self, action: Action) -> str:
        """What more is to be told of the copies that an action rests on; empty where nothing is."""
        return "" if self._closed_unread.isdisjoint(action.copies) else UNREAD

    def _reads_whole(self, store: str, copy: CopyManifest) -> bool:
        """Whether a copy is what was copied, by its bytes. Raises StoreError: it cannot be read."""
        if copy.copy_id not in self._proven and not verify(self.stores[store], copy, self.tick):
            self._proven.add(copy.copy_id)
        return copy.copy_id in self._proven

    def drop(self, store: str, path: str) -> None:
        """Something was changed in this run: it is looked at afresh."""
        self._runs.pop((store, path), None)


def bears_marks(store: Store, copy: CopyManifest) -> bool:
    """Whether each object of a copy in an archive is still the one that was read back before it was put there.

    It counts only where the journal says that we put it into this very class: then each byte was read and compared
    just before. The mark that an object got when it was made goes along only with a copy that the store itself makes;
    whoever writes it anew writes no mark. So mark and size, asked of each object now, say that it is that content, as
    surely as the store keeps and copies bytes; more cannot be known of an archive without a restore. What a rule of
    the bucket has put away was not read before, and proves nothing. Raises StoreError: it cannot be told.
    """
    members = list(payload(copy.members))
    states = store.states([member.key for member in members])
    return bool(members) and all(
        (state := states.get(m.key)) is not None and (state.copy_id, state.size_bytes) == (copy.copy_id, m.size_bytes)
        for m in members
    )
