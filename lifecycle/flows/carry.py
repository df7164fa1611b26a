"""Makes a copy and proves it: read once, checksum, store, look at the source again, read back, only then publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from lifecycle.core.copies import CopyManifest, Member, as_copied, in_order, payload, relocated
from lifecycle.core.listing import Flavour
from lifecycle.core.model import Checkpoint
from lifecycle.errors import Changed, LeaseHeld, LifecycleError, NotFound, Occupied, StoreError
from lifecycle.flows.pace import AT_ONCE, Tick, unwatched
from lifecycle.layouts.slim import thinned
from lifecycle.ports import Intake, Store, Target

SMALL_BYTES = 1024 * 1024
"""Up to here a file is small."""
SMALL_EACH, SMALL_AT_ONCE_MAX = 4, 32
"""How many small ones go in place of a large one, to and from buckets; and in all, unless more were asked for."""
RUN_MAX, RUN_BYTES = 16, 1024 * 1024
"""Files, and bytes, that one thread takes at a time at most."""
RUNS_EACH = 8
"""Runs that each thread gets at least, where there are so many files."""


class Unsaid(StoreError):
    """The store does not say what there is of a copy by now: recovery will finish it, or clear it away."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """Carries copies from one store to another."""

    source: Store
    place: Store
    intake: Intake
    tick: Tick = unwatched
    base: str = ""
    """Cut off from every key: a run's path, where a checkpoint is laid into a directory by its own name."""
    storage_class: str = ""
    """What the copy is put as; empty: whatever the place has for copies."""
    spared: Tick = unwatched
    """Told of bytes that an earlier try had sent."""
    confirm: Callable[[], None] = lambda: None
    """Asks whether it is still our turn, before anything of a copy is cleared away. Raises LeaseHeld."""
    at_once: int = AT_ONCE

    def carry(
        self,
        copy_id: str,
        checkpoint: Checkpoint,
        stands: Checkpoint,
        *,
        plan: str,
        now_ns: int,
        origin: CopyManifest | None = None,
        part: str = "",
    ) -> CopyManifest:
        """Make one copy.

        Args:
            copy_id: its name; a second try under the same name goes on from what the first one sent, as long as the
                source is what it was. All of it is read back all the same.
            checkpoint: the facts, as they were at home.
            stands: the copy to read, at the source.
            plan: id of the plan that asks for it.
            now_ns: when it is made.
            origin: manifest of the copy that is read; None when the original is.
            part: ``weights`` for a thin copy; of a thin one, none but such can be made.

        Raises:
            Changed: ``changed_since_plan``, ``changed_during_copy``: the source is not what was planned.
            Occupied: something stands there already. StoreError: ``verify_failed`` and what stores say.
                Nothing is published then, and what was staged is removed where the store lets us.
            Unsaid: it is proven, and whether it stands at its place is not known; or it failed, and what was staged
                could not be removed.
            LeaseHeld: somebody else's turn has begun; what was staged is left to them.
        """
        target = Target(stands.key, stands.shape, stands.members)
        self._same(target, stands, "changed_since_plan")
        contents = self.source.contents(target)
        contents = contents if origin is None else as_copied(contents, origin)
        about = self.place.name, checkpoint, contents.members, contents.directories
        manifest = CopyManifest(copy_id, *about, now_ns, plan, self.storage_class)
        if origin is not None and origin.part:
            manifest = replace(manifest, part=origin.part, spare=origin.spare)
        elif part:
            manifest, origin = thinned(manifest), thinned(origin) if origin else None
        manifest = relocated(manifest, self.base) if self.base else manifest
        try:
            had = self.intake.begin(manifest)
            manifest = self._take_from(target, stands, manifest, had)
            if origin is not None and manifest.content != relocated(origin, self.base).content:
                raise StoreError(f"{stands.id} is no longer what was copied there", code="copy_damaged")
            self._read_back(manifest)
        except LeaseHeld:
            raise
        except LifecycleError as e:
            self._abandon(copy_id, e)
            raise
        self._publish(manifest)
        return manifest

    def _publish(self, manifest: CopyManifest) -> None:
        try:
            self.intake.publish(manifest)
        except Occupied as e:
            self._abandon(manifest.copy_id, e)
            raise
        except StoreError as e:
            text = f"{manifest.checkpoint.id} was copied to {self.place.name} and may not stand there yet: {e}"
            raise Unsaid(text, code=e.code) from e

    def _abandon(self, copy_id: str, why: LifecycleError) -> None:
        self.confirm()
        try:
            self.intake.abandon(copy_id)
        except LifecycleError as e:
            raise Unsaid(f"{why}; what was staged cannot be removed yet: {e}", code=why.code) from why

    def _take_from(
        self, target: Target, stands: Checkpoint, manifest: CopyManifest, had: Mapping[str, str]
    ) -> CopyManifest:
        """Take every member from a source that stays what it is. Raises Changed: ``changed_during_copy``."""
        code = "changed_during_copy"
        try:
            manifest = self._take(manifest, had)
            self._same(target, stands, code)
        except Changed as e:
            raise Changed(f"{stands.id} was changed while it was copied: {e}", code=code) from e
        except NotFound:
            self._same(target, stands, code)
            raise
        return manifest

    def _same(self, target: Target, stands: Checkpoint, code: str) -> None:
        try:
            seen = self.source.sight(target).totals.fingerprint
        except NotFound:
            seen = ""
        if seen != stands.fingerprint:
            raise Changed(f"{stands.id} is not what was planned", code=code)

    def _take(self, manifest: CopyManifest, had: Mapping[str, str]) -> CopyManifest:
        """Put every member that is not there yet, the proof after all others; the manifest with their checksums."""
        order = [m for m in in_order(manifest) if m.same is None and m.key not in had]
        last = [m for m in order if m.key == manifest.checkpoint.proof]
        sums = dict(had)
        self.spared(sum(m.size_bytes for m in payload(manifest.members) if m.key in had))
        for part in ([m for m in order if m not in last], last):
            for member, digest in self._each(partial(self._put, manifest.copy_id), part):
                sums[member.key] = digest
        members = tuple(m._replace(sha256=sums.get(m.key, "")) if m.link is None else m for m in manifest.members)
        return replace(manifest, members=members)

    def _put(self, copy_id: str, member: Member) -> str:
        summing = sha256()
        pieces = () if member.link is not None else self.source.stream(self.base + member.key, member.size_bytes)
        self.intake.put(copy_id, member, self._through(pieces, summing.update), summing.hexdigest)
        return summing.hexdigest()

    def _through(self, pieces: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
        for piece in pieces:
            update(piece)
            self.tick(len(piece))
            yield piece

    def _read_back(self, manifest: CopyManifest) -> None:
        for _, bad in self._each(partial(self._differs, manifest.copy_id), [*payload(manifest.members)]):
            if bad:
                raise StoreError(f"{bad!r} reads back from {self.place.name} as something else", code="verify_failed")

    def _each(self, act: Callable[[Member], str], members: Sequence[Member]) -> Iterator[tuple[Member, str]]:
        """What ``act`` says of each, several at a time."""
        small = [m for m in members if m.size_bytes <= SMALL_BYTES]
        large = [m for m in members if m.size_bytes > SMALL_BYTES]
        for some, at_once in (large, self.at_once), (small, self._small_at_once):
            with ThreadPoolExecutor(at_once) as pool:
                for said in pool.map(lambda run: [(m, act(m)) for m in run], runs(some, at_once)):
                    yield from said

    @property
    def _small_at_once(self) -> int:
        """A request for a small object is mostly a wait for the answer; a small file is mostly work."""
        far = Flavour.OBJECT in (self.source.flavour, self.place.flavour)
        return max(self.at_once, min(SMALL_EACH * self.at_once, SMALL_AT_ONCE_MAX)) if far else self.at_once

    def _differs(self, copy_id: str, member: Member) -> str:
        try:
            size_bytes, digest = summed(self._through(self.intake.staged(copy_id, member), lambda _: None))
        except Changed:
            return member.key
        return "" if (size_bytes, digest) == (member.size_bytes, member.sha256) else member.key


def runs(members: Sequence[Member], at_once: int) -> Iterator[Sequence[Member]]:
    """The same members in runs that one thread takes: to hand over a small file costs as much as to read it.

    They are short enough that no thread is left alone with the last ones.
    """
    most = max(1, min(RUN_MAX, len(members) // (RUNS_EACH * at_once)))
    begin, size_bytes = 0, 0
    for number, member in enumerate(members):
        if number - begin >= most or (number > begin and size_bytes + member.size_bytes > RUN_BYTES):
            yield members[begin:number]
            begin, size_bytes = number, 0
        size_bytes += member.size_bytes
    if begin < len(members):
        yield members[begin:]


def summed(pieces: Iterable[bytes]) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a content."""
    summing, size_bytes = sha256(), 0
    for piece in pieces:
        summing.update(piece)
        size_bytes += len(piece)
    return size_bytes, summing.hexdigest()


def verify(store: Store, manifest: CopyManifest, tick: Tick = unwatched) -> str:
    """Read a copy anew and hold it against its manifest; the first file that differs, or empty.

    Raises:
        StoreError: it could not be read; that says nothing about what it is.
    """
    for member in payload(manifest.members):
        try:
            size_bytes, digest = summed(told(store.stream(member.key, member.size_bytes), tick))
        except Changed:
            return member.key
        if (size_bytes, digest) != (member.size_bytes, member.sha256):
            return member.key
    return ""


def told(pieces: Iterable[bytes], tick: Tick) -> Iterator[bytes]:
    """The pieces as they come, each told of."""
    for piece in pieces:
        tick(len(piece))
        yield piece
