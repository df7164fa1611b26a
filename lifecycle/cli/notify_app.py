"""The grammar of ``lifecycle notify``: names, options and help."""

from __future__ import annotations

import typer

from lifecycle.cli.app import Config, Json, _desk

notify_app = typer.Typer(help="Look after who is told of ticks.", rich_markup_mode=None, no_args_is_help=True)


@notify_app.callback()
def _group() -> None:
    """Look after who is told of ticks."""


@notify_app.command()
def test(ctx: typer.Context, config: Config = None, as_json: Json = False) -> int:
    """Send a test to each receiver in `notify:`, and say what came back; of addresses only the host is shown.

    Ends with 3 when some were not reached, with 1 when none was.
    """
    from lifecycle.cli import notifying

    return notifying.try_receivers(_desk(ctx, config, None, as_json))
