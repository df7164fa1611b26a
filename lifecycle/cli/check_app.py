"""The grammar of ``policy check``, ``policy test`` and ``policy schema``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import Config, Json, Root, _desk, policy_app


@policy_app.command("check")
def policy_check(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE|DIR]...", help="Policies and directories of them; the configured ones if none."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 when there is any warning.")] = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """List every error in policies, and what is hardly meant on the runs that the index knows.

    Asks no store and changes nothing. Without an index the policies are looked at alone.
    """
    from lifecycle.cli import checking

    return checking.check_policies(_desk(ctx, config, root, as_json), files or [], strict=strict)


@policy_app.command("test")
def policy_test(
    ctx: typer.Context,
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Directories of policies; those of the configured ones if none."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Also write FILE for a CI system, as JUnit's XML.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Judge the cases in DIR/tests by the policies in DIR. Touches neither index nor stores.

    Ends with 1 when a case does not come out as it says, with 2 when one cannot be meant.
    """
    from lifecycle.cli import testing

    return testing.run_cases(_desk(ctx, config, None, as_json), directories or [], report)


@policy_app.command("schema")
def policy_schema(
    kind: Annotated[
        str, typer.Argument(metavar="[policy|site|cases]", help="Policies, lifecycle.yaml, or files of cases.")
    ] = "policy",
) -> int:
    """Print the JSON Schema of a kind of file, for editors and other checkers."""
    from lifecycle.cli import schemas

    return schemas.show_schema(kind)
