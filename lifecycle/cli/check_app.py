"""The grammar of ``policy check``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, _desk, policy_app


@policy_app.command("check")
def policy_check(
    ctx: typer.Context,
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...")] = None,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Read policies (the configured ones, or FILEs) and list every error in them."""
    from lifecycle.cli import checking

    return checking.check_policies(_desk(ctx, config, None, as_json), files or [])
