"""The grammar of ``upcoming``, ``approvals``, ``approve`` and ``reject``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, Yes, _desk, app

Id = Annotated[str, typer.Argument(metavar="REQUEST", help="As `lifecycle approvals` lists it, or its beginning.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so; you, if not given.")]


@app.command()
def upcoming(
    ctx: typer.Context,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="NAME|me", help="Only what belongs to this user.")
    ] = None,
    within: Annotated[str | None, typer.Option("--within", metavar="AGE", help="Only what may go within 7d.")] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="GLOB", help="Only of runs that match.")] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Tell what is going to go, when, why, and how to stop it. Asks the index; changes nothing."""
    from lifecycle.cli import consenting

    return consenting.show_upcoming(_desk(ctx, config, root, as_json), owner, within, run)


@app.command()
def approvals(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """List what ticks ask a yes for, and what was said."""
    from lifecycle.cli import consenting

    return consenting.list_requests(_desk(ctx, config, root, as_json))


@app.command()
def approve(
    ctx: typer.Context,
    request: Id,
    by: By = None,
    yes: Yes = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Say yes to what a tick asks for: just that, and for some days."""
    from lifecycle.cli import consenting

    return consenting.approve(_desk(ctx, config, root, as_json), request, by, yes=yes)


@app.command()
def reject(
    ctx: typer.Context, request: Id, by: By = None, config: Config = None, root: Root = None, as_json: Json = False
) -> int:
    """Say no to what a tick asks for, or take a yes back."""
    from lifecycle.cli import consenting

    return consenting.reject(_desk(ctx, config, root, as_json), request, by)
