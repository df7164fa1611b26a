"""How the memory store takes a copy in, interruptible before every single change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from lifecycle.core.copies import CopyManifest, Member, bulk, in_order, payload
from lifecycle.core.listing import Flavour, split
from lifecycle.core.model import Shape
from lifecycle.core.protect import SECOND_NS
from lifecycle.errors import Changed, NotFound, Occupied, Refused, StoreError
from lifecycle.sizing.waits import Speed
from lifecycle.stores.manifests import same_as_published
from lifecycle.stores.memory import MemoryFile, MemoryStage, MemoryStore, at_or_below, in_pieces, state_of
from lifecycle.stores.memory_trash import plain


class MemoryIntake:
    """Takes copies into a `MemoryStore`; every file knows which copy put it there."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.posix = store.flavour is Flavour.POSIX

    def begin(self, manifest: CopyManifest) -> Mapping[str, str]:
        """Note what is coming; see the port."""
        self.store.seam.reach("begin")
        begun = self.store.stages.get(plain(manifest.copy_id))
        made = MemoryStage(manifest)
        if manifest.copy_id not in self.store.kept_copies:
            if begun is not None and not begun.manifest.sealed() and manifest.goes_on(begun.manifest):
                made = MemoryStage(manifest, begun.files, sums=begun.sums)
            else:
                self._take_away(manifest.copy_id)
            self._check_free(manifest)
        self.store.seam.reach("change")
        self.store.stages[manifest.copy_id] = made
        there = made.files if self.posix else self.store.files
        return {key: digest for key, digest in made.sums.items() if key in there}

    def _check_free(self, manifest: CopyManifest) -> None:
        store, stage = self.store, self.store.stages.get(manifest.copy_id)
        others = [key for key, file in store.files.items() if file.copy_id != manifest.copy_id]
        if stage is None or not stage.placed:
            others += (*store.links, *store.dirs)
        for key in others:
            if key in manifest.keys if manifest.keys else at_or_below(key, manifest.key):
                raise Occupied(f"something stands at {key!r} already", code="occupied")

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        """Take one member in; see the port."""
        self.store.seam.reach("put")
        stage = self._stage(copy_id)
        there = stage.files if self.posix else self.store.files
        if copy_id in self.store.kept_copies and not self.posix:
            for _ in pieces:  # somebody else has published it meanwhile: nothing of that is touched
                pass
            return
        if member.key in there:
            if there[member.key].copy_id != copy_id:
                raise Occupied(f"something else stands at {member.key!r}", code="occupied")
            self.store.seam.reach("change")
            stage.sums.pop(member.key, None)
            del there[member.key]
        content = b"".join(pieces)
        if len(content) != member.size_bytes:
            raise Changed(f"{member.key!r} came with {len(content)} bytes and should have {member.size_bytes}")
        self.store.seam.reach("change")
        mode = 0o644 if member.mode is None else member.mode
        token = self.store.token_of(content)
        put = MemoryFile(content, member.mtime_ns, token, mode=mode, copy_id=copy_id)
        put.storage_class = stage.manifest.storage_class or put.storage_class
        there[member.key] = put
        if digest is not None:
            stage.sums[member.key] = digest()

    def staged(self, copy_id: str, member: Member) -> Iterator[bytes]:
        """Read back what was put; see the port."""
        self.store.seam.reach("staged")
        there = self._stage(copy_id).files if self.posix else self.store.files
        if member.key not in there or there[member.key].copy_id != copy_id:
            raise NotFound(f"{member.key!r} was not put", code="not_found")
        yield from in_pieces(there[member.key].content)

    def publish(self, manifest: CopyManifest) -> None:
        """Put it at its key; see the port."""
        store, copy_id = self.store, plain(manifest.copy_id)
        store.seam.reach("publish")
        if not manifest.sealed():
            raise Refused(f"the copy of {manifest.key!r} lacks checksums", code="not_verified")
        if copy_id not in store.kept_copies:
            stage = self._stage(copy_id)
            self._check_free(manifest)
            for member in payload(manifest.members):
                if member.key not in stage.files and not self._stands(member.key, copy_id):
                    raise NotFound(f"{member.key!r} was not put", code="not_found")
            store.seam.reach("change")
            stage.manifest = manifest
            if self.posix:
                self._place(stage)
            store.seam.reach("change")
            store.kept_copies[copy_id] = manifest.encode()
        store.seam.reach("change")
        store.stages.pop(copy_id, None)

    def _stands(self, key: str, copy_id: str) -> bool:
        return key in self.store.files and self.store.files[key].copy_id == copy_id

    def _place(self, stage: MemoryStage) -> None:
        """A directory in one step, else file by file, the proof last."""
        ordered, store = in_order(stage.manifest), self.store
        for batch in [ordered] if stage.manifest.checkpoint.shape is Shape.DIR else [[member] for member in ordered]:
            store.seam.reach("change")
            stage.placed = True
            for member in batch:
                self._make_parents(member.key)
                if member.link is not None:
                    store.links[member.key], store.link_mtimes_ns[member.key] = member.link, member.mtime_ns
                elif member.same is None and member.key in stage.files:
                    store.files[member.key] = stage.files.pop(member.key)
            for member in batch:
                if member.same is not None:
                    store.files[member.key] = store.files[member.same]
            for directory in stage.manifest.directories:
                self._make_parents(f"{directory.key}/x")
                own = store.dirs[directory.key]
                own.mtime_ns, own.mode = directory.mtime_ns, directory.mode

    def _make_parents(self, key: str) -> None:
        """Those that are there keep their mtime, as after a copy that sets it back."""
        parent = split(key)[0]
        while parent not in self.store.dirs:
            self.store.dirs[parent] = self.store.new_dir()
            parent = split(parent)[0]
        self.store.dirs[parent].ctime_ns = self.store.new_time()

    def abandon(self, copy_id: str) -> None:
        """Remove what was staged; see the port."""
        self.store.seam.reach("abandon")
        if plain(copy_id) not in self.store.kept_copies:
            self._take_away(copy_id)
        if copy_id in self.store.stages:
            self.store.seam.reach("change")
            del self.store.stages[copy_id]

    def _take_away(self, copy_id: str) -> None:
        """Remove what of a copy stands at its keys, the proof first."""
        stage, store = self.store.stages.get(copy_id), self.store
        if stage is None:
            return
        for member in in_order(stage.manifest)[::-1]:
            if self._stands(member.key, copy_id):
                store.seam.reach("change")
                del store.files[member.key]
        if stage.placed and stage.manifest.checkpoint.shape is Shape.DIR:
            store.seam.reach("change")
            stage.placed = False
            for table in (store.links, store.dirs):
                for key in [key for key in table if at_or_below(key, stage.manifest.key)]:
                    del table[key]

    def forget(self, copy_id: str) -> None:
        """Drop the manifest of a copy that is gone; see the port."""
        self.store.seam.reach("forget")
        if plain(copy_id) in self.store.kept_copies:
            self.store.seam.reach("change")
            del self.store.kept_copies[copy_id]

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """Bring a copy to another class, object by object; see the port."""
        self.store.seam.reach("change_class")
        self._check_classes()
        for member in bulk(manifest):
            file = self._own(manifest, member)
            if file.storage_class == storage_class:
                continue
            if not state_of(file).readable:
                raise StoreError(f"{member.key!r} is in {file.storage_class}", code="storage_archived")
            self.store.seam.reach("change")
            # An object is replaced and has a new time; its content is the same, and with it its ETag.
            made = replace(file, storage_class=storage_class, mtime_ns=file.mtime_ns + SECOND_NS, until_ns=0)
            self.store.files[member.key] = made
        return ""

    def end_change(self, manifest: CopyManifest) -> None:
        """Nothing is ever left open; see the port."""
        self.store.seam.reach("end_change")

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """Ask for what is in an archive; it comes when a test says so."""
        self.store.seam.reach("ask_back")
        files = [self._own(manifest, member) for member in payload(manifest.members)]
        asked = [file for file in files if not (state_of(file).readable or file.restoring)]
        for file in asked:
            self.store.seam.reach("change")
            file.restoring = True
        return len(asked)

    def _check_classes(self) -> None:
        if self.posix:
            raise Refused(f"store {self.store.name} has no storage classes", code="no_classes")

    def _own(self, manifest: CopyManifest, member: Member) -> MemoryFile:
        file = self.store.files.get(member.key)
        if file is None:
            raise NotFound(f"there is nothing at {member.key!r}", code="members_missing")
        if file.copy_id != manifest.copy_id or len(file.content) != member.size_bytes:
            raise Changed(f"{member.key!r} is not what copy {manifest.copy_id} put there")
        return file

    def renew(self, manifest: CopyManifest) -> None:
        """Tell of a published copy anew; see the port."""
        self.store.seam.reach("renew")
        same_as_published(self.store.kept_copies, manifest)
        self.store.seam.reach("change")
        self.store.kept_copies[manifest.copy_id] = manifest.encode()

    def record(self, manifest: CopyManifest) -> None:
        """Keep what stood there; see the port."""
        self.store.seam.reach("record")
        plain(manifest.copy_id)
        self.store.seam.reach("change")
        self.store.kept_copies[manifest.copy_id] = manifest.encode()

    def mend(self, copy_id: str) -> None:
        """Give directories their times back; see the port."""
        store = self.store
        store.seam.reach("mend")
        if plain(copy_id) not in store.kept_copies:
            return
        record = CopyManifest.decode(store.kept_copies[copy_id], copy_id)
        for directory in record.directories:
            names = {split(key)[1] for key in (*store.files, *store.dirs) if split(key)[0] == directory.key}
            if directory.key in store.dirs and record.inside(directory.key) >= names:
                store.dirs[directory.key].mtime_ns = directory.mtime_ns

    def _stage(self, copy_id: str) -> MemoryStage:
        if plain(copy_id) not in self.store.stages:
            raise NotFound(f"there is no copy {copy_id!r} under way", code="not_found")
        return self.store.stages[copy_id]
