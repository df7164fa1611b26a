"""The grammar of ``lifecycle cache``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, _desk

cache_app = typer.Typer(
    help="Look after a node's cache of checkpoints, for inference.", rich_markup_mode=None, no_args_is_help=True
)

Dir = Annotated[Path, typer.Option("--dir", metavar="DIR", help="The cache, on a local disk of this node.")]
Budget = Annotated[str, typer.Option("--budget", metavar="SIZE", help="All entries together, such as 500GB.")]
MinFree = Annotated[
    str,
    typer.Option("--min-free", metavar="SIZE|PERCENT", help="What stays free on the disk, such as 50GB, 10% or none."),
]
Holder = Annotated[str | None, typer.Option("--for", metavar="HOLDER", help="Who uses it; this host if not given.")]


@cache_app.command()
def fill(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="s3://BUCKET/KEY, a path, or STORE:KEY.")],
    directory: Dir,
    budget: Budget,
    min_free: MinFree = "10%",
    wait: Annotated[str, typer.Option("--wait", metavar="AGE", help="For another one that is filling it.")] = "1h",
    holder: Holder = None,
    lease: Annotated[
        str | None,
        typer.Option("--lease", metavar="AGE|none", help="In use for so long; until released if not given."),
    ] = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Stay, and keep it in use for as long as this process lives.")
    ] = False,
    link: Annotated[
        Path | None, typer.Option("--link", metavar="PATH", help="Make PATH a symbolic link to it once it is ready.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Have a checkpoint here, whole and read-only; print its path. Many at once: one downloads, all others wait."""
    from lifecycle.cli import caching

    asked = caching.Asked(source, directory, budget, min_free, wait, holder, lease, stay, link)
    return caching.fill_cache(_desk(ctx, config, None, as_json), asked)


@cache_app.command()
def evict(ctx: typer.Context, directory: Dir, budget: Budget, min_free: MinFree = "10%", as_json: Json = False) -> int:
    """Remove the least recently used entries until the rest fits. Never what may be in use."""
    from lifecycle.cli import caching

    return caching.evict_cache(_desk(ctx, None, None, as_json), directory, budget, min_free)


@cache_app.command()
def status(ctx: typer.Context, directory: Dir, as_json: Json = False) -> int:
    """List the entries, how each was verified, and who uses it. Changes nothing."""
    from lifecycle.cli import caching

    return caching.show_cache(_desk(ctx, None, None, as_json), directory)


@cache_app.command()
def release(ctx: typer.Context, directory: Dir, holder: Holder = None, as_json: Json = False) -> int:
    """End the leases of a holder, such as a pod that is gone."""
    from lifecycle.cli import caching

    return caching.release_cache(_desk(ctx, None, None, as_json), directory, holder)
