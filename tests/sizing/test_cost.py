"""Costs against what providers published, the break-evens of one checkpoint, and the laws of a move."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing import cost
from lifecycle.sizing.cost import Coming, Fees, Leaving, Load, Move, Usage
from lifecycle.sizing.presets import PRESETS
from lifecycle.sizing.prices import GB, GIB, KIB, Price, Tier, decimal, nanos
from lifecycle.stores import objects, s3_classes, s3_upload
from tests.truth.costs import BY_CLASS, changing, dollars, transition

S980 = Load(980 * GIB, 1024)
"""The checkpoint of the published break-evens: 980 of what S3 bills as GB, which is 1,052 * 10^9 bytes."""


def reading(price: Price, load: Load) -> Fees:
    return Usage().read(load).fees(price)


def copying(price: Price, load: Load) -> Fees:
    """A copy is stored and read back."""
    return Usage().write(load).read(load).fees(price)


def test_a_checkpoint_of_980_gb_is_one_of_913_gib():
    """The days to break even stay within an hour; what is saved is 7 % less than a slip of units would say."""
    true, slip = transition("STANDARD_IA", Load(980 * GB, 1024)), transition("STANDARD_IA", S980)
    days = [float(at / cost.DAY_S) for move in (true, slip) if (at := move.breaks_even_s()) is not None]
    assert days == pytest.approx([16.32, 16.32], abs=0.006)
    year = 365 * cost.DAY_S
    assert [dollars(move.saves(year)) for move in (true, slip)] == pytest.approx([116.59, 125.18], abs=0.006)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (cost.month(BY_CLASS["STANDARD"], 2**50, 0), 22_583.30),
        (cost.rate(BY_CLASS["STANDARD"], Load(4 * KIB * 10**6, 10**6)), 0.09),
        (Usage().change(Load(0, 10**8)).fees(BY_CLASS["DEEP_ARCHIVE"]).total, 5_000),
        (cost.restoring(BY_CLASS["GLACIER"], Load(102_400 * GIB, 15 * 10**6), "standard"), 1_774),
        (cost.restoring(BY_CLASS["GLACIER"], Load(102_400 * GIB, 15 * 10**6), "bulk"), 0),
        (cost.restoring(BY_CLASS["DEEP_ARCHIVE"], S980, "standard"), 19.70),
    ],
    ids=["1 PiB in steps", "4 KiB objects", "100 M transitions", "support's bulk read", "free", "one whole restore"],
)
def test_what_was_told_elsewhere(found: Fraction, expected: float):
    assert dollars(found) == pytest.approx(expected, abs=0.006)


def test_a_gb_is_not_a_gib():
    """The same number of them differs by 7.4 %: who bills in which has to be said."""
    ours = Price("own", (Tier(None, nanos("0.02")),), GB)
    theirs = Price("own", (Tier(None, nanos("0.02")),), GIB)
    assert cost.rate(ours, Load(GIB, 1)) / cost.rate(theirs, Load(GIB, 1)) == Fraction(GIB, GB)


def test_our_own_copies_cost_more_than_a_transition():
    """They are sent in parts and read back, which infrequent classes bill: 16.3 days become about 40."""
    price = BY_CLASS["STANDARD_IA"]
    fees = copying(price, S980)
    assert cost.puts(S980) == 1024 * (123 + 2) and cost.gets(S980) == 1024 * 123
    assert dollars(fees.reading) == pytest.approx(9.80)
    move = Move((Leaving(BY_CLASS["STANDARD"], S980, 0),), (Coming(price, S980, fees),))
    at = move.breaks_even_s()
    assert at is not None and 30 < at / cost.DAY_S < 50


def test_requests_are_counted_as_our_uploads_send_them():
    assert (cost.PUT_ONCE_BYTES, cost.PART_BYTES) == (s3_upload.SINGLE_MAX_BYTES, s3_upload.PART_MIN_BYTES)
    assert (cost.PARTS_MAX, cost.PART_BYTES) == (s3_upload.PARTS_MAX, objects.PIECE_BYTES)
    assert (cost.CHANGE_ONCE_BYTES, cost.CHANGE_PART_BYTES) == (s3_classes.SINGLE_MAX_BYTES, s3_classes.PART_BYTES)
    for size in (1, 64 * 2**20, 64 * 2**20 + 1, 957 * 10**6):
        parts = s3_upload.plan_of(size).parts
        assert cost.puts(Load(size, 1)) == (1 if size <= s3_upload.SINGLE_MAX_BYTES else parts + 2)
    assert cost.puts(Load(0, 0)) == 0 and cost.gets(Load(0, 0)) == 0


def test_what_goes_early_is_billed_to_the_end():
    ia = BY_CLASS["STANDARD_IA"]

    def early(price: Price, load: Load, age_s: int) -> Fraction:
        return Usage().free(price, load, age_s).fees(price).early

    assert early(ia, S980, 10 * cost.DAY_S) == cost.rate(ia, S980) * 20 / 30
    assert early(ia, S980, 31 * cost.DAY_S) == 0
    assert early(BY_CLASS["STANDARD"], S980, 0) == 0
    small, deep = Load(10**6, 1000), BY_CLASS["DEEP_ARCHIVE"]
    assert early(deep, small, 0) == cost.rate(deep, small) * 6, "overheads stay on the bill as well"


@given(st.lists(st.tuples(st.builds(Load, st.integers(0, 10**13), st.integers(1, 10**5)), st.integers(0, 10**8))))
def test_a_million_acts_are_priced_at_once(acts: list[tuple[Load, int]]):
    for price in PRESETS.values():
        whole, parts = Usage(), []
        for load, age_s in acts:
            each = Usage()
            for usage in (whole, each):
                usage.write(load).read(load, leaves=load.files % 2 == 0).turn(load).change(load).free(
                    price, load, age_s
                )
            parts.append(each.fees(price))
        assert whole.fees(price).total == sum((part.total for part in parts), Fraction(0))
        assert whole.fees(price).known == all(part.known for part in parts)


def test_leaving_before_the_least_time_is_paid_twice():
    """From an infrequent class after ten days: what is left of its thirty is billed, moved or not."""
    young = Move((Leaving(BY_CLASS["STANDARD_IA"], S980, 10 * cost.DAY_S),), transition("GLACIER_IR", S980).coming)
    old = Move((Leaving(BY_CLASS["STANDARD_IA"], S980, 90 * cost.DAY_S),), transition("GLACIER_IR", S980).coming)
    assert not young.pays_within(20 * cost.DAY_S)
    late, soon = young.breaks_even_s(), old.breaks_even_s()
    assert late is not None and soon is not None and late - soon == 20 * cost.DAY_S


def test_the_trash_is_storage_too():
    there = transition("STANDARD_IA", S980)
    assert there.saves(10**7) - replace(there, trash_s=3 * cost.DAY_S).saves(10**7) == there.stay(3 * cost.DAY_S) > 0


def test_some_never_pay():
    dearer = Move((Leaving(BY_CLASS["GLACIER_IR"], S980, 10**8),), (Coming(BY_CLASS["STANDARD"], S980, Fees()),))
    assert dearer.breaks_even_s() is None and not dearer.pays_within(10**9)


def test_free_things_pay_at_once():
    free = Price("own", (Tier(None, 0),), GB)
    move = Move((Leaving(BY_CLASS["STANDARD"], S980, 0),), (Coming(free, S980, Fees()),))
    assert move.breaks_even_s() == 0 and move.pays_within(1) and not move.pays_within(0)


loads = st.builds(Load, st.integers(0, 10**13), st.integers(1, 10**5))
priced = st.sampled_from(list(PRESETS.values()))
ages = st.integers(0, 400 * cost.DAY_S)
moves = st.builds(
    lambda load, a, b, age, trash: Move(
        (Leaving(a, load, age),), (Coming(b, load, copying(b, load)),), reading(a, load), trash
    ),
    loads, priced, priced, ages, st.integers(0, 10 * cost.DAY_S),
)  # fmt: skip


@given(moves, ages, ages)
def test_a_longer_time_never_makes_a_paying_move_unpaying(move: Move, a: int, b: int):
    """What is withheld because it pays within no time up to a bound is withheld for every shorter bound."""
    short, long = sorted((a, b))
    assert move.pays_within(long) or not move.pays_within(short)


@given(moves, ages)
def test_no_time_within_the_bound_was_overlooked(move: Move, bound: int):
    if not move.pays_within(bound):
        assert all(move.saves(Fraction(bound * n, 20)) <= 0 for n in range(21))


@given(moves)
def test_the_break_even_is_where_it_begins(move: Move):
    at = move.breaks_even_s()
    if at is None:
        assert not move.pays_within(10**10)
    else:
        assert move.saves(at) == 0 or at == 0
        assert move.saves(at + 1) > 0 and not move.pays_within(int(at))


@given(priced, loads, loads)
def test_a_whole_costs_what_its_parts_cost_or_less(price: Price, a: Load, b: Load):
    """Steps of a price list fall, so together is never dearer."""
    one, other = cost.billed_bytes(price, a), cost.billed_bytes(price, b)
    together = cost.month(price, one + other, a.files + b.files)
    assert together <= cost.month(price, one, a.files) + cost.month(price, other, b.files)
    assert together <= cost.rate(price, a) + cost.rate(price, b)


@given(st.integers(0, 10**15))
def test_prices_are_read_as_they_are_written(nano: int):
    assert nanos(decimal(nano)) == nano


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "x", "", "0.0000000001", "1000001"])
def test_what_is_no_price(text: str):
    with pytest.raises(ValueError, match=r"price|nine decimals"):
        nanos(text)


@given(st.fractions(min_value=-(10**18), max_value=10**18))
def test_rounding_happens_once_and_to_the_even_one(nano: Fraction):
    assert abs(cost.micros(nano) - nano / 1000) <= Fraction(1, 2)


@pytest.mark.parametrize("price", PRESETS.values(), ids=PRESETS)
def test_every_preset_says_since_when_and_from_where(price: Price):
    year, month, day = price.as_of.split("-")
    assert (len(year), len(month), len(day)) == (4, 2, 2)
    assert price.source and price.confidence and price.storage_class and price.tiers[-1].upto_bytes is None
    assert price.currency == "USD" and price.gb_bytes == price.retrieval_gb_bytes == GIB
    uptos = [tier.upto_bytes for tier in price.tiers[:-1]]
    assert uptos == sorted(uptos, key=lambda upto: upto or 0) and all(uptos)


def test_a_change_of_class_by_hand():
    """980 GB in 1,024 objects, from infrequent access to Glacier.

    980 * 10^9 / 2^30 = 912.696 GiB. The provider reads them: 912.696 * 0.01 = 9.12696. We read them before:
    9.12696 again, and 957,031,250 bytes an object are 115 requests of 8 MiB: 117,760 * 0.001 / 1,000 = 0.11776.
    Below 5 GB an object is one request: 1,024 * 0.03 / 1,000 = 0.03072.
    """
    load, ia, glacier = Load(980 * GB, 1024), BY_CLASS["STANDARD_IA"], BY_CLASS["GLACIER"]
    fees = changing(ia, glacier, load, read=True)
    assert dollars(fees.reading) == pytest.approx(2 * 9.12696, abs=1e-5)
    assert dollars(fees.requests) == pytest.approx(0.11776 + 0.03072, abs=1e-9)
    assert fees.early == fees.egress == 0 and fees.known
    assert dollars(changing(ia, glacier, load, read=False).total) == pytest.approx(9.12696 + 0.03072, abs=1e-5)


def test_above_5_gb_a_change_goes_in_parts():
    """140 GB an object are 261 parts of 512 MiB (140 * 10^9 / 536,870,912 = 260.77) and one request to begin, at the
    price of Standard: 7 * 262 * 0.005 / 1,000 = 0.00917; the last one is Glacier's: 7 * 0.03 / 1,000 = 0.00021."""
    load = Load(980 * GB, 7)
    assert cost.change_parts(load) == 7 * 262 and cost.change_parts(Load(7 * 5 * GB, 7)) == 0
    fees = Usage().change(load).fees(BY_CLASS["GLACIER"])
    assert dollars(fees.requests) == pytest.approx(0.00917 + 0.00021, abs=1e-9)
    # A class that can be read bills all of them as its own: 7 * 263 * 0.01 / 1,000.
    assert dollars(Usage().change(load).fees(BY_CLASS["STANDARD_IA"]).requests) == pytest.approx(0.01841, abs=1e-9)


