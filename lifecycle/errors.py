"""Every failure a user can meet: one class an exit code, each with a code word, a message and a hint."""

from __future__ import annotations

from dataclasses import dataclass


class LifecycleError(Exception):
    """A failure with a stable code word, a message for people and, where there is one, a way out.

    Attributes:
        code: stable word for programs and tests, such as ``source_unavailable``.
        hint: what the reader can do about it; empty when nothing sensible is known.
        exit_code: what the process ends with when this reaches the command line.
    """

    exit_code = 1

    def __init__(self, message: str, *, code: str = "error", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a configuration file something stands; line and column count from 1."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class ConfigInvalid(LifecycleError):
    """A policy, a configuration or a command line that cannot be meant: nothing was done."""

    exit_code = 2

    def __init__(
        self, message: str, *, place: Place | None = None, code: str = "policy_invalid", hint: str = ""
    ) -> None:
        super().__init__(f"{place}: {message}" if place else message, code=code, hint=hint)
        self.place = place


class Refused(LifecycleError):
    """A safety rule forbids going on: nothing was deleted or moved."""

    exit_code = 4


class StalePlan(LifecycleError):
    """The plan was made from facts, policies or an engine that are no longer these."""

    exit_code = 5

    def __init__(self, message: str, *, code: str = "stale_plan", hint: str = "make a new plan") -> None:
        super().__init__(message, code=code, hint=hint)


class LeaseHeld(LifecycleError):
    """Another process of ours holds the lease on this index."""

    exit_code = 6

    def __init__(self, message: str, *, hint: str = "wait for it to end, or look at who holds it") -> None:
        super().__init__(message, code="lease_held", hint=hint)


class StoreError(LifecycleError):
    """A store did not answer as it should; whether anything happened there may be unknown."""


class NotFound(StoreError):
    """The store answered that there is nothing at this key."""


class Changed(StoreError):
    """What stands at the key is not what was expected there (identity, ETag, link, kind)."""

    def __init__(self, message: str, *, code: str = "changed_since_plan", hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint)


class Occupied(StoreError):
    """Something already stands where a thing was to be put; nothing was overwritten."""


class Denied(StoreError):
    """The store refused permission."""
