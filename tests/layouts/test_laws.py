"""Whatever a tree looks like: a survey never raises, depends on no order, claims nothing twice, points nowhere else."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.listing import Flavour, Folder, Listing
from lifecycle.core.model import Evidence, Run, Shape
from lifecycle.layouts.conventions import Conventions, Declared
from lifecycle.layouts.registry import survey
from tests.layouts.trees import memory, tree

DIRS = [
    "runs", "a", "checkpoints", "checkpoint", "checkpoint-1", "checkpoint-20", "checkpoint-007", "checkpoint_3",
    "step-4",
    "iter_0000005", "iter_0000006", "release", "global_step7", "latest", "mp_rank_00", "mp_rank_00_001", "weights",
    "context",
    "m--step=8", "m--val_loss=1.5-epoch=0-last", "epoch=1-step=2.ckpt", "epoch=0-val", "ep0-ba9", "200", "300",
    "default",
    "d", "ocdbt.process_0", "todelete", "_todelete", "7.orbax-checkpoint-tmp", "1", "variables", "pytorch_model_fsdp_0",
    "optimizer_0", "unet", "sharded", "zero", "w", ".git", "models--gpt2", "tmp-checkpoint-3",
    "99999999999999999999999", "step500", "step_5", "step-4000", "step-000200", "global_step_7", "epoch_1", "trainer",
    "epoch_0_step_3", "actor", "critic", "policy", "model", "optim", "model_and_optim", "train", "weight", "fold_0",
    "checkpoint_2026-01-01_00-00-01.000000", "checkpoint_000001", "CKPT+x", "target.w", "huggingface", "ba7", "final",
    "checkpoint-99999999999999999999999", "x\u202ey", "\udcff", "a\x10b", "checkpoint-\u0663",
]  # fmt: skip
NAMES = [
    "trainer_state.json", "model.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json",
    "pytorch_model.bin", "optimizer.pt", "optimizer.bin", "rng_state_0.pth", "rng_state_1.pth", "random_states_0.pkl",
    "adapter_config.json", "adapter_model.safetensors", "checkpoint-is-incomplete.txt", "training_args.bin",
    ".metadata", ".metadata.tmp", "__0_0.distcp", "__1_0.distcp", "metadata.json", "common.pt", "model_optim_rng.pt",
    "latest_checkpointed_iteration.txt", "latest", "mp_rank_00_model_states.pt",
    "zero_pp_rank_0_mp_rank_00_model_states.pt",
    "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "fp32.pt", "m--step=8-unfinished", "epoch=1-step=2.ckpt",
    "epoch=3.ckpt", "last.ckpt", "acc=-0.25.ckpt", "epoch02-loss0.1.ckpt", "model_final.ckpt", "x.ckpt.bak", "meta.pt",
    "ep0-ba9-rank0.pt", "ep0-ba9-rank1.pt", "latest-rank0.pt.symlink", "_CHECKPOINT_METADATA", "_METADATA",
    "manifest.ocdbt", "commit_success.txt", "ckpt-5.index", "ckpt-5.data-00000-of-00001", "ckpt-6.data-00001-of-00002",
    "checkpoint", "saved_model.pb", "hparams.json", "config.json", "HOLD", "step-4.lease", "DONE", "flat-3-shard0.pt",
    "model_0000004.pth", "model_final.pth", "last_checkpoint", "epoch_1.pth", "best_x_epoch_1.pth", "last.pth.tar",
    "checkpoint-1.pth.tar", "model_best.pth.tar", "last.pt", "best.pt", "epoch1.pt", "checkpoint_latest.pth",
    "1epoch.pth", "checkpoint.pth", "x.ave_2best.pth", "checkpoint_9.pth", "best_model.pth", "CKPT.yaml", "w.ckpt",
    "checkpoint1.pt", "checkpoint_last.pt", "checkpoint2-shard0.pt", "checkpoint2-shard1.pt", "ckpt.pt",
    "model_000100.pt", "meta_000100.json", "optim_000100_rank0.pt", "lit_model.pth", "model_config.yaml",
    "rl_7_steps.zip", "rl_replay_buffer_7_steps.pkl", "rl_vecnormalize_7_steps.zip", "m-01-1.5.keras", "rank_0.pt",
    "m-02-1.5.keras", "epoch_1.weights.h5", "epoch_2.weights.h5", "checkpoint_100", "training_info.json", "STABLE",
    "data.pt", "model_world_size_2_rank_0.pt", ".incomplete", "losses.json", ".metadata.json", "rank0.pt",
    "PINNED", "dlrover_latest.txt", ".snapshot_metadata", "result.json", "recipe_state.pt", ".nfs01",
    "flat-3-shard1.pt", "flat-3.tmp", "pyvenv.cfg", "checkpoint_manager_snapshot.json", "a\nb", "\udcfe.ckpt",
]  # fmt: skip
HOSTILE = [
    "..", "../..", "../../../etc/passwd", "/", "/etc/passwd", "a\0b", "x" * 1_000_000, "../" * 200_000, "", ".", "loop",
    "s3://other/key", "s3://bucket/../../x", "s3://bucket/runs/a", "file:///etc", "1" * 5000, "\n", "//", "a/../../b",
    "checkpoint-1", "runs/checkpoint-20", "./checkpoint-1/../checkpoint-20", "99999999999999999999", "iter_0000005",
]  # fmt: skip
LINKS = ["last.ckpt", "loop", "latest-rank0.pt", "best", "iter_0000009"]
texts = st.sampled_from(HOSTILE)
contents = st.one_of(
    st.integers(0, 3),
    texts.map(lambda t: t.encode("utf-8", "surrogateescape")),
    texts.map(lambda t: f'{{"best_model_checkpoint": "{t}", "global_step": 1}}'.encode()),
    texts.map(lambda t: f'{{"ckpt_path": "{t}", "base_model_name_or_path": "{t}"}}'.encode()),
    texts.map(lambda t: f'model_checkpoint_path: "{t}"\nall_model_checkpoint_paths: "{t}"\n'.encode()),
    st.sampled_from([b'{"global_step": NaN, "epoch": Infinity, "log_history": [1, {"step": []}]}', b"[" * 100_000]),
    st.sampled_from([b"PK\5\6" + b"\0" * 18, b"PK\3\4", b'{"commit_timestamp_nsecs": null}', b'{"weight_map": 3}']),
    st.binary(max_size=40),
)
paths = st.lists(st.sampled_from(DIRS), max_size=5).map("/".join)


def below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


@st.composite
def trees(draw: st.DrawFn) -> tuple[Listing, dict[str, bytes | int], tuple[str, ...]]:
    dirs = draw(st.lists(paths, max_size=8))
    places = st.sampled_from([*dirs, ""])
    files = {
        below(place, name): content
        for place, name, content in draw(st.lists(st.tuples(places, st.sampled_from(NAMES), contents), max_size=30))
    }
    links = {
        below(place, name): text
        for place, name, text in draw(
            st.lists(
                st.tuples(
                    places, st.sampled_from(["last.ckpt", "loop", "latest-rank0.pt", "best", "iter_0000009"]), texts
                ),
                max_size=5,
            )
        )
    }
    times = {key: draw(st.integers(0, 3)) for key in files}
    flavour = draw(st.sampled_from(list(Flavour)))
    listing = tree(files, dirs=tuple(d for d in dirs if d), links=links, times=times, flavour=flavour)
    if draw(st.booleans()):
        listing.folders[draw(st.sampled_from(sorted(listing.folders)))].error = "permission denied"
    failing = tuple(draw(st.lists(st.sampled_from(sorted(files)), max_size=3))) if files else ()
    return listing, files, failing


CONVENTIONS = Conventions(
    declared=(
        Declared("flat", "flat-{step}", Shape.GROUP),
        Declared("mine", "step-{step}", proof="DONE", runs=("runs/**",)),
    ),
    ignore=("a/**",),
    hold_files=frozenset({"HOLD"}),
    lease_suffix=".lease",
)
quick = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def look(listing: Listing, files: dict[str, bytes | int], failing: tuple[str, ...]) -> list[Run]:
    return survey("s", listing, memory(files, failing), CONVENTIONS, url="s3://bucket")


def shuffled(listing: Listing, seed: int) -> Listing:
    rng = random.Random(seed)
    folders = []
    for folder in listing.folders.values():
        order = list(range(len(folder.names)))
        rng.shuffle(order)
        dirs, links = list(folder.dirs), list(folder.links.items())
        rng.shuffle(dirs)
        rng.shuffle(links)
        columns: dict[str, Any] = {
            c: [getattr(folder, c)[i] for i in order] for c in ("names", "sizes", "mtimes_ns", "tokens")
        }
        folders.append(replace(folder, dirs=dirs, links=dict(links), **columns))
    rng.shuffle(folders)
    return Listing(listing.flavour, {f.path: f for f in folders}, listing.complete)


@quick
@given(trees(), st.integers())
def test_the_order_of_folders_and_names_does_not_matter(case, seed):
    listing, files, failing = case
    assert repr(look(listing, files, failing)) == repr(look(shuffled(listing, seed), files, failing))


@quick
@given(trees())
def test_no_key_belongs_to_two_checkpoints(case):
    runs = look(*case)
    owned = [key for run in runs for c in run.checkpoints for key in (c.members or (c.key,))]
    assert len(owned) == len(set(owned))
    directories = {c.key for run in runs for c in run.checkpoints if c.shape is Shape.DIR}
    for key in owned:
        assert not any(key.startswith(d + "/") for d in directories), key
    keys = [c.key for run in runs for c in run.checkpoints]
    assert len(keys) == len(set(keys))


@quick
@given(trees())
def test_no_pointer_leads_out_of_the_store(case):
    for run in look(*case):
        for pointer in run.pointers:
            if pointer.target is None:
                assert pointer.flags, "a pointer that leads nowhere says why"
                continue
            store, _, key = pointer.target.partition(":")
            assert store == "s" and key
            assert not {"", ".", ".."} & set(key.split("/"))
            assert "\0" not in key


@quick
@given(trees())
def test_runs_are_sorted_and_say_what_they_could_not_see(case):
    listing, files, failing = case
    runs = look(listing, files, failing)
    assert [run.path for run in runs] == sorted(run.path for run in runs)
    for run in runs:
        assert [c.key for c in run.checkpoints] == sorted(c.key for c in run.checkpoints)
        unlisted = [f.path for f in listing.below(run.path) if f.error]
        assert not (unlisted and run.complete)
        for c in run.checkpoints:
            assert c.proof is None or c.evidence is Evidence.PROVEN
            assert c.step is None or 0 <= c.step < 2**63
            assert c.why
            assert sum(size for _, size in c.parts) == c.bytes


@quick
@given(trees())
def test_a_cut_listing_makes_no_run_complete(case):
    listing, files, failing = case
    listing = Listing(listing.flavour, listing.folders, complete=False)
    assert not any(run.complete for run in look(listing, files, failing))


def test_a_missing_root_is_nothing():
    assert survey("s", Listing(Flavour.POSIX, {}), None, Conventions()) == []
    assert survey("s", Listing(Flavour.POSIX, {"": Folder("")}), None, Conventions(), "no/such") == []
