"""A report as HTML: no string of it becomes a part of the page, every string can be read, and nothing is fetched."""

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid
from lifecycle.render import inlined
from lifecycle.render.charts import Spec, Written, drawn, written
from lifecycle.render.document import Chart, Column, Document, Section, Table, Unit, Value
from lifecycle.render.html import ROWS_FIRST, html_page
from tests.render.reported import NOW_NS, report
from tests.render.test_charts import DAY, ODD

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "</style><svg onload=alert(3)>",
    '" onclick="alert(4)',
    "' autofocus onfocus='alert(5)",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "--><iframe src=//evil.example>",
    "javascript:alert(6)",
    "\u202egpj.exe",
    "\x00\x07\x1b[2J",
    "\udcff",
    "&lt;b&gt;&amp;#60;",
    "a\r\nb\tc",
    "</title><base href=//evil.example>",
    "</table></td>",
    "not known",
    "sections",
    "stores",
    "\\u202e",
    "\u2028",
    "`${alert(7)}`",
    "<a href='https://evil.example'>",
)
STRINGS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=20), min_size=24, max_size=24)
UNITS = tuple(Unit)


class Seen(HTMLParser):
    """What a page is made of: its elements with the names of their attributes, and the text in each."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shape, self.texts, self.links = list[tuple[str, ...]](), list[str](), list[str]()
        self.ids, self.open = list[str](), list[str]()
        self.of = dict[str, list[str]]()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.texts += [value or "" for name, value in attrs if name == "aria-label"]
        self.open.append(tag)
        self.of.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self.shape.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open:
            self.of[self.open[-1]][-1] += data

    def handle_comment(self, data: str) -> None:
        self.shape.append(("!", data))


def document(texts: list[str]) -> Document:
    """With a string in every place that takes one."""
    given = iter(texts)
    columns = tuple(Column(next(given), next(given), unit) for unit in UNITS)
    row: tuple[Value, ...] = (next(given), 1, 2, None, 0.5, NOW_NS, NOW_NS, 3)
    strings: tuple[Value, ...] = (None, *[next(given)] * 7)
    table = Table("t", next(given), columns, (row, strings), "never seen")
    empty = Table(next(given), "e", columns, (), next(given), 3)
    chart = Chart("c", next(given), written([Written(DAY, "hot", 1.0)]), next(given))
    sections = (
        Section(next(given), "s", (texts[-1],), (chart,), (table, empty)),
        Section("stores", texts[0], (), (), ()),
    )
    return Document(texts[-2], NOW_NS, "EUR", tuple(texts[:3]), sections)


@pytest.fixture(scope="module", autouse=True)
def undrawn() -> Iterator[None]:
    """Drawing takes longer than all else, and is looked at by one test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inlined, "drawn", missing)
        yield


def missing(_spec: Spec) -> str:
    raise ConfigInvalid("drawing charts needs a package", code="charts_missing")


@given(STRINGS)
def test_no_string_becomes_a_part_of_the_page(texts: list[str]):
    page = html_page(document(texts))
    page.encode("utf-8")
    seen = Seen(page)
    harmless = {text: f"name{at}".ljust(len(escape(text)), "-") for at, text in enumerate(dict.fromkeys(texts))}
    assert seen.shape == Seen(html_page(document([harmless[text] for text in texts]))).shape
    assert all(link.startswith(("#", "data:image/svg+xml,")) for link in seen.links)
    assert len(set(seen.ids)) == len(seen.ids)
    told = "\n".join(seen.texts)
    assert all(escape(text) in told or text in told for text in strings(document(texts)))
    assert all(char.isprintable() or char == "\n" for char in told)


def strings(whole: Document) -> Iterator[str]:
    """All that is to be read on a page of it."""
    yield from (whole.title, *whole.sentences)
    for section in whole.sections:
        yield from (section.title, *section.sentences)
        yield from (text for chart in section.charts for text in (chart.title, chart.told))
        for table in section.tables:
            yield table.title if table.rows else table.empty
            yield from (column.title for column in table.columns if table.rows)
            yield from (value for row in table.rows for value in row if isinstance(value, str))


