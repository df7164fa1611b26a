"""The grammar of ``policy diff``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.app import All, Config, Json, Root, _desk, policy_app


@policy_app.command("diff")
def policy_diff(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="A directory or file of policies, or git:REV:PATH.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, as it is proposed.")],
    repo: Annotated[Path, typer.Option("--repo", metavar="DIR", help="The git repository of git:REV:PATH.")] = Path(
        "."
    ),
    index: Annotated[
        Path | None, typer.Option("--index", metavar="FILE", help="Judge on an index as `index export` wrote it.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Judge as of TIME, not as of now.")] = None,
    days: Annotated[
        int, typer.Option("--days", min=0, max=3650, metavar="N", help="How far to look for full stores; 0: do not.")
    ] = 90,
    most: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if-deletes-more-than",
            metavar="SIZE|COUNT",
            help="End with 4 if NEW deletes more than this that OLD keeps: 1TB, or 20 for checkpoints.",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Answer as a comment for a pull request.")] = False,
    everything: All = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Show what a change of policies deletes, keeps and moves, and why. Changes nothing.

    Both sets judge the same index at the same moment, as `plan` would; no store is scanned.
    """
    from lifecycle.cli import diffing

    wish = diffing.Wish(old, new, repo, index, at, days, tuple(most or ()), markdown, everything)
    return diffing.diff(_desk(ctx, config, root, as_json), wish)
