"""Forecasts that a tick makes by itself: to tell who asked that a store will be full, and to be held to what comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lifecycle.errors import LifecycleError

if TYPE_CHECKING:
    from lifecycle.sizing.outlook import Forecast
    from lifecycle.world import World

DAY_S = 86_400
KEPT_DAYS = 90
"""As far as forecasts are held to what comes."""
STALE_NS = 20 * 3600 * 10**9
"""Nightly ticks keep one each, and so do not those of every hour."""


def foresee(world: World, days: int, asked: Callable[[], bool]) -> Forecast:
    """What ``lifecycle forecast`` says without any what if.

    Raises:
        LifecycleError: facts are missing, or somebody asked to stop.
    """
    from lifecycle.cli.forecasting import site_of
    from lifecycle.flows.forecast import forecast
    from lifecycle.sizing.outlook import Question

    def beat() -> None:
        if asked():
            raise LifecycleError("asked to stop", code="asked_to_stop")

    question, now_ns = Question(days=days, every_s=DAY_S), world.clock.now_ns()
    site, reader = site_of(world, lambda _: None), world.index.reader  # a store that is down: the tick has told
    return forecast(reader, world.rules, site, question, holds=world.holds(), now_ns=now_ns, beat=beat)


def keep_daily(world: World, asked: Callable[[], bool]) -> str:
    """Keep a forecast where none of today is kept; what came of it, in words, or nothing."""
    from lifecycle.flows.records import to_keep

    reader, now_ns = world.index.reader, world.clock.now_ns()
    made_ns = [told.made_at_ns for name in world.stores for told in reader.told(name)]
    if any(abs(now_ns - at_ns) < STALE_NS for at_ns in made_ns):
        return ""
    try:
        found = [*to_keep(foresee(world, KEPT_DAYS, asked), DAY_S)]
        world.index.writer.add_told(found)
    except LifecycleError as e:
        return f"no forecast is kept: {e}"
    except Exception as e:  # whatever it is, what was measured is told all the same
        return f"no forecast is kept, a fault of ours: {type(e).__name__}"
    return "a forecast is kept" if found else ""
