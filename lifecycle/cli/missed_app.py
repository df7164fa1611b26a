"""The grammar of ``missed``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, app


@app.command()
def missed(
    ctx: typer.Context,
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="What a job wanted to go on from: STORE:KEY or a path.")
    ],
    reason: Annotated[
        str, typer.Option("--reason", "-r", metavar="TEXT", help="What failed; cut to 500 characters.")
    ] = "",
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Say that a job needed a checkpoint that was dropped. Tells how it comes back; changes no checkpoint."""
    from lifecycle.cli import missing

    return missing.tell(_desk(ctx, config, root, as_json), checkpoint, reason)
