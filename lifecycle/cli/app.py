"""The grammar of the command line: names, options and help. What a command does is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lifecycle.cli.desk import Desk, Seams

app = typer.Typer(
    name="lifecycle",
    help="Decides which training checkpoints to keep, shows why, and drops the others so that it can be undone.",
    epilog="First look, without any configuration:  lifecycle plan --root DIR  (changes nothing in DIR)",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
policy_app = typer.Typer(help="Look after policies.", rich_markup_mode=None, no_args_is_help=True)
db_app = typer.Typer(help="Look after the index's database.", rich_markup_mode=None, no_args_is_help=True)
index_app = typer.Typer(help="Look after what the index knows.", rich_markup_mode=None, no_args_is_help=True)
store_app = typer.Typer(help="Look after stores.", rich_markup_mode=None, no_args_is_help=True)
app.add_typer(policy_app, name="policy")
app.add_typer(db_app, name="db")
app.add_typer(index_app, name="index")
app.add_typer(store_app, name="store")

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="LIFECYCLE_CONFIG",
        help="Configuration; ./lifecycle.yaml if not given.",
    ),
]
Root = Annotated[
    str | None, typer.Option("--root", metavar="DIR", help="Work on DIR without any configuration, by built-in rules.")
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Policies = Annotated[
    list[Path] | None,
    typer.Option("--policy", metavar="FILE", help="Use this policy in place of the configured ones; may be repeated."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
All = Annotated[bool, typer.Option("--all", "-v", help="Also show what stays, with reasons, and every note.")]


def _desk(
    ctx: typer.Context, config: Path | None, root: str | None, as_json: bool, policies: list[Path] | None = None
) -> Desk:
    seams = ctx.obj if isinstance(ctx.obj, Seams) else Seams()
    if root is not None and ctx.get_parameter_source("config") is not None and not _typed(ctx, "config"):
        config = None  # an environment variable is weaker than what was typed
    return Desk(seams, config, root, as_json, tuple(policies or ()), log_form=ctx.find_root().params.get("log"))


def _typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _version(wanted: bool) -> None:
    if wanted:
        from lifecycle import __version__

        typer.echo(f"lifecycle {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FORM", help="Tell of each act on standard error: json or text.")
    ] = None,
) -> None:
    pass


@app.command()
def init(
    ctx: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="[DIR]")] = Path("."),
    as_json: Json = False,
) -> int:
    """Write a commented lifecycle.yaml and a first policy. Never overwrites."""
    from lifecycle.cli import setup

    return setup.init(_desk(ctx, None, None, as_json), directory)


@app.command()
def scan(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    stores: Annotated[list[str] | None, typer.Argument(metavar="[STORE]...", help="All of them if not given.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Read everything, whatever is remembered.")] = False,
    accept_empty: Annotated[
        bool, typer.Option("--accept-empty", help="Believe a store that has lost all it had.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=64, metavar="N", help="Walk with N processes; as configured if not given."
        ),
    ] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Look at the stores and bring the index up to date. Changes nothing in them."""
    from lifecycle.cli import look

    desk = _desk(ctx, config, root, as_json)
    return look.scan_stores(desk, stores or [], full=full, accept_empty=accept_empty, workers=workers)


@app.command()
def plan(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save the plan here.")] = None,
    no_scan: Annotated[bool, typer.Option("--no-scan", help="Judge what the index knows already.")] = False,
    policies: Policies = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Preview: judge as of TIME (8h = in eight hours).")
    ] = None,
    everything: All = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Show what would stay, what would go and why. Changes nothing in the stores."""
    from lifecycle.cli import look

    desk = _desk(ctx, config, root, as_json, policies)
    return look.make_plan(desk, out=out, rescan=not no_scan, at=at, everything=everything)


@app.command("ls")
def list_(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    selector: Annotated[
        str | None, typer.Argument(metavar="[RUN|GLOB]", help="A run (its checkpoints are listed) or a glob.")
    ] = None,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="List checkpoints, not runs.")] = False,
    trash: Annotated[bool, typer.Option("--trash", help="List what lies in the trash.")] = False,
    store: Annotated[str | None, typer.Option("--store", metavar="NAME")] = None,
    layout: Annotated[str | None, typer.Option("--layout", metavar="NAME", help="Such as hf.trainer.")] = None,
    status: Annotated[str | None, typer.Option("--status", metavar="WORD", help="Such as complete.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="WORD", help="Such as full or weights.")] = None,
    older: Annotated[str | None, typer.Option("--older", metavar="AGE", help="Saved longer ago than 7d, 36h.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most N lines.")] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """List runs, the checkpoints of a run, or the trash. Asks the index, not the stores."""
    from lifecycle.cli import listing
    from lifecycle.cli.selecting import Wanted

    wanted = Wanted(selector, store, layout, status, kind, older, limit)
    desk = _desk(ctx, config, root, as_json)
    if trash:
        return listing.list_trash(desk, wanted)
    return listing.list_known(desk, wanted, checkpoints=checkpoints)


@app.command()
def explain(
    ctx: typer.Context,
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="STORE:KEY or a path.")],
    policies: Policies = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Tell why one checkpoint stays or goes. Shows what would have kept it."""
    from lifecycle.cli import explaining

    return explaining.explain(_desk(ctx, config, root, as_json, policies), checkpoint)


