"""Ray Train and Tune: directories that may hold any framework's checkpoint, and the snapshot that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lifecycle.core.listing import join, split
from lifecycle.core.model import Evidence, OnDangle, PointerRole
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.peek import Look, parse_json
from lifecycle.layouts.table import DirLayout, Mention, Rotation, Tracker, Verdict, row

SNAPSHOT = "checkpoint_manager_snapshot.json"
LISTED_MAX = 10_000


def results(data: dict[str, object]) -> dict[str, object]:
    """Metrics by directory name, of all results that a snapshot holds (ray train checkpoint_manager.py)."""
    found: dict[str, object] = {}
    listed = data.get("checkpoint_results")
    pending = data.get("pending_training_results")
    for entry in [*(listed if isinstance(listed, list) else ()), *(pending if isinstance(pending, list) else ())]:
        name = entry.get("checkpoint_dir_name") if isinstance(entry, dict) else None
        if isinstance(name, str):
            found[name] = entry.get("metrics")
    return dict(list(found.items())[:LISTED_MAX])


def latest(data: dict[str, object]) -> str | None:
    """The directory that a restart goes on from."""
    entry = data.get("latest_checkpoint_result")
    name = entry.get("checkpoint_dir_name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def snapshot(text: str) -> Sequence[Mention]:
    """The next start fails if one of them is gone. One that is cut or odd names what cannot be known."""
    document = parse_json(text.encode("utf-8", "surrogateescape"))
    if document.look is not Look.SEEN:
        return (Mention(PointerRole.LATEST, "", OnDangle.CRASH, "json"),)
    newest = latest(document.data)
    found = [Mention(PointerRole.LISTED, name, OnDangle.CRASH, "json") for name in results(document.data)]
    return [*found, Mention(PointerRole.LATEST, newest, OnDangle.CRASH, "json")] if newest else found


def listed(inside: Inside, verdict: Verdict) -> Verdict:
    """Copied into the storage, then listed: what is not listed is on its way, or nobody's."""
    files = [size for f in inside.folders for size in f.sizes]
    if not files:
        return verdict.but(Evidence.PARTIAL, "it holds no files")
    parent = split(inside.path)[0]
    size = inside.listing.size(join(parent, SNAPSHOT))
    if size is None:
        return verdict.but(Evidence.DOUBTFUL, "no snapshot stands beside it that would list it")
    document = inside.peek.json(join(parent, SNAPSHOT), size)
    if document.look is not Look.SEEN:
        return verdict.but(Evidence.DOUBTFUL, f"{SNAPSHOT} was not read or not understood")
    known = results(document.data)
    if inside.name not in known and inside.name != latest(document.data):
        return verdict.but(Evidence.DOUBTFUL, f"{SNAPSHOT} does not list it: on its way, or left over")
    metrics = known.get(inside.name)
    return verdict._replace(
        evidence=Evidence.PROVEN,
        why=f"{SNAPSHOT}, written after the copy, lists it",
        metrics=numbers(metrics) if isinstance(metrics, dict) else (),
        told_by=SNAPSHOT,
    )


TRAIN = DirLayout(
    name="ray_train",
    unit=row(r"checkpoint_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.\d{6}"),
    evidence=(r"[^/]+", r"[^/]+/"),
    beside=(r"checkpoint_manager_snapshot\.json",),
    refine=listed,
    trackers=(
        Tracker(row(r"checkpoint_manager_snapshot\.json"), PointerRole.LATEST, OnDangle.CRASH, snapshot, own=True),
    ),
    rotation=Rotation.CRASHES,
)
"""The name and the snapshot are the evidence: what is inside is the business of whoever trains."""

TUNE = replace(
    TRAIN,
    unit=row(r"checkpoint_(?P<step>\d{6})"),
    beside=(r"checkpoint_manager_snapshot\.json", r"result\.json"),
)
"""The number counts reports. Without a snapshot its list is a pickle of the experiment, which is not opened."""

ROWS = (TRAIN, TUNE)
