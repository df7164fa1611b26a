"""Tells whether pressure never has a say in a replay: whether no store ever comes near one of its marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lifecycle.core.policy import Measure, Policy
from lifecycle.core.pressure import Relief
from lifecycle.sizing.meter import Column, Load, Meter, Tier
from lifecycle.sizing.replay import Setting


def is_of_bytes(policies: Iterable[Policy]) -> bool:
    """Whether all pressure is of how many bytes a store holds: of inodes and quotas no night's most is counted."""
    return all(p.of is Measure.BYTES and p.quota_bytes is None for policy in policies for p in policy.pressure)


def is_calm(tiers: Mapping[Tier, Column], setting: Setting, nights: int, margin: int) -> bool:
    """Whether nothing would have had to go on any night, had pressure been asked.

    Args:
        tiers: what was there; the most of each night is what stood before its plan, with all that is in the trash.
        setting: with the policies, and how full stores are for what is there.
        nights: how many.
        margin: by how many bytes there may be more than was counted, on each store.
    """
    for night in range(nights):
        held: dict[Tier, Load] = {(store, ""): Load(margin, 0) for store in setting.stores}
        for (store, _), column in tiers.items():
            if night < len(column.peak):
                most = max(column.peak[night], column.used(night))
                held[store, ""] = Load(held[store, ""].bytes + round(most), 0)
        fills = setting.fills(night, Meter.holding(held))
        if Relief(setting.policies, setting.stores, fills, setting.volumes).watches:
            return False
    return True
