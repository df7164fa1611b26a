"""Where in a policy's file something stands, after it was read: for what is noticed about policies later."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lifecycle.config.load import Document, Loc, read_file
from lifecycle.core.policy import Policy
from lifecycle.errors import ConfigInvalid, Place


class Whereabouts:
    """Finds places in the files that policies came from; each is read once more, when it is first asked for.

    Args:
        policies: as they were loaded.
    """

    def __init__(self, policies: Iterable[Policy]) -> None:
        self._sources = {policy.name: policy.source for policy in policies}
        self._documents: dict[str, Document | None] = {}

    def __call__(self, policy: str, at: Loc) -> Place:
        """The place of what ``at`` leads to; of the policy as a whole where that is all that can be told."""
        source = self._sources.get(policy, "")
        file, _, line = source.rpartition(":")
        if policy not in self._documents:
            try:  # whose name had to be escaped is not found again, and one that has changed since may not be read
                self._documents[policy] = read_file(Path(file))
            except ConfigInvalid:
                self._documents[policy] = None
        document = self._documents[policy]
        if document is None:
            return Place(file, int(line or 0), 1)
        return document.place(at, key=bool(at) and isinstance(at[-1], str) and at[-1] != "metric")
