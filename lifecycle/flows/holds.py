"""Places and releases holds: in the index, and beside the data, so that a lost index loses none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from lifecycle.core.model import Hold
from lifecycle.errors import LifecycleError, NotFound
from lifecycle.flows.handlers import drop_hold_note, write_hold_note
from lifecycle.ports import Trash, Writer


def hold_id(target: str, owner: str, now_ns: int) -> str:
    """A short name for a new hold, easy to type."""
    text = f"{target}\0{owner}\0{now_ns}".encode("utf-8", "surrogateescape")
    return "h" + blake2b(text, digest_size=4).hexdigest()


def place(hold: Hold, writer: Writer, trashes: Mapping[str, Trash]) -> str:
    """Record ``hold``; why it could not be written beside the data too, or empty.

    The index comes first: from then on it protects, whatever happens next.
    """
    writer.add_hold(hold)
    store = hold.target.partition(":")[0]
    if store not in trashes:
        return f"nothing can be written to {store}"
    try:
        write_hold_note(trashes[store], hold)
    except LifecycleError as e:
        return str(e)
    return ""


def release(wanted: str, known: Sequence[Hold], writer: Writer, trashes: Mapping[str, Trash]) -> Hold:
    """Release the one hold that ``wanted`` names, by its id or the beginning of it.

    The note goes first: if that fails the index still protects.

    Raises:
        NotFound: no hold answers to it, or several do. StoreError: its note cannot be removed.
    """
    found = {hold.id: hold for hold in known if hold.id == wanted}
    found = found or {hold.id: hold for hold in known if hold.id.startswith(wanted) and len(wanted) >= 3}
    if len(found) != 1:
        text = f"{len(found)} holds begin with {wanted!a}" if found else f"there is no hold {wanted!a}"
        raise NotFound(text, code="no_such_hold", hint="`lifecycle holds` lists them")
    hold = next(iter(found.values()))
    trash = trashes.get(hold.target.partition(":")[0])
    if trash is not None:
        drop_hold_note(trash, hold.id)
    writer.drop_hold(hold.id)
    return hold
