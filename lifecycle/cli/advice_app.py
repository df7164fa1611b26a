"""The grammar of ``lifecycle advise``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk
from lifecycle.cli.saving_app import Assume, GpuHour, Model, Reload, Restart, Setup, Stall


def advise(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="STORE:KEY or a path.")],
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, max=10_000_000, metavar="N", help="GPUs of the job.")
    ] = None,
    model: Model = None,
    setup: Setup = "bf16-mixed-adam",
    save: Annotated[
        str | None, typer.Option("--save", metavar="TIME", help="What one save takes, if your logs say so.")
    ] = None,
    mtbf: Annotated[
        str | None,
        typer.Option("--mtbf", metavar="own|NAME|TIME", help="The run's own restarts, a published rate, or 40h."),
    ] = None,
    restart: Restart = None,
    reload: Reload = "save",
    stall: Stall = None,
    assume: Assume = "honest",
    gpu_hour: GpuHour = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Tell how often a run should save, by its own saves. Changes nothing."""
    from lifecycle.cli import advising, asked, modelling

    return advising.tell_advice(
        _desk(ctx, config, root, as_json),
        advising.Asked(
            run,
            gpus,
            asked.SizeOptions(modelling.Named(model), setup, None),
            save,
            mtbf,
            asked.AfterOptions(restart, reload, stall, assume),
            gpu_hour,
        ),
    )
