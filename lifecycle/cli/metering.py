"""``metrics``: what the index knows as metrics, for whoever scrapes, collects files or takes pushes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lifecycle.cli.desk import Desk, writing
from lifecycle.cli.pushing import push
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.flows.metering import Sources, meter
from lifecycle.ports.measures import About, Measures
from lifecycle.ports.secret import Reference
from lifecycle.ports.ticks import Stage, TickRow

if TYPE_CHECKING:
    from lifecycle.config.monitoring import Monitoring
    from lifecycle.flows.stages import Ticked
    from lifecycle.world import World


class Words(NamedTuple):
    """The command line, as it was typed."""

    textfile: str | None
    push: str | None
    job: str
    token_file: str | None


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
    about, capacities = About(world.engine, kind, HEAD), dict(world.settings.capacities)
    return meter(sources, world.rules, names, about, world.clock.now_ns(), capacities=capacities, ended=ended)


def show(desk: Desk, words: Words) -> int:
    """``lifecycle metrics``"""
    from lifecycle.render.exposition import exposition, points

    target = _meant(words)
    with desk.world(write=False, create=False) as world:
        found = measured(world)
    body = exposition(found)
    said = [f"{did[0].upper()}{did[1:]}." for did in told(target, body, desk.seams.env)]
    if desk.as_json or said:
        desk.answer({"metrics": list(points(found)), "done": said}, said)
        return 0
    with writing():
        _put(body)
    return 0


def _put(body: bytes) -> None:
    """The format is UTF-8, whatever the terminal's own encoding is."""
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # what tests and other programs put in its place
        print(body.decode(), end="")
        return
    sys.stdout.flush()
    stream.write(body)
    stream.flush()


def _meant(words: Words) -> Monitoring:
    from lifecycle.config import monitoring
    from lifecycle.config.problems import Bad

    option, found = "", monitoring.Monitoring()
    try:
        if words.textfile is not None:
            option = "--textfile"
            found = found._replace(textfile=monitoring.textfile(_absolute(words.textfile)))
        if words.push is not None:
            option = "--push"
            token = None if words.token_file is None else Reference("file", words.token_file)
            found = found._replace(gateway=monitoring.Gateway(monitoring.gateway(words.push), words.job, (), "", token))
            if token and monitoring.is_open(words.push):
                raise Bad("a token would go over the network in the clear: write https://")
        option = "--job"
        monitoring.job_name(words.job)
    except Bad as bad:
        raise ConfigInvalid(f"{option}: {bad}", code="usage") from None
    if words.push is None and words.token_file is not None:
        raise ConfigInvalid("--token-file goes with --push only", code="usage")
    return found


def _absolute(path: str) -> str:
    return os.path.abspath(path)


def told(target: Monitoring, body: bytes, env: Mapping[str, str]) -> list[str]:
    """Put metrics where they are wanted; what was done, in words.

    Raises:
        LifecycleError: one of both failed; the other was tried all the same.
    """
    from lifecycle.stores import textfile

    done: list[str] = []
    failed: list[LifecycleError] = []

    def attempt(word: str, act: Callable[[], None]) -> None:
        try:
            act()
        except LifecycleError as e:
            failed.append(e)
        else:
            done.append(word)

    if (path := target.textfile) is not None:
        attempt(f"written to {escape(path)}", lambda: textfile.write(path, body))
    if (gateway := target.gateway) is not None:
        attempt(f"pushed to {escape(gateway.url)}", lambda: push(gateway, body, env))
    if failed:
        first, *more = failed
        text = "; ".join(map(str, failed)) if more else str(first)
        raise LifecycleError(f"{text}{''.join(f'; {word}' for word in done)}", code=first.code, hint=first.hint)
    return done


def closing(desk: Desk, world: World, made: Ticked, asked: Callable[[], bool]) -> Stage | None:
    """Tell of a tick that has come to its end, where the settings say so; it fails no tick, whatever happens.

    Args:
        desk: whose settings.
        world: the installation.
        made: the tick.
        asked: whether it is to end at once: then no forecast is made.
    """
    from lifecycle.cli.foreseeing import keep_daily
    from lifecycle.render.exposition import exposition

    target, scraped = desk.settings.monitoring, desk.settings.http is not None
    wanted = target.textfile is not None or target.gateway is not None
    if not wanted and not scraped:
        return None
    # What a store will hold is read off a forecast that is kept, and nobody else may make one for weeks.
    kept = keep_daily(world, asked)
    if not wanted:
        return Stage("metrics", text=kept) if kept else None
    ended = made.started_at_ns, made.ended_at_ns, world.host, world.engine, made.exit_code
    row = TickRow(made.number, *ended, made.plan.id if made.plan else "", made.facts())
    try:
        done = told(target, exposition(measured(world, row)), desk.seams.env)
    except LifecycleError as e:
        hint = f" ({e.hint})" if e.hint else ""
        return Stage("metrics", code=e.code, text=f"not told everywhere: {e}{hint}", skipped=True)
    except Exception as e:  # whatever it is, nothing that was done is the worse for it
        return Stage(
            "metrics", code="internal", text=f"not told everywhere, a fault of ours: {type(e).__name__}", skipped=True
        )
    return Stage("metrics", text="; ".join(filter(None, (" and ".join(done), kept))))
