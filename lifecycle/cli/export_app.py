"""The grammar of ``index export``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, index_app


@index_app.command("export")
def export(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, such as index.jsonl.gz.")],
    hash_paths: Annotated[
        bool, typer.Option("--hash-paths", help="Replace names of runs and checkpoints that no policy spells out.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option("--hash-key", metavar="FILE", help="A secret of yours: the same names each time. Else at random."),
    ] = None,
    policies: Annotated[
        list[Path] | None,
        typer.Option("--for", metavar="DIR", help="Also leave what these policies look at; may be repeated."),
    ] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Write what `policy diff --index` needs into FILE: small, without secrets. Changes nothing."""
    from lifecycle.cli import exporting

    wish = exporting.Wish(file, hash_paths, key, tuple(policies or ()))
    return exporting.export_index(_desk(ctx, config, root, as_json), wish)
