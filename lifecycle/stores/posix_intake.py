"""How a local store takes a copy in: staged out of sight, put at its key by a rename, given up without a trace."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby

from lifecycle.core.copies import CopyManifest, Directory, Member, in_order
from lifecycle.core.listing import split
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, NotFound, Occupied, Refused, StoreError
from lifecycle.sizing.waits import Speed
from lifecycle.stores import beneath, posix_copy, posix_stage
from lifecycle.stores.local import LocalStore
from lifecycle.stores.manifests import same_as_published
from lifecycle.stores.posix_copy import COPIES, COPY_MAX_BYTES, DIRECTORY_MODE, INCOMING, SUFFIX, Found, Opener
from lifecycle.stores.posix_stage import PAYLOAD, Stage
from lifecycle.stores.posix_walk import Walker

CHECKSUM_BYTES = 64
"""What a checksum adds to the manifest of a member."""


class LocalIntake:
    """Takes copies into the tree that a `LocalStore` shows.

    A copy is staged with every member at its whole key below a directory of its own. Once its manifest is there with
    every checksum, all has been staged: what is no longer staged then was put at its key by us. That, and that it is
    as the manifest says, is how a part of ours is told from what others put there.
    """

    def __init__(self, store: LocalStore) -> None:
        self.store = store

    def begin(self, manifest: CopyManifest) -> Mapping[str, str]:
        """Note what is coming; what an earlier try of another source staged goes. See the port."""
        content = self._encoded(manifest)
        device = self.store.check_root().st_dev
        with beneath.telling(manifest.key, "begin the copy of"), self.store.area.writing(INCOMING, device) as incoming:
            published = self._published(manifest.copy_id)
            if beneath.look(manifest.copy_id, incoming) is not None:
                with posix_stage.entered(incoming, manifest.copy_id) as stage:
                    sums = None if published else stage.going_on(manifest)
                    if sums is not None:
                        self._check_free(manifest)
                        stage.note(content)
                        return sums
                    self._clear(stage, published)
            if not published:
                self._check_free(manifest)
            posix_stage.make(incoming, manifest.copy_id, content)
            return {}

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        """Take one member in; see the port."""
        with beneath.telling(member.key, "take in"), self._staged(copy_id, fcntl.LOCK_SH) as found:
            stage = _needed(found, copy_id)
            stage.put(member, pieces)
            if digest is not None:
                stage.record(member, digest())

    def staged(self, copy_id: str, member: Member) -> Iterator[bytes]:
        """Read back what was put; it was made durable and left the page cache. See the port."""
        beneath.single(copy_id)
        parent, name = beneath.place(member.key)
        with beneath.telling(member.key, "read back"), self.store.area.reading(INCOMING) as incoming:
            if incoming is None:
                raise NotFound(f"there is no copy {copy_id!r} under way", code="not_found")
            with beneath.opened(f"{copy_id}/{PAYLOAD}", incoming) as payload, beneath.opened(parent, payload) as fd:
                yield from posix_copy.pieces(name, fd, None)

    def publish(self, manifest: CopyManifest) -> None:
        """Put it at its key; see the port.

        Raises:
            Refused: ``not_verified``: a checksum is missing. NotFound: it was not begun, or a member was not put.
            Changed: it is not what was put, or not what an earlier publishing began with.
        """
        content = self._encoded(manifest)
        if not manifest.sealed():
            raise Refused(f"the copy of {manifest.key!r} lacks checksums", code="not_verified")
        with beneath.telling(manifest.key, "publish"), self._staged(manifest.copy_id) as stage:
            if not self._published(manifest.copy_id):
                self._publish(_needed(stage, manifest.copy_id), manifest, content)
            if stage is not None:
                stage.drop()

    def _publish(self, stage: Stage, manifest: CopyManifest, content: bytes) -> None:
        with beneath.opened(PAYLOAD, stage.fd) as payload:
            begun = stage.manifest()
            if begun is None or not begun.sealed():
                _complete(payload, manifest)
                stage.settle(payload, [member.key for member in manifest.members])
                self._check_free(manifest)
                stage.note(content)
            elif begun.content != manifest.content:
                text = f"an earlier publishing of {manifest.key!r} began with other contents"
                raise Changed(text, hint="begin the copy anew")
            self._check_parts(payload, manifest)
            with self.store.area.writing(COPIES, os.fstat(stage.fd).st_dev) as copies:
                try:
                    self._place(payload, manifest)
                except FileExistsError:
                    self._take_back(payload, manifest)
                    raise
                name = manifest.copy_id + SUFFIX
                beneath.write_file(name, copies, content, f"{manifest.copy_id}.new")

    def _check_parts(self, payload: int, manifest: CopyManifest) -> None:
        """Every part must be staged, or stand at its key and be ours.

        Raises:
            Occupied: something else stands there. NotFound: a part is in neither place.
        """
        for part in _parts(manifest):
            staged, stands = _look(part, _opener(payload)), _look(part, self._open)
            if staged is not None and stands is not None and os.path.samestat(staged, stands):
                self._end_move(part, payload)  # a crash came between the two halves of one
            elif staged is None and stands is None:
                raise NotFound(f"{part!r} is neither staged nor at its key", code="not_found")
            elif stands is not None and not (staged is None and self._is_ours(part, manifest)):
                raise Occupied(f"something else stands at {part!r}", code="occupied")

    @staticmethod
    def _end_move(part: str, payload: int) -> None:
        parent, name = beneath.place(part)
        with beneath.opened(parent, payload) as fd:
            beneath.unlink(name, fd)

    def _is_ours(self, part: str, manifest: CopyManifest) -> bool:
        """Whether what stands at a key from which nothing is staged any more is as the manifest says."""
        try:
            if manifest.checkpoint.shape is Shape.DIR:
                found = posix_copy.find_tree(self.store.walk(part), self._open)[0]
                return _alike(found, manifest.members)
            return _alike(posix_copy.find_files([part], self._open), [m for m in manifest.members if m.key == part])
        except (StoreError, Refused):
            return False

    def _place(self, payload: int, manifest: CopyManifest) -> None:
        """Move part after part to its key, the proof last. Raises FileExistsError: somebody was faster."""
        notes: set[str] = set()
        for parent, parts in groupby(_parts(manifest), key=lambda part: split(part)[0]):
            beneath.make_parents(parent, self.store.root(), self.store.cross_mounts, notes)
            with (
                beneath.opened(parent, payload) as source,
                self._open(parent) as target,
                beneath.times_kept(target, notes),
            ):
                for part in parts:
                    name = beneath.place(part)[1]
                    if beneath.look(name, source) is not None:
                        beneath.move(name, source, name, target)
        for directory in manifest.directories[
            :1
        ]:  # only now: to move a directory its owner must be able to write to it
            with self._open(directory.key) as fd:
                _settle(directory, fd, directory.mode & DIRECTORY_MODE)

    def _take_back(self, payload: int, manifest: CopyManifest) -> None:
        """Stage again what was put at its key, the proof first; what is not ours stays where it is."""
        notes: set[str] = set()
        for part in _parts(manifest)[::-1]:
            staged, stands = _look(part, _opener(payload)), _look(part, self._open)
            if stands is None or not (
                os.path.samestat(staged, stands) if staged is not None else self._is_ours(part, manifest)
            ):
                continue
            parent, name = beneath.place(part)
            if stat.S_ISDIR(stands.st_mode):
                with self._open(part) as fd:
                    beneath.set_mode(fd, stat.S_IMODE(stands.st_mode) | stat.S_IRWXU)
            with (
                self._open(parent) as source,
                beneath.opened(parent, payload) as target,
                beneath.times_kept(source, notes),
            ):
                if staged is not None:
                    beneath.unlink(name, source)
                else:
                    beneath.move(name, source, name, target)

    def abandon(self, copy_id: str) -> None:
        """Remove what was staged; see the port. Directories that were made above a key stay."""
        with beneath.telling(copy_id, "give up copy"), self._staged(copy_id) as stage:
            if stage is not None:
                self._clear(stage, self._published(copy_id))

    def _clear(self, stage: Stage, published: bool) -> None:
        """Remove a stage, and what of its copy stands at its key already, if it was not published."""
        begun = stage.manifest()
        if begun is not None and begun.sealed() and not published:
            with suppress(FileNotFoundError), beneath.opened(PAYLOAD, stage.fd) as payload:
                self._take_back(payload, begun)
        stage.drop(() if begun is None else begun.directories)

    def forget(self, copy_id: str) -> None:
        """Drop the manifest of a copy that is gone; see the port."""
        with beneath.telling(copy_id, "forget copy"), self._staged(copy_id) as stage:
            if stage is not None and self._published(copy_id):
                stage.drop()  # else it would pass for one that was never published
            with self.store.area.reading(COPIES) as copies:
                if copies is not None:
                    with suppress(FileNotFoundError):
                        beneath.unlink(copy_id + SUFFIX, copies)
                    os.fsync(copies)

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """A file system has no storage classes."""
        raise Refused(f"store {self.store.name} has no storage classes", code="no_classes")

    def end_change(self, manifest: CopyManifest) -> None:
        """Nothing is ever left open here."""

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """Nothing is ever in an archive here."""
        return 0

    def renew(self, manifest: CopyManifest) -> None:
        """Tell of a published copy anew; see the port."""
        same_as_published(self.store.copies(), manifest)
        self.record(manifest)

    def record(self, manifest: CopyManifest) -> None:
        """Keep what stood there; see the port."""
        content, device = self._encoded(manifest), self.store.check_root().st_dev
        with beneath.telling(manifest.key, "record"), self.store.area.writing(COPIES, device) as copies:
            beneath.write_file(manifest.copy_id + SUFFIX, copies, content, f"{manifest.copy_id}.new")

    def mend(self, copy_id: str) -> None:
        """Give directories their times back; see the port."""
        content = self.store.copies().get(copy_id)
        record = None if content is None else CopyManifest.decode(content, copy_id)
        with beneath.telling(copy_id, "give times back of"):
            for directory in record.directories if record else ():
                with suppress(FileNotFoundError), self._open(directory.key) as fd:
                    if record and record.inside(directory.key).issuperset(os.listdir(fd)):
                        beneath.set_mtime(".", fd, directory.mtime_ns)

    def _published(self, copy_id: str) -> bool:
        with self.store.area.reading(COPIES) as copies:
            return copies is not None and beneath.look(copy_id + SUFFIX, copies) is not None

    def _check_free(self, manifest: CopyManifest) -> None:
        for part in _parts(manifest):
            if _look(part, self._open) is not None:
                raise Occupied(f"something stands at {part!r} already", code="occupied")

    @contextmanager
    def _staged(self, copy_id: str, lock: int = fcntl.LOCK_EX) -> Iterator[Stage | None]:
        """The claimed stage of a copy; None where it has none."""
        beneath.single(copy_id)
        device = self.store.check_root().st_dev
        if self.store.area.id() is None:
            yield None
            return
        with self.store.area.writing(INCOMING, device) as incoming:
            if beneath.look(copy_id, incoming) is None:
                yield None
                return
            with posix_stage.entered(incoming, copy_id, lock) as stage:
                yield stage

    def _open(self, key: str) -> AbstractContextManager[int]:
        return beneath.opened(key, self.store.root(), self.store.cross_mounts)

    def _encoded(self, manifest: CopyManifest) -> bytes:
        """The manifest as bytes, if it can be meant.

        Raises:
            StoreError: ``bad_key``: it names what is not below its own key, or is ours; ``too_many_files``.
        """
        beneath.single(manifest.copy_id)
        unit = manifest.checkpoint
        keys = {member.key for member in manifest.members}
        if unit.shape is Shape.DIR:
            inside = unit.key != "" and all(key.startswith(f"{unit.key}/") for key in keys)
            inside = inside and all(f"{d.key}/".startswith(f"{unit.key}/") for d in manifest.directories)
        else:
            inside = keys == set(unit.members) and not manifest.directories
        for key in (unit.key, *keys):
            beneath.steps(key)
        if not inside or any(map(self.store.is_own, (unit.key, *keys))):
            raise StoreError(f"the manifest of the copy of {unit.key!r} names files of others", code="bad_key")
        content = manifest.encode()
        if len(content) + CHECKSUM_BYTES * len(keys) > COPY_MAX_BYTES:
            raise StoreError(f"{unit.key!r} has too many files for one manifest", code="too_many_files")
        return content


def _needed(stage: Stage | None, copy_id: str) -> Stage:
    if stage is None:
        raise NotFound(f"there is no copy {copy_id!r} under way", code="not_found")
    return stage


def _parts(manifest: CopyManifest) -> list[str]:
    """Keys that are moved, the proof last: the one directory, or file by file."""
    if manifest.checkpoint.shape is Shape.DIR:
        return [manifest.key]
    return [member.key for member in in_order(manifest)]


def _opener(fd: int) -> Opener:
    return lambda key: beneath.opened(key, fd)


def _look(key: str, opened: Opener) -> os.stat_result | None:
    parent, name = beneath.place(key)
    with suppress(FileNotFoundError), opened(parent) as fd:
        return beneath.look(name, fd)
    return None


def _alike(found: Iterable[Found], members: Iterable[Member]) -> bool:
    """Whether there are just these files, as far as can be told without reading them."""
    meant = {member.key: member for member in members}
    return all(one.key in meant and one.is_like(meant.pop(one.key)) for one in found) and not meant


def _complete(payload: int, manifest: CopyManifest) -> None:
    """Add to what was put all that has no content: directories, links, times. May be done again.

    Raises:
        Changed: what is staged then is not just what the manifest says. OSError: something is missing.
    """
    opened = _opener(payload)
    for directory in manifest.directories:
        beneath.make_parents(directory.key, payload, False, set())
    for member in manifest.members:
        if member.link is not None or member.same is not None:
            _make_link(payload, member)
    if manifest.checkpoint.shape is Shape.DIR:
        for directory in manifest.directories[::-1]:  # what lies in them first, since it changes their times
            with opened(directory.key) as fd:
                top = directory.key == manifest.key
                _settle(directory, fd, directory.mode & DIRECTORY_MODE | (stat.S_IRWXU if top else 0))
        found = posix_copy.find_tree(Walker(payload, False).walk(manifest.key), opened)[0]
    else:
        found = posix_copy.find_files(manifest.keys, opened)
    if not _alike(found, manifest.members):
        raise Changed(f"what was staged of {manifest.key!r} is not what its manifest says")


def _make_link(payload: int, member: Member) -> None:
    parent, name = beneath.place(member.key)
    beneath.make_parents(parent, payload, False, set())
    with beneath.opened(parent, payload) as fd:
        with suppress(FileNotFoundError):
            beneath.unlink(name, fd)
        if member.same is None:
            beneath.symlink(member.link or "", name, fd)
            beneath.set_mtime(name, fd, member.mtime_ns)
        else:
            first, first_name = beneath.place(member.same)
            with beneath.opened(first, payload) as source:
                beneath.link(first_name, source, name, fd)
        os.fsync(fd)


def _settle(directory: Directory, fd: int, mode: int) -> None:
    """Give a directory its mode and time, durably."""
    beneath.set_mode(fd, mode)
    beneath.set_mtime(".", fd, directory.mtime_ns)
    os.fsync(fd)