def test_40_kib_go_with_each_object_in_an_archive():
    """1,048,576 objects: 32 GiB at 0.0036 and 8 GiB at 0.023 are 0.1152 + 0.184 a month, whatever is in them."""
    assert dollars(cost.month(BY_CLASS["GLACIER"], 0, 2**20)) == pytest.approx(0.2992, abs=1e-9)


def test_what_leaves_the_region_is_billed_once():
    """912.696 GiB * 0.09 = 82.14265; where we are outside, all that we read leaves, and goes on for nothing more."""
    price, load = BY_CLASS["STANDARD"], Load(980 * GB, 1024)
    assert dollars(Usage().read(load, leaves=True).fees(price).egress) == pytest.approx(82.14265, abs=1e-5)
    assert Usage().read(load).fees(price).egress == 0
    outside = replace(price, outside=True)
    assert Usage().read(load, leaves=True).fees(outside) == Usage().read(load).fees(outside)
    assert dollars(Usage().read(load).fees(outside).egress) == pytest.approx(82.14265, abs=1e-5)
    unsaid = replace(price, egress_nano=None)
    assert not Usage().read(load, leaves=True).fees(unsaid).known and Usage().read(load).fees(unsaid).known


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 1000), priced, priced, st.booleans())
def test_more_bytes_never_cost_less(few: int, more: int, files: int, old: Price, new: Price, read: bool):
    small, large = (Load(size, files) for size in sorted((few, few + more)))
    assert 0 <= cost.rate(new, small) <= cost.rate(new, large)
    one, other = (changing(old, new, load, read=read) for load in (small, large))
    assert all(0 <= a <= b for a, b in zip(one[:4], other[:4], strict=True)) and one.total <= other.total
