"""PyTorch Lightning: ``.ckpt`` files that are torch zips, and ``.ckpt`` directories of sharded strategies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lifecycle.core.listing import join, split
from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole
from lifecycle.layouts import deepspeed
from lifecycle.layouts.dcp import SHARD, fresh
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.nemo import marked, read_name, read_pairs
from lifecycle.layouts.opcodes import plain_dicts
from lifecycle.layouts.parts import SINGLE
from lifecycle.layouts.peek import Directory, Look, Peek, torch_pickle
from lifecycle.layouts.table import Batch, Begun, DirLayout, FileLayout, Mention, Named, Tracker, Verdict, row

PAIRED = r"(?:[^/]*[^\w./])?[A-Za-z_][\w.]*=[^/]*"
PARTING = re.compile(r"(?:.*[^\w.])?[A-Za-z_][\w.]*=[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?-[A-Za-z_][\w.]*", re.ASCII)
"""A directory that a slash in a metric's name made: its name stops in the middle of a pair."""
SLASHED_MAX = 3
WITH_PAIRS = re.compile(rf"(?<=/){PAIRED}\.ckpt(?=/)", re.ASCII)
NUMBERED = r"epoch_?\d+[^/]*|step_?\d+[^/]*"
FIXED = r"last(?:-v\d+)?|hpc_ckpt_\d+|on_exception"
LEGACY_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How files of torch before 1.6 begin; they are no zips, and nothing in them tells whether they are whole."""
WANTED = ("epoch", "global_step", "optimizer_states", "state_dict")
CALLBACKS_MAX = 16
RETAINED_MAX = 16
"""Longer lists choose nothing: a callback that keeps all it ever saved has named all of that."""


def credible(text: str, folder: str) -> bool:
    """A name with a pair in the directory, or the place where Lightning saves by default."""
    return WITH_PAIRS.search(text) is not None or split(folder)[1] == "checkpoints"


def run_of(folder: str) -> str:
    """The run's directory: metric names with slashes put their files into sub-directories of it."""
    path, up = folder, folder
    for _ in range(SLASHED_MAX):
        up, name = split(up)
        if not name:
            break
        if PARTING.fullmatch(name):
            path = up
    return path


def by_path(match: re.Match[str]) -> Named:
    """Pairs of a path relative to the run; ``epoch02`` without a pair tells the epoch only."""
    named = read_pairs(match.string)
    plain = re.match(r"epoch_?(\d{1,18})(?!\d)", match.string.rpartition("/")[2], re.ASCII)
    return named._replace(epoch=float(plain[1])) if plain and named.epoch is None else named


def whole_zip(batch: Batch) -> Verdict:
    """The file is written elsewhere and moved here; a move that was cut short leaves no end of a zip."""
    (name, size) = next(iter(batch.sizes.items()))
    key = join(batch.folder, name)
    if marker := marked(name, batch.text):
        return Verdict(Evidence.WRITING, f"{marker} says that it is being written or removed", roles=SINGLE)
    if not size:
        return Verdict(Evidence.PARTIAL, "it is empty", flags=("empty_shard",), roles=SINGLE)
    end = end_of(batch.peek, key, size)
    return end if isinstance(end, Verdict) else contents(batch.peek, key, end)


def end_of(peek: Peek, key: str, size: int) -> Directory | Verdict:
    """Where the directory of a torch zip lies, or what it means that it has none."""
    look, directory = peek.zip(key, size)
    if directory is not None:
        return directory
    if look in (Look.FAILED, Look.BLIND):
        return Verdict(Evidence.DOUBTFUL, "its end was not read", roles=SINGLE)
    if (peek.bytes(key, 0, len(LEGACY_MAGIC)) or b"") == LEGACY_MAGIC:
        return Verdict(Evidence.DOUBTFUL, "it has the old torch format, which cannot be checked", roles=SINGLE)
    return Verdict(Evidence.PARTIAL, "it is not a whole zip file: it was cut short", roles=SINGLE)


