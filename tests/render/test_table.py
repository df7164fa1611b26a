"""Columns fit the screen, nothing is lost where no screen is, and no control character gets through."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.units import escape
from lifecycle.render.plan import Typing
from lifecycle.render.table import Column, Fit, Look, cells, cut, table, wrap

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me"]), max_size=60
)
COLUMNS = (Column("NAME", fit=Fit.MIDDLE), Column("SIZE", right=True), Column("WHY", fit=Fit.END))
ROWS = st.lists(st.tuples(WORDS, st.sampled_from(["1 B", "10 kB", "980 GB"]), WORDS), max_size=6)


@given(WORDS, st.integers(3, 80), st.sampled_from([Fit.MIDDLE, Fit.END]))
def test_what_is_cut_fits_and_says_so(text: str, width: int, fit: Fit):
    short = cut(text, width, fit)
    assert cells(short) <= width
    assert short == text or "..." in short


@given(ROWS, st.integers(50, 200))
def test_a_table_fits_its_screen(rows: list[tuple[str, str, str]], width: int):
    lines = list(table(COLUMNS, rows, Look(width)))
    assert len(lines) == len(rows) + 1
    assert all(cells(line) <= width for line in lines)


@given(ROWS)
def test_nothing_is_lost_without_a_screen(rows: list[tuple[str, str, str]]):
    for line, row in zip(list(table(COLUMNS, rows, Look()))[1:], rows, strict=True):
        assert all(word.strip() in line for word in row)


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)), st.integers(20, 100))
def test_wrapping_keeps_every_word(words: list[str], width: int):
    text = " ".join(words)
    assert " ".join(" ".join(wrap(text, Look(width), indent=2)).split()) == " ".join(text.split())
    assert list(wrap(text, Look())) == [text]


@given(st.text(max_size=30))
def test_no_control_character_reaches_a_command_to_type(name: str):
    line = Typing("lifecycle")("explain", name)
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in line)


def test_colour_only_where_asked():
    assert Look().bad("x") == "x"
    assert Look(80, colour=True).bad("x") == "\x1b[31mx\x1b[0m"
    assert escape(Look(80, colour=True).bold("")) == ""