@app.command()
def apply(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    plan_file: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's file, or the beginning of its id.")],
    yes: Yes = False,
    unannounced: Annotated[bool, typer.Option("--unannounced", help="Do not wait for announced dates.")] = False,
    policies: Policies = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Carry out a plan. Looks at each checkpoint once more, and keeps it if anything changed."""
    from lifecycle.cli import acting

    desk = _desk(ctx, config, root, as_json, policies)
    return acting.apply_plan(desk, plan_file, yes=yes, unannounced=unannounced)


@app.command()
def undo(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="PLAN|CHECKPOINT", help="A plan's id or file, STORE:KEY or a path.")],
    no_hold: Annotated[bool, typer.Option("--no-hold", help="Do not hold what comes back for 7 days.")] = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Bring back what a plan dropped. Holds it for 7 days, or the next plan would drop it again."""
    from lifecycle.cli import acting

    return acting.bring_back(_desk(ctx, config, root, as_json), what, hold=not no_hold)


@app.command()
def recall(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="STORE:KEY of its home, or a path.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Bring it into DIR and not to its home.")
    ] = None,
    tier: Annotated[
        str, typer.Option("--tier", metavar="WORD", help="Out of an archive: expedited, standard or bulk.")
    ] = "standard",
    days: Annotated[
        int, typer.Option("--days", min=1, max=365, metavar="N", help="Out of an archive: how long it can be read.")
    ] = 7,
    weights_only: Annotated[
        bool, typer.Option("--weights-only", help="Be content with weights, where no copy can resume a training.")
    ] = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Bring a checkpoint back from a copy, verified on the way. Overwrites nothing.

    A copy in an archive is asked for, and this ends with 3; the same line again, hours later, brings it.
    """
    from lifecycle.cli import copying

    wish = copying.Asking(tier, days, weights_only)
    return copying.bring_home(_desk(ctx, config, root, as_json), what, to, wish)


@app.command()
def verify(
    ctx: typer.Context,
    what: Annotated[
        str | None, typer.Argument(metavar="[CHECKPOINT|RUN]", help="Only copies of this; all if not given.")
    ] = None,
    older: Annotated[
        str | None, typer.Option("--older", metavar="AGE", help="Only what was last read longer ago than this.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="SIZE", help="Read no more than this, such as 2TB.")
    ] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Read copies again and compare every checksum, those longest unread first."""
    from lifecycle.cli import copying

    return copying.read_again(_desk(ctx, config, root, as_json), what, older, budget)


@app.command()
def drill(
    ctx: typer.Context,
    what: Annotated[
        str | None, typer.Argument(metavar="[RUN|CHECKPOINT]", help="Only of this; of every run if not given.")
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option("--scratch", metavar="DIR", help="Where to lay it out; the system's place if not given."),
    ] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Try that the newest copy of each run can be got back: recall it into scratch and open it."""
    from lifecycle.cli import copying

    return copying.try_out(_desk(ctx, config, root, as_json), what, scratch)


@app.command()
def purge(ctx: typer.Context, yes: Yes = False, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """Free what has been in the trash long enough. This cannot be undone."""
    from lifecycle.cli import acting

    return acting.free(_desk(ctx, config, root, as_json), yes=yes)


@app.command()
def hold(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A checkpoint or a run: STORE:KEY or a path.")],
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; others will read it.")],
    until: Annotated[
        str | None, typer.Option("--until", metavar="AGE|DATE", help="7d or 2026-01-31; without it, until released.")
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="You, if not given.")] = None,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Protect a checkpoint or a run, whatever any policy says."""
    from lifecycle.cli import holding

    return holding.place_hold(_desk(ctx, config, root, as_json), target, reason, until, owner)


@app.command()
def release(
    ctx: typer.Context,
    hold_id: Annotated[str, typer.Argument(metavar="HOLD", help="As `lifecycle holds` lists it.")],
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """End a hold."""
    from lifecycle.cli import holding

    return holding.release_hold(_desk(ctx, config, root, as_json), hold_id)


@app.command()
def holds(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """List every hold."""
    from lifecycle.cli import holding

    return holding.list_holds(_desk(ctx, config, root, as_json))


@app.command()
def prices(
    ctx: typer.Context,
    pattern: Annotated[str | None, typer.Argument(metavar="[WORD|GLOB]", help="Only presets of such a name.")] = None,
    as_json: Json = False,
) -> int:
    """List the prices that stores can be given by name, with their day and source."""
    from lifecycle.cli import pricing

    return pricing.list_prices(_desk(ctx, None, None, as_json), pattern)


@db_app.command("upgrade")
def db_upgrade(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """Bring an index of an older version to this one, after a backup."""
    from lifecycle.cli import setup

    return setup.upgrade_index(_desk(ctx, config, root, as_json))


@index_app.command("rebuild")
def index_rebuild(ctx: typer.Context, config: Config = None, root: Root = None, as_json: Json = False) -> int:
    """Fill the index again from the stores alone, after it was lost or is in doubt."""
    from lifecycle.cli import rebuilding

    return rebuilding.rebuild(_desk(ctx, config, root, as_json))


@store_app.command("adopt")
def store_adopt(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="STORE")],
    yes: Yes = False,
    config: Config = None,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Accept that a store is another one than the index knows, after you have looked at the mount."""
    from lifecycle.cli import setup

    return setup.adopt_store(_desk(ctx, config, root, as_json), name, yes=yes)
