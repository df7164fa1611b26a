"""The grammar of ``lifecycle metrics``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, app

Textfile = Annotated[
    str | None,
    typer.Option("--textfile", metavar="FILE", help="Write them there, for the textfile collector: *.prom."),
]
Push = Annotated[str | None, typer.Option("--push", metavar="URL", help="Push them to this pushgateway.")]
Job = Annotated[str, typer.Option("--job", metavar="NAME", help="The group there that is replaced.")]
TokenFile = Annotated[
    str | None, typer.Option("--token-file", metavar="FILE", help="Holds the token that the pushgateway asks for.")
]


@app.command()
def metrics(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    textfile: Textfile = None,
    push: Push = None,
    job: Job = "lifecycle",
    token_file: TokenFile = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Show what the index knows as metrics for Prometheus, or write or push them; nothing is scanned."""
    from lifecycle.cli import metering

    return metering.show(_desk(ctx, config, root, as_json), metering.Words(textfile, push, job, token_file))
