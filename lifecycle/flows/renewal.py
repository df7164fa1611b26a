"""Knows a copy again whose original has other times by now: compares what they hold, and lets the manifest say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lifecycle.core.action import Action
from lifecycle.core.copies import CopyManifest, Member, payload
from lifecycle.core.model import Checkpoint
from lifecycle.core.units import format_time
from lifecycle.errors import Changed, Occupied, StoreError
from lifecycle.flows.carry import summed, told
from lifecycle.flows.views import Views
from lifecycle.layouts.slim import thinned
from lifecycle.ports import Intake, Renews, Store, Target

RENEWED = "copy_renewed"


def meet(
    action: Action, facts: Checkpoint, error: Occupied, views: Views, intakes: Mapping[str, Intake]
) -> tuple[str, str, str]:
    """What becomes of a copy whose place is taken: word, code and sentence.

    What takes it may be an earlier copy of ours. An undo in a bucket gives the proof another time, and so an original
    that does not look like the one that was copied: where every byte is the same, the manifest is written anew with
    what the original is now. Where it is not, another one was saved under that key since. Nothing is overwritten.

    Args:
        action: the copy that was to be made.
        facts: the checkpoint as it is now.
        error: what the place said.
        views: fresh looks at all stores.
        intakes: what takes copies in.
    """
    try:
        intake = intakes[action.to]
        old = next((m for m in views.held(action.to).manifests if m.checkpoint.id == facts.id), None)
        if old is None or action.home or not isinstance(intake, Renews):
            return "failed", error.code, str(error)
        now = _as_it_is(action, facts, old, views.stores[action.store], views)
        if now is None:
            was, at = format_time(old.checkpoint.saved_at_ns), f"{action.to}:{old.key}"
            text = (
                f"{at} is a copy of what was saved to {facts.id} on {was}, and another one stands there now, which is"
                f" not copied: keep the old one by recall --to and remove it from {action.to}, or save the new one"
                " elsewhere"
            )
            return "failed", "copy_differs", text
        intake.renew(now)
    except StoreError as e:
        return "kept" if isinstance(e, Changed) else "failed", e.code, str(e)
    views.renew(action.to, now)
    return "done", RENEWED, "its copy there is the very same: its manifest says so from now on, and nothing was sent"


def _as_it_is(action: Action, facts: Checkpoint, old: CopyManifest, source: Store, views: Views) -> CopyManifest | None:
    """The manifest of a copy as it would be written of the original now; None where that is something else.

    Raises:
        Changed: it is not what was planned. StoreError: it cannot be read.
    """
    target = Target(action.key, action.shape, action.members)
    contents, sums = source.contents(target), {m.key: m.sha256 for m in payload(old.members)}
    now = replace(old, checkpoint=facts, members=contents.members, directories=contents.directories, part="", spare=())
    if {(m.key, m.size_bytes) for m in _kept(now, old)} != {(m.key, m.size_bytes) for m in payload(old.members)}:
        return None
    seen: dict[str, str] = {}
    for m in sorted(payload(now.members), key=lambda m: m.size_bytes):  # the small ones tell most differences at once
        seen[m.key] = summed(told(source.stream(m.key, m.size_bytes), views.tick))[1]
        if seen[m.key] != sums.get(m.key, seen[m.key]):
            return None
    if source.sight(target).totals.fingerprint != action.fingerprint:
        raise Changed(f"{action.id} is not what was planned")
    now = replace(now, members=tuple(m._replace(sha256=seen.get(m.key, "")) for m in now.members))
    now = thinned(now) if old.part else now
    return now if now.content == old.content else None


def _kept(now: CopyManifest, old: CopyManifest) -> list[Member]:
    return list(payload((thinned(now) if old.part else now).members))
