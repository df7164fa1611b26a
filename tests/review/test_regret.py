"""The tally of what was let go and wanted again: sums add up, and a release is counted once."""

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.review.regret import (
    TEXT_MAX,
    Cause,
    How,
    Line,
    Release,
    Sign,
    Wanted,
    Way,
    causes_text,
    cut,
    first_lines,
    read_causes,
    tally,
)

DAY = 86_400 * 10**9
WORDS = st.text(max_size=5)
CAUSES = st.builds(
    Cause,
    st.sampled_from(["p", "q"]),
    st.sampled_from(["last: 3", "younger: 7d", ""]),
    st.sampled_from(["last.beyond", "younger.older", "every.other", "place", "of tomorrow"]),
    st.lists(st.integers(0, 9) | WORDS, max_size=3).map(tuple),
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Release], list[Wanted]]:
    """What a journal and the events tell; some releases only an event knows of."""
    keys = draw(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("abcd")), unique=True, max_size=6))
    releases = [
        Release(
            plan,
            f"hot:{name}",
            draw(st.integers(0, 9)) * DAY,
            draw(st.sampled_from(How)),
            draw(st.integers(0, 99)),
            draw(st.sampled_from([(), ("p",), ("p", "q")])),
            tuple(draw(st.lists(CAUSES, max_size=3))),
            draw(st.sampled_from([0, 0, 5 * DAY])),
            draw(st.sampled_from([0, 4 * DAY])),
        )
        for plan, name in keys
    ]
    told = st.builds(Wanted, st.sampled_from(Sign), st.integers(0, 20), st.sampled_from(releases), st.sampled_from(Way))
    wants = draw(st.lists(told, max_size=8)) if releases else []
    return [release for release in releases if draw(st.integers(0, 4))], wants


def added(one: Line, other: Line) -> list[int]:
    return [getattr(one, name) + getattr(other, name) for name in Line._fields[2:-1]]


@given(histories(), st.integers(0, 9))
def test_sums_add_up_and_a_release_counts_once(history: tuple[list[Release], list[Wanted]], day: int):
    releases, wants = history
    found = tally(releases, wants, day * DAY)
    known = {r.key: r for r in [*(want.release for want in wants), *releases]}
    late = {key for key, r in known.items() if r.at_ns >= day * DAY}
    wanted = {want.release.key for want in wants} | {r.key for r in releases if r.undone_at_ns}
    total = found.total
    assert (total.released, total.wanted) == (len(late), len(late & wanted))
    sums = Line("", "")
    for line in found.lines:
        assert line.wanted <= line.released and (line.wanted_part is None) == (not line.released)
        assert line.back + line.back_thin + line.lost + line.left == line.wanted
        assert (line.usual_age_ns is None) == (not line.wanted)
        sums = Line("", "", *added(sums, line))
    assert sums[2:-1] == total[2:-1]
    assert len({(line.policy, line.rule) for line in found.lines}) == len(found.lines)


@given(histories(), st.randoms(use_true_random=False), st.integers(0, 5))
def test_neither_order_nor_repeats_change_it_and_what_is_summed_up_is_lost_nowhere(
    history: tuple[list[Release], list[Wanted]],
    chance: object,
    most: int,
):
    releases, wants = history
    mixed = [*wants, *wants]
    chance.shuffle(mixed)  # type: ignore[attr-defined]  # Hypothesis types its chance so
    found = tally(releases, wants)
    assert tally(list(releases), mixed).total == found.total
    few = first_lines(found, most)
    assert len(few) <= most + 1 and len({(line.policy, line.rule) for line in few}) == len(few)
    sums = Line("", "")
    for line in few:
        sums = Line("", "", *added(sums, line))
    assert sums[2:-1] == found.total[2:-1]


@given(histories())
def test_a_remedy_never_keeps_more_than_there_is_and_the_last_one_keeps_all(
    history: tuple[list[Release], list[Wanted]],
):
    found = tally(*history)
    whole: dict[tuple[str, str, int], int] = {}
    for one in found.remedies:
        assert 0 < one.kept <= one.wanted <= found.total.wanted
        assert one.others <= found.total.released - found.total.wanted
        assert one.instead
        key = one.policy, one.rule, one.wanted
        whole[key] = max(whole.get(key, 0), one.kept)
    assert all(kept == key[2] for key, kept in whole.items())


def test_what_tells_first_names_it_and_what_comes_last_ends_it():
    """Missed at night, undone in the morning: one regret, told of by the job, and it came back."""
    release = Release("plan", "hot:a", 0, How.DROPPED, 5, ("p",), (Cause("p", "last: 3", "last.beyond", (4, 3)),))
    night, morning = Wanted(Sign.MISSED, DAY, release, Way.UNDO), Wanted(Sign.UNDO, 2 * DAY, release, Way.BACK)
    [line] = tally([release], [morning, night]).lines
    assert line == Line("p", "last: 3", 1, 5, 5, missed=1, back=1, usual_age_ns=DAY)
    late = Wanted(Sign.MISSED, 9 * DAY, release, Way.NONE)
    assert tally([release], [late]).total.lost == 1
    seen = Wanted(Sign.POINTER, 9 * DAY, release)
    assert tally([release], [seen]).total.left == 1
    assert tally([release._replace(gone_at_ns=8 * DAY)], [seen]).total.lost == 1, "the journal says that it was freed"
    assert tally([release._replace(gone_at_ns=10 * DAY)], [seen]).total.lost == 0, "it was there when it was wanted"
    assert tally([release._replace(undone_at_ns=3 * DAY)], []).total.undone == 1, "of which the journal alone tells"
    assert tally([], [night]).total.released == 1, "a journal that was lost"


def test_what_would_have_kept_half_of_it_and_all_of_it():
    released = [
        Release("plan", f"hot:{n}", 0, How.DROPPED, 10, ("p",), (Cause("p", "last: 3", "last.beyond", (n, 3)),))
        for n in range(4, 12)
    ]
    wants = [Wanted(Sign.UNDO, DAY, r, Way.BACK) for r in (released[0], released[1], released[6])]
    half, whole = tally(released, wants).remedies
    assert (half.wanted, half.instead, half.kept, half.others, half.others_bytes) == (3, "last: 5", 2, 0, 0)
    assert (whole.instead, whole.kept, whole.others, whole.others_bytes) == ("last: 10", 3, 4, 40)


def test_of_a_full_store_pressure_alone_is_the_rule():
    causes = (Cause("p", "pressure", "pressure.released"), Cause("p", "last: 3", "pressure.yields"))
    assert Release("plan", "hot:a", 0, How.DROPPED, 1, ("p",), causes).rule == "pressure"


@given(st.lists(CAUSES, max_size=40), st.text(max_size=2 * TEXT_MAX))
def test_causes_come_back_and_stay_small(causes: list[Cause], long: str):
    assert read_causes(causes_text(causes)) == tuple(causes[:32])
    [back] = read_causes(causes_text([Cause("p", long, "every.other", (long,))]))
    assert len(back.rule) <= TEXT_MAX and back == ("p", cut(long), "every.other", (cut(long),))
    assert cut(long) != cut(long + "x")


def test_what_is_no_list_of_causes_is_none():
    assert [read_causes(text) for text in ("", "null", "{", "[1]", '[["p"]]', '[["p","r","c",null]]')] == [()] * 6
