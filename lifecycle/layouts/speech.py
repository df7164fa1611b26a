"""Speech trainers: ESPnet's and coqui's files, SpeechBrain's directories."""

from __future__ import annotations

import re

from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.peek import JSON_MAX_BYTES
from lifecycle.layouts.single import TENSORS, TorchFile, best_copy, crowded, cut_short
from lifecycle.layouts.table import DirLayout, FileLayout, Rotation, Tracker, Verdict, finite, row

LINKS = Tracker(row(r"(?:latest|.+\.best|.+\.ave)\.pth"), PointerRole.LATEST, OnDangle.IGNORED, own=True)
BEST_LINKS = Tracker(row(r".+\.(?:best|ave)\.pth"), PointerRole.BEST, OnDangle.IGNORED, own=True)


def is_espnet(text: str, _folder: str) -> bool:
    """The file that a resume needs stands beside the weights of epochs."""
    return "/checkpoint.pth/" in text and "epoch.pth/" in text


ESPNET = FileLayout(
    name="espnet",
    member=row(r"(?P<epoch>\d+)epoch\.pth"),
    judge=TorchFile((TENSORS,), kind=Kind.WEIGHTS).judge,
    credible=is_espnet,
    trackers=(BEST_LINKS, LINKS),
    rotation=Rotation.CRASHES,
)
"""Weights alone: the end of training averages the best of them, and stops if one of those is gone."""

ESPNET_RESUME = FileLayout(
    name="espnet",
    member=row(r"checkpoint\.pth"),
    judge=TorchFile((("reporter",), ("optimizers",))).judge,
    credible=is_espnet,
    trackers=(BEST_LINKS, LINKS),
    rotation=Rotation.CRASHES,
    lasting=row(r"checkpoint\.pth"),
)

ESPNET_AVERAGE = FileLayout(
    name="espnet",
    member=row(r".+\.ave_\d+best\.pth"),
    judge=TorchFile((TENSORS,), kind=Kind.BEST_COPY).judge,
    credible=is_espnet,
    trackers=(BEST_LINKS, LINKS),
    rotation=Rotation.CRASHES,
)

COQUI_FILE = TorchFile((("model",), ("model_loss", "config"), ("step",)), ("optimizer",), epoch="epoch")


def is_coqui(text: str, _folder: str) -> bool:
    """The trainer writes its configuration before it saves anything."""
    return "/config.json/" in text and re.search(r"/(?:checkpoint|best_model)_\d+\.pth/", text) is not None


COQUI = FileLayout(
    name="coqui",
    member=row(r"checkpoint_(?P<step>\d+)\.pth"),
    judge=COQUI_FILE.judge,
    credible=is_coqui,
)

COQUI_BEST = best_copy(COQUI, COQUI_FILE._replace(step="step"), r"best_model(?:_(?P<step>\d+))?\.pth")


def speechbrain(inside: Inside, verdict: Verdict) -> Verdict:
    """``CKPT.yaml`` is written first and proves nothing; it brings the metrics (speechbrain checkpoints.py)."""
    if verdict.evidence is not Evidence.WHOLE:
        return verdict
    if inside.empty(r"[^/]+\.ckpt"):
        return verdict.but(Evidence.PARTIAL, "a file of it is empty", "empty_shard")
    if why := crowded(len(inside.folder().names)):
        return verdict.but(Evidence.DOUBTFUL, why)
    for name in sorted(inside.names(r"[^/]+\.ckpt")):
        if cut_short(inside.peek, f"{inside.path}/{name}", inside.size(name) or 0):
            return verdict.but(Evidence.PARTIAL, f"{name} begins like a zip file and was cut short")
    size = inside.size("CKPT.yaml") or 0
    data = inside.peek.bytes(f"{inside.path}/CKPT.yaml", 0, min(size, JSON_MAX_BYTES)) or b""
    lines = re.findall(r"^([\w.-]+):[ \t]*(\S+)[ \t]*$", data.decode("utf-8", "replace"), re.MULTILINE | re.ASCII)
    found = {key: number for key, text in lines if (number := finite(text)) is not None}
    values = numbers(found, without=("unixtime", "epoch"))
    return verdict._replace(epoch=found.get("epoch"), metrics=values, told_by="CKPT.yaml")


SPEECHBRAIN = DirLayout(
    name="speechbrain",
    unit=row(r"CKPT\+(?:\d{4}-\d\d-\d\d\+\d\d-\d\d-\d\d\+\d\d|(?P<head>.+))"),
    evidence=(r"CKPT\.yaml",),
    needs=(r"CKPT\.yaml", r"[^/]+\.ckpt"),
    refine=speechbrain,
    ranks=r"[^/]+\.ckpt",
    peers=True,
    rotation=Rotation.RACES,
)

ROWS = (SPEECHBRAIN,)
FILES = (ESPNET, ESPNET_RESUME, ESPNET_AVERAGE, COQUI, COQUI_BEST)
