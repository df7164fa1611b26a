"""What looks like checkpoints and is not: directories never entered, names of work under way, doomed places."""

from __future__ import annotations

import re
from functools import lru_cache

from lifecycle.core.listing import Folder

RANKS = r"mp_rank_\d\d(?:_\d{3})*|tp_rank_\d\d_pp_rank_\d{3}|fsdp_shard_\d{5}"
"""Names of directories that hold one file a unit: members of units that span directories, never units."""

EXCLUDED = re.compile(
    r"\.(git|hg|svn|ipynb_checkpoints|cache|snapshot|snapshots|zfs|trash|Trash.*|lifecycle.*|venv|tox)"
    r"|__pycache__|node_modules|site-packages|conda-meta|lost\+found"
    r"|(models|datasets|spaces)--.+|torchinductor_.+|triton|\.?triton_cache"
    r"|.+\.zarr"
    # A registry's own store: deletion there goes through its programming interface.
    r"|mlruns|mlartifacts|wandb|[^/]+:v\d+"
    rf"|{RANKS}"
    r"|plugins|wgrads|dgrads|energon|rollouts|broadcasts",
    re.ASCII | re.DOTALL,
)
"""Names of directories in which nothing is ever a checkpoint of its own."""

UNDER_WAY = re.compile(
    r".+\.orbax-checkpoint-tmp(-\d+)?|.+\.partial_save(\.orbax.*)?|checkpoint_\d+\.tmp-\d+"
    r"|tmp-checkpoint-.+|step\d+(-unsharded)?-tmp|tmp_step_\d+|\._dlrover_ckpt_stage|.+_temp|.+-no-optim"
    r"|bytecheckpoint_local_temp_dir_for_uploading_.*|old_step_\d+"
    r"|.+\.(tmp|part|partial|incomplete|crdownload)|.*~",
    re.ASCII | re.DOTALL,
)
"""Names of directories that some framework is at work on; where no row knows them better, they are left alone."""

DOOMED = re.compile(r"[._]?to_?delete[^/]*", re.ASCII | re.IGNORECASE)
"""A directory into which a framework has renamed what it is going to delete."""

DOOMED_SUFFIX = re.compile(r"-\d{8}-\d{6}-\d{6}", re.ASCII)
"""What Orbax appends to a step when it moves it to its directory of doomed ones on GCS."""

STREAMS = ({"offsets", "commits"}, {"shared", "taskowned"})
"""Directories that stand together in a stream processor's state."""

WRAPPERS = ("checkpoint_manager_snapshot.json", "tuner.pkl", "experiment_state.json")
"""Files of a framework whose units hold other frameworks' units: nothing beside them is a unit of its own."""

COMPONENTS = re.compile(
    r"weights|optimizer(_\d+)?|optim|model|model_and_optim|trainer|actor|critic|dist_ckpt|policy|weight"
    r"|pytorch_model_fsdp_\d+|model_weights|modelopt_state|sharded|dataloader|extra_state|context|.*_world_size_.*",
    re.ASCII,
)
"""Names of parts of a unit that are checkpoints of their own kind: never a unit by themselves."""


@lru_cache(maxsize=4096)
def excluded(name: str) -> bool:
    """Whether a name is one of directories that are never entered; the same ones come again in every run."""
    return EXCLUDED.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def dooming(name: str) -> bool:
    """Whether a name is one of directories that hold what is going to be deleted."""
    return DOOMED.fullmatch(name) is not None


def shut(name: str, folder: Folder) -> bool:
    """Whether the directory is never entered, by its name or by what stands in it."""
    if excluded(name) or "pyvenv.cfg" in folder.names or "conda-meta" in folder.dirs:
        return True
    if not folder.dirs:
        return False
    dirs = set(folder.dirs)
    return {"blobs", "refs", "snapshots"} <= dirs or any(pair <= dirs for pair in STREAMS)


def wrapper(folder: Folder) -> bool:
    """Whether the directory's children belong to a framework whose units may hold any other one's."""
    return any(name in folder.names for name in WRAPPERS)


def unusual(text: str) -> bool:
    """Whether a name holds control characters, direction marks, odd spaces or bytes that are no UTF-8."""
    return not text.isprintable()
