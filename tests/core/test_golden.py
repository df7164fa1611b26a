"""Golden decisions: every scene with all its reasons, both ways; ``pytest --regold`` rewrites them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.core.reasons import CODES, Mark, instead, why
from tests.core.oracle import keeps, relieved
from tests.core.scenes import SCENES
from tests.core.worlds import World, kept

GOLDEN = Path(__file__).parent / "golden"


def told(policy: str, mark: Mark) -> str:
    rule = f" [{mark.rule}]" if mark.rule else ""
    way = "" if mark.keeps or not instead(mark) else f" (or: {instead(mark)})"
    return f"{'+' if mark.keeps else '-'} {policy or '*'}: {mark.code}{rule}: {why(mark)}{way}"


def written(world: World) -> str:
    judgement = world.judge()
    decisions = {
        d.checkpoint.id: {
            "verdict": "keep" if d.keep else "expire",
            "status": d.status,
            "marks": [told(policy, mark) for policy, mark in d.marks],
            **({"floor": list(d.floor)} if d.floor else {}),
        }
        for d in judgement.decisions
    }
    findings = [f"{f.severity} {f.code} {f.subject}: {f.text}" for f in judgement.findings]
    whole = {"kept": len(kept(judgement)), "of": len(decisions), "decisions": decisions, "findings": findings}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", SCENES)
def test_decisions(name: str, golden: Callable[[Path, str], None]):
    golden(GOLDEN / f"{name}.json", written(SCENES[name]))


@pytest.mark.parametrize("name", SCENES)
def test_the_second_planner_agrees(name: str):
    world = SCENES[name]
    stays = relieved(world) if world.fills else keeps(world.runs, world.policies, world.around)
    cannot_go = {c.id for c in world.checkpoints if c.store in world.read_only}
    assert kept(world.judge()) == stays | cannot_go


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SCENES)


def test_every_reason_is_in_some_scene():
    found = {mark.code for world in SCENES.values() for d in world.judge().decisions for _, mark in d.marks}
    assert found == set(CODES)


def steps_kept(name: str) -> list[int | None]:
    return [d.checkpoint.step for d in SCENES[name].judge().decisions if d.keep]


def test_counts_are_of_what_exists():
    """The published vector: eight of 41 stay under ``last: 3`` and ``daily: 7``."""
    assert sorted(map(str, steps_kept("counting_and_gaps"))) == sorted(map(str, [19, 23, 27, 31, 35, 38, 39, 40]))


@pytest.mark.parametrize(
    ("pick", "steps"),
    [
        ("exact", {7000, 9800}),
        ("closest", {700, 2100, 2800, 4200, 4900, 6300, 7000, 7700, 9100, 9800}),
        ("first", {700, 1400, 2100, 3500, 4200, 5600, 6300, 7000, 8400, 9100, 9800}),
    ],
)
def test_milestones_out_of_step(pick: str, steps: set[int]):
    """Saving every 700 and keeping every 1,000: exact finds one of 14, closest and first ten; the newest stays."""
    assert set(steps_kept(f"milestones_{pick}")) == steps
