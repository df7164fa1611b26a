"""TensorFlow checkpoints (an index and its data files) with their state file, and SavedModel exports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole, Shape
from lifecycle.layouts.parts import Roles
from lifecycle.layouts.table import Batch, DirLayout, FileLayout, Mention, Tracker, Verdict, row

DATA = re.compile(r"(?P<stem>.+)\.data-(?P<k>\d{5})-of-(?P<n>\d{5})", re.ASCII | re.DOTALL)
LINE = re.compile(r'^\s*(?P<field>all_)?model_checkpoint_paths?: "(?P<path>(?:[^"\\]|\\.)*)"\s*$', re.MULTILINE)
LISTED_MAX = 10_000
ROLES = Roles(files=(("mixed", r".+\.data-\d{5}-of-\d{5}"), ("meta", r".+\.(index|meta)")))


def group(batch: Batch) -> Verdict:
    """The index comes last; every data file that its siblings promise must be there."""
    index = f"{batch.stem}.index"
    data = [m for m in map(DATA.fullmatch, batch.sizes) if m]
    counts = {int(m["n"]) for m in data}
    have = {(int(m["k"]), int(m["n"])) for m in data if batch.sizes[m.string]}
    if not any((all((k, n) in have for k in range(n)) and 0 < n <= 99_999) for n in counts):
        return Verdict(Evidence.PARTIAL, "data files are missing or empty", flags=("members_missing",), roles=ROLES)
    if not batch.sizes.get(index):
        return Verdict(Evidence.PARTIAL, f"{index}, written last, is missing or empty", roles=ROLES)
    return Verdict(Evidence.PROVEN, f"{index}, written last, and all data files are there", index, roles=ROLES)


def credible(text: str, _folder: str) -> bool:
    """A data file alone may be anything; somewhere in the directory an index must have its data."""
    if ".index/" not in text:
        return False
    stems = {m.group(1) for m in re.finditer(r"(?<=/)([^/]+)\.index(?=/)", text)}
    return any(f"/{stem}.data-0" in text for stem in stems)


def state(text: str) -> Sequence[Mention]:
    """A text proto: the newest one, and all that the manager retains (tensorflow checkpoint_state.proto)."""
    found = []
    for match in list(LINE.finditer(text))[:LISTED_MAX]:
        role = PointerRole.LISTED if match["field"] else PointerRole.LATEST
        found.append(Mention(role, re.sub(r"\\(.)", r"\1", match["path"]), OnDangle.RESTART, "textproto"))
    return found


CHECKPOINT = FileLayout(
    name="tensorflow",
    member=row(r"(?P<stem>(?P<head>.+?)(?:-(?P<step>\d+))?)\.(?:index|meta|data-\d{5}-of-\d{5})"),
    judge=group,
    shape=Shape.GROUP,
    credible=credible,
    any_name=True,
    trackers=(Tracker(row(r"checkpoint"), PointerRole.LATEST, OnDangle.RESTART, state),),
)

SAVED_MODEL = DirLayout(
    name="saved_model",
    unit=row(r".+"),
    evidence=(r"saved_model\.pb",),
    needs=(r"saved_model\.pb",),
    kind=Kind.EXPORT,
)

ROWS = (SAVED_MODEL,)
FILES = (CHECKPOINT,)
