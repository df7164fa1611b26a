"""The grammar of ``lifecycle index backup``, ``restore`` and ``restored``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, index_app


@index_app.command("backup")
def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; nothing is overwritten.")],
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Copy the index into FILE, also while it is in use. The copy is checked before it is there."""
    from lifecycle.cli import backing_up

    return backing_up.copy_index(_desk(ctx, config, root, as_json), file)


@index_app.command("restore")
def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `index backup` or `db upgrade` wrote it.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Also where there is an index: that one is kept beside it.")
    ] = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Make FILE the index. Plans made before are stale then, and whoever was at work begins nothing more."""
    from lifecycle.cli import backing_up

    return backing_up.bring_back(_desk(ctx, config, root, as_json), file, replace=replace)


@index_app.command("restored")
def restored(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """Say that the index came back by other means, such as pg_restore. Run it before anything else."""
    from lifecycle.cli import backing_up

    return backing_up.note_restored(_desk(ctx, config, root, as_json))
