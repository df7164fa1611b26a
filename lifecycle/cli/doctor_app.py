"""The grammar of ``lifecycle doctor``: names, options and help."""

from __future__ import annotations

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, app


@app.command()
def doctor(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """Look whether all can be worked with: settings, index, stores, rights, clocks, room.

    Ends with 1 when a check failed. Changes nothing, but for scratch of ours in the stores, which it removes.
    """
    from lifecycle.cli import doctoring

    return doctoring.examine(_desk(ctx, config, root, as_json))
