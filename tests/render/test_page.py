"""A report in a real browser: it sorts, filters and pages by mouse and by key, fetches nothing, and runs no name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.units import escape
from lifecycle.render import inlined
from lifecycle.render.document import Column, Document, Section, Table, Unit
from lifecycle.render.html import ROWS_FIRST, html_page
from tests.browsing import CONTRAST, Tab
from tests.render.reported import NOW_NS, report
from tests.render.test_html import HOSTILE, document, missing

ROWS, SOME = 10_000, 240
SIZE = 3
"""The column of sizes in the table of what goes next."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reports")
    (made / "small.html").write_text(html_page(report(SOME)), "utf-8")
    pages = {"large": report(ROWS), "hostile": document([*HOSTILE, "x"]), "odd": odd()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inlined, "drawn", missing)  # drawing takes longer than all else
        for name, whole in pages.items():
            (made / f"{name}.html").write_text(html_page(whole), "utf-8")
    return made


def odd() -> Document:
    """Names with numbers in them, and what is not known in between."""
    rows = (("b-90", 2), ("b-100", None), (None, 10), ("a-1", 1.5), ("B-95", 0), ("c", 7))
    columns = (Column("name", "Name"), Column("count", "Count", Unit.COUNT))
    return Document("Odd", NOW_NS, "EUR", (), (Section("s", "S", tables=(Table("t", "T", columns, rows, ""),)),))


@pytest.fixture
def tab(browser: Any, folder: Path) -> Iterator[Tab]:
    made = Tab(browser, f"{folder.as_uri()}/")
    asked: list[str] = []
    made.page.on("request", lambda request: asked.append(request.url))
    yield made
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1, "the page itself"
    made.context.close()
    assert made.complaints == []


def column(tab: Tab, at: int) -> list[str]:
    return list(tab.page.locator(f"tbody tr > :nth-child({at})").all_inner_texts())


def test_it_sorts_by_mouse_and_by_key_and_back(tab: Tab):
    tab.page.goto("odd.html")
    first = column(tab, 1)
    name, count = (tab.page.get_by_role("columnheader", name=title) for title in ("Name", "Count"))
    name.get_by_role("button").click()
    assert column(tab, 1) == ["a-1", "b-90", "B-95", "b-100", "c", "not known"], "what is not known comes last"
    assert name.get_attribute("aria-sort") == "ascending"
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    assert column(tab, 2) == ["0", "1.5", "2", "7", "10", "not known"]
    assert (name.get_attribute("aria-sort"), count.get_attribute("aria-sort")) == ("none", "ascending")
    tab.page.keyboard.press("Space")
    assert column(tab, 2) == ["10", "7", "2", "1.5", "0", "not known"], "nor is it the largest"
    assert count.get_attribute("aria-sort") == "descending"
    assert tab.page.get_by_role("status").inner_text() == "6 rows, by Count, downwards"
    tab.page.keyboard.press("Enter")
    assert column(tab, 1) == first and count.get_attribute("aria-sort") == "none"


def test_it_filters_by_words_and_counts_what_is_left(tab: Tab):
    tab.page.goto("odd.html")
    field = tab.page.get_by_label("Filter T")
    field.fill("  b- 9 ")
    assert column(tab, 1) == ["b-90", "B-95"]
    assert tab.page.get_by_role("status").inner_text() == "2 of 6 rows"
    field.fill("<b>")
    assert column(tab, 1) == ["No row has that."] and tab.page.get_by_role("status").inner_text() == "0 of 6 rows"
    field.fill("")
    assert len(column(tab, 1)) == 6 and tab.page.get_by_role("status").inner_text() == "6 rows"


def test_ten_thousand_rows_are_laid_out_a_page_at_a_time(tab: Tab):
    tab.page.goto("large.html")
    table, rows = tab.page.locator("#next .table"), tab.page.locator("#next tbody tr")
    where, back, on = table.locator(".pager span"), *(table.get_by_role("button", name=n) for n in ("Previous", "Next"))
    assert rows.count() == 100 and where.inner_text() == "Rows 1 to 100 of 10,000" and back.is_disabled()
    on.click()
    assert where.inner_text() == "Rows 101 to 200 of 10,000" and back.is_enabled()
    table.get_by_role("button", name="Size").click()
    assert rows.first.locator("td").nth(SIZE - 1).inner_text() == "1 GB" and where.inner_text().startswith("Rows 1 to")
    table.get_by_role("button", name="Size").click()
    assert rows.first.locator("td").nth(SIZE - 1).inner_text() == "997 GB", "of all rows, not of those on this page"
    table.get_by_label("Filter").fill("checkpoint-5000000")
    assert rows.count() == 1 and not where.is_visible()
    assert tab.page.locator("tbody.rest").count() == 0


def test_on_paper_it_is_whole(tab: Tab):
    tab.page.goto("small.html")
    tab.page.get_by_label("Filter Goes next").fill("keep rule")
    rows = tab.page.locator("#next tbody tr")
    few = rows.count()
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    many = rows.count()
    tab.page.emulate_media(media="print", color_scheme="dark")
    assert (few, many) == (ROWS_FIRST, SOME // 2)
    assert "120 of 240 rows" in tab.page.locator("#next").inner_text(), "paper says that it was filtered"
    assert not tab.page.get_by_role("navigation").is_visible() and not tab.page.locator("#next input").is_visible()
    assert tab.page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 32, 43)", "dark ink, at night too"
    assert tab.page.pdf(format="A4", page_ranges="1").startswith(b"%PDF")
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert rows.count() == few


def test_hostile_names_are_only_text(tab: Tab):
    tab.page.goto("hostile.html")
    for button in tab.page.get_by_role("columnheader").get_by_role("button").all():
        button.click()
    assert (
        tab.page.locator("script").count() == 1
        and tab.page.locator("img, iframe, base, [onclick], [onload]").count() == 0
    )
    assert escape(HOSTILE[1]) in tab.page.locator("body").inner_text()
    assert tab.page.evaluate("document.body.innerText.includes('\\u202e')") is False


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_can_be_read_on_a_telephone_and_at_night(browser: Any, folder: Path, scheme: str, width: int):
    tab = Tab(browser, f"{folder.as_uri()}/", viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab.page.goto("small.html")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.page.evaluate(CONTRAST) >= 4.5
    levels = tab.page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
    assert levels == [1] + [2] * len(report(1).sections)
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to content"
    outline = "(e => getComputedStyle(e).outlineStyle)(document.activeElement)"
    for _ in range(3):
        assert tab.page.evaluate(outline) != "none", "one sees where one is"
        tab.page.keyboard.press("Tab")
    tab.context.close()
    assert tab.complaints == []


def test_it_is_whole_without_javascript(browser: Any, folder: Path):
    tab = Tab(browser, f"{folder.as_uri()}/", java_script_enabled=False)
    tab.page.goto("small.html")
    rows = tab.page.locator("#next tbody tr")
    assert rows.count() == SOME and rows.last.is_visible()
    assert tab.page.get_by_role("button").count() == 0, "nothing stands there that does nothing"
    tab.context.close()
    assert tab.complaints == []
