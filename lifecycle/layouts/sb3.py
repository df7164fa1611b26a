"""Stable-Baselines3: a zip of the policy every so many steps, with replay buffer and statistics beside it."""

from __future__ import annotations

import re

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind, Shape
from lifecycle.layouts.parts import Roles
from lifecycle.layouts.single import STOP, listed, whole
from lifecycle.layouts.table import Batch, FileLayout, Verdict, row

SIDE = r"_(?:replay_buffer|vecnormalize)"
ROLES = Roles(files=(("dataloader", rf".+{SIDE}_\d+_steps\.pkl"), ("mixed", r".+\.zip")))


def policy(batch: Batch) -> Verdict:
    """The zip shows itself that it is whole and whose it is; the pickles beside it are only looked at from outside."""
    archive = f"{batch.stem}.zip"
    if archive not in batch.sizes:
        return Verdict(Evidence.PARTIAL, "its .zip is missing", flags=("members_missing",), roles=ROLES)
    if not all(batch.sizes.values()):
        return Verdict(Evidence.PARTIAL, "a file of it is empty", flags=("empty_shard",), roles=ROLES)
    for name in sorted(batch.sizes.keys() - {archive}):
        last = batch.peek.bytes(join(batch.folder, name), batch.sizes[name] - 1, 1)
        if last != STOP:
            evidence = Evidence.DOUBTFUL if last is None else Evidence.PARTIAL
            why = f"{name} was not read" if last is None else f"{name} does not end as a pickle does: it was cut short"
            return Verdict(evidence, why, roles=ROLES)
    end = whole(batch, archive)
    if isinstance(end, Verdict):
        return end._replace(roles=ROLES)
    table = listed(batch, archive, end)
    if b"policy.pth" not in table or b"_stable_baselines3_version" not in table:
        return Verdict(Evidence.DOUBTFUL, "it is a whole zip file, but not one of Stable-Baselines3", roles=ROLES)
    kind = Kind.FULL if b"policy.optimizer.pth" in table else Kind.WEIGHTS
    return Verdict(Evidence.WHOLE, "its .zip is whole; the layout writes no proof", kind=kind, roles=ROLES)


def unit_of(match: re.Match[str]) -> str:
    """The name of the zip without its ending, which the files beside it do not have in one piece."""
    return f"{match['head']}_{match['step']}_steps"


STEPS = FileLayout(
    name="sb3",
    member=row(
        rf"(?=.+{SIDE}_\d+_steps\.pkl|.+_\d+_steps\.zip)(?P<head>.+?)(?:{SIDE})?_(?P<step>\d+)_steps\.(?:zip|pkl)"
    ),
    judge=policy,
    shape=Shape.GROUP,
    credible=lambda text, _folder: "_steps.zip/" in text,
    stem_of=unit_of,
    members=(row(r".+_replay_buffer_\d+_steps\.pkl"), row(r".+_vecnormalize_\d+_steps\.pkl")),
)

FILES = (STEPS,)
