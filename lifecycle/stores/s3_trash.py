"""The destructive half of a store in a bucket: the proof goes first and comes last, all else goes with the purge.

Without versions an object cannot be moved aside in one step. A unit without its proof cannot be read as complete,
so taking the proof is the retiring; the other objects wait where they are until they are purged or restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import Totals
from lifecycle.core.model import Shape
from lifecycle.core.warrant import PurgeWarrant, Warrant
from lifecycle.errors import Changed, Denied, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Freed, Target, Trashed
from lifecycle.stores.manifest import Manifest, broken
from lifecycle.stores.objects import Head, alike
from lifecycle.stores.s3 import NOTE_MAX_BYTES, BucketStore, Unit
from lifecycle.stores.s3_delete import Outcome, delete_many, delete_one, drop_own
from lifecycle.stores.s3_shelf import PURGING, RESTORING, Entry, single
from lifecycle.stores.s3_state import state_of

PROOF_INLINE_MAX_BYTES = 64 * 1024
"""Up to here the proof's content lies in the manifest; a larger one is copied aside by the store itself."""
COPY_MAX_BYTES = 5 * 1000**3
"""What one CopyObject takes."""


class S3Trash:
    """The destructive half of ``store``; only handlers call it."""

    def __init__(self, store: BucketStore) -> None:
        self.store = store

    def told_ns(self) -> int:
        """By the date of an answer; see the port."""
        return self.store.told_ns()

    def write_note(self, name: str, content: bytes) -> None:
        """Keep a small file of ours beside the data."""
        key = self.store.note_key(name)
        if len(content) > NOTE_MAX_BYTES:
            raise StoreError(f"note {name!r} is over {NOTE_MAX_BYTES} bytes", code="bad_note")
        self.store.bucket.put(key, content)

    def drop_note(self, name: str) -> None:
        """Remove a small file of ours; fine when it is already gone."""
        drop_own(self.store.bucket, self.store.note_key(name))

    # -- retire

    def retire(self, warrant: Warrant, now_ns: int) -> Freed:
        """Write the manifest, then take the proof away, if it and all else are what the warrant saw.

        What is to be deleted at once and needs no proof for it (one object, or none that proves) goes now.
        """
        action = warrant.action
        single(warrant.trash_id, "a trash entry")
        if now_ns > warrant.expires_at_ns:
            raise Refused(f"the warrant for {action.id} is too old", code="no_warrant")
        unit = self.store.look(Target(action.key, action.shape, action.members))
        self._check_unchanged(action, warrant.seen, unit)
        proof = self._proof(action, unit)
        if action.verb is Verb.DELETE and (proof is None or len(unit.heads) == 1):
            return self._delete_now(action, unit)
        if proof is None:
            raise Refused(
                f"{action.id} has no object that proves it complete: it cannot be retired undoably in a bucket",
                code="no_undo",
                hint="set `trash: none` for it",
            )
        return self._retire(warrant, unit, proof, now_ns)

    def _check_unchanged(self, action: Action, seen: Totals, unit: Unit) -> None:
        if unit.totals.fingerprint == seen.fingerprint:
            return
        before = self.store.remembered(seen.fingerprint)
        known = {h.key: h for h in before.heads} if before is not None else {}
        if not all(h.key in known and alike(known[h.key], h) for h in unit.heads):
            raise Changed(f"{action.id} is not what was planned")

    @staticmethod
    def _proof(action: Action, unit: Unit) -> Head | None:
        """What makes the unit complete; a single object is its own proof."""
        key = action.proof or (action.members[0] if action.shape is Shape.FILE else None)
        if key is None:
            return None
        found = [head for head in unit.heads if head.key == key]
        if not found:
            raise Changed(f"{action.id} has lost its proof {key!r}")
        return found[0]

    def _retire(self, warrant: Warrant, unit: Unit, proof: Head, now_ns: int) -> Freed:
        store, action = self.store, warrant.action
        honoured = store.honoured
        self._drop_stale(action)
        full = store.bucket.head(store.full(proof.key))
        if full is None or not alike(full, proof):
            raise Changed(f"the proof of {action.id} is not what was planned")
        self._check_unlocked(action.id, [head._replace(key=store.full(head.key)) for head in unit.heads])
        entry = self._entry(warrant, unit, full, now_ns)
        if not entry.saved and action.verb is Verb.RETIRE:
            why = "larger than one copy takes" if state_of(full).readable else "in an archive"
            text = f"the proof of {action.id} is {why}: it cannot be retired undoably"
            raise Refused(text, code="no_undo", hint="set `trash: none` for it")
        entry = store.shelf.save(entry)
        try:
            if entry.saved and entry.body is None:
                store.bucket.copy(full, store.shelf.copy_key(warrant.trash_id))
            delete_one(store.bucket, full, honoured)
        except StoreError:
            # Only what is known to stand is no longer in the trash; where nobody knows, the manifest stays.
            with suppress(StoreError):
                if store.bucket.head(full.key) is not None:
                    store.shelf.drop(entry)
            raise
        return Freed(unit.totals.bytes, unit.totals.files, "version_remnant" if honoured.versioned else "")

    def _drop_stale(self, action: Action) -> None:
        """Forget earlier tries at this unit: their time to be purged would come before this one's."""
        for entry in self.store.shelf.entries()[0]:
            ours = (entry.manifest.key, entry.manifest.members) == (action.key, action.members)
            if ours and not self.store.retired(entry, {}):
                self.store.shelf.drop(entry)

    def _entry(self, warrant: Warrant, unit: Unit, proof: Head, now_ns: int) -> Entry:
        store, at_once = self.store, warrant.action.verb is Verb.DELETE
        readable = state_of(proof).readable
        kept = proof._replace(key=proof.key[len(store.prefix) :])
        body = None
        if proof.size <= PROOF_INLINE_MAX_BYTES and readable:
            body = store.bucket.read(proof.key, 0, PROOF_INLINE_MAX_BYTES) if proof.size else b""
            if len(body) != proof.size:
                raise StoreError(f"the proof of {warrant.action.id} was not read whole", code="store_failed")
            with suppress(StoreError):  # tags are no part of the proof; where we may not read them they are lost
                kept = kept._replace(meta={**proof.meta, **_tagging(store.tags(kept.key))})
        copies = PROOF_INLINE_MAX_BYTES < proof.size <= COPY_MAX_BYTES and not at_once and readable
        return Entry(Manifest.of(warrant, now_ns), unit.heads, kept, body, saved=body is not None or copies)

    def _delete_now(self, action: Action, unit: Unit) -> Freed:
        honoured = self.store.honoured
        full = [head._replace(key=self.store.full(head.key)) for head in unit.heads]
        self._check_unlocked(action.id, full)
        if len(full) == 1:
            delete_one(self.store.bucket, full[0], honoured)
            outcome = Outcome(gone=full)
        else:
            outcome = delete_many(self.store.bucket, full, honoured)
        if outcome.changed and not outcome.gone:
            raise Changed(f"{action.id} is not what was planned")
        self._tell_failures(action.id, outcome)
        return self._freed(outcome, honoured.versioned)

    def _check_unlocked(self, name: str, heads: list[Head]) -> None:
        """A lock does not keep a delete marker out, so it is asked for. In S3 there are no locks without versions."""
        if self.store.honoured.versioned or self.store.honoured.locks:
            for told in self.store.heads([head.key for head in heads]):
                if told is not None and told.locked:
                    raise Denied(f"{name} is locked: {told.key!r}: {told.locked}", code="locked")

    @staticmethod
    def _tell_failures(name: str, outcome: Outcome) -> None:
        if outcome.failed:
            head, error = outcome.failed[0]
            kind = Denied if any(isinstance(e, Denied) for _, e in outcome.failed) else StoreError
            raise kind(
                f"{len(outcome.failed)} objects of {name} remain, such as {head.key!r}: {error}", code=error.code
            )

    @staticmethod
    def _freed(outcome: Outcome, versioned: bool, more: tuple[Head, ...] = ()) -> Freed:
        gone = [*outcome.gone, *more]
        notes = ["version_remnant"] * versioned + ["changed_since_plan"] * bool(outcome.changed)
        return Freed(0 if versioned else sum(h.size for h in gone), sum(map(_counts, gone)), ", ".join(notes))

    def retired(self, action: Action, trash_id: str) -> bool | None:
        """After a crash: ask the manifest and the proof, and where there is no manifest the unit itself."""
        entry = self.store.shelf.entry(trash_id)
        if entry is not None:
            standing = self.store.bucket.head(self.store.full(entry.proof.key))
            return True if standing is None else None if self._is_other(entry, standing) else False
        try:
            unit = self.store.look(Target(action.key, action.shape, action.members))
        except NotFound:
            return True if action.verb is Verb.DELETE else None
        part = action.verb is Verb.DELETE and unit.totals.files < action.files
        return None if part else False

    # -- restore

    def restore(self, trash_id: str) -> Freed:
        """Put the proof back, if all else is as it was. It is a new object then: its ETag and time may differ."""
        store = self.store
        entry = store.shelf.entry(trash_id)
        if entry is None:
            raise NotFound(f"{store.name} has no trash entry {trash_id!r}", code="not_found")
        done = Freed(entry.manifest.size_bytes, entry.manifest.files, "proof_rewritten")
        standing = store.bucket.head(store.full(entry.proof.key))
        if standing is not None:
            again = entry.state == RESTORING and self._is_back(entry, standing)
            if not again and not alike(standing, entry.proof):
                raise _occupied(entry)
            store.shelf.drop(entry)
            return done if again else done._replace(note="")
        if entry.state == PURGING:
            text = f"trash entry {trash_id!r} is being purged: not all of it may be there"
            raise Refused(text, code="being_purged")
        if not entry.saved:
            raise Refused(f"trash entry {trash_id!r} keeps no proof to put back", code="no_undo")
        self._check_members(entry)
        entry = store.shelf.claim(entry, RESTORING)
        self._put_back(entry)
        store.shelf.drop(entry)
        return done

    def _is_other(self, entry: Entry, standing: Head) -> bool:
        """Whether what stands in the place of the proof was saved by somebody else since."""
        return not alike(standing, entry.proof) and not (entry.state == RESTORING and self._is_back(entry, standing))

    def _is_back(self, entry: Entry, standing: Head) -> bool:
        """Whether an earlier try has put the proof back; only S3's ETags stay the same with the content."""
        if (standing.size, standing.etag) == (entry.proof.size, entry.proof.etag):
            return True
        bucket = self.store.bucket
        if entry.body is not None:
            return entry.body == bucket.read(standing.key, 0, PROOF_INLINE_MAX_BYTES + 1)
        kept = bucket.head(self.store.shelf.copy_key(entry.manifest.trash_id))
        return kept is not None and bool(kept.digest) and (kept.size, kept.digest) == (standing.size, standing.digest)

    def _check_members(self, entry: Entry) -> None:
        now = self._now(entry)
        for key, head in now.items():
            if not any(alike(head, h) for h in entry.objects if h.key == key):
                raise _occupied(entry)
        missing = [h.key for h in entry.objects if h.key not in now and h.key != entry.proof.key]
        if missing:
            text = f"{len(missing)} objects of {entry.manifest.key!r} are gone, such as {missing[0]!r}"
            raise StoreError(f"{text}: its proof is not put back", code="members_missing")

    def _now(self, entry: Entry) -> dict[str, Head]:
        """What stands at the unit's keys, by relative key."""
        store, cut = self.store, len(self.store.prefix)
        if entry.manifest.shape is Shape.DIR:
            found = store.bucket.listed(store.full(entry.manifest.key + "/"))
        else:
            heads = store.heads(list(map(store.full, entry.manifest.members)))
            found = [head for head in heads if head is not None]
        return {h.key[cut:]: h._replace(key=h.key[cut:]) for h in found}

    def _put_back(self, entry: Entry) -> None:
        store, key, meta = self.store, self.store.full(entry.proof.key), entry.proof.meta
        if entry.body is None:
            copied = store.bucket.head(store.shelf.copy_key(entry.manifest.trash_id))
            if copied is None:
                raise StoreError(f"the kept proof of {entry.manifest.key!r} is gone", code="members_missing")
            store.bucket.copy(copied, key)
            return
        more: dict[str, Any] = dict(meta)
        # A header that is not ASCII cannot be sent as it came; the proof matters more than a remark on it.
        more["Metadata"] = {k: v for k, v in meta.get("Metadata", {}).items() if v.isascii()}
        try:
            store.bucket.put(key, entry.body, IfNoneMatch="*", **more)
        except Changed:
            raise _occupied(entry) from None

    # -- purge

    def purge(self, warrant: PurgeWarrant) -> Freed:
        """Free what an entry holds: each object only while it is the one that was retired; the manifest last.

        An entry whose proof stands again holds nothing: then it alone goes.
        """
        store = self.store
        entry = store.shelf.entry(warrant.trash_id)
        if entry is None:
            return Freed(0, 0, "already_gone")
        if not store.retired(entry, {}):
            store.shelf.drop(entry)
            return Freed(0, 0, "not_retired")
        if entry.state == RESTORING:
            raise Changed(f"trash entry {warrant.trash_id!r} is being restored", code="being_restored")
        entry = store.shelf.claim(entry, PURGING)
        honoured, now = store.honoured, self._now(entry)
        there = [(h, now[h.key]) for h in entry.objects if h.key in now]
        todo = [h._replace(key=store.full(h.key)) for h, standing in there if alike(standing, h)]
        outcome = delete_many(store.bucket, todo, honoured)
        outcome.changed += [h for h, standing in there if not alike(standing, h)]
        if outcome.failed:
            # A lost answer is no failure when the object is gone.
            left = self._now(entry)
            settled = [head for head, _ in outcome.failed if head.key[len(store.prefix) :] not in left]
            outcome.gone += settled
            outcome.failed = [(h, e) for h, e in outcome.failed if h not in settled]
        self._tell_failures(f"trash entry {warrant.trash_id!r}", outcome)
        self._check_gone(entry, outcome)
        store.shelf.drop(entry)
        return self._freed(outcome, honoured.versioned, (entry.proof,))

    def _check_gone(self, entry: Entry, outcome: Outcome) -> None:
        """List again: what was said to be deleted and stands as it was is not freed."""
        now = self._now(entry) if outcome.gone else {}
        stays = [h for h in entry.objects if h.key in now and alike(now[h.key], h)]
        if stays:
            text = f"{len(stays)} objects of {entry.manifest.key!r} are still there after their delete"
            raise StoreError(text, code="store_failed")

    def trash(self) -> list[Trashed]:
        """What lies in the trash; entries whose manifest cannot be read come with nothing but their id."""
        entries, unread = self.store.shelf.entries()
        return sorted([*map(self._tell, entries), *map(broken, unread)])

    def _tell(self, entry: Entry) -> Trashed:
        standing = self.store.bucket.head(self.store.full(entry.proof.key))
        if standing is None:
            return entry.manifest.trashed(whole=True)
        return entry.manifest.trashed(whole=False, replaced=self._is_other(entry, standing))


def _tagging(tags: Mapping[str, str]) -> dict[str, str]:
    return {"Tagging": urlencode(tags)} if tags else {}


def _counts(head: Head) -> bool:
    """Whether an object counts as a file; a placeholder does not."""
    return not (head.key.endswith("/") and not head.size)


def _occupied(entry: Entry) -> Occupied:
    return Occupied(f"something new stands at {entry.manifest.key!r}", code="occupied")
