"""What comes back out of an archive: published bills, one bill by hand, and the laws of all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing.back import Way, wait_words, ways_back
from lifecycle.sizing.cost import Load, Nano, gets
from lifecycle.sizing.presets import FAMILIES, PRESETS
from lifecycle.sizing.prices import GB, GIB, NANO, Price, Tier, nanos
from lifecycle.sizing.waits import Speed

S3 = FAMILIES["s3/us-east-1"]
S980 = Load(980 * GB, 1024)


def dollars(nano: Nano) -> float:
    return float(nano / NANO)


def ways(price: Price, load: Load, days: int = 7) -> dict[Speed, Way]:
    return {way.speed: way for way in ways_back(price, load, days)}


def test_one_checkpoint_out_of_glacier_by_hand():
    """980 GB in 1,024 objects are 912.696 GiB.

    standard   912.696 * 0.01 + 1,024 * 0.05 / 1,000 = 9.12696 + 0.05120 = 9.17816
    expedited  912.696 * 0.03 + 1,024 * 10 / 1,000 = 27.38088 + 10.24 = 37.62088
    bulk       nothing
    a readable copy for 7 days: 912.696 * 0.023 * 7 / 30 = 4.89814
    to read it: 115 requests an object, 117,760 * 0.0004 / 1,000 = 0.04710
    """
    found = ways(S3["GLACIER"], S980)
    assert {way: round(dollars(one.restoring), 5) for way, one in found.items()} == {
        "expedited": 37.62088, "standard": 9.17816, "bulk": 0,
    }  # fmt: skip
    for one in found.values():
        assert dollars(one.kept) == pytest.approx(4.89814, abs=1e-5)
        assert dollars(one.reading) == pytest.approx(0.0471, abs=1e-5)
        assert one.egress == 0 and one.known
    assert dollars(found[Speed.STANDARD].total) == pytest.approx(9.17816 + 4.89814 + 0.0471, abs=2e-5)


def test_read_from_outside_it_also_leaves_the_region():
    found = ways(replace(S3["GLACIER"], outside=True), S980)
    assert {round(dollars(one.egress), 4) for one in found.values()} == {82.1427}  # 912.696 * 0.09


def test_what_was_published_of_100_tib_in_deep_archive():
    """Bulk $256, standard $2,048, the copy for a week $550: what the objects add is not in the published sums."""
    found = ways(S3["DEEP_ARCHIVE"], Load(102_400 * GIB, 0))
    assert list(found) == ["standard", "bulk"]
    assert dollars(found[Speed.BULK].restoring) == pytest.approx(256)
    assert dollars(found[Speed.STANDARD].restoring) == pytest.approx(2048)
    assert dollars(found[Speed.BULK].kept) == pytest.approx(549.5, abs=0.05)


def test_what_is_read_at_once_needs_no_way_back():
    assert not any(ways_back(price, S980, 7) for price in PRESETS.values() if not price.restores)


def test_what_nobody_said_is_at_least():
    own = Price("own", (Tier(None, nanos("0.003")),), GB, storage_class="GLACIER")
    found = ways_back(own, S980, 7)
    assert len(found) == 3 and not any(way.known or way.total for way in found)
    assert not any(way.known for way in ways_back(replace(S3["GLACIER"], outside=True, egress_nano=None), S980, 7))
    assert all(way.known for way in ways_back(replace(own, restores=S3["GLACIER"].restores), Load(0, 0), 7))


def test_expedited_is_not_promised_for_large_objects():
    assert wait_words("expedited", "1 to 5 minutes", Load(250 * 10**6 * 3, 3)) == "1 to 5 minutes"
    assert "longer above" in wait_words("expedited", "1 to 5 minutes", Load(250 * 10**6 * 3 + 1, 3))
    assert wait_words("bulk", "5 to 12 hours", S980) == "5 to 12 hours"


loads = st.builds(Load, st.integers(0, 10**13), st.integers(1, 10**5))
archives = st.sampled_from([S3["GLACIER"], S3["DEEP_ARCHIVE"], replace(S3["GLACIER"], outside=True)])


@given(archives, loads, loads, st.integers(1, 365))
def test_two_come_back_for_what_each_does(price: Price, a: Load, b: Load, days: int):
    both = ways_back(price, Load(a.bytes + b.bytes, a.files + b.files), days, gets(a) + gets(b))
    for whole, one, other in zip(both, ways_back(price, a, days), ways_back(price, b, days), strict=True):
        assert whole.total == one.total + other.total


@given(archives, loads, st.integers(0, 10**12), st.integers(1, 365))
def test_more_never_comes_back_for_less(price: Price, load: Load, more: int, days: int):
    for less, large in zip(
        ways_back(price, load, days), ways_back(price, Load(load.bytes + more, load.files), days + 1), strict=True
    ):
        assert all(0 <= a <= b for a, b in zip(less[2:6], large[2:6], strict=True)) and less.total <= large.total


@given(archives, loads, st.integers(1, 30))
def test_who_waits_longer_never_pays_more(price: Price, load: Load, days: int):
    totals = [way.total for way in ways_back(price, load, days)]
    assert totals == sorted(totals, reverse=True)
