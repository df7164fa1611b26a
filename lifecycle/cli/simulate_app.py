"""The grammar of ``lifecycle policy simulate``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, _desk, policy_app


@policy_app.command("simulate")
def policy_simulate(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE|DIR]...", help="Policies; those configured if none.")
    ] = None,
    every: Annotated[str, typer.Option(metavar="TIME", help="From one save to the next.")] = "1h",
    length: Annotated[str, typer.Option("--for", metavar="TIME", help="How long the run trains.")] = "30d",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Of one checkpoint.")] = "980GB",
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="Steps from one save to the next.")] = 1000,
    pause: Annotated[
        list[str] | None, typer.Option(metavar="AT+TIME", help="No training from then, for so long: 10d+2d.")
    ] = None,
    crash: Annotated[
        list[str] | None, typer.Option(metavar="AT", help="The next save after that is never finished: 5d.")
    ] = None,
    rewind: Annotated[
        list[str] | None, typer.Option(metavar="AT-STEPS", help="It goes on from so many steps earlier: 9d-20000.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME=A..B", help="A metric from the first save to the last.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="STORE:PATH", help="Else one that the policy matches.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Also draw it.")] = None,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Show what a policy leaves of an imagined run after each night. Touches neither index nor stores."""
    from lifecycle.cli import simulating

    asked = simulating.Asked(every, length, size, steps, pause or [], crash or [], rewind or [], metric or [], run)
    return simulating.simulate(_desk(ctx, config, None, as_json), files or [], asked, svg)
