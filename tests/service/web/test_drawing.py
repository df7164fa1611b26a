"""The drawing of a store: all of it lies in its box, in the order of time, whatever the numbers are."""

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.ports import Sample, Usage
from lifecycle.service.web.drawing import HEIGHT, POINTS_MAX, WIDTH, draw
from lifecycle.sizing.filling import Path
from lifecycle.sizing.foreign import Band
from lifecycle.sizing.outlook import Shelf

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS
SIZES = st.integers(0, 2**60)
BANDS = st.tuples(SIZES, SIZES, SIZES).map(sorted).map(lambda three: Band(three[1], three[0], three[2]))


def shelf(size: int | None, bands: tuple[Band, ...], *, declared: bool = False) -> Shelf:
    return Shelf(("hot",), size, declared, 0, 0.0, None, Path((), ()), None, None, None, bands)


def points(text: str) -> list[tuple[float, float]]:
    pairs = [pair.split(",") for pair in text.split()]
    return [(float(x), float(y)) for x, y in pairs]


@given(
    size=st.integers(1, 2**60),
    bands=st.lists(BANDS, min_size=1, max_size=500).map(tuple),
    samples=st.lists(st.tuples(st.integers(-60, 5), SIZES), max_size=400),
)
def test_it_lies_in_its_box_and_in_the_order_of_time(
    size: int, bands: tuple[Band, ...], samples: list[tuple[int, int]]
):
    seen = [Sample(Usage(2**60, 2**60 - used, None, None), NOW_NS + day * DAY_NS, 0) for day, used in sorted(samples)]
    ticks = [NOW_NS + night * DAY_NS for night in range(len(bands))]
    drawing = draw(shelf(size, bands), ticks, seen)
    assert drawing is not None
    median, band = points(drawing.median), points(drawing.band)
    for line in (points(drawing.past), median, band):
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line)
    assert median == sorted(median, key=lambda p: p[0]) and len(median) <= POINTS_MAX + 1
    assert len(band) == 2 * len(median)
    half = len(median)
    assert all(high[1] <= mid[1] <= low[1] for high, mid, low in zip(band[:half], median, reversed(band), strict=False))
    assert 0 <= drawing.full_y <= HEIGHT and 0 <= drawing.now_x <= WIDTH


def test_nothing_is_drawn_of_what_is_not_known():
    assert draw(shelf(None, (Band(1, 1, 1),)), [NOW_NS], []) is None
    assert draw(shelf(10, ()), [NOW_NS], []) is None


def test_a_declared_size_is_held_against_our_own_bytes():
    seen = [Sample(Usage(100, 50, None, None), NOW_NS - DAY_NS, 0, 7), Sample(Usage(1, 1, None, None), NOW_NS, 0)]
    drawing = draw(shelf(10, (Band(1, 1, 1),), declared=True), [NOW_NS], seen)
    assert drawing is not None and len(points(drawing.past)) == 1, "where nobody counted, nothing is drawn"
