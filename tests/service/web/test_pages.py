"""The pages over hostile names: every one is well-formed, runs nothing, hides nothing and leads on to itself alone."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from lifecycle.core.units import escape
from lifecycle.errors import Refused
from tests.service.web.place import HOSTILE, TOKEN, Place, build

TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title link body a header div nav ul li main footer p h1 h2 h3 section article span strong br "
        "table thead tbody tr th td code dl dt dd form label input select option button img time caption "
        "svg rect polygon polyline line",
    )
)
VOID = {"meta", "link", "br", "input", "img", "rect", "polygon", "polyline", "line"}
HREF = re.compile(r"(?:(?:\.\./)+)?(?:[a-z]+(?:/[a-z]+\.(?:css|svg))?|\./|#main|)(?:\?[!-~]*)?")
LINKS = {"href", "src", "action"}


class Page(HTMLParser):
    """Reads a page, and fails on what may not be in one."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        raw = self.get_starttag_text() or ""
        assert not re.search(r"=\s*[^\"\s]", re.sub(r'"[^"]*"', '""', raw)), f"an attribute without quotes: {raw}"
        for name, value in attrs:
            assert not name.startswith("on") and name != "style", raw
            if name in LINKS:
                assert HREF.fullmatch(value or ""), raw
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag == "img":
            assert "alt" in dict(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        assert tag in VOID

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def spelled(text: str) -> str:
    return quote(os.fsencode(text), safe="")


def test_every_page_that_can_be_reached_by_links_is_sound(place: Place):
    client, todo, seen = place.client(TOKEN), ["./"], {}
    client.headers["authorization"] = f"Bearer {TOKEN}"
    while todo:
        link = todo.pop()
        if link in seen or link in ("logout", "#main") or link.startswith("static/"):
            continue
        answer = client.get(f"/{link.removeprefix('./')}")
        assert answer.status_code == 200, link
        assert answer.text.replace("\n", "").isprintable(), "nothing in it turns lines or moves what comes after"
        seen[link] = page = Page(answer.text)
        todo += page.links
    kinds = {link.partition("?")[0] for link in seen}
    assert kinds == {"./", "runs", "run", "checkpoint", "upcoming", "ticks", "tick", "findings"}
    runs = {link for link in seen if link.startswith("run?")}
    assert {f"run?id={spelled(f'hot:{name}')}" for name in HOSTILE} <= runs
    text = " ".join(page.text for page in seen.values())
    for name in HOSTILE:
        assert " ".join(escape(name).split()) in text, "it is shown as it is, or spelt out"
    assert "<img src=x onerror=alert(5)>" in text and "<script>alert(4)</script>" in text
    assert not place.failures


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_comes_back_as_text(place: Place, name: str):
    for path in (f"runs?q={spelled(name)}", f"run?id={spelled('hot:' + name)}", f"upcoming?q={spelled(name)}"):
        answer = place.client().get(f"/{path}")
        assert answer.status_code == 200
        assert Page(answer.text).text.count("checkpoint-") or "runs" in path or "upcoming" in path


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("path", ["run?id=hot:{}%00", "checkpoint?id={}", "runs?sort={}", "tick?n={}", "{}", "a/b/{}"])
def test_what_is_not_there_is_said_without_running_it(place: Place, path: str, name: str):
    answer = place.client().get("/" + path.format(spelled(name)))
    assert answer.status_code in (400, 404)
    Page(answer.text)


def test_it_says_what_the_commands_say(place: Place):
    client = place.client()
    page = Page(client.get("/run?id=hot:pretrain/a").text).text
    assert "4 checkpoints" in page and "1 of them goes" in page and "Ticks only plan here" in page
    assert "<i>ann: <img src=x onerror=alert(5)> (until released" in page
    told = place.told("explain", "hot:pretrain/a/checkpoint-200")
    story = Page(client.get("/checkpoint?id=hot:pretrain/a/checkpoint-200").text).text
    for mark in told["marks"]:
        assert mark["why"] in story and (not mark["instead"] or mark["instead"] in story)
    assert "It goes because nothing keeps it" in story and told["floor"][0] in story
    assert "The next plan lets it go." in story and all(row["why"] in story for row in told["unasked"])
    kept = Page(client.get("/checkpoint?id=hot:pretrain/a/checkpoint-400").text).text
    assert "It stays because" in kept and "If nothing changes, it " in kept
    over = Page(client.get("/").text).text
    assert "1 to drop" in over and "Forecast:" in over and "UTC" in over
    assert "not full within 90 days" in over
    assert "was cut short" not in Page(client.get("/tick?n=1").text).text


def test_it_says_when_one_was_wanted_again(tmp_path: Path):
    place, key = build(tmp_path), "hot:pretrain/a/checkpoint-200"
    config = ("-c", str(place.config))
    assert place.shell("apply", place.told("plan")["plan"], "--yes", *config).code == 0
    assert place.shell("missed", key, "--reason", "<b>job 7", *config).code == 0
    assert place.shell("scan", *config).code == 0
    gone = place.client().get(f"/checkpoint?id={key}")
    assert gone.status_code == 404 and "lifecycle explain tells what was done with it" in Page(gone.text).text
    assert place.shell("undo", key, *config).code == 0
    story = Page(place.client(views=place.views()).get(f"/checkpoint?id={key}").text).text
    assert "When it was wanted again" in story and "an undo could bring it back: <b>job 7 (dropped" in story


def test_runs_are_found_sorted_and_paged(place: Place):
    client = place.client()

    def names(query: str) -> list[str]:
        return [x for x in Page(client.get(f"/runs{query}").text).links if x.startswith("run?")]

    every = names("")
    assert len(every) == len(HOSTILE) + 2
    assert names("?limit=5") == every[:5] and names("?limit=5&offset=5") == every[5:10]
    assert names("?q=PRETRAIN") == ["run?id=hot%3Apretrain%2Fa"] and names("?q=nothing") == []
    assert names("?sort=checkpoints")[0] == names("?sort=size")[0] == "run?id=hot%3Apretrain%2Fa"
    pager = Page(client.get("/runs?limit=5&offset=5&sort=size").text).links
    assert "runs?limit=5&sort=size" in pager and "runs?offset=10&limit=5&sort=size" in pager
    for wrong in (
        "?limit=0",
        "?limit=1001",
        "?offset=-1",
        "?offset=x",
        "?sort=up",
        "?" + "&".join("abcdefghijklmnopq"),
    ):
        assert client.get(f"/runs{wrong}").status_code == 400


def test_ticks_are_paged(place: Place):
    client = place.client()
    first = Page(client.get("/ticks?limit=1").text).links
    assert "tick?n=2" in first and "tick?n=1" not in first and "ticks?before=2" in first
    assert "tick?n=1" in Page(client.get("/ticks?before=2").text).links
    assert client.get("/tick?n=9").status_code == 404 and client.get("/tick").status_code == 404


def test_a_fault_of_ours_shows_nothing_of_the_inside(place: Place, monkeypatch: pytest.MonkeyPatch):
    views = place.views()

    def broken(*_args: object) -> None:
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr(views, "look", broken)
    client = place.client(views=views)
    for path in ("/", "/runs", "/api/v1/stores"):
        answer = client.get(path)
        assert answer.status_code == 500 and "secret" not in answer.text and "Traceback" not in answer.text
    assert client.get("/readyz").text == "internal\n"
    assert "RuntimeError: secret of the inside" in place.failures
    place.failures.clear()


def test_an_index_that_cannot_be_used_is_told_of(place: Place, monkeypatch: pytest.MonkeyPatch):
    views = place.views()

    def refused() -> None:
        raise Refused("there is no index at <here>", code="index_missing", hint="scan first")

    monkeypatch.setattr(views, "look", refused)
    client = place.client(views=views)
    answer = client.get("/ticks")
    assert answer.status_code == 503 and answer.headers["retry-after"] == "5"
    assert "there is no index at <here>" in Page(answer.text).text
    assert client.get("/api/v1/ticks").json()["error"] == {
        "code": "index_missing",
        "message": "there is no index at <here>",
        "hint": "scan first",
        "exit_code": 4,
    }
    assert client.get("/readyz").status_code == 503 and client.get("/readyz").text == "index_missing\n"
    assert client.get("/healthz").status_code == 200


def test_settings_that_are_not_valid_are_told_of_on_every_page(place: Place):
    views = place.views()
    views.trouble = lambda: "lifecycle.yaml:3:1: <wrong>"
    page = Page(place.client(views=views).get("/ticks").text).text
    assert "The settings that are there are not valid" in page and "<wrong>" in page
