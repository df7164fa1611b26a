"""What a copy says of itself: whose copy it is, and every file of it with size and checksum."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from lifecycle.core.listing import split
from lifecycle.core.model import Checkpoint, Evidence, Kind, Shape
from lifecycle.errors import StoreError

FORMAT = "checkpoint-lifecycle copy 1"
SHA256_HEX = 64


class Member(NamedTuple):
    """One file of a checkpoint; it has the same key at home and at every place."""

    key: str
    size_bytes: int
    mtime_ns: int
    mode: int | None = None
    """Permission bits; None where the source has none."""
    sha256: str = ""
    """Hex; empty until the content has been read, and for links."""
    link: str | None = None
    """Text of a symbolic link, which is stored and never followed."""
    same: str | None = None
    """Key of an earlier member of which this is a hard link."""


class Directory(NamedTuple):
    """One directory inside a checkpoint, so that an empty one and every time survives."""

    key: str
    mtime_ns: int
    mode: int


class Spare(NamedTuple):
    """One file that a thin copy leaves out."""

    key: str
    size_bytes: int
    role: str
    """What it is for: optimizer, rng, ..."""
    sha256: str = ""
    """Hex; empty where it was not read, since nobody copied it."""


class Contents(NamedTuple):
    """Everything that a checkpoint consists of on its store."""

    members: tuple[Member, ...]
    directories: tuple[Directory, ...] = ()
    """Parents before what lies in them; none on an object store."""


@dataclass(frozen=True, slots=True)
class CopyManifest:
    """One copy: enough to verify it, to bring it home and to fill an index again, without any database."""

    copy_id: str
    place: str
    """Name of the store that holds the copy, when it was made."""
    checkpoint: Checkpoint
    """As it was at home when it was copied: ``checkpoint.store`` is the home."""
    members: tuple[Member, ...]
    directories: tuple[Directory, ...]
    copied_at_ns: int
    plan: str
    storage_class: str = ""
    """What its objects are put as; empty: whatever its store has for copies."""
    part: str = ""
    """``weights`` where it is thin: ``members`` then lacks what only a resume needs. Empty: it is all there."""
    spare: tuple[Spare, ...] = ()
    """What a thin one leaves out."""

    @property
    def key(self) -> str:
        """Where it stands, at home and at its place alike."""
        return self.checkpoint.key

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the files of a file or group; empty for a directory, as a checkpoint has them."""
        return self.checkpoint.members

    @property
    def size_bytes(self) -> int:
        """Bytes of content, hard links counted once."""
        return sum(member.size_bytes for member in self.members if member.same is None)

    @property
    def content(self) -> str:
        """Digest of names and checksums: equal for equal checkpoints, wherever and whenever copied."""
        lines = sorted(map(repr, _contents(self.members)))
        return blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Bytes by role of what is in it."""
        out = {spare.role for spare in self.spare}
        return tuple(part for part in self.checkpoint.parts if part[0] not in out)

    def inside(self, directory: str) -> set[str]:
        """Names of all that it knows directly in a directory, what was left out as well."""
        keys = {m.key for m in self.members} | {s.key for s in self.spare} | {d.key for d in self.directories}
        return {name for parent, name in map(split, keys) if parent == directory}

    def holds(self, other: CopyManifest) -> bool:
        """Whether everything that is in ``other`` is in this one as well, with the same content."""
        return {*_contents(self.members)} >= {*_contents(other.members)}

    def goes_on(self, begun: CopyManifest) -> bool:
        """Whether this copy may go on from what was ``begun``: the very same files of the very same source."""
        mine, theirs = self.checkpoint, begun.checkpoint
        same = (mine.id, mine.fingerprint, mine.proof) == (theirs.id, theirs.fingerprint, theirs.proof)
        known = begun.bare, begun.directories, begun.part, begun.storage_class
        return same and (self.bare, self.directories, self.part, self.storage_class) == known

    @property
    def bare(self) -> tuple[Member, ...]:
        """Members as they were before their contents were read."""
        return tuple(m._replace(sha256="") for m in self.members)

    def sealed(self) -> bool:
        """Whether every content has its checksum."""
        return all(len(m.sha256) == SHA256_HEX for m in payload(self.members))

    def encode(self) -> bytes:
        """As JSON in ASCII, closed by its own checksum; undecodable names survive as escapes."""
        # By hand: a deep copy of every file's row would take longer than all else.
        known = {f.name: getattr(self.checkpoint, f.name) for f in fields(Checkpoint)}
        del known["id"], known["elsewhere"]
        raw = {"format": FORMAT, **{f.name: getattr(self, f.name) for f in fields(self)}, "checkpoint": known}
        if not self.part:  # so that an earlier engine reads it; a thin one it must not take for a whole one
            del raw["part"], raw["spare"]
        if not self.storage_class:  # most have none, and older engines can read those
            del raw["storage_class"]
        text = json.dumps(raw, sort_keys=True, separators=(",", ":"), allow_nan=True)
        return f'{{"copy":{text},"sha256":"{sha256(text.encode("ascii")).hexdigest()}"}}\n'.encode("ascii")

    @classmethod
    def decode(cls, content: bytes, copy_id: str) -> CopyManifest:
        """Read one back, with distrust.

        Raises:
            StoreError: ``broken_manifest``: cut short, edited, of another format or of another copy.
        """
        try:
            text = content.decode("ascii")
            outer: dict[str, Any] = json.loads(text)
            raw: dict[str, Any] = outer["copy"]
            inner = text[len('{"copy":') : text.rindex(',"sha256":"')]
            if sha256(inner.encode("ascii")).hexdigest() != outer["sha256"]:
                raise ValueError("its checksum is not that of its text")
            if raw.pop("format") != FORMAT or raw["copy_id"] != copy_id:
                raise ValueError("it belongs to another format or copy")
            keys = [member[0] for member in raw["members"]]
            if len(set(keys)) < len(keys):
                raise ValueError("it names a file twice")
            return cls(
                **{
                    **raw,
                    "checkpoint": _checkpoint(raw["checkpoint"]),
                    "members": tuple(Member(*m) for m in raw["members"]),
                    "directories": tuple(Directory(*d) for d in raw["directories"]),
                    "spare": tuple(Spare(*s) for s in raw.get("spare", ())),
                }
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            text = f"the manifest of copy {copy_id!r} cannot be read: {error}"
            hint = "look at it by hand; what it speaks of is not judged"
            raise StoreError(text, code="broken_manifest", hint=hint) from error


def copy_name(plan: str, checkpoint: Checkpoint, place: str) -> str:
    """Opaque name of a copy: a second try of the same plan finds what the first one began."""
    text = f"{plan}\0{checkpoint.id}\0{checkpoint.fingerprint}\0{place}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def relocated(manifest: CopyManifest, base: str) -> CopyManifest:
    """The same with ``base`` cut off from every key: how it is laid out in a directory of its own."""

    def cut(key: str) -> str:
        return key.removeprefix(base)

    c = manifest.checkpoint
    proof = None if c.proof is None else cut(c.proof)
    return replace(
        manifest,
        checkpoint=replace(c, run="", key=cut(c.key), members=tuple(map(cut, c.members)), proof=proof),
        members=tuple(
            m._replace(key=cut(m.key), same=None if m.same is None else cut(m.same)) for m in manifest.members
        ),
        directories=tuple(d._replace(key=cut(d.key)) for d in manifest.directories),
        spare=tuple(s._replace(key=cut(s.key)) for s in manifest.spare),
    )


def as_copied(contents: Contents, origin: CopyManifest) -> Contents:
    """What a place shows, with the times, modes, directories and links that only the manifest of the copy has kept.

    A place that tells of modes keeps all of that itself.
    """
    if any(member.mode is not None for member in contents.members):
        return contents
    told = {member.key: member for member in payload(origin.members)}
    shown = {member.key for member in contents.members}
    kept = [
        m._replace(mtime_ns=told[m.key].mtime_ns, mode=told[m.key].mode) if m.key in told else m
        for m in contents.members
    ]
    bodiless = [m for m in origin.members if m.key not in told and m.key not in shown]
    return Contents((*kept, *bodiless), origin.directories)


def payload(members: Iterable[Member]) -> Iterator[Member]:
    """The members that have a content of their own."""
    return (member for member in members if member.link is None and member.same is None)


def bulk(manifest: CopyManifest) -> list[Member]:
    """The members that a change of class moves: all but the proof, unless there is nothing else."""
    contents = list(payload(manifest.members))
    return [member for member in contents if member.key != manifest.checkpoint.proof] or contents


def in_order(manifest: CopyManifest) -> list[Member]:
    """Members in the order to be written: the proof last, so that a half-made copy never looks whole."""
    proof = manifest.checkpoint.proof
    return sorted(manifest.members, key=lambda member: (member.key == proof, member.key))


def as_copy(manifest: CopyManifest, place: str, **seen: Any) -> Checkpoint:
    """The checkpoint as a place shows it: facts from the manifest, identity from what was ``seen`` there.

    Args:
        manifest: what the copy says of itself.
        place: what the store that holds it is called now.
        seen: fields of Checkpoint.
    """
    facts = as_thin(manifest) if manifest.part else manifest.checkpoint
    return replace(facts, **{"store": place, "home": facts.store, "copy_id": manifest.copy_id, "elsewhere": (), **seen})


def as_thin(manifest: CopyManifest) -> Checkpoint:
    """The checkpoint as a thin manifest leaves it: weights alone, whatever its layout takes it for."""
    files = [m.size_bytes for m in manifest.members if m.link is None]
    return replace(
        manifest.checkpoint, kind=Kind.WEIGHTS, bytes=sum(files), files=len(files), parts=manifest.parts, shared_bytes=0
    )


def _contents(members: Iterable[Member]) -> Iterator[tuple[object, ...]]:
    return ((m.key, m.size_bytes, m.sha256, m.link, m.same) for m in members)


def _checkpoint(raw: dict[str, Any]) -> Checkpoint:
    """Fields that a later engine added are passed over."""
    known = {f.name for f in fields(Checkpoint) if f.init}
    values = {name: _tuples(value) for name, value in raw.items() if name in known}
    values |= {"shape": Shape(raw["shape"]), "evidence": Evidence(raw["evidence"]), "kind": Kind(raw["kind"])}
    return Checkpoint(**values)


def _tuples(value: Any) -> Any:  # noqa: ANN401  # any value that JSON has
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
