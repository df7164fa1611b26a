"""What was wanted again as people read it: rows fit their columns, sums stand last, and no name can hide anything."""

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.render.regret import ROWS_MAX, UNSAID, sentences, want_lines, wanted_again
from lifecycle.render.table import Look
from lifecycle.review.regret import Cause, How, Release, Sign, Wanted, Way, tally

HOSTILE = "\x1b[2J\u202egpj\r\n"
CAUSE = Cause(HOSTILE, HOSTILE, "last.beyond", (4, 3))
GONE = Release("plan", f"hot:{HOSTILE}", 0, How.DROPPED, 5, (HOSTILE,), (CAUSE,))


def test_nothing_that_was_let_go_is_said_in_one_sentence():
    section = wanted_again(tally([], []))
    assert section.sentences == ("Nothing was let go.",)
    assert [table.rows for table in section.tables] == [(), ()] and all(table.empty for table in section.tables)


@given(st.sampled_from(Sign), st.sampled_from(Way), st.booleans())
def test_no_name_hides_or_moves_what_is_read(sign: Sign, way: Way, known: bool):
    want = Wanted(sign, 9, GONE, way, HOSTILE, HOSTILE, HOSTILE)
    releases = [GONE] if known else []
    told = [*sentences(tally(releases, [want])), *want_lines([want], Look())]
    assert all(line.isprintable() for line in told), told
    assert any("gpj" in line for line in told)


@given(st.integers(0, 2 * ROWS_MAX))
def test_rows_fit_their_columns_and_their_sum_stands_last(rules: int):
    releases = [
        Release("plan", f"hot:{n}", n, How.DROPPED, n, ("p",), (Cause("p", f"last: {n}"),)) for n in range(rules)
    ]
    [table, helped] = wanted_again(tally([*releases, Release("old", "hot:x", 0, How.MOVED, 1)], [])).tables
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert ("", UNSAID) in {row[:2] for row in table.rows} or table.left_out
    assert len(table.rows) + table.left_out == rules + 1 + (rules > 0)
    if rules:
        assert table.rows[-1][:4] == ("all", "", rules + 1, 1 + sum(range(rules)))
    assert helped.rows == ()
