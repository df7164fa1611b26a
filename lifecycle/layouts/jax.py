"""JAX trainers with formats of their own: t5x and Flax (msgpack, arrays beside it), Levanter."""

from __future__ import annotations

from lifecycle.core.listing import Folder, join
from lifecycle.core.model import Evidence
from lifecycle.layouts.dcp import SHARD
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.msgpack import extent
from lifecycle.layouts.parts import SINGLE, Roles
from lifecycle.layouts.table import Batch, DirLayout, FileLayout, Verdict, row

MISSING = "members_missing"
ARRAYS = (r"target\.[^/]*/", r"state\.[^/]*/")
T5X_ROLES = Roles(
    files=(("meta", r"checkpoint"),),
    folders=(("weights", r"target\..*"), ("optimizer", r"state\.param_states\..*"), ("dataloader", r"train_ds-.*")),
)
LEVANTER_ROLES = Roles(folders=(("weights", r"model(/.*)?"), ("optimizer", r"opt(imizer)?_state(/.*)?")))
MAPS = (*range(0x81, 0x90), 0xDE, 0xDF)
"""First bytes of a msgpack map with entries."""
STRINGS = (*range(0xA1, 0xC0), 0xD9, 0xDA, 0xDB)


def is_msgpack(head: bytes) -> bool:
    """Whether a file begins as the map with text keys that ``flax.serialization.to_bytes`` writes."""
    if not head or head[0] not in MAPS:
        return False
    skip = {0xDE: 3, 0xDF: 5}.get(head[0], 1)
    return len(head) > skip and head[skip] in STRINGS


def t5x(inside: Inside, verdict: Verdict) -> Verdict:
    """Renamed from ``.tmp-TIME`` when all is there; the arrays' own headers tell that something is in them."""
    verdict = verdict._replace(roles=T5X_ROLES)
    if verdict.evidence is not Evidence.WHOLE:
        return verdict
    if not inside.has(ARRAYS[0]):
        return verdict.but(Evidence.PARTIAL, "no target.* is there", MISSING)
    hollow = [name for array in ARRAYS for name in inside.names(array) if not chunks(inside.folder(name))]
    if hollow:
        return verdict.but(Evidence.DOUBTFUL, f"{min(hollow)} holds no chunk: all zeros, or lost", MISSING)
    if inside.on_objects:
        return verdict.but(Evidence.DOUBTFUL, "nothing proves it here, where no rename commits anything")
    return verdict._replace(why="it has its final name, which comes by renaming")


def chunks(folder: Folder) -> int:
    """Bytes of an array without its header; empty chunks count as none at all."""
    pairs = [(name, size) for name, size in zip(folder.names, folder.sizes, strict=True) if not name.startswith(".")]
    return 0 if any(not size for _, size in pairs) else sum(size for _, size in pairs)


T5X = DirLayout(
    name="t5x",
    unit=row(r"checkpoint_(?P<step>\d+)"),
    evidence=ARRAYS,
    along=(r"checkpoint",),
    needs=(r"checkpoint",),
    refine=t5x,
    fleeting=row(r"checkpoint_(?P<step>\d+)\.tmp-\d+"),
    pin="PINNED",
    ranks=r"(target|state)\.[^/]*/",
)


def flax(batch: Batch) -> Verdict:
    """One file that is renamed into place; arrays of several hosts stand in a directory that belongs to it."""
    (name, size) = next(iter(batch.sizes.items()))
    if not size:
        return Verdict(Evidence.DOUBTFUL, "it is empty: nothing tells whose it is", roles=SINGLE)
    key = join(batch.folder, name)
    head = batch.peek.bytes(key, 0, 16)
    if head is None or not is_msgpack(head):
        return Verdict(Evidence.DOUBTFUL, "it does not begin as Flax's msgpack does, or was not read", roles=SINGLE)
    if f"{name}_gda" in batch.dirs:
        return Verdict(Evidence.DOUBTFUL, f"its arrays are in {name}_gda, which is not judged", roles=SINGLE)
    end = extent(size, lambda offset, limit: batch.peek.bytes(key, offset, limit))
    if end is None:
        return Verdict(Evidence.DOUBTFUL, "it is too large or too odd to be followed to its end", roles=SINGLE)
    if end > size:
        return Verdict(Evidence.PARTIAL, "it ends before its msgpack does: it was cut short", roles=SINGLE)
    if end < size:
        return Verdict(Evidence.DOUBTFUL, "it goes on after the end of its msgpack", roles=SINGLE)
    return Verdict(Evidence.WHOLE, "it is msgpack to its last byte; the layout writes no proof", roles=SINGLE)


FLAX = FileLayout(name="flax", member=row(r"checkpoint_(?P<step>\d+)(?:\.\d+)?"), judge=flax)


def levanter(inside: Inside, verdict: Verdict) -> Verdict:
    """``metadata.json`` comes last and speaks of its step and time (levanter/checkpoint.py)."""
    verdict = verdict._replace(roles=LEVANTER_ROLES)
    if verdict.evidence is not Evidence.PROVEN:
        return verdict
    told = inside.json("metadata.json").data
    if "timestamp" not in told or told.get("step") != int(inside.name.rpartition("-")[2]):
        return verdict.but(Evidence.DOUBTFUL, "metadata.json does not speak of this step", "identity_mismatch")
    model = [f for f in inside.folders if f"{f.path}/".startswith(f"{inside.path}/model/")]
    if not any(sum(f.sizes) for f in model):
        return verdict.but(Evidence.PARTIAL, "model holds no bytes", MISSING)
    hollow = min((f.path for f in model if ".zarray" in f.names and not chunks(f)), default=None)
    if hollow is not None:
        why = f"{hollow[len(inside.path) + 1 :]} holds no chunk: all zeros, or lost"
        return verdict.but(Evidence.DOUBTFUL, why, MISSING)
    return verdict


LEVANTER = DirLayout(
    name="levanter",
    unit=row(r"step-(?P<step>\d{1,18})"),
    evidence=(
        r"metadata\.json",
        r"model/\.zarray",
        r"model/[^/]+/\.zarray",
        r"model/[^/]+/[^/]+/\.zarray",
        r"model/manifest\.ocdbt",
        r"manifest\.ocdbt",
    ),
    along=(r"model/",),
    unlike=(SHARD, r"sharded/"),
    proof="metadata.json",
    refine=levanter,
    members=(r"model/", r"optimizer_state/", r"opt_state/"),
)

ROWS = (LEVANTER, T5X)
FILES = (FLAX,)
