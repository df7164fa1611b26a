"""Durations, sizes and names: what is written comes back, and nothing moves a cursor."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lifecycle.core.units import (
    DURATION_MAX_S,
    escape,
    format_age,
    format_bytes,
    format_seconds,
    format_time,
    parse_duration,
    parse_size,
)


@given(st.integers(1, DURATION_MAX_S))
def test_a_duration_comes_back(seconds: int):
    assert parse_duration(format_seconds(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("36h", 129_600), ("7d", 604_800), ("2w", 1_209_600), ("1d12h", 129_600)],
)
def test_durations_as_people_write_them(text: str, seconds: int):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "0h",
        "-1d",
        "1.5h",
        "24 h",
        "30M",
        "1mo",
        "2months",
        "1y",
        "1h1d",
        "1d1d",
        "7D",
        "٣h",
        "3h\n",
        "1e3s",
        "h",
        "40000000w",
        "99999999999999999999s",
        "m30",
        "PT5M",
        "1d 2h",
    ],
)
def test_what_is_no_duration_says_what_to_write(text: str):
    with pytest.raises(ValueError, match=r"write|count days|longer than|spelled none"):
        parse_duration(text)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_and_a_size_or_a_value_error(text: str):
    for parse in (parse_duration, parse_size):
        try:
            assert parse(text) > 0
        except ValueError as error:
            assert str(error).isprintable()


@pytest.mark.parametrize(
    ("text", "size"),
    [("10GB", 10**10), ("10GiB", 10 * 2**30), ("1.5TB", 15 * 10**11), ("0.5KiB", 512), ("3 kB", 3000), ("7B", 7)],
)
def test_sizes_as_people_write_them(text: str, size: int):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["10G", "10Gi", "10gb", "10Gb", "10g", "4K", "4k", "4M", "1T"])
def test_a_size_that_may_mean_two_is_refused_with_both(text: str):
    with pytest.raises(ValueError, match=r"write [0-9]+[KMGT]B \(decimal\) or [0-9]+[KMGT]iB"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "10", "0GB", "-1GB", "1,5GB", "1e3GB", "10  GB", "GB", "0.3B", "9999EB", "10XB"])
def test_what_is_no_size_is_refused(text: str):
    with pytest.raises(ValueError, match=re.escape(f'"{text}"')):
        parse_size(text)


@given(st.integers(1, 10**20))
def test_a_shown_size_is_near_and_decimal(size: int):
    shown = format_bytes(size)
    assert "i" not in shown
    assert abs(parse_size(shown) - size) <= size * 0.005
    assert len(re.sub(r"\D", "", shown)) <= 3 or shown.endswith("EB")


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (980e9, "980 GB"),
        (999_499, "999 kB"),
        (999_999, "1 MB"),
        (1.236e12, "1.24 TB"),
        (50e12, "50 TB"),
        (99.96e9, "100 GB"),
        (-2500, "-2.5 kB"),
        (5e21, "5000 EB"),
    ],
)
def test_sizes_as_they_are_shown(size: float, shown: str):
    assert format_bytes(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (45, "45s"), (60, "1m"), (12_000, "3h20m"), (86_400, "1d"), (1_569_599, "18d3h"), (-7_205, "-2h")],
)
def test_ages_as_they_are_shown(seconds: int, shown: str):
    assert format_age(seconds * 10**9) == shown


@given(st.integers(0, 10**10))
def test_a_shown_age_is_never_longer_than_the_age(seconds: int):
    shown = format_age(seconds * 10**9)
    if seconds:
        assert seconds - 3600 < parse_duration(shown) <= seconds if seconds < DURATION_MAX_S else True


def test_times_as_they_are_shown():
    assert format_time(1_768_046_400 * 10**9) == "2026-01-10T12:00:00Z"
    assert format_time(-1) == "1969-12-31T23:59:59Z"
    assert format_time(2**63 * 1000) == f"@{2**63 * 1000 // 10**9}"


NASTY = st.text(alphabet=st.sampled_from("a\\xuU01b\x1b\n\x7f\x9b\u202e\u2066\u200b\u2028\udc80\udcff\ud800é漢😀"))


@given(NASTY | st.text())
@example("\x1b[2J")
def test_an_escaped_name_is_safe_on_every_screen(text: str):
    shown = escape(text)
    assert shown.encode("utf-8").decode() == shown
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", shown)


@given(NASTY, NASTY)
@example("\x1b", "\\x1b")
@example("\\\x1b", "\\\\x1b")
@example("\udcff", "\xff")
def test_two_names_never_look_the_same(one: str, other: str):
    bytes_and_text = {"\x9b", "\udc9b"}  # the byte 9b and the character U+009B are both told as \x9b
    if one != other and not bytes_and_text & set(one + other):
        assert escape(one) != escape(other)


def test_names_as_they_are_shown():
    assert escape("run/step-1") == "run/step-1"
    assert escape("é漢") == "é漢"
    assert escape("a\x1b[31m\n") == r"a\x1b[31m\x0a"
    assert escape("\u202egnp.exe") == r"\u202egnp.exe"
    assert escape("caf\udce9") == r"caf\xe9"
    assert escape(r"exp\d+") == r"exp\d+"
    assert escape(r"\x1b") == r"\\x1b"
