"""A report as Markdown: no string of it is anything but text, it has an end, and what is left out is counted."""

import re

from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lifecycle.core.units import escape
from lifecycle.render.document import Column, Document, Section, Table, Unit
from lifecycle.render.markdown import MARKDOWN_MAX, ROWS_MAX, markdown_page
from tests.render.reported import NOW_NS, report
from tests.render.test_html import HOSTILE, Seen, document, strings

MEANT = (
    "# h",
    "- l",
    "+ l",
    "1. l",
    "2) l",
    "===",
    "---",
    "> q",
    "```",
    "    code",
    "| a | b |",
    "[a](//evil.example)",
    "![i](x)",
    "*b* _u_ ~~s~~",
    "https://evil.example/a",
    "www.evil.example",
    "a@evil.example",
    "@team",
    "owner/repo#1",
    "<details>",
    "</details>",
    ":tada:",
    "\\",
    "$x$",
    "[^1]",
)
TEXTS = st.lists(st.sampled_from(HOSTILE + MEANT) | st.text(max_size=20), min_size=24, max_size=24)


def rendered(page: str) -> Seen:
    return Seen(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page))


def shape(page: str) -> list[str]:
    """Its elements, without those that only say that something is a name."""
    return [one[0] for one in rendered(page).shape if one[0].strip("/") != "code"]


@given(TEXTS)
def test_no_string_becomes_a_part_of_the_page(texts: list[str]):
    assume(all(text.strip(" ") for text in texts))
    page = markdown_page(document(texts))
    page.encode("utf-8")
    harmless = {text: f"name{at}" for at, text in enumerate(dict.fromkeys(texts))}
    assert shape(page) == shape(markdown_page(document([harmless[text] for text in texts])))
    told = "".join(rendered(page).texts)
    read = [text.strip(" ") for text in strings(document(texts))]
    assert all(text in told or escape(text) in told for text in read), "and all of it can be read"
    bare = re.sub(r"<code>.*?</code>", " ", MarkdownIt("commonmark", {"html": True}).enable("table").render(page))
    assert not re.search(r"[@#~]\w|://|www\.", re.sub("<[^>]*>", "", bare)), "nothing is a mention or a link either"


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=6),
    st.sampled_from(["x", "a name", "<" * 90, "\u202e" * 300, "\u0301" * 5000, "|" * 4000]),
    st.integers(0, 3),
)
def test_it_has_an_end_and_says_what_is_left_out(counts: list[int], name: str, left_out: int):
    columns = (Column("name", name), Column("count", name, Unit.COUNT))
    tables = [Table("t", f"T{at}", columns, ((name, 7),) * count, name, left_out) for at, count in enumerate(counts)]
    page = markdown_page(
        Document(
            name, NOW_NS, "EUR", (name,) * 5, tuple(Section("s", f"S{t.title}", (name,), (), (t,)) for t in tables)
        )
    )
    assert len(page) <= MARKDOWN_MAX
    assert page.count("<details>") == page.count("</details>")
    sections = sum(int(n) for n in re.findall(r"^([0-9]+) sections? of the report", page, re.MULTILINE))
    shown = len(tables) + 1 - sections
    assert page.count("\n## ") == max(shown - 1, 0)
    for part, table in zip(page.split("\n## ")[1:], tables, strict=False):
        rows = len(re.findall(r" 7 \|$", part, re.MULTILINE))
        left = sum(int(n) for n in re.findall(r"^([0-9]+) more rows? (?:is|are) left out", part, re.MULTILINE))
        assert not table.rows or rows + left == len(table.rows) + left_out, "every row is shown or counted"


def test_names_are_spelt_out_once():
    told = r"hot:\u202egpj.exe goes"
    columns = (Column("name", "Name"),)
    table = Table("t", "T", columns, (("\u202egpj.exe",), (r"\u202egpj.exe",)), "")
    read = "".join(
        rendered(markdown_page(Document(told, NOW_NS, "EUR", (told,), (Section("s", "S", (), (), (table,)),)))).texts
    )
    assert read.count(told) == 2 and read.count(r"\u202egpj.exe") == 4 and read.count(r"\\u202egpj.exe") == 1


def test_the_first_rows_are_seen_and_the_others_folded():
    page = markdown_page(report(ROWS_MAX + 15))
    part = page.split("## Goes next, and when")[1].split("\n## ")[0]
    seen, _, folded = part.partition("<details><summary>15 more rows</summary>")
    assert seen.count("checkpoint-") == ROWS_MAX and folded.count("checkpoint-") == 15
    assert "1200 more rows are left out here." in folded
    assert "*not known*" in part and "941&nbsp;GB" in part
    assert "**What is written a day.** About 2.9 TB a day" in page, "charts are told"
    assert "Every checkpoint has as many copies as its policy asks for." in page


def test_short_tables_leave_their_room_to_the_long_ones():
    page = markdown_page(report(10_000))
    assert MARKDOWN_MAX * 0.9 < len(page) <= MARKDOWN_MAX
    assert len(shape(page)) > 1000
