"""The grammar of ``lifecycle interval`` and ``lifecycle fit``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Json, _desk
from lifecycle.cli.options import ConfigJson, Params, Safetensors, drawn

Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME|COUNT", help="What is trained: llama-3-70b, or 70b parameters.")
]
Setup = Annotated[str, typer.Option("--setup", metavar="NAME", help="How it is trained, which says what is saved.")]
Size = Annotated[
    str | None, typer.Option("--size", metavar="SIZE", help="What one checkpoint takes, such as 980GB, if you know.")
]
Gpus = Annotated[int, typer.Option("--gpus", min=1, max=10_000_000, metavar="N", help="GPUs of the job.")]
Write = Annotated[
    str | None, typer.Option("--write", metavar="RATE", help="Your own storage takes so much, such as 3GB/s.")
]
NodeWrite = Annotated[
    str | None,
    typer.Option(
        "--node-write",
        metavar="RATE",
        help="Saved to disks of the nodes, each at such a rate, then uploaded by all together at --write.",
    ),
]
Mtbf = Annotated[
    str | None,
    typer.Option("--mtbf", metavar="NAME|TIME", help="A published rate such as llama3 or rsc-1-1024, or a time: 40h."),
]
Restarts = Annotated[
    Path | None, typer.Option("--restarts", metavar="FILE", help="Your log: the start, and each restart, a line each.")
]
Failures = Annotated[
    int | None, typer.Option("--failures", min=0, max=10**9, metavar="N", help="Your count of interruptions...")
]
GpuHours = Annotated[
    float | None,
    typer.Option("--allocated", min=1, metavar="N", help="...in so many allocated GPU-hours."),
]
Restart = Annotated[
    str | None,
    typer.Option("--restart", metavar="TIME|none", help="From an interruption to the reload; 10m if not given."),
]
Reload = Annotated[
    str, typer.Option("--reload", metavar="TIME|save|none", help="To read a checkpoint; save: as long as a save.")
]
Stall = Annotated[
    str | None, typer.Option("--async", metavar="TIME", help="How long an asynchronous save holds the training up.")
]
GpuHour = Annotated[
    str | None, typer.Option("--gpu-hour", metavar="PRICE", help="What a GPU-hour costs, such as 2.50USD.")
]
Assume = Annotated[str, typer.Option("--assume", metavar="NAME", help="What is counted as lost: honest or lab.")]

Storages = Annotated[
    list[str] | None,
    typer.Option("--storage", metavar="NAME", help="nfs, object, pfs or nvme; may be repeated, all if not given."),
]
Read = Annotated[
    str | None,
    typer.Option("--read", metavar="RATE", help="Your own storage gives so much; if not given, as it takes."),
]
Redundancy = Annotated[
    str | None,
    typer.Option("--redundancy", metavar="SCHEME", help="none, raid1, 8+2 or 3x, in place of the presets'."),
]
Rule = Annotated[str, typer.Option("--rule", metavar="PERCENT", help="A save is to be safe in less of the interval.")]
Dwpd = Annotated[
    float, typer.Option("--dwpd", min=0.01, max=1000, metavar="N", help="Drive writes a day that drives are rated for.")
]
Waf = Annotated[float, typer.Option("--waf", min=1, max=100, metavar="N", help="Flash writes for each byte sent.")]
Weights = Annotated[
    str | None, typer.Option("--weights", metavar="SIZE", help="What inference loads; the model's if not given.")
]
Readers = Annotated[
    list[int] | None,
    typer.Option("--readers", min=1, max=10**7, metavar="N", help="Nodes that load at once; may be repeated."),
]
NodeRead = Annotated[
    str | None, typer.Option("--node-read", metavar="RATE", help="What one node takes in; 50GB/s if not given.")
]


def interval(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    gpus: Gpus,
    model: Model = None,
    config: ConfigJson = None,
    safetensors: Safetensors = None,
    params: Params = None,
    setup: Setup = "bf16-mixed-adam",
    size: Size = None,
    storage: Annotated[
        str | None, typer.Option("--storage", metavar="NAME", help="Where it is saved: nfs, object, pfs or nvme.")
    ] = None,
    write: Write = None,
    node_write: NodeWrite = None,
    save: Annotated[str | None, typer.Option("--save", metavar="TIME", help="What one save takes, measured.")] = None,
    every: Annotated[str | None, typer.Option("--every", metavar="TIME", help="How often it is saved now.")] = None,
    mtbf: Mtbf = None,
    restarts: Restarts = None,
    failures: Failures = None,
    gpu_hours: GpuHours = None,
    restart: Restart = None,
    reload: Reload = "save",
    stall: Stall = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="TIME", help="Also saved to memory, which takes so long.")
    ] = None,
    from_memory: Annotated[
        str, typer.Option("--from-memory", metavar="PERCENT", help="What part of interruptions memory brings back.")
    ] = "75%",
    assume: Assume = "honest",
    gpu_hour: GpuHour = None,
    csv: Annotated[bool, typer.Option("--csv", help="Answer with the curve: waste against interval.")] = False,
    chart: Annotated[Path | None, drawn("waste against interval")] = None,
    as_json: Json = False,
) -> int:
    """Reckon how often to save, and what that wastes."""
    from lifecycle.cli import asked, intervaling, modelling

    return intervaling.tell_interval(
        _desk(ctx, None, None, as_json),
        intervaling.Asked(
            asked.SizeOptions(modelling.Named(model, config, safetensors, params), setup, size),
            asked.StorageOptions((storage,) if storage else (), write, None, None, node_write),
            asked.FailureOptions(mtbf, restarts, failures, gpu_hours),
            asked.AfterOptions(restart, reload, stall, assume),
            gpus,
            every,
            save,
            memory,
            from_memory,
            gpu_hour,
            csv,
            chart,
        ),
    )


def fit(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    gpus: Gpus,
    model: Model = None,
    config: ConfigJson = None,
    safetensors: Safetensors = None,
    params: Params = None,
    setup: Setup = "bf16-mixed-adam",
    size: Size = None,
    storage: Storages = None,
    write: Write = None,
    node_write: NodeWrite = None,
    read: Read = None,
    redundancy: Redundancy = None,
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="How often it is saved.")] = "1h",
    rule: Rule = "10%",
    mtbf: Mtbf = None,
    restarts: Restarts = None,
    failures: Failures = None,
    gpu_hours: GpuHours = None,
    restart: Restart = None,
    reload: Reload = "save",
    stall: Stall = None,
    assume: Assume = "honest",
    keep: Annotated[int, typer.Option("--keep", min=1, max=10**6, metavar="N", help="Checkpoints that stay.")] = 3,
    usable: Annotated[str, typer.Option("--usable", metavar="PERCENT", help="How full it may be.")] = "80%",
    raw: Annotated[str | None, typer.Option("--raw", metavar="SIZE", help="Flash that there is: 500TB.")] = None,
    dwpd: Dwpd = 1.0,
    waf: Waf = 1.0,
    weights: Weights = None,
    readers: Readers = None,
    node_read: NodeRead = None,
    as_json: Json = False,
) -> int:
    """Tell which storages can take the checkpoints."""
    from lifecycle.cli import asked, fitting, modelling

    return fitting.tell_fit(
        _desk(ctx, None, None, as_json),
        fitting.Asked(
            asked.SizeOptions(modelling.Named(model, config, safetensors, params), setup, size),
            asked.StorageOptions(tuple(storage or ()), write, read, redundancy, node_write),
            asked.FailureOptions(mtbf, restarts, failures, gpu_hours),
            asked.AfterOptions(restart, reload, stall, assume),
            gpus,
            every,
            rule,
            keep,
            usable,
            raw,
            dwpd,
            waf,
            weights,
            tuple(readers or (1, 8, 64)),
            node_read,
        ),
    )
