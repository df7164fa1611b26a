"""A delete needs a warrant, and a warrant needs fresh evidence: the only way to make one is here."""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from lifecycle.core.action import Action
from lifecycle.core.listing import Totals
from lifecycle.errors import Changed, Refused

WARRANT_NS = 60 * 1_000_000_000
"""How long fresh evidence counts as fresh: it covers the time between the last look and the act."""

_SEAL = object()
"""Known to this module alone and kept in no warrant, so that none can be copied with other contents."""


@dataclass(frozen=True, slots=True)
class Warrant:
    """Leave to retire one checkpoint: who decided, what was just seen, until when it holds."""

    action: Action
    plan: str
    trash_id: str
    seen: Totals
    issued_at_ns: int
    expires_at_ns: int
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise Refused("a warrant can only be issued upon fresh evidence", code="no_warrant")


@dataclass(frozen=True, slots=True)
class PurgeWarrant:
    """Leave to free what lies in the trash under ``trash_id``: it was retired by us and its time is over."""

    trash_id: str
    retired_at_ns: int
    trash_s: int
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise Refused("a warrant can only be issued upon fresh evidence", code="no_warrant")


def issue(
    action: Action,
    *,
    plan: str,
    trash_id: str,
    seen: Totals,
    standing: frozenset[str],
    held: bool,
    now_ns: int,
) -> Warrant:
    """Weigh fresh evidence against the plan's action.

    Args:
        action: what the plan asks for.
        plan: id of the plan.
        trash_id: opaque name under which the store will keep it.
        seen: what the store shows at the action's key right now.
        standing: those of ``action.floor`` that still stand, with the planned identity, and those of
            ``action.copies`` that stand, whole and of the very same content.
        held: whether a hold, lease or pointer protects it now.
        now_ns: time of the evidence.

    Raises:
        Changed: the checkpoint is no longer what was planned, or is protected now, or its floor is gone.
    """
    if seen.fingerprint != action.fingerprint:
        raise Changed(f"{action.id} is not what was planned")
    if held:
        raise Changed(f"{action.id} has been protected since", code="held")
    gone = [key for key in action.floor if key not in standing]
    if gone:
        raise Changed(f"{action.id} stays: {gone[0]}, which was to remain in its place, is gone", code="floor_gone")
    unproven = [identity for identity in action.copies if identity not in standing]
    if unproven:
        raise Changed(f"{action.id} stays: {unproven[0]} is not proven to be a copy of it", code="copy_unproven")
    return Warrant(action, plan, trash_id, seen, now_ns, now_ns + WARRANT_NS, _SEAL)


def issue_purge(trash_id: str, *, retired_at_ns: int, trash_s: int, now_ns: int, held: bool) -> PurgeWarrant:
    """Weigh whether something in the trash may be freed: its time runs from the day it was retired.

    Raises:
        Refused: its trash time is not over, or a hold covers it.
    """
    if held:
        raise Refused(f"{trash_id} is held", code="held")
    if now_ns < retired_at_ns + trash_s * 1_000_000_000:
        raise Refused(f"{trash_id} has not been in the trash for {trash_s} s", code="trash_too_young")
    return PurgeWarrant(trash_id, retired_at_ns, trash_s, _SEAL)
