"""The trash of a store that is spread over several roots: a checkpoint goes piece by piece, and comes back whole.

Each root keeps its piece in its own trash, under the same name. The piece with the proof is the head: it goes first and
comes back last, so that nothing half-gone looks whole; its entry is there as long as anything can be brought back, and
tells of all the others. Whoever holds it may change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.model import Shape
from lifecycle.core.units import format_age
from lifecycle.core.warrant import PurgeWarrant, Warrant, issue
from lifecycle.errors import Changed, LifecycleError, NotFound, Occupied, StoreError
from lifecycle.ports import Freed, Target, Trashed
from lifecycle.stores import beneath, manifest
from lifecycle.stores.manifest import Whole
from lifecycle.stores.posix_entry import Lying
from lifecycle.stores.posix_trash import LocalTrash
from lifecycle.stores.union import Piece, UnionStore

APART_NS = 60 * 1_000_000_000
"""Clocks of servers that differ by more than this are not one clock."""


class _Found(NamedTuple):
    """What lies under one name, by root."""

    entries: dict[int, Lying]

    @property
    def head(self) -> int | None:
        """The root whose piece tells of all; None where that is not there, or not one for all."""
        heads = {i if lying.made.whole is None else lying.made.whole.head for i, lying in self.entries.items()}
        only = heads.pop() if len(heads) == 1 else None
        return only if only in self.entries else None

    @property
    def any(self) -> Lying:
        """The head, or else any of them."""
        return self.entries[min(self.entries) if self.head is None else self.head]

    @property
    def held(self) -> frozenset[str]:
        """Old keys of all that can be given back."""
        return frozenset[str]().union(*(lying.held for lying in self.entries.values()))

    def pieces(self) -> list[int]:
        """The roots that had a piece."""
        whole = self.any.made.whole
        return list(self.entries) if whole is None else [i for i, inode in enumerate(whole.inodes) if inode]

    def inode(self, root: int) -> int:
        """Of the piece of a root; 0 where it had none, or where that was not written down."""
        whole = self.any.made.whole
        return 0 if whole is None or root >= len(whole.inodes) else whole.inodes[root]

    def members(self) -> tuple[str, ...]:
        """Those of the whole checkpoint, as far as it is known."""
        made = self.any.made
        return made.members if made.whole is None else made.whole.members or made.members

    def state(self) -> bool | None:
        """True all is in the trash, False nothing is, None some of it is not, or nobody tells what all of it is."""
        if self.head is not None and self.entries[self.head].purging:
            return True
        states = [self.entries[i].state if i in self.entries else False for i in self.pieces()]
        if not any(state is not False for state in states):
            return False
        return True if self.head is not None and all(states) else None


class UnionTrash:
    """What may change the trees that a `UnionStore` shows together."""

    def __init__(self, store: UnionStore) -> None:
        self.store = store
        self.trashes = [LocalTrash(root) for root in store.roots]

    def told_ns(self) -> int:
        """The middle of what the file systems of the roots say; see the port.

        Raises:
            StoreError: ``clock_unknown``: they do not agree.
        """
        told = [trash.told_ns() for trash in self.trashes]
        apart_ns = max(told) - min(told)
        if apart_ns > APART_NS:
            text = f"the clocks of the roots of store {self.store.name} are {format_age(apart_ns)} apart"
            raise StoreError(text, code="clock_unknown", hint="set the clocks of their servers (NTP)")
        return min(told) + apart_ns // 2

    def write_note(self, name: str, content: bytes) -> None:
        """Keep a small file of ours beside the data of every root, so that no lost root loses it; see the port."""
        for trash in self.trashes:
            trash.write_note(name, content)

    def drop_note(self, name: str) -> None:
        """Remove a small file of ours from every root; see the port."""
        for trash in self.trashes:
            trash.drop_note(name)

    def retire(self, warrant: Warrant, now_ns: int) -> Freed:
        """Move the checkpoint into the trash, piece by piece, all of them or none; see the port."""
        action = warrant.action
        target = Target(action.key, action.shape, action.members)
        pieces = self.store.pieces(target)
        self._is_planned(action, target, pieces)
        if self._found(warrant.trash_id).entries:
            raise Occupied(f"trash entry {warrant.trash_id!r} exists", code="trash_name_taken")
        head = next((piece for piece in pieces if action.proof and piece.has(action.proof)), pieces[0])
        rest = [piece for piece in pieces if piece is not head]
        inodes = {piece.root: piece.seen.inode or 1 for piece in pieces}
        whole = Whole(
            head.root,
            tuple(inodes.get(i, 0) for i in range(len(self.trashes))),
            warrant.seen.bytes,
            warrant.seen.files,
        )
        freed: list[Freed] = []

        def others() -> None:
            begun: list[Piece] = []
            try:
                for piece in rest:
                    begun.append(piece)
                    freed.append(self.trashes[piece.root].retire(_leave(warrant, piece), now_ns, whole))
            except LifecycleError as error:
                self._take_back(begun, warrant.trash_id, error)
                if isinstance(error, NotFound):  # else the rest would stand for it
                    raise Changed(f"part of {action.id} vanished while it was being retired") from error
                raise

        told = whole._replace(members=action.members)
        freed.append(self.trashes[head.root].retire(_leave(warrant, head), now_ns, told, others))
        return _sum(freed)

    def _is_planned(self, action: Action, target: Target, pieces: list[Piece]) -> None:
        """Raises Changed: what stands there is not what the action means, but for files of a group that are gone."""
        seen = self.store.sum_up(target, pieces)
        left = sum(len(piece.target.members) for piece in pieces)
        vanished = action.shape is not Shape.DIR and left < len(action.members)
        if seen.totals.fingerprint == action.fingerprint or (vanished and seen.inode in (0, action.inode)):
            return
        raise Changed(f"{action.id} is not what was planned")

    def _take_back(self, begun: list[Piece], trash_id: str, why: LifecycleError) -> None:
        """Bring back the pieces that went, the one too that failed: perhaps only the answer was lost.

        Raises:
            StoreError: ``partial_delete``: one cannot go back; the head must stay then, for it tells of that one.
        """
        for piece in begun[::-1]:
            try:
                self._restore_piece(piece.root, trash_id)
            except LifecycleError as error:
                text = f"{piece.target.key!r} is in the trash in part, and could not be moved back: {error}"
                raise StoreError(text, code="partial_delete") from why

    def _found(self, trash_id: str, *, claim: bool = False) -> _Found:
        lying = {i: trash.lying(trash_id, claim=claim) for i, trash in enumerate(self.trashes)}
        return _Found({i: one for i, one in lying.items() if one is not None})

    def retired(self, action: Action, trash_id: str) -> bool | None:
        """Where a crash left it; see the port."""
        try:
            found = self._found(trash_id, claim=True)
        except StoreError as error:
            if error.code != "broken_manifest":
                raise
            return None
        return found.state() if found.entries and found.any.made.key == action.key else False

    def restore(self, trash_id: str) -> Freed:
        """Bring all pieces back, the head last; see the port.

        Raises:
            StoreError: besides, ``broken_manifest``: the head is in no root's trash; ``partial_delete``: a piece is
                neither in the trash nor at its place.
        """
        head = self._head(trash_id)
        if head is None:
            for trash in self.trashes:  # the empty shells that a crash left
                with suppress(NotFound):
                    trash.restore(trash_id)
            raise NotFound(f"no trash entry {trash_id!r}", code="not_found")
        with self.trashes[head].existing(trash_id) as entry:
            found = self._found(trash_id)
            if head in found.entries and not found.entries[head].purging:
                with beneath.telling(trash_id, "restore"):
                    self._refuse_unfit(found)
                freed = [self._restore_piece(i, trash_id) for i in range(len(self.trashes))[::-1] if i != head]
                return _sum([*freed, self.trashes[head].bring_back(entry, trash_id)])
            return self.trashes[head].bring_back(entry, trash_id)

    def _restore_piece(self, root: int, trash_id: str) -> Freed:
        with suppress(NotFound):
            return self.trashes[root].restore(trash_id)
        return Freed(0, 0)

    def _head(self, trash_id: str) -> int | None:
        """The root that tells of an entry; None where there is none. Raises Refused: a root is not there."""
        self.store.identity()
        found = self._found(trash_id)
        if not found.entries or (found.head is None and found.state() is False):
            return None
        if found.head is None:
            text = f"the piece of {found.any.made.key!r} that tells of all others is in the trash of no root"
            hint = "are all `roots` of the store named, in their old order?"
            raise StoreError(text, code="broken_manifest", hint=hint)
        return found.head

    def _refuse_unfit(self, found: _Found) -> None:
        """See that all of an entry can go back, into nothing else.

        Raises:
            Occupied: something new stands there. StoreError: ``partial_delete``, ``unit_gone``. OSError.
        """
        made = found.any.made
        if not found.held:
            return
        if made.within and not self._stand(made.key):
            text = f"{made.key!r}, of which it is a part, is not there: bring that back first"
            raise StoreError(text, code="unit_gone")
        for i in found.pieces():
            if not (i in found.entries and found.entries[i].held) and not self._is_left(found, i):
                text = f"the piece of {made.key!r} that was in root {i + 1} of store {self.store.name} is not there"
                raise StoreError(text, code="partial_delete", hint="is that root the right one?")
        if key := self._replaced(found):
            raise Occupied(f"something new stands at {key!r}", code="occupied")

    def _is_left(self, found: _Found, root: int) -> bool:
        """Whether the piece of a root is at its place, since it did not go, or is back already."""
        made = found.any.made
        if made.shape is Shape.DIR:
            return self._inode(root, made.key) == found.inode(root)
        return any(self._inode(root, key) for key in found.members())

    def _replaced(self, found: _Found) -> str:
        """A key of what is held at which something else stands by now, in any root; empty where there is none."""
        holding = {i for i, lying in found.entries.items() if lying.held}
        for key in sorted(found.held):
            for i in range(len(self.trashes)):
                here = self._inode(i, key)
                # The piece that did not go, or is back, is no other one: it is known by its inode.
                mine = here == found.inode(i) and i not in holding
                if here and not mine:
                    return key
        return ""

    def _inode(self, root: int, key: str) -> int:
        """Of what stands at a key in a root; 0 where nothing does. Raises OSError."""
        found = self.store.roots[root].look(key) if root < len(self.store.roots) else None
        return 0 if found is None else found.st_ino

    def _stand(self, key: str) -> bool:
        return any(self._inode(i, key) for i in range(len(self.trashes)))

    def purge(self, warrant: PurgeWarrant) -> Freed:
        """Free all pieces; see the port. From the first moment on none of them can be brought back.

        Raises:
            StoreError: as ``LocalTrash.purge``; ``broken_manifest`` too where the head is in no root's trash.
        """
        head = self._head(warrant.trash_id)
        if head is None:
            for trash in self.trashes:  # the empty shells that a crash left
                trash.purge(warrant)
            return Freed(0, 0, "already_gone")
        freed: list[Freed] = []

        def others() -> None:
            for i, trash in enumerate(self.trashes):
                if i != head:
                    freed.append(trash.purge(warrant))

        with self.trashes[head].existing(warrant.trash_id) as entry:
            last = self.trashes[head].free(entry, warrant, others)
        return last if last.note == "already_gone" else _sum([*freed, last])

    def trash(self) -> list[Trashed]:
        """What lies in the trashes of all roots, one entry a checkpoint; see the port."""
        names = sorted({name for trash in self.trashes for name in trash.names()})
        return [entry for entry in map(self._tell, names) if entry is not None]

    def _tell(self, trash_id: str) -> Trashed | None:
        try:
            with beneath.telling(trash_id, "look at trash entry"):
                found = self._found(trash_id)
                state = found.state() if found.entries else False
                replaced = state is None and found.head is not None and bool(self._replaced(found))
        except StoreError:
            return manifest.broken(trash_id)
        if state is False:
            return None
        told = found.any.made.trashed(whole=state is True, replaced=replaced)
        whole = found.any.made.whole
        if whole is None:
            return told
        return told._replace(members=found.members(), bytes=whole.size_bytes, files=whole.files)


def _leave(warrant: Warrant, piece: Piece) -> Warrant:
    """Leave for a piece of what a warrant lets go, by what was just seen of it, and for no longer."""
    totals = piece.seen.totals
    action = replace(
        warrant.action,
        members=piece.target.members,
        fingerprint=totals.fingerprint,
        inode=piece.seen.inode,
        bytes=totals.bytes,
        files=totals.files,
        floor=(),
        copies=(),
    )
    return issue(
        action,
        plan=warrant.plan,
        trash_id=warrant.trash_id,
        seen=totals,
        standing=frozenset(),  # the floor of the whole was looked at for its own warrant, and is after the act
        held=False,
        now_ns=warrant.issued_at_ns,
    )


def _sum(freed: Sequence[Freed]) -> Freed:
    """Of several acts; notes once, and none that says of a piece that there was nothing."""
    notes = {note for one in freed for note in one.note.split(", ") if note and note != "already_gone"}
    return Freed(sum(one.bytes for one in freed), sum(one.files for one in freed), ", ".join(sorted(notes)))