def test_a_browser_may_use_our_style_and_our_script_and_nothing_else():
    page = html_page(document([*HOSTILE, "x"]))
    policy = re.search(r'content="(default-src[^"]*)"', page.replace("&#39;", "'"))
    assert policy is not None
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy[1].split(";"))
    assert rules.pop("default-src") == "'none'" and "unsafe" not in policy[1]
    for tag in ("style", "script"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert rules.pop(f"{tag}-src") == f"'sha256-{digest}'"
        assert len(inside) == page.count(f"<{tag}") == 1
    assert rules == {"img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_numbers_stand_beside_their_words():
    columns = tuple(Column(unit.value, unit.value.title(), unit) for unit in UNITS)
    rows: tuple[tuple[Value, ...], ...] = (
        ("run-7", 1_204, 1_240_000_000_000, 1_500_000, 0.871, NOW_NS, NOW_NS, 90 * 10**9),
        (None, None, float("nan"), None, None, None, None, None),
        ("x", "many", 0, -5_000_000, 0, 2**70, 2**70, -1),
    )
    table = Table("t", "T", columns, rows, "")
    page = html_page(Document("R", NOW_NS, "USD", (), (Section("s", "S", tables=(table,)),)))
    cells = re.findall(r"<(?:td|th scope=\"row\")([^>]*)>(.*?)</t[dh]>", page)
    plain = [(mark.strip(), re.sub("<[^>]*>", "", words)) for mark, words in cells]
    assert plain[:8] == [
        ("", "run-7"),
        ('data-value="1204"', "1,204"),
        ('data-value="1240000000000"', "1.24 TB"),
        ('data-value="1500000"', "$1.50"),
        ('data-value="0.871"', "87.1 %"),
        (f'data-value="{NOW_NS}"', "2026-11-30 12:00"),
        (f'data-value="{NOW_NS}"', "2026-11-30"),
        ('data-value="90000000000"', "1m30s"),
    ]
    assert {words for _, words in plain[8:16]} == {"not known"}
    assert {mark for mark, _ in plain[8:16]} == {'class="unknown"', 'data-value="" class="unknown"'}
    assert plain[17] == ('data-value=""', "many") and plain[21][1].startswith("@"), "words and other calendars stay"
    assert '<time datetime="2026-11-30T12:00:00Z">2026-11-30 12:00</time>' in cells[5][1]
    assert 'width="87.1"' in cells[4][1], "a part is drawn"


def test_all_rows_are_there_and_what_is_left_out_is_said():
    page = html_page(report(ROWS_FIRST + 50))
    assert page.count('<tbody class="rest">') == 1
    assert page.split('id="next"')[1].split("</section>")[0].count('<tr><th scope="row"') == ROWS_FIRST + 50
    assert "1,200 more rows are left out" in page
    for part in report(1).sections:
        assert f'href="#{part.name}"' in page and f'<section id="{part.name}">' in page


def test_charts_are_shapes_and_words_of_the_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inlined, "drawn", drawn)
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    charts = [Chart("c", title, written([Written(DAY, ODD, 1.0)]), ODD) for title in (ODD, "What is written a day")]
    page = html_page(Document("R", NOW_NS, "EUR", (), (Section("s", "S", (), tuple(charts)),)))
    seen = Seen(page)
    assert [shape for shape in seen.shape if shape[0] == "script"] == [("script",)]
    assert "\u202e" not in page and "url(" not in page.split("<body>")[1]
    assert len(set(seen.ids)) == len(seen.ids)
    used = {(shape[0], name) for shape in seen.shape for name in shape[1:]}
    assert {tag for tag, name in used if name in ("href", "xlink:href")} == {"a", "link"}
    assert not {name for _, name in used if name.startswith("on") or name == "style"}
    assert [shape for shape in seen.shape if shape[0] == "svg"] == [
        ("svg", "xmlns", "viewbox", "role", "aria-labelledby", "aria-describedby")
    ] * 2
    assert seen.of["desc"] == [escape(ODD)] * 2
    assert "What is written a day" not in "".join(seen.of["text"]), "the page says it above the drawing"
    assert 'class="fill-dim"' in page and "#57606a" not in page, "the page's colours, by day and by night"


def test_a_chart_links_to_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inlined, "drawn", drawn)
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    place = {"x": {"field": "x", "type": "quantitative"}, "href": {"field": "to"}}
    spec = {"data": {"values": [{"x": 1, "to": "https://evil.example"}]}, "mark": "point", "encoding": place}
    page = html_page(Document("R", NOW_NS, "EUR", (), (Section("s", "S", (), (Chart("c", "C", spec, "T"),)),)))
    assert "evil" not in page and "<a>" not in page and "<path" in page


def test_sections_are_found_by_their_names_or_by_their_numbers():
    named = ("stores", "stores", "sections", "<b>", "")
    seen = Seen(html_page(Document("R", NOW_NS, "EUR", (), tuple(Section(name, "S") for name in named))))
    places = [f"section-{at}" if at else "stores" for at in (0, 2, 3, 4, 5)]
    assert seen.ids == ["sections", *places] and [link for link in seen.links if link[0] == "#"][1:] == [
        f"#{place}" for place in places
    ]


def test_without_what_draws_it_says_so():
    page = html_page(report(1))
    assert page.count("checkpoint-lifecycle[charts]") == 2 and "hot will be full around" in page
