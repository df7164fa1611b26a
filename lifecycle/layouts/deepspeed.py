"""DeepSpeed tags: model and optimizer states of every rank, and the ``latest`` file beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole
from lifecycle.layouts import metrics
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.parts import PLAIN, Roles
from lifecycle.layouts.peek import Look
from lifecycle.layouts.table import DirLayout, Mention, Tracker, Verdict, row

STATES = r"[^/]*_model_states\.pt"
OPTIM = r"[^/]*_optim_states\.pt"
ZERO_MODEL = r"zero_pp_rank_(\d{1,9})_mp_rank_(\d{1,9})_model_states\.pt"
ZERO_OPTIM = r"(?:bf16_|fp16_)?zero_pp_rank_(\d{1,9})_mp_rank_(\d{1,9})_optim_states\.pt"
PLAIN_MODEL = r"mp_rank_(\d{1,9})_model_states\.pt"

ZERO3 = Roles(
    files=(
        ("meta", r"zero_pp_rank_\d+_mp_rank_\d\d_model_states\.pt"),
        ("mixed", r"(bf16_|fp16_)?zero_pp_rank_.*_optim_states\.pt"),
    )
)
"""Under ZeRO-3 the weights themselves are in the optimizer files, and the model files hold none."""

ZERO0 = Roles(files=(("mixed", r"mp_rank_\d\d_model_states\.pt"),))
"""Without ZeRO and without a pipeline one file holds it all."""

Rank = tuple[int, ...]


def ranks(inside: Inside, below: str, pattern: str) -> frozenset[Rank]:
    """The rank numbers in the names that match; they are padded differently, so they count as numbers."""
    found = inside.names(f"{re.escape(below)}/{pattern}" if below else pattern)
    return told_ranks(tuple(name.rpartition("/")[2] for name in found) if below else tuple(found), pattern)


@lru_cache(maxsize=64)
def told_ranks(names: tuple[str, ...], pattern: str) -> frozenset[Rank]:
    """The rank numbers in names; the units of a run have the same ones."""
    matches = map(re.compile(pattern, re.ASCII).fullmatch, names)
    return frozenset(tuple(int(group) for group in m.groups()) for m in matches if m)


def is_zero3(inside: Inside, below: str = "") -> bool:
    """Whether the model states are split over data ranks."""
    return bool(ranks(inside, below, ZERO_MODEL))


def roles(inside: Inside, below: str = "") -> Roles:
    """Which role each file plays: it depends on the stage of ZeRO."""
    at = f"{re.escape(below)}/" if below else ""
    if is_zero3(inside, below):
        return ZERO3
    return PLAIN if inside.has(f"{at}{OPTIM}") or inside.has(f"{at}layer_[^/]*") else ZERO0


def fault(inside: Inside, below: str = "") -> str | None:
    """What is missing or empty, as a sentence; None when every rank that is seen has all of its files."""
    at = f"{re.escape(below)}/" if below else ""
    if inside.empty(f"{at}{STATES}") or inside.empty(f"{at}{OPTIM}"):
        return "a state file is empty"
    models, optims = ranks(inside, below, ZERO_MODEL), ranks(inside, below, ZERO_OPTIM)
    plain = ranks(inside, below, PLAIN_MODEL)
    if not models and not plain and not inside.has(f"{at}layer_[^/]*model_states\\.pt"):
        return "no model states are there"
    if models and models != optims:
        odd = min(models ^ optims)
        what = "model" if odd in optims else "optimizer"
        return f"the {what} states of data rank {odd[0]} are missing"
    return gap(models or optims) or gap(plain | {(m,) for _, m in optims})


@lru_cache(maxsize=64)
def gap(seen: frozenset[Rank]) -> str | None:
    """A rank below the highest one that has no file."""
    if not seen:
        return None
    groups: dict[Rank, set[int]] = {}
    for rank in seen:
        groups.setdefault(rank[1:], set()).add(rank[0])
    for rest, numbers in sorted(groups.items()):
        if len(numbers) <= max(numbers):
            absent = next(n for n in range(max(numbers)) if n not in numbers)
            return f"the states of rank {absent}{f' of {rest[0]}' if rest else ''} are missing"
    return None


def tag(inside: Inside, verdict: Verdict) -> Verdict:
    """Whole when all ranks are; proven when ``latest``, written after them, names the tag."""
    verdict = verdict._replace(
        roles=roles(inside),
        kind=Kind.FULL if inside.has(OPTIM) or not inside.has(r"layer_[^/]*") else Kind.WEIGHTS,
    )
    if found := fault(inside):
        return verdict.but(Evidence.PARTIAL, found, "members_missing")
    look, text = inside.text_beside("latest")
    if look is Look.SEEN and text == inside.name:
        return verdict._replace(evidence=Evidence.PROVEN, why="latest, written last, names it")
    return verdict


def latest(text: str) -> Sequence[Mention]:
    """The tag, without a newline (deepspeed engine.py)."""
    return (Mention(PointerRole.LATEST, text.strip(), OnDangle.CRASH),)


TAG = DirLayout(
    name="deepspeed",
    unit=row(r"(?:global_step|step_|step-|global_step_)(?P<step>\d+)|.+"),
    evidence=(STATES, OPTIM),
    refine=tag,
    trackers=(Tracker(row(r"latest(_universal)?"), PointerRole.LATEST, OnDangle.CRASH, latest),),
    ranks=f"{STATES}|{OPTIM}",
    portions=True,
)


def best(inside: Inside, verdict: Verdict) -> Verdict:
    """The copy that OpenRLHF keeps for its metric, which stands in a file of its own."""
    return tag(inside, verdict)._replace(
        kind=Kind.BEST_COPY,
        metrics=metrics.numbers(inside.json("metric.json").data, without=("step",)),
        told_by="metric.json",
    )


BEST = replace(TAG, unit=row(r"best_global_step(?P<step>\d+)"), refine=best)

UNIVERSAL = DirLayout(
    name="deepspeed_universal",
    unit=row(r"(?:global_step(?P<step>\d+)(?:_universal)?)?(?P<head>.*)"),
    evidence=(r"zero/[^/]+/fp32\.pt",),
    needs=(r"zero/[^/]+/fp32\.pt", STATES),
)

ROWS = (UNIVERSAL, BEST, TAG)
