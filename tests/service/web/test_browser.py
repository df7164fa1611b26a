"""The pages in a real browser, with names that would run if anything let them: nothing runs, and it never complains."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from lifecycle.config.serving import Listen
from lifecycle.service.web.app import Site, make_app
from lifecycle.service.web.gate import Gate
from lifecycle.service.web.server import Server
from tests.browsing import CONTRAST, Tab
from tests.service.web.place import HOSTILE, TOKEN, Place
from tests.service.web.test_pages import spelled


@pytest.fixture(scope="module")
def url(place: Place) -> Iterator[str]:
    site = Site(place.views(), Gate(TOKEN, place.shell.clock.now_ns), failed=place.failures.append)
    made = Server(make_app(site), Listen("127.0.0.1", 0), place.failures.append)
    made.start()
    yield made.url
    made.stop()


class Visitor(Tab):
    """Who knows the token."""

    def log_in(self, path: str = "") -> None:
        self.page.goto(path)
        self.page.get_by_label("Token").fill(TOKEN)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("button", name="Log out").wait_for()


@pytest.fixture
def tab(browser: Any, url: str) -> Iterator[Visitor]:
    made = Visitor(browser, url)
    yield made
    made.context.close()
    assert made.complaints == []


def test_from_the_token_to_the_story_of_a_checkpoint(tab: Visitor):
    page = tab.page
    page.goto("runs?q=pretrain")
    assert tab.heading == "Log in"
    page.get_by_label("Token").fill("not the token at all")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").inner_text() == "That is not the token."
    assert "403" in tab.complaints.pop(), "which is what a browser says of any answer of that kind"
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/runs?q=pretrain")
    assert page.evaluate("document.cookie") == "", "no script may read the session"
    page.get_by_role("link", name="hot:pretrain/a").click()
    assert tab.heading == "hot:pretrain/a"
    row = page.get_by_role("row").filter(has_text="checkpoint-200")
    assert row.get_by_text("goes").is_visible()
    row.get_by_role("link").click()
    assert tab.heading == "hot:pretrain/a/checkpoint-200"
    assert page.get_by_role("heading", name="It goes because nothing keeps it").is_visible()
    page.get_by_role("link", name="Ticks", exact=True).click()
    page.get_by_role("link", name="2", exact=True).click()
    assert tab.heading == "Tick 2" and page.get_by_role("row").filter(has_text="verify").is_visible()
    page.get_by_role("button", name="Log out").click()
    page.goto("ticks")
    assert tab.heading == "Log in"


def test_hostile_names_are_text_and_can_be_followed(tab: Visitor):
    tab.log_in("runs")
    for name in HOSTILE[:3]:
        tab.page.goto("runs")
        tab.page.locator(f'a[href="run?id={spelled("hot:" + name)}"]').click()
        tab.page.get_by_role("row").nth(1).get_by_role("link").click()
        assert tab.heading.startswith(f"hot:{name}/checkpoint-")
        assert tab.page.evaluate("document.querySelectorAll('script, [onmouseover], [onerror]').length") == 0
    tab.page.goto("run?id=hot:pretrain/a")
    assert tab.page.get_by_text("<img src=x onerror=alert(5)>").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_on_a_telephone_and_at_night(browser: Any, url: str, scheme: str):
    """400 pixels wide; contrast by the formula of WCAG 2.1 between text and what is behind it."""
    tab = Visitor(browser, url, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    try:
        tab.log_in()
        for path in ("", "runs", "run?id=hot:pretrain/a", "upcoming", "ticks", "tick?n=1", "findings"):
            tab.page.goto(path)
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400, path
            assert tab.page.evaluate(CONTRAST) >= 4.5, path
            tab.page.keyboard.press("Tab")
            assert tab.page.evaluate("document.activeElement.textContent") == "Skip to content"
        longest = max(HOSTILE, key=len)
        tab.page.goto(f"run?id={spelled(f'hot:{longest}')}")
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400
        assert tab.complaints == []
    finally:
        tab.context.close()


def test_it_works_without_javascript(browser: Any, url: str):
    tab = Visitor(browser, url, java_script_enabled=False)
    try:
        tab.log_in("upcoming")
        assert tab.heading == "Upcoming" and tab.page.get_by_role("link", name="checkpoint-200").is_visible()
    finally:
        tab.context.close()
