"""Tries that a checkpoint could be got back: recalls it into scratch and opens it as its framework would find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lifecycle.core.listing import Listing, join
from lifecycle.core.model import Checkpoint
from lifecycle.core.places import WHOLE
from lifecycle.errors import LifecycleError
from lifecycle.flows.recall import Desk, copies_of, recall_to
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.peek import Look, Peek
from lifecycle.layouts.registry import survey
from lifecycle.ports import Intake, Store

ZIPS = (".pt", ".pth", ".ckpt", ".bin", ".npz", ".zip", ".keras")
ZIP_MAGIC = b"PK\x03\x04"


class Drilled(NamedTuple):
    """What came of one drill."""

    id: str
    source: str
    bytes: int
    fault: str
    """Why it could not be used, or empty."""
    archived: bool = False
    """Its copies are in archives: it was not tried."""
    part: str = ""
    """``weights`` where that is all that there was to try."""


def newest(desk: Desk, wanted: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Home and key of the newest copied checkpoint of each run that is ``wanted`` by its id, by run.

    Raises:
        StoreError: a store does not say which copies it holds.
    """
    found: dict[str, tuple[int, str, str]] = {}
    for name in desk.stores:
        for manifest in desk.views.held(name).manifests:
            c = manifest.checkpoint
            run = f"{c.store}:{c.run}"
            if wanted(run) or wanted(c.id):
                found[run] = max(found.get(run, (-1, "", "")), (c.saved_at_ns, c.store, c.key))
    return [(store, key) for _, (_, store, key) in sorted(found.items())]


def drill(desk: Desk, conventions: Conventions, home: str, key: str, scratch: Store, intake: Intake) -> Drilled:
    """Recall a checkpoint into ``scratch``, an empty store of its own, and hold it against what it was.

    Every byte has been compared by then; what is tried here is that the files, laid out anew, are a checkpoint:
    the layouts must recognise it, find it whole and of the same step and kind, and each safetensors and zip file
    in it must open. Nothing is executed or unpickled.
    """
    identity = f"{home}:{key}"
    try:
        was = copies_of(desk, home, key)[0].manifest
        # Under its whole key: some layouts ask what the directories above are called.
        found = recall_to(desk, home, key, scratch, intake, by_name=False, weights_only=True)
    except LifecycleError as e:
        if e.code == "copy_archived":
            return Drilled(identity, "", 0, "", archived=True)
        return Drilled(identity, "", 0, f"it does not come back: {e}")
    folders = {folder.path: folder for folder in scratch.walk()}
    listing = Listing(scratch.flavour, folders)
    # Of weights alone no framework makes a whole checkpoint: that their files open is all that can be asked.
    fault = "" if found.part else _fault(scratch, listing, conventions, was.checkpoint)
    fault = fault or _unopened(scratch, listing)
    return Drilled(identity, found.source, found.bytes, fault, part=found.part)


def _fault(scratch: Store, listing: Listing, conventions: Conventions, was: Checkpoint) -> str:
    runs = survey(scratch.name, listing, scratch.read, conventions, url=scratch.url)
    now = next((c for run in runs for c in run.checkpoints if (c.key, c.members) == (was.key, was.members)), None)
    if now is None:
        return f"laid out anew, no layout recognises it; it was {was.layout}"
    if now.evidence not in WHOLE:
        return f"laid out anew it is not whole: {now.why}"
    for name in ("layout", "kind", "step"):
        if getattr(now, name) != getattr(was, name):
            return f"laid out anew its {name} is {getattr(now, name)} and was {getattr(was, name)}"
    return ""


def _unopened(scratch: Store, listing: Listing) -> str:
    """The first file that says it is a safetensors or zip file and does not open as one."""
    peek = Peek(scratch.read)
    for folder in listing.folders.values():
        for name, size_bytes in zip(folder.names, folder.sizes, strict=True):
            key = join(folder.path, name)
            if name.endswith(".safetensors") and peek.safetensors_bytes(key, size_bytes) != size_bytes:
                return f"{key} is no whole safetensors file"
            if name.endswith(ZIPS) and peek.bytes(key, 0, len(ZIP_MAGIC)) == ZIP_MAGIC:
                look, _ = peek.zip(key, size_bytes)
                if look is not Look.SEEN:
                    return f"{key} is no whole zip file"
    return ""
