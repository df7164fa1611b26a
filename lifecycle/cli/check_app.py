"""The grammar of ``policy check``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, policy_app


@policy_app.command("check")
def policy_check(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE|DIR]...", help="Policies and directories of them; the configured ones if none."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 when there is any warning.")] = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """List every error in policies, and what is hardly meant on the runs that the index knows.

    Asks no store and changes nothing. Without an index the policies are looked at alone.
    """
    from lifecycle.cli import checking

    return checking.check_policies(_desk(ctx, config, root, as_json), files or [], strict=strict)
