"""Holds as they are written beside the data: one small JSON note each, read back with distrust."""

from __future__ import annotations

import json
from typing import Any

from lifecycle.core.model import Hold

PREFIX, SUFFIX = "hold-", ".json"


def note_name(hold_id: str) -> str:
    """What a hold's note is called."""
    return f"{PREFIX}{hold_id}{SUFFIX}"


def write_hold(hold: Hold) -> bytes:
    """The note of a hold: JSON in ASCII, undecodable names as escapes."""
    fields = {name: getattr(hold, name) for name in Hold.__slots__}
    return (json.dumps(fields, sort_keys=True, indent=1) + "\n").encode("ascii")


def read_hold(store: str, name: str, content: bytes) -> Hold | None:
    """The hold that a note beside the data of ``store`` means; None where the note is no hold.

    A hold that cannot be read protects the whole store: too much is safe, too little is not. A note says what
    is held by the store's name at that time; whatever the store is called now, it means this one.
    """
    if not name.startswith(PREFIX):
        return None
    identity = name.removeprefix(PREFIX).removesuffix(SUFFIX)
    try:
        raw: dict[str, Any] = json.loads(content)
        _, colon, key = str(raw["target"]).partition(":")
        until_ns = raw["until_ns"]
        if not colon or raw["id"] != identity:
            raise ValueError("it is not about itself")
        return Hold(
            id=identity,
            target=f"{store}:{key}",
            owner=str(raw["owner"]),
            reason=str(raw["reason"]),
            created_at_ns=int(raw["created_at_ns"]),
            until_ns=None if until_ns is None else int(until_ns),
            inode=int(raw["inode"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return unreadable(store, identity, f"the note {name} cannot be read, so everything here is held")


def unreadable(store: str, identity: str, why: str) -> Hold:
    """A hold on the whole store, because nobody knows what is held there."""
    return Hold(identity, f"{store}:", "lifecycle", why, 0)
