"""A rank's file that several checkpoints running have lost: bytes tell a loss from a smaller world."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.policy import Last, Limits, Match, Policy
from lifecycle.core.protect import Around
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from tests.layouts.frameworks import lines, stored, torch_file
from tests.layouts.trees import memory, tree

Files = dict[str, bytes | int]
DAY = 86_400 * 10**9
SAVED = torch_file("state")


def portion(size: int) -> bytes:
    """A torch file with about so many bytes of tensors."""
    return stored({"archive/data.pkl": b"\x80\x02}.", "archive/data/0": b"x" * size})


def nanochat(step: int, ranks: Iterable[int], size: int = 6000) -> Files:
    return {
        f"g/model_{step:06d}.pt": torch_file(),
        f"g/meta_{step:06d}.json": lines({"step": step}),
        **{f"g/optim_{step:06d}_rank{rank}.pt": portion(size) for rank in ranks},
    }


def deepspeed(step: int, ranks: Iterable[int], size: int = 6000) -> Files:
    at = f"g/global_step{step}"
    shards = {f"{at}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": size for rank in ranks}
    return {f"{at}/mp_rank_00_model_states.pt": 500, **shards}


def fairseq(step: int, ranks: Iterable[int], size: int = 6000) -> Files:
    names = {"model": b"", "args": b"", "extra_state": b""}
    data = b"\x80\x02}(" + b"".join(b"X" + len(n).to_bytes(4, "little") + n.encode() + b"N" for n in names) + b"u."
    held = stored({"archive/data.pkl": data, "archive/data/0": b"x" * size})
    return {f"g/checkpoint_1_{step}-shard{rank}.pt": held for rank in ranks}


def composer(step: int, ranks: Iterable[int], size: int = 6000) -> Files:
    return {f"g/ep0-ba{step}-rank{rank}.pt": portion(size) for rank in ranks}


def olmo(step: int, ranks: Iterable[int], size: int = 6000) -> Files:
    shards = {f"g/step{step}/{part}/rank{rank}.pt": size for rank in ranks for part in ("model", "optim")}
    return {f"g/step{step}/config.yaml": 1, **shards, **{f"g/step{step}/train/rank{rank}.pt": 9 for rank in ranks}}


def megatron(step: int, ranks: Iterable[int], size: int = 6000) -> Files:
    return {
        **{f"g/iter_{step:07d}/mp_rank_{rank:02d}/model_optim_rng.pt": size for rank in ranks},
        "g/latest_checkpointed_iteration.txt": b"4",
    }


FAMILIES: dict[str, Callable[..., Files]] = {
    f.__name__: f for f in (nanochat, deepspeed, fairseq, composer, olmo, megatron)
}


def judged(files: Files) -> dict[int, tuple[str, str]]:
    runs = survey("s", tree(files), memory(files), Conventions())
    return {c.step or 0: (c.evidence.value, c.why) for run in runs for c in run.checkpoints}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_two_in_a_row_have_lost_is_missed(family: str):
    make = FAMILIES[family]
    files = make(1, range(4)) | make(2, range(4)) | make(3, range(3)) | make(4, range(3))
    found = judged(files)
    assert {found[step][0] for step in (1, 2)} <= {"whole", "proven"}
    for step in (3, 4):
        assert found[step][0] == "doubtful", found
        assert "whose bytes are in none of its own" in found[step][1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("world", [(4, 2), (4, 3), (2, 4), (64, 63)])
def test_a_world_of_another_size_is_no_loss(family: str, world: tuple[int, int]):
    make, (before, after) = FAMILIES[family], world
    sizes = {ranks: 240_000 // ranks for ranks in world}
    files = make(1, range(before), sizes[before]) | make(2, range(before), sizes[before])
    files |= make(3, range(after), sizes[after]) | make(4, range(after), sizes[after])
    assert {evidence for evidence, _ in judged(files).values()} <= {"whole", "proven"}


def test_the_last_that_has_all_its_ranks_stays():
    """As a plan with bad intentions found it: both of the newest have lost one rank's optimizer."""
    files = nanochat(1, range(4)) | nanochat(2, range(4)) | nanochat(3, range(3)) | nanochat(4, range(3))
    times = {key: (100 + int("".join(c for c in key.split("_")[1] if c.isdigit()))) * DAY for key in files}
    runs = survey("s", tree(files, times=times), memory(files), Conventions())
    judgement = evaluate(tuple(runs), [Policy("p", Match(), (Last(1),), limits=Limits(grace_s=0))], Around(200 * DAY))
    assert [d.checkpoint.step for d in judgement.decisions if d.keep] == [2, 3, 4]


@given(st.integers(2, 9), st.data())
def test_whichever_ranks_are_lost_none_that_lacks_them_stands_for_one_that_has_them(world: int, data: st.DataObject):
    steps = range(1, 5)
    lost = {step: data.draw(st.integers(0, world - 1)) for step in steps}
    files = {key: held for step in steps for key, held in deepspeed(step, range(world - lost[step])).items()}
    found = judged(files)
    most = min(lost.values())
    assert {step for step, (evidence, _) in found.items() if evidence == "whole"} == {
        step for step in steps if lost[step] == most
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_a_first_save_without_momentum_hides_no_loss(family: str):
    make = FAMILIES[family]
    files = make(1, range(4), 100) | make(2, range(4)) | make(3, range(3)) | make(4, range(3))
    found = judged(files)
    assert [found[step][0] for step in (3, 4)] == ["doubtful"] * 2
