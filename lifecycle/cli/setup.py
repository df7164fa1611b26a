"""The commands around the work: init, db upgrade, store adopt."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from lifecycle.cli.acting import confirm
from lifecycle.cli.desk import CONFIG, Desk
from lifecycle.cli.selecting import known_stores
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid

LIFECYCLE_YAML = """\
# Where checkpoints are and which policies apply. Everything not written here has a sensible default.
stores:
  hot: {url: file:///mnt/checkpoints}        # CHANGE THIS to the directory that holds your runs
  # warm: {url: s3://bucket/prefix}          # credentials come from the usual AWS chain, never from this file
                                             # price: s3/us-east-1, from `lifecycle prices`, or your own

database: sqlite:///state/index.db           # what we remember; relative to this file, on a local disk
policies: policies                           # a directory of policies, one a file

# hold_files: [KEEP]                         # a file of this name in a run (or above it) holds the run
# ignore: ["scratch/**"]                     # nothing there is ever looked at
# plan_age_max: 1d                           # older plans are refused
# tick: {apply: never, purge: never}         # what `lifecycle tick` may do by itself: never, auto; apply: approve
"""

POLICY_YAML = """\
# What stays. Rules are OR-ed: whatever one of them keeps stays. Without `keep` everything stays.
# Whatever a policy says, these always stay: the newest complete checkpoint of a run, what is held, what a
# pointer (latest, best, ...) names, and what changed within `grace`.
policy: default
match:
  runs: ["hot:**"]                           # store:path; * stops at /, ** crosses it
  kinds: [full, weights, adapter, local]     # exports and copies of the best one are left alone
keep:
  - last: 3
  - every: {steps: 10000, pick: closest}
  - younger: {than: 24h, of: now}
  # - best: {metric: eval/loss, mode: min, count: 2}
incomplete: {delete_after: 7d}               # saves that never finished
limits:
  deletes_max: 200                           # a plan with more is refused as a whole
  grace: 1h                                  # nothing that changed more recently is touched
  trash: 72h                                 # this long `lifecycle undo` brings everything back
"""


def init(desk: Desk, directory: Path) -> int:
    """``lifecycle init``"""
    files = {directory / CONFIG: LIFECYCLE_YAML, directory / "policies" / "default.yaml": POLICY_YAML}
    for path in files:
        if path.exists():
            hint = "nothing was written; give another directory, or edit the file"
            raise ConfigInvalid(f"{escape(str(path))} is there already", code="exists", hint=hint)
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as e:
        raise ConfigInvalid(f"cannot write: {e}", code="unwritable") from e
    where = "" if directory == Path(".") else f" -c {escape(str(directory / CONFIG))}"
    lines = [f"wrote {escape(str(path))}" for path in files]
    lines += [
        "",
        "Next",
        f"  # say where your checkpoints are: stores.hot.url in {escape(str(directory / CONFIG))}",
        f"  {desk.typing.program} policy check{where}",
        f"  {desk.typing.program} plan{where}",
    ]
    desk.answer({"wrote": [str(path) for path in files]}, lines)
    return 0


def upgrade_index(desk: Desk) -> int:
    """``lifecycle db upgrade``"""
    from lifecycle.index.open import upgrade

    moment = datetime.fromtimestamp(desk.clock.now_ns() // 1_000_000_000, UTC)
    backup = upgrade(desk.settings.database, stamp=f"{moment:%Y%m%dT%H%M%SZ}", beside=desk.home)
    if backup is None:
        desk.answer({"upgraded": False}, ["The index is up to date."])
    else:
        lines = ["The index was upgraded. The old one is kept as", f"  {escape(str(backup))}"]
        desk.answer({"upgraded": True, "backup": str(backup)}, lines)
    return 0


def adopt_store(desk: Desk, name: str, *, yes: bool) -> int:
    """``lifecycle store adopt``"""
    with desk.world(write=False) as world:
        known_stores(world, [name])
        store = world.stores[name]
        found = store.identity()
        row = world.index.reader.stores().get(name)
        if row is not None and row.identity == found:
            desk.answer({"adopted": False}, [f"{name} is the store that the index knows: there is nothing to adopt."])
            return 0
        if row is not None:
            confirm(desk, f"The index knows another {name} than {escape(store.url)}. Is this one meant?", yes)
        world.index.writer.adopt(name, found)
    desk.answer({"adopted": True}, [f"{name} is now {escape(store.url)}; the next scan compares with what was known."])
    return 0
