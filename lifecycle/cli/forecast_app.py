"""The grammar of ``lifecycle forecast``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Policies, Root, _desk, app
from lifecycle.cli.options import drawn

ApplyEvery = Annotated[str, typer.Option("--apply-every", metavar="AGE", help="How often a plan is made and applied.")]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="SPEC",
        help="What if this run were started: model=70b,every=1h,for=30d,gpus=1024,store=hot,path=a/b. Repeatable.",
    ),
]
Ends = Annotated[
    list[str] | None,
    typer.Option("--end", metavar="RUN=DATE|AGE", help="What if this run ended then. Repeatable."),
]
Paces = Annotated[
    list[str] | None,
    typer.Option("--every", metavar="RUN=AGE", help="What if this run saved that often. Repeatable."),
]
Capacities = Annotated[
    list[str] | None,
    typer.Option("--capacity", metavar="STORE=SIZE", help="What if this store held so much: hot=500TB. Repeatable."),
]
WhatIf = Annotated[
    list[Path] | None,
    typer.Option("--policies", metavar="DIR", help="What if these policies were used. Repeatable."),
]
NoArrivals = Annotated[
    bool,
    typer.Option("--no-arrivals", help="What if no run started or ended but those that --run and --end tell of."),
]
Fail = Annotated[
    str | None,
    typer.Option(
        "--fail-if-full-within",
        metavar="AGE",
        help="End with 7 where a store is full by then with a chance of one in ten or more.",
    ),
]


@app.command()
def forecast(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=1095, metavar="N", help="How far to look ahead.")] = 90,
    apply_every: ApplyEvery = "24h",
    run: Runs = None,
    end: Ends = None,
    every: Paces = None,
    capacity: Capacities = None,
    what_if: WhatIf = None,
    policies: Policies = None,
    fail: Fail = None,
    no_arrivals: NoArrivals = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Answer in CSV, a row a night, store and class.")] = False,
    chart: Annotated[Path | None, drawn("what stores will hold")] = None,
    chart_written: Annotated[Path | None, drawn("what is written a day", "--chart-written")] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Tell what stores will hold and when they are full, by replaying the policies over saves to come."""
    from lifecycle.cli import forecasting

    desk = _desk(ctx, config, root, as_json, [*(policies or ()), *(what_if or ())])
    words = forecasting.Words(
        days,
        apply_every,
        tuple(run or ()),
        tuple(end or ()),
        tuple(every or ()),
        tuple(capacity or ()),
        fail,
        as_csv,
        chart,
        chart_written,
        arrivals=not no_arrivals,
    )
    return forecasting.forecast_stores(desk, words)
