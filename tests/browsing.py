"""A browser for tests: one for each module that asks for it, and tabs that remember whatever they complained of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Skips where there is none. Not for longer than a module: while it runs, no other event loop can."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test")
    if not CHROMIUM.exists():
        pytest.skip("needs chromium as Debian packages it")
    with playwright.sync_playwright() as play:
        made = play.chromium.launch(executable_path=str(CHROMIUM), args=list(OPTIONS))
        yield made
        made.close()


class Tab:
    """A page in a browser of its own, and all that it complained of."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url, self.complaints = url, list[str]()
        self.context = browser.new_context(base_url=url, **options)
        self.page = self.context.new_page()
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._opened)
        self.page.on("request", lambda asked: self._asked(asked.url))

    def _opened(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def _asked(self, asked: str) -> None:
        if not asked.startswith(self.url):
            self.complaints.append(f"it asked for {asked}")

    @property
    def heading(self) -> str:
        return str(self.page.get_by_role("heading", level=1).inner_text())


CONTRAST = """() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const lum = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                     return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
                        if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  let least = 99;
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest('svg')) continue;
    const a = lum(rgb(getComputedStyle(e).color).slice(0, 3)), b = lum(behind(e));
    least = Math.min(least, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
  }
  return least;
}"""
"""The least contrast on a page between text and what is behind it, by the formula of WCAG 2.1."""
