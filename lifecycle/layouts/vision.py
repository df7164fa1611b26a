"""Vision trainers with one file a checkpoint: detectron2 (fvcore), mmengine, timm, ultralytics, nnU-Net."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lifecycle.core.listing import split
from lifecycle.core.model import OnDangle, PointerRole
from lifecycle.layouts.single import TorchFile, best_copy
from lifecycle.layouts.table import FileLayout, Mention, Named, Tracker, by_groups, row

FOLD = re.compile(r"fold_\w+", re.ASCII)


def named_last(text: str) -> Sequence[Mention]:
    """A base name (fvcore/common/checkpoint.py), or an absolute path (mmengine/hooks/checkpoint_hook.py)."""
    return (Mention(PointerRole.LATEST, text.strip(), OnDangle.CRASH),)


LAST = Tracker(row(r"last_checkpoint"), PointerRole.LATEST, OnDangle.CRASH, named_last, own=True)


def having(*names: str) -> Callable[[str, str], bool]:
    """Files are credible where any of the names stands beside them."""
    return lambda text, _folder: any(f"/{name}/" in text for name in names)


def by_iteration(match: re.Match[str]) -> Named:
    """Steps done from a number that counts from 0: ``model_0004999`` was saved after 5,000 of them."""
    named = by_groups(match)
    return named if named.step is None else named._replace(step=named.step + 1)


FVCORE_FILE = TorchFile(
    (("model",), ("iteration", "optimizer", "scheduler")), ("optimizer",), step="iteration", first=1
)

FVCORE = FileLayout(
    name="fvcore",
    member=row(r"model_(?:(?P<step>\d{7})|final)\.pth"),
    credible=having("last_checkpoint"),
    judge=FVCORE_FILE.judge,
    named=by_iteration,
    trackers=(LAST,),
)

MMENGINE_FILE = TorchFile((("state_dict",), ("meta", "message_hub")), ("optimizer",))

MMENGINE = FileLayout(
    name="mmengine",
    member=row(r"(?:epoch_(?P<epoch>\d+)|iter_(?P<step>\d+))\.pth"),
    judge=MMENGINE_FILE.judge,
    credible=having("last_checkpoint"),
    trackers=(LAST,),
)

MMENGINE_BEST = best_copy(MMENGINE, MMENGINE_FILE, r"best_.+_(?:epoch_(?P<epoch>\d+)|iter_(?P<step>\d+))\.pth")
"""``epoch_N-<8 hex digits>.pth`` is what was published: no unit."""

TIMM_FILE = TorchFile((("state_dict",), ("arch", "version")), ("optimizer",), epoch="epoch")


def is_timm(text: str, _folder: str) -> bool:
    """A numbered file, or its last and its best one together."""
    return "/checkpoint-" in text or ("/last.pth.tar/" in text and "/model_best.pth.tar/" in text)


TIMM = FileLayout(
    name="timm",
    member=row(r"(?:(?:checkpoint|milestone)-(?P<epoch>\d+)|recovery-\d+-\d+|last)\.pth\.tar"),
    judge=TIMM_FILE.judge,
    credible=is_timm,
    lasting=row(r"last\.pth\.tar"),
)
"""``last`` and ``model_best`` are hard links to a numbered one: what shares an inode stays together."""

TIMM_BEST = best_copy(TIMM, TIMM_FILE, r"model_best\.pth\.tar")

YOLO_FILE = TorchFile((("train_args",), ("ema", "model"), ("best_fitness", "optimizer")), epoch="epoch")


def in_weights(text: str, folder: str) -> bool:
    """The directory ``weights`` of a run, with the file that training goes on from."""
    return split(folder)[1] == "weights" and ("/last.pt/" in text or "/best.pt/" in text)


YOLO = FileLayout(
    name="ultralytics",
    member=row(r"(?:epoch(?P<epoch>\d+)|last)\.pt"),
    judge=YOLO_FILE.judge,
    credible=in_weights,
    lasting=row(r"last\.pt"),
)

YOLO_BEST = best_copy(YOLO, YOLO_FILE, r"best\.pt")

NNUNET_FILE = TorchFile((("network_weights",), ("current_epoch", "trainer_name")), ("optimizer_state",))


def in_fold(_text: str, folder: str) -> bool:
    """The directory of one fold."""
    return FOLD.fullmatch(split(folder)[1]) is not None


NNUNET = FileLayout(
    name="nnunet",
    member=row(r"checkpoint_(?:latest|final)\.pth"),
    judge=NNUNET_FILE._replace(epoch="current_epoch").judge,
    credible=in_fold,
    lasting=row(r"checkpoint_(?:latest|final)\.pth"),
)

NNUNET_BEST = best_copy(NNUNET, NNUNET_FILE, r"checkpoint_best\.pth")

FILES = (FVCORE, MMENGINE, MMENGINE_BEST, TIMM, TIMM_BEST, YOLO, YOLO_BEST, NNUNET, NNUNET_BEST)
