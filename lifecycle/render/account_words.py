"""Words that several sections of a report need: owners, reasons, counts with their size."""

from __future__ import annotations

from lifecycle.core.units import format_bytes
from lifecycle.ports.account import Account
from lifecycle.render.report import PROTECTED_BY, plural
from lifecycle.review.counts import Reason

_MORE = {
    "exposed": "on a node only, with nothing later durable",
    "rotates.crash": "its framework would crash without it",
    "rotates.race": "its framework may be about to rotate it",
    "read_only": "on a store that can only be read",
    "incomplete.exposed": "incomplete, what is complete is on a node only",
}
"""What protects and needs more than the few words of a plan's lines, or has none there."""


def owner_of(account: Account, owner: int | None) -> str | None:
    """A user's name, or else the number; None where nobody knows the owner."""
    return None if owner is None else account.users.get(owner, str(owner))


def reason_words(reason: Reason | None) -> str:
    """A reason to keep in a few words: the rule as its policy writes it, or what protects; None is no reason at all."""
    if reason is None:
        return "nothing"
    return reason.rule or _MORE.get(reason.code) or PROTECTED_BY[reason.code]


def sized(count: int, size_bytes: int) -> str:
    """``3 checkpoints (1.2 TB)``."""
    return f"{plural(count, 'checkpoint')} ({format_bytes(size_bytes)})"
