"""What a trash entry says of itself: written before anything moves, read back with distrust."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from lifecycle.core.model import Shape
from lifecycle.core.warrant import Warrant
from lifecycle.errors import StoreError
from lifecycle.ports import Trashed

VERSION = 1
MANIFEST_MAX_BYTES = 32 * 1024 * 1024
"""A group of 100,000 members with long names still fits."""


class Whole(NamedTuple):
    """Of which checkpoint an entry holds a piece, where that lies in several roots."""

    head: int
    """Number of the root whose piece goes first and comes back last."""
    inodes: tuple[int, ...]
    """By root, of its directory or of the first of its files there; 0 where it has nothing."""
    size_bytes: int
    files: int
    members: tuple[str, ...] = ()
    """Of all of it; the first piece alone tells them."""

    def check(self) -> None:
        """Raises ValueError: it does not make sense."""
        counts = (self.head, self.size_bytes, self.files, *self.inodes)
        if any(type(n) is not int or n < 0 for n in counts) or not self.inodes[self.head : self.head + 1]:
            raise ValueError("its pieces are no counts")
        if not all(type(key) is str and key for key in self.members):
            raise ValueError("a member is no text")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One trash entry: enough to bring it back, or to say what would be freed, without any database."""

    trash_id: str
    store: str
    key: str
    shape: Shape
    members: tuple[str, ...]
    proof: str | None
    plan: str
    retired_at_ns: int
    trash_s: int
    size_bytes: int
    files: int
    fingerprint: str
    whole: Whole | None = None

    @classmethod
    def of(cls, warrant: Warrant, now_ns: int, whole: Whole | None = None) -> Manifest:
        """The manifest of what ``warrant`` lets go, be it a piece of a ``whole``."""
        action = warrant.action
        return cls(
            trash_id=warrant.trash_id,
            store=action.store,
            key=action.key,
            shape=action.shape,
            members=action.members,
            proof=action.proof,
            plan=warrant.plan,
            retired_at_ns=now_ns,
            trash_s=action.trash_s or 0,
            size_bytes=warrant.seen.bytes,
            files=warrant.seen.files,
            fingerprint=action.fingerprint,
            whole=whole,
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """What was moved: the members, or the one directory."""
        return self.members or (self.key,)

    @property
    def within(self) -> bool:
        """Whether it holds files out of a directory that is itself the checkpoint."""
        return any(member.startswith(f"{self.key}/") for member in self.members)

    def trashed(self, *, whole: bool, replaced: bool = False) -> Trashed:
        """As the port tells it."""
        return Trashed(
            trash_id=self.trash_id,
            key=self.key,
            shape=self.shape,
            members=self.members,
            plan=self.plan,
            retired_at_ns=self.retired_at_ns,
            trash_s=self.trash_s,
            bytes=self.size_bytes,
            whole=whole,
            files=self.files,
            replaced=replaced,
        )

    def encode(self) -> bytes:
        """As bytes; undecodable names survive as JSON escapes."""
        raw = {"version": VERSION, **asdict(self)}
        if self.whole is None:  # so that an earlier engine reads it; a piece it must not take for all there is
            del raw["whole"]
        return json.dumps(raw, indent=1).encode("ascii")

    @classmethod
    def decode(cls, content: bytes, trash_id: str) -> Manifest:
        """Read one back.

        Raises:
            StoreError: ``broken_manifest``: cut short, of another version, of another entry, or mistyped.
        """
        try:
            raw: dict[str, Any] = json.loads(content)
            if raw.pop("version") != VERSION or raw["trash_id"] != trash_id:
                raise ValueError("it belongs to another version or entry")
            raw["shape"], raw["members"] = Shape(raw["shape"]), tuple(raw["members"])
            if "whole" in raw:
                head, inodes, size_bytes, files, members = raw["whole"]
                raw["whole"] = Whole(head, tuple(inodes), size_bytes, files, tuple(members))
            made = cls(**raw)
            made._check()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            text = f"the manifest of trash entry {trash_id!r} cannot be read: {error}"
            hint = "look at the entry by hand; it is never purged as it is"
            raise StoreError(text, code="broken_manifest", hint=hint) from error
        return made

    def _check(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (type(value) is not int or value < 0):
                raise ValueError(f"{field.name} is no count")
            if field.type == "str" and not isinstance(value, str):
                raise ValueError(f"{field.name} is no text")
        if not all(type(key) is str and key for key in (*self.keys, self.proof or "-")):
            raise ValueError("a key is no text")
        if (self.shape is Shape.DIR) == bool(self.members):
            raise ValueError("its members do not fit its shape")
        if self.whole is not None:
            self.whole.check()


def broken(trash_id: str) -> Trashed:
    """How an entry is told whose manifest cannot be read: nothing is known of it, so nothing is done to it."""
    return Trashed(trash_id, "", Shape.DIR, (), "", 0, 0, 0, False)
