"""Adds up what the plans of a forecast cost once: requests, reading, leaving early, egress."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.core.action import Action
from lifecycle.core.model import Checkpoint
from lifecycle.core.policy import Policy
from lifecycle.flows.money import Ledger, Prices
from lifecycle.sizing.cost import Fees


class Charges:
    """The fees of every plan but the last, which is as far as storing is counted: as bills of plans have them."""

    def __init__(self, prices: Prices, policies: Sequence[Policy], last_ns: int) -> None:
        self.ledger, self.last_ns = Ledger(prices, policies, 0), last_ns

    def charge(self, at_ns: int, action: Action, copy: Checkpoint) -> None:
        """A plan does this at that moment, to a copy as it stands before."""
        if at_ns < self.last_ns:
            self.ledger.now_ns = at_ns
            self.ledger.charge(action, copy)

    def fees(self) -> Fees:
        """All of them so far, of stores that have a price."""
        return self.ledger.fees()