def contents(peek: Peek, key: str, directory: Directory) -> Verdict:
    """Step, epoch and kind from the names and plain numbers in its pickle, which is never executed."""
    verdict = Verdict(Evidence.PROVEN, "it is a whole zip file", roles=SINGLE)
    hints = peek.torch(key, directory, WANTED)
    if hints is None or "state_dict" not in hints.names:
        return verdict
    step, epoch = hints.values.get("global_step"), hints.values.get("epoch")
    return verdict._replace(
        kind=Kind.FULL if "optimizer_states" in hints.names else Kind.WEIGHTS,
        step=step if isinstance(step, int) and 0 <= step < 2**63 else None,
        epoch=float(epoch) if isinstance(epoch, int) and 0 <= epoch < 2**53 else None,
    )


def sharded(inside: Inside, verdict: Verdict) -> Verdict:
    """FSDP and ModelParallel end with ``meta.pt``; the DeepSpeed strategy keeps a tag inside."""
    if inside.has(r"checkpoint/[^/]*"):
        roles = deepspeed.roles(inside, "checkpoint")
        if fault := deepspeed.fault(inside, "checkpoint"):
            return verdict.but(Evidence.PARTIAL, fault, "members_missing")._replace(roles=roles)
        if inside.size("latest"):
            why = "latest, written last, is there"
            return verdict._replace(evidence=Evidence.PROVEN, proof="latest", why=why, roles=roles)
        return verdict.but(Evidence.PARTIAL, "latest, written last, is missing")
    return fresh(inside, verdict) if verdict.evidence is Evidence.PROVEN else verdict


def retained(peek: Peek, key: str, size: int) -> Sequence[Mention]:
    """What the ``ModelCheckpoint`` callbacks in a checkpoint believe to be there (lightning model_checkpoint.py).

    A resumed trainer goes on with these paths. It looks before it deletes, so a lost one is passed over.
    """
    _, directory = peek.zip(key, size)
    data = torch_pickle(peek, key, directory) if directory else None
    states = plain_dicts(data or b"", "best_model_path")[:CALLBACKS_MAX]
    roles: dict[str, PointerRole] = {}
    for role, path in (pair for state in states for pair in named_in(state)):
        roles.setdefault(path, role)
    return [Mention(role, path, OnDangle.IGNORED, "pickle") for path, role in roles.items()]


def named_in(state: dict[str, object]) -> Iterator[tuple[PointerRole, str]]:
    """The paths in one callback's state, the weightier ones first."""
    several = state.get("best_k_models")
    listed = list(several) if isinstance(several, dict) and len(several) <= RETAINED_MAX else []
    named = [(PointerRole.BEST, state.get("best_model_path")), (PointerRole.LATEST, state.get("last_model_path"))]
    if listed:
        named += [(PointerRole.LISTED, path) for path in (*listed, state.get("kth_best_model_path"))]
    yield from ((role, path) for role, path in named if isinstance(path, str) and path)


LAST_LINK = Tracker(row(r"(?:.*-)?last(?:-v\d+)?\.ckpt"), PointerRole.LATEST, OnDangle.RESTART)

DIRECTORY = DirLayout(
    name="lightning_sharded",
    unit=row(r".+\.ckpt"),
    evidence=(r"meta\.pt", SHARD, r"checkpoint/[^/]*_(model|optim)_states\.pt"),
    traces=(r"\.metadata(\.tmp)?",),
    begun=Begun.BESIDE,
    proof="meta.pt",
    writing=(r"\.metadata\.tmp",),
    named=read_name,
    refine=sharded,
    trackers=(LAST_LINK,),
    memory=retained,
)

FILE = FileLayout(
    name="lightning",
    member=row(rf"(?:{PAIRED}|{NUMBERED}|{FIXED})\.ckpt"),
    judge=whole_zip,
    credible=credible,
    named=by_path,
    run_of=run_of,
    trackers=(LAST_LINK,),
    lasting=row(r"last(?:-v\d+)?\.ckpt"),
    memory=retained,
)

ROWS = (DIRECTORY,)
FILES = (FILE,)
