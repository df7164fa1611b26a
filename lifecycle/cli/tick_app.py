"""The grammar of ``lifecycle tick``, ``ticks``, ``serve`` and ``web``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, app


@app.command()
def tick(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """Do one round of all the work: recover, scan, plan; apply, purge and verify where `tick:` allows it.

    Safe to repeat, to kill, and to begin twice at once. Without `tick: {apply: auto}` it only looks and plans.
    """
    from lifecycle.cli import ticking

    return ticking.tick_once(_desk(ctx, config, root, as_json))


@app.command()
def ticks(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, metavar="N", help="At most N lines.")] = 20,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """List the last ticks, and what came of each."""
    from lifecycle.cli import ticking

    return ticking.show_ticks(_desk(ctx, config, root, as_json), limit)


@app.command()
def web(
    ctx: typer.Context,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="ADDRESS:PORT", help="As `http:` says if not given, else 127.0.0.1:8080."),
    ] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Answer over HTTP: pages to look at, a JSON API, health. Reads only, begins no tick: beside a CronJob."""
    from lifecycle.cli import webbing

    return webbing.web(_desk(ctx, config, root, as_json), listen)


@app.command()
def serve(ctx: typer.Context, config: Config = None, as_json: Json = False) -> int:
    """Stay, and do a tick whenever `tick: {schedule: ...}` says. Settings and policies are read anew before each.

    SIGTERM: finish what is open, then end. SIGHUP: read settings and policies now.
    """
    from lifecycle.cli import serving

    return serving.serve(_desk(ctx, config, None, as_json))
