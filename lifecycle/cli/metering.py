"""``metrics``: what the index knows as metrics, for whoever scrapes, collects files or takes pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lifecycle.flows.metering import Sources, meter
from lifecycle.ports.measures import About, Measures

if TYPE_CHECKING:
    from lifecycle.ports.ticks import TickRow
    from lifecycle.world import World


def measured(world: World, ended: TickRow | None = None) -> Measures:
    """What metrics tell of an open installation at this moment; a world that is read only will do.

    Args:
        world: the installation.
        ended: the tick at whose end this is asked, as it will be written down.

    Raises:
        LifecycleError: the index cannot be read.
    """
    from lifecycle.index.open import on_server
    from lifecycle.index.schema import HEAD
    from lifecycle.index.sums import IndexSums
    from lifecycle.index.ticks import IndexTicks

    index = world.index
    sources = Sources(index.reader, IndexSums(index.database), IndexTicks(index.database), index.journal)
    kind = "postgres" if on_server(world.settings.database) else "sqlite"
    names = tuple(store.name for store in world.settings.stores)
    return meter(sources, world.rules, names, About(world.engine, kind, HEAD), world.clock.now_ns(), ended=ended)
