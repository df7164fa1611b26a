"""The grammar of ``lifecycle report``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import All, Config, Json, Policies, Root, _desk, app


@app.command()
def report(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write one page that needs nothing else; - prints it.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE", help="Write it as Markdown; - prints it.")
    ] = None,
    days: Annotated[
        int, typer.Option("--days", min=1, max=3650, metavar="N", help="How far back to tell what was done.")
    ] = 30,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="NAME|me", help="Only what belongs to this user.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="GLOB", help="Only of runs that match.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="As of TIME, not as of now.")] = None,
    policies: Policies = None,
    everything: All = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Tell how things stand: what is full, what goes next, what was done, what it saves, what needs a person.

    Asks the index and the trash; changes nothing, and does not scan. Without --html, --markdown or --json it prints
    the first rows of each table; -v prints all.
    """
    from lifecycle.cli import reporting

    wish = reporting.Asked(html, markdown, days, owner, run, at, everything)
    return reporting.report(_desk(ctx, config, root, as_json, policies), wish)
