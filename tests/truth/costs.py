"""What storing, moving and getting back costs, by the price presets of S3 and of Google."""

from __future__ import annotations

from fractions import Fraction

from lifecycle.sizing import cost
from lifecycle.sizing.cost import Coming, Fees, Leaving, Load, Move, Usage
from lifecycle.sizing.presets import PRESETS
from lifecycle.sizing.prices import GIB, KIB, NANO, Price
from tests.truth.answers import Inputs, answers

BY_CLASS = {p.storage_class: p for name, p in PRESETS.items() if name.startswith("s3-")}


def dollars(nano: Fraction) -> float:
    return float(nano / NANO)


def price_of(given: Inputs) -> Price:
    return BY_CLASS[given.get("class", "STANDARD")]


def load_of(given: Inputs) -> Load:
    """S3 bills in 2^30 bytes and calls them GB."""
    return Load(int(given.get("GiB", given.get("GB", 0)) * GIB), int(given.get("objects", 0)))


def changing(old: Price, new: Price, load: Load, *, read: bool) -> Fees:
    """To another class where it stands; ``read``: after we have read all of it once more."""
    before = Usage().turn(load)
    return (before.read(load) if read else before).fees(old).plus(Usage().change(load).fees(new))


def transition(to: str, load: Load) -> Move:
    """From Standard where it stands: nothing is read, nothing lies in the trash.

    A request costs what a transition by the provider's own hand does, which is what was published.
    """
    old, new = BY_CLASS["STANDARD"], BY_CLASS[to]
    assert new.put_nano == new.transition_nano
    coming = Coming(new, load, changing(old, new, load, read=False))
    return Move((Leaving(old, load, 0),), (coming,))


@answers("cost", "segments", "days")
def held(given: Inputs) -> float:
    price = price_of(given)
    total = sum((cost.rate(price, Load(gb * GIB, 0)) * days for gb, days in given["segments"]), Fraction(0))
    return dollars(total / given["days"])


@answers("cost", "GiB", "class")
def month(given: Inputs) -> float:
    return dollars(cost.month(price_of(given), load_of(given).bytes, 0))


@answers("cost", "objects", "KiB", "class")
def month_of_small_objects(given: Inputs) -> float:
    objects = int(given["objects"])
    return dollars(cost.rate(price_of(given), Load(objects * given["KiB"] * KIB, objects)))


@answers("cost", "objects", "class")
def transitions(given: Inputs) -> float:
    return dollars(Usage().change(Load(0, int(given["objects"]))).fees(price_of(given)).total)


@answers("cost", "GiB", "tier")
@answers("cost", "GiB", "tier", "class")
def restore(given: Inputs) -> float:
    price = BY_CLASS[given.get("class", "GLACIER")]
    return dollars(cost.restoring(price, load_of(given), given["tier"]))


@answers("cost", "GiB", "days")
def copy_while_restored(given: Inputs) -> float:
    return dollars(cost.rate(BY_CLASS["STANDARD"], load_of(given)) * given["days"] / 30)


@answers("cost", "usd_per_GiB_hour", "hours")
def month_by_the_hour(given: Inputs) -> float:
    return float(given["usd_per_GiB_hour"] * given["hours"])


@answers("tiering", "GB", "objects", "class")
def break_even_days(given: Inputs) -> float:
    at = transition(given["class"], load_of(given)).breaks_even_s()
    return float("inf") if at is None else float(at / cost.DAY_S)


@answers("tiering", "GB", "objects", "class", "remaining_days")
def saved(given: Inputs) -> float:
    return dollars(transition(given["class"], load_of(given)).saves(given["remaining_days"] * cost.DAY_S))
