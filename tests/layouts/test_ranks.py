"""Units whose files lie in the directories of ranks: one for all, and whole only when every rank's file is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.listing import Flavour, Upload
from lifecycle.core.model import Checkpoint, Run, Shape
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from tests.layouts.test_memory import checkpoint
from tests.layouts.test_rows import zipped
from tests.layouts.trees import memory, reader, scan, tree

Files = dict[str, bytes | int]
ONE, TWO = "m--val_loss=2.31-step=1000.ckpt", "m--val_loss=2.20-step=2000.ckpt"
TENSOR = ("mp_rank_00", "mp_rank_01", "mp_rank_02")
BOTH = tuple(f"tp_rank_0{t}_pp_rank_00{p}" for t in (0, 1) for p in (0, 1))
SHARDS = ("fsdp_shard_00000", "fsdp_shard_00001")


def spread(ranks: tuple[str, ...], *names: str, content: bytes | int = b"") -> Files:
    return {f"c/{rank}/{name}": content or checkpoint(7) for rank in ranks for name in names}


def look(files: Files, **more) -> list[Run]:
    return survey("s", tree(files, **more), memory(files), Conventions())


def units(files: Files, **more) -> dict[str, Checkpoint]:
    return {c.name: c for run in look(files, **more) for c in run.checkpoints}


@pytest.mark.parametrize("ranks", [TENSOR, BOTH, SHARDS])
@pytest.mark.parametrize("flavour", list(Flavour))
def test_the_files_of_all_ranks_are_one_unit(ranks: tuple[str, ...], flavour: Flavour):
    files = spread(ranks, ONE)
    listing = tree(files, flavour=flavour)
    (run,) = survey("s", listing, memory(files), Conventions())
    (found,) = run.checkpoints
    assert (run.path, found.key, found.shape, found.step) == ("c", f"c/{ONE}", Shape.GROUP, 1000)
    assert (found.evidence.value, found.metrics, found.files) == ("whole", (("val_loss", 2.31),), len(ranks))
    assert found.members == tuple(f"c/{rank}/{ONE}" for rank in ranks)
    assert found.bytes == sum(size for _, size in found.parts) == len(ranks) * len(checkpoint(7))
    seen = listing.unit(found.key, found.members)
    assert found.fingerprint == seen.fingerprint, "a fresh look sees what the scan saw"


@pytest.mark.parametrize("ranks", [TENSOR, BOTH, SHARDS])
def test_each_rank_is_missed(ranks: tuple[str, ...]):
    files = spread(ranks, ONE, TWO)
    for rank in ranks:
        for gone in ({f"c/{rank}/{TWO}"}, {f"c/{rank}/{name}" for name in (ONE, TWO)}):
            left = {key: held for key, held in files.items() if key not in gone}
            found = units(left, dirs=(f"c/{rank}",))
            last = rank == ranks[-1] and len(gone) == 2 and len(ranks) > 2 and ranks is not BOTH
            if last:  # two units with the same ranks are a world of that size
                assert found[TWO].evidence.value == "whole"
                continue
            assert (found[TWO].evidence.value, found[TWO].flags) == ("partial", ("members_missing",)), gone
            assert found[ONE].evidence.value == ("whole" if len(gone) == 1 else "partial")


def test_a_world_of_another_size_is_no_loss():
    files = spread(TENSOR, ONE, "m--step=500.ckpt") | spread(TENSOR[:2], TWO, "m--step=3000.ckpt")
    assert {c.evidence.value for c in units(files).values()} == {"whole"}


def test_markers_and_cut_and_empty_files_are_told():
    files = spread(TENSOR, ONE, TWO)
    marker: Files = {"c/m--val_loss=2.20-step=2000-unfinished": 0}
    assert units(files | marker)[TWO].evidence.value == "writing"
    assert units(files | marker)[ONE].evidence.value == "whole"
    cut = units(files | {f"c/mp_rank_01/{TWO}": checkpoint(7)[:-9]})[TWO]
    assert (cut.evidence.value, cut.why.partition(":")[0]) == ("partial", f"mp_rank_01/{TWO}")
    empty = units(files | {f"c/mp_rank_02/{TWO}": 0})[TWO]
    assert (empty.evidence.value, empty.flags) == ("partial", ("empty_shard",))
    blind = survey("s", tree(files), None, Conventions())
    assert {c.evidence.value for run in blind for c in run.checkpoints} == {"doubtful"}


def test_the_marker_speaks_of_a_single_file_too():
    files: Files = {f"c/{ONE}": zipped(), f"c/{TWO}": zipped(), "c/m--val_loss=2.20-step=2000-unfinished": 0}
    assert {name: c.evidence.value for name, c in units(files).items()} == {ONE: "proven", TWO: "writing"}


def test_the_last_one_protects_itself():
    last = ONE.replace(".ckpt", "-last.ckpt")
    (run,) = look(spread(TENSOR, ONE, last))
    assert [(p.role.value, p.target, p.on_dangle.value) for p in run.pointers] == [("latest", f"s:c/{last}", "restart")]


def test_what_is_no_unit_is_left_alone():
    odd = spread(TENSOR, "rng.pt", "m--step=1-no-optim.ckpt", "x.ckpt.tmp") | {"c/ranks/mp_rank_0/x.ckpt": 9}
    assert units(odd) == {}
    assert {c.layout for c in units(spread(TENSOR, ONE) | {f"c/{ONE}": zipped()}).values()} == {"lightning"}
    assert units(spread(TENSOR, ONE), links={f"c/{ONE}": f"mp_rank_00/{ONE}"}) == {}


def test_a_rank_that_cannot_be_listed_keeps_the_run_from_being_judged():
    listing = tree(spread(TENSOR, ONE))
    listing.folders["c/mp_rank_01"].error = "permission denied"
    (run,) = survey("s", listing, memory(spread(TENSOR, ONE)), Conventions())
    assert not run.complete
    assert [c.evidence.value for c in run.checkpoints] == ["partial"]


def test_open_uploads_are_told_of_the_unit():
    listing = tree(spread(TENSOR, ONE), flavour=Flavour.OBJECT)
    listing.folders["c/mp_rank_01"].uploads[TWO] = Upload("u", 77)
    (run,) = survey("s", listing, memory(spread(TENSOR, ONE)), Conventions())
    assert run.writing == ((f"c/{TWO}", 77),)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from([*TENSOR, *BOTH, "mp_rank_99_999"]), st.sampled_from([ONE, TWO, "x.pt"])),
        st.sampled_from([0, 9]),
        max_size=12,
    )
)
def test_whatever_the_ranks_hold_every_file_belongs_to_one_unit_at_most(held: dict[tuple[str, str], int]):
    files: Files = {f"c/{rank}/{name}": size for (rank, name), size in held.items()}
    found = [member for c in units(files).values() for member in c.members]
    assert len(found) == len(set(found))
    assert set(found) == {key for key in files if key.endswith(".ckpt")}


def test_the_sample_has_two_units(samples: Path):
    root = samples / "_skeletons" / "nemo1"
    runs = survey("s", scan(root), reader(root), Conventions())
    assert [len(c.members) for run in runs for c in run.checkpoints] == [2, 2]
