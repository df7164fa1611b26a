"""A checkpoint much smaller than those before it is doubted, however whole it looks; other kinds of one are not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, Evidence, Kind, Shape
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.layouts.sizes import doubt_small
from tests.layouts.trees import memory, tree


def saved(step: int, size: int, role: str = "weights", **more) -> Checkpoint:
    made = Checkpoint(
        "s", "r", f"r/step-{step}", f"step-{step}", "dcp", Shape.DIR, Evidence.PROVEN,
        step=step, bytes=size, parts=((role, size),), proof=f"r/step-{step}/.metadata",
    )  # fmt: skip
    return replace(made, **more)


def doubted(*checkpoints: Checkpoint) -> list[int | None]:
    seen = doubt_small(checkpoints)
    assert [c.key for c in seen] == [c.key for c in checkpoints]
    return [c.step for c in seen if c.evidence is Evidence.DOUBTFUL]


def of(*sizes: int) -> list[int | None]:
    return doubted(*(saved(step, size) for step, size in enumerate(sizes)))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((100, 100, 100, 49), [3]),
        ((100, 100, 100, 50), []),
        ((100, 49), [1]),
        ((49, 100, 100), []),
        ((100, 100, 40, 100), [2]),
        ((100, 100, 40, 40, 40, 40), [2, 3]),
        ((30, 30, 90, 30, 30), []),
        ((), []),
        ((7,), []),
    ],
)
def test_less_than_half_of_the_three_before_is_doubted_until_it_is_the_size(
    sizes: tuple[int, ...], expected: list[int]
):
    assert of(*sizes) == expected


@pytest.mark.parametrize(
    "other",
    [
        {"kind": Kind.WEIGHTS},
        {"kind": Kind.ADAPTER},
        {"kind": Kind.EXPORT},
        {"layout": "hf_trainer"},
        {"parts": (("optimizer", 5), ("weights", 5))},
        {"parts": (("dataloader", 10),)},
        {"evidence": Evidence.PARTIAL, "proof": None},
        {"flags": ("foreign",)},
    ],
)
def test_only_like_is_compared_with_like(other: dict[str, Any]):
    large = [saved(step, 100) for step in range(3)]
    assert doubted(*large, replace(saved(3, 10), **other)) == []
    small = [replace(saved(step, 1000), **other) for step in range(3)]
    assert doubted(*small, saved(3, 100)) == []


def test_each_part_is_compared_and_what_may_grow_is_not():
    parts = (("dataloader", 900), ("optimizer", 200), ("weights", 100))
    large = [saved(step, 1200, parts=parts) for step in range(3)]
    lost = saved(3, 1090, parts=(("dataloader", 900), ("optimizer", 90), ("weights", 100)))
    (*_, found) = doubt_small([*large, lost])
    assert (found.evidence, found.proof) == (Evidence.DOUBTFUL, None)
    assert found.why == "its part optimizer takes 90 B, less than half of what those before it have"
    assert doubted(*large, saved(3, 301, parts=(("dataloader", 1), ("optimizer", 200), ("weights", 100)))) == []


sizes = st.lists(st.integers(1, 1000), max_size=9)


@given(sizes, st.randoms())
def test_the_order_of_checkpoints_does_not_matter(held: list[int], rng):
    ordered = [saved(step, size) for step, size in enumerate(held)]
    mixed = rng.sample(ordered, len(ordered))
    assert sorted(doubt_small(mixed), key=lambda c: c.step or 0) == doubt_small(ordered)


@given(st.integers(1, 1000), st.lists(st.floats(1, 2), max_size=9))
def test_sizes_within_a_factor_of_two_are_never_doubted(least: int, factors: list[float]):
    assert of(*(int(least * factor) for factor in factors)) == []


@given(st.lists(st.integers(500, 1000), min_size=1, max_size=6), st.lists(st.integers(1, 249), min_size=1, max_size=2))
def test_a_doubt_outlives_those_that_are_dropped(large: list[int], small: list[int]):
    """Or else the small one would be the newest whole one at the next plan, and the last large one would go."""
    every = [saved(step, size) for step, size in enumerate([*large, *small])]
    tail = {c.step for c in every[len(large) :]}
    for kept in range(len(large)):
        assert tail <= set(doubted(*every[kept:]))


def test_a_newest_one_that_lost_most_of_its_bytes_is_told_by_the_survey():
    files: dict[str, bytes | int] = {}
    for step, size in ((10, 900), (20, 910), (30, 890), (40, 300)):
        files |= {f"r/checkpoint-{step}/model.safetensors": size, f"r/checkpoint-{step}/optimizer.pt": 1800}
        files[f"r/checkpoint-{step}/trainer_state.json"] = b"{}"
    del files["r/checkpoint-10/optimizer.pt"]
    (run,) = survey("s", tree(files), memory(files), Conventions())
    assert {c.step: c.evidence.value for c in run.checkpoints} == {
        10: "proven", 20: "proven", 30: "proven", 40: "doubtful",
    }  # fmt: skip
