"""The grammar of ``lifecycle size``: names, options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lifecycle.cli.app import Json, _desk, app
from lifecycle.cli.options import ConfigJson, Params, Safetensors


@app.command()
def size(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A name or a count: llama-3-70b, 70b.")] = None,
    config: ConfigJson = None,
    safetensors: Safetensors = None,
    params: Params = None,
    setup: Annotated[
        str | None,
        typer.Option("--setup", metavar="NAME", help="Precision and optimizer; bf16-mixed-adam if not given."),
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option("--optimizer", metavar="NAME|none", help="In place of the set-up's own.")
    ] = None,
    ema: Annotated[str | None, typer.Option("--ema", metavar="fp32|bf16", help="An average is saved too.")] = None,
    lora: Annotated[
        str | None, typer.Option("--lora", metavar="SPEC", help="Only an adapter is trained: r=16,targets=all.")
    ] = None,
    frozen_saved: Annotated[
        bool, typer.Option("--frozen-saved", help="Every save holds the frozen base too, as DeepSpeed has it.")
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", metavar="AGE", help="How often it is saved, such as 1h: what a day writes.")
    ] = None,
    ranks: Annotated[
        int,
        typer.Option(
            "--ranks",
            min=0,
            max=10_000_000,
            metavar="N",
            show_default=False,
            help="Processes that write: counts small files.",
        ),
    ] = 0,
    pad: Annotated[
        str | None, typer.Option("--pad", metavar="megatron|zero1|zero3", help="Fill up what each rank holds.")
    ] = None,
    setups: Annotated[bool, typer.Option("--setups", help="List set-ups and optimizers.")] = False,
    models: Annotated[bool, typer.Option("--models", help="List models by name.")] = False,
    as_json: Json = False,
) -> int:
    """Tell how large a checkpoint is, by role, and by what sum."""
    from lifecycle.cli import modelling, sizing

    desk = _desk(ctx, None, None, as_json)
    if setups:
        return sizing.list_setups(desk)
    if models:
        return sizing.list_models(desk)
    named = modelling.Named(model, config, safetensors, params)
    words = sizing.Words(named, setup, optimizer, ema, lora, frozen_saved, every, ranks, pad)
    return sizing.size_checkpoint(desk, words)
