"""Lays a checkpoint into one directory of a cache, read-only, whatever it was called at its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from lifecycle.core.copies import CopyManifest, Directory, Member
from lifecycle.core.listing import split
from lifecycle.core.model import Shape
from lifecycle.errors import Refused
from lifecycle.ports import Intake
from lifecycle.sizing.waits import Speed

READ_ONLY = 0o555
"""Nobody writes; who may read is as at the source."""
WRITABLE = 0o666
"""Of a file from a bucket, which has no mode: everybody may read it then."""
OWNER_READS = 0o400
OWNER_ENTERS = 0o500


class CacheIntake:
    """Puts what a copy carries under another name: ``top`` becomes ``entry``; files come to lie inside it.

    Args:
        inner: the directory's own intake.
        entry: name of the directory.
        top: key of the checkpoint as it is carried: a directory's own, or empty for files.
    """

    def __init__(self, inner: Intake, entry: str, top: str) -> None:
        self.inner, self.entry, self.top = inner, entry, top

    def begin(self, manifest: CopyManifest) -> Mapping[str, str]:
        """See the port. Raises also Refused: ``not_copyable``: a link leads out of the checkpoint."""
        mapped = self._mapped(manifest)
        for member in mapped.members:
            if member.link is not None and self._leads_out(member.key, member.link):
                text = f"{member.key!r} is a link to {member.link!r}, which lies outside of the checkpoint"
                raise Refused(text, code="not_copyable", hint="name the directory that holds the files themselves")
        sums = self.inner.begin(mapped)
        pairs = zip(manifest.members, mapped.members, strict=True)
        return {member.key: sums[laid.key] for member, laid in pairs if laid.key in sums}

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        """See the port."""
        self.inner.put(copy_id, self._member(member), pieces, digest)

    def staged(self, copy_id: str, member: Member) -> Iterator[bytes]:
        """See the port."""
        return self.inner.staged(copy_id, self._member(member))

    def publish(self, manifest: CopyManifest) -> None:
        """See the port."""
        self.inner.publish(self._mapped(manifest))

    def abandon(self, copy_id: str) -> None:
        """See the port."""
        self.inner.abandon(copy_id)

    def forget(self, copy_id: str) -> None:
        """See the port."""
        self.inner.forget(copy_id)

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """See the port."""
        return self.inner.change_class(self._mapped(manifest), storage_class)

    def end_change(self, manifest: CopyManifest) -> None:
        """See the port."""
        self.inner.end_change(self._mapped(manifest))

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """See the port."""
        return self.inner.ask_back(self._mapped(manifest), speed, days)

    def _key(self, key: str) -> str:
        inside = key if not self.top else key[len(self.top) + 1 :]
        return f"{self.entry}/{inside}" if inside else self.entry

    def _member(self, member: Member) -> Member:
        mode = (WRITABLE if member.mode is None else member.mode) & READ_ONLY | OWNER_READS
        return member._replace(
            key=self._key(member.key),
            mode=None if member.link is not None else mode,
            same=None if member.same is None else self._key(member.same),
        )

    def _mapped(self, manifest: CopyManifest) -> CopyManifest:
        members = tuple(map(self._member, manifest.members))
        newest_ns = max((member.mtime_ns for member in members), default=manifest.copied_at_ns)
        known = {self._key(d.key): d for d in manifest.directories}
        paths = {self.entry, *known}
        for member in members:
            path = split(member.key)[0]
            while path not in paths:
                paths.add(path)
                path = split(path)[0]
        directories = tuple(
            Directory(path, known[path].mtime_ns, known[path].mode & READ_ONLY | OWNER_ENTERS)
            if path in known
            else Directory(path, newest_ns, READ_ONLY)
            for path in sorted(paths, key=lambda path: path.split("/"))
        )
        c = manifest.checkpoint
        proof = None if c.proof is None else self._key(c.proof)
        stands = replace(c, run="", key=self.entry, shape=Shape.DIR, members=(), proof=proof)
        return replace(manifest, checkpoint=stands, members=members, directories=directories)

    def _leads_out(self, key: str, text: str) -> bool:
        """Whether a link leads anywhere but into its own checkpoint, read as text; nothing is followed."""
        if text.startswith("/"):
            return True
        way = key.split("/")[1:-1]
        for step in text.split("/"):
            if step == "..":
                if not way:
                    return True
                way.pop()
            elif step not in ("", "."):
                way.append(step)
        return False
