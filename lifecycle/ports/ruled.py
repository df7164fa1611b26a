"""Protocol only: what a bucket tells of rules of its own, which act on objects behind our back."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable


class BucketRule(NamedTuple):
    """One rule that is on and can reach objects in use; what it does to old versions alone is not told."""

    name: str
    prefix: str
    """Of the keys in the bucket that it acts on; empty for all."""
    does: str
    """For people, such as ``deletes objects after 30 days``."""


@runtime_checkable
class Ruled(Protocol):
    """A store whose bucket may have lifecycle rules."""

    def rules(self) -> tuple[BucketRule, ...]:
        """Those that can reach what is in this store or what we keep beside it.

        Raises:
            Denied: they may not be read with our rights. StoreError: they cannot be read from here.
        """
        ...
