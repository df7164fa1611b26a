"""The grammar of ``lifecycle policy import`` and ``policy export``: names, options and help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, _desk, policy_app


class Tool(StrEnum):
    """Whose retention can be read."""

    TRAINER = "trainer"
    LIGHTNING = "lightning"
    ORBAX = "orbax"
    RESTIC = "restic"
    S3 = "s3"


class Target(StrEnum):
    """What a policy can be written for."""

    S3 = "s3"


Store = Annotated[str, typer.Option(metavar="NAME", help="Name of the bucket's store, as policies write it.")]
Below = Annotated[
    str | None, typer.Option(metavar="PREFIX", help="Where in the bucket that store begins, if no settings say so.")
]


@policy_app.command("import", context_settings={"ignore_unknown_options": True})
def policy_import(  # noqa: PLR0913, PLR0917  # the grammar is what it is
    ctx: typer.Context,
    tool: Annotated[Tool, typer.Argument(metavar="TOOL", help="trainer, lightning, orbax, restic or s3.")],
    words: Annotated[
        list[str],
        typer.Argument(metavar="SETTING...", help="key=value, restic's flags, or one file (- is standard input)."),
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the policy; else that of the tool or rule.")
    ] = None,
    runs: Annotated[str | None, typer.Option(metavar="GLOB", help="Which runs it is for, as in match.")] = None,
    store: Store = "warm",
    below: Below = None,
    rule: Annotated[str | None, typer.Option(metavar="ID", help="Which of the bucket's rules, of several.")] = None,
    as_json: Json = False,
) -> int:
    """Write another tool's retention as a policy, and say what cannot be said in it. Changes nothing.

    Give settings of Trainer, Lightning or Orbax as key=value words or in a JSON or YAML file, flags of restic as they
    are, or the JSON of aws s3api get-bucket-lifecycle-configuration.
    """
    from lifecycle.cli import translating

    asked = translating.Asked(tool.value, words, name, runs, store, below, rule)
    return translating.borrow(_desk(ctx, None, None, as_json), asked)


@policy_app.command("export")
def policy_export(  # noqa: PLR0913, PLR0917  # the grammar is what it is
    ctx: typer.Context,
    target: Annotated[Target, typer.Argument(metavar="TARGET", help="s3: a bucket's own lifecycle rules.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Else the configured policies.")
    ] = None,
    store: Store = "warm",
    below: Below = None,
    expire: Annotated[
        bool, typer.Option("--expire", help="Let the bucket delete by age, too; it knows no floor, hold or pointer.")
    ] = False,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Print the lifecycle rules of a bucket that say as much of the policies as S3 can; the differences go to stderr.

    Nothing is sent to any bucket. By default no rule deletes a checkpoint. Ends with 1 where nothing can be said.
    """
    from lifecycle.cli import translating

    return translating.export(_desk(ctx, config, None, as_json), files or [], store, below, expire=expire)
