"""Templates that make HTML: every text in them is escaped, and a name that would do something is spelt out."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lifecycle.core.units import escape, format_age, format_bytes, format_time
from lifecycle.render.document import shown

PAGE = Path(__file__).parent / "page"
"""What all our pages share: the style, the icon; and the template and the script of a report."""


def environment(folder: Path) -> Environment:
    """What makes pages of the templates in ``folder``, each read once."""
    # Escaping is on for whatever a template is called: a new one cannot forget it.
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(name=escape, bytes=format_bytes, age=format_age, when=when, ago=ago, percent=percent)
    return made


def _shown(value: object) -> object:
    """Whatever is put into a page: what no screen can show, or no UTF-8 can hold, is spelt out."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def when(at_ns: int | None) -> Markup:
    """A moment in UTC, to the minute, and to the second for programs."""
    if not at_ns:
        return Markup("never")
    text = format_time(at_ns)
    return Markup('<time datetime="{}">{}</time>').format(text, f"{text[:16].replace('T', ' ')} UTC")


def ago(at_ns: int | None, now_ns: int) -> Markup:
    """How long ago something was, with the moment itself beside it."""
    if not at_ns:
        return Markup("never")
    text = format_time(at_ns)
    age = f"{format_age(now_ns - at_ns)} ago" if now_ns >= at_ns else f"in {format_age(at_ns - now_ns)}"
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(text, text[:16].replace("T", " "), age)


def percent(part: float) -> Markup:
    """A part in percent, as far as it is of use, on one line."""
    return Markup("{}&nbsp;%").format(f"{100 * part:.1f}")
