"""Intakes of stores whose classes are not changed from here say so, through whatever wraps them."""

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import Refused, StoreError
from lifecycle.ports import Intake
from lifecycle.stores.cache_intake import CacheIntake
from lifecycle.stores.cloud import CloudIntake, CloudStore
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from tests.stores.intake_contract import checkpoint, parcel

KEY = "runs/r/step-1"
MADE = parcel(checkpoint(KEY, Shape.DIR, (), f"{KEY}/DONE"), {f"{KEY}/DONE": b"1", f"{KEY}/w": b"w"}).sealed


def intakes() -> list[Intake]:
    return [
        CloudIntake(CloudStore("cold", "az://container@account.blob.core.windows.net/prefix")),
        CacheIntake(MemoryIntake(MemoryStore("node")), "step-1", KEY),
    ]


@pytest.mark.parametrize("n", [0, 1], ids=["cloud", "cache"])
def test_nothing_is_changed_and_nothing_asked_for(n: int):
    intake = intakes()[n]
    with pytest.raises(Refused) as refused:
        intake.change_class(MADE, "GLACIER")
    assert refused.value.code == "no_classes"
    intake.end_change(MADE)
    with pytest.raises(StoreError):
        intake.ask_back(MADE, "bulk", 1)  # type: ignore[arg-type]  # how fast does not matter here
