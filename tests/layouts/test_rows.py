"""What each row says of small trees: what proves a unit, what makes it partial, and what is left alone."""

import io
import zipfile
from collections.abc import Mapping

import pytest

from lifecycle.core.listing import Flavour, Folder, Listing, Upload
from lifecycle.core.model import Checkpoint, Kind, PointerRole, Run, Shape
from lifecycle.layouts.conventions import Conventions, Declared, MetricSource
from lifecycle.layouts.registry import survey
from tests.layouts.trees import memory, tree

Files = Mapping[str, bytes | int]


def look(files: Files, conventions: Conventions | None = None, failing: tuple[str, ...] = (), **more) -> list[Run]:
    listing = tree(files, **more)
    return survey("s", listing, memory(files, failing), conventions or Conventions(), url="s3://bucket")


def units(runs: list[Run]) -> dict[str, Checkpoint]:
    return {c.key: c for run in runs for c in run.checkpoints}


def evidence(files: Files, **more) -> dict[str, str]:
    return {key: c.evidence.value for key, c in units(look(files, **more)).items()}


def zipped(cut: int = 0) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
    return data.getvalue()[: -cut or None]


HF: dict[str, bytes | int] = {"r/checkpoint-5/trainer_state.json": b"hello", "r/checkpoint-5/model.safetensors": 50}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "proven"),
        ({"trainer_state.json": 0}, "partial"),
        ({"trainer_state.json": None}, "partial"),
        ({"model.safetensors": 0}, "partial"),
        ({"model.safetensors": None}, "partial"),
        ({"trainer_state.json": b'{"global_step": 5}'}, "proven"),
        ({"trainer_state.json": b'{"global_step": 6}'}, "doubtful"),
        ({"checkpoint-is-incomplete.txt": 3}, "writing"),
        ({"rng_state_0.pth": 1, "rng_state_2.pth": 1}, "partial"),
        ({"model-00001-of-00002.safetensors": 5}, "partial"),
        ({"model-00001-of-00002.safetensors": 5, "model-00002-of-00002.safetensors": 5}, "proven"),
        ({"model.safetensors.index.json": b'{"weight_map": {"a": "gone.safetensors"}}'}, "partial"),
        ({"pytorch_model_fsdp_0/__0_0.distcp": 5}, "partial"),
        ({"pytorch_model_fsdp_0/__0_0.distcp": 5, "pytorch_model_fsdp_0/.metadata": 5}, "proven"),
        ({"global_step5/zero_pp_rank_0_mp_rank_00_model_states.pt": 5}, "partial"),
    ],
)
def test_trainer_evidence(change: dict[str, bytes | int | None], expected: str):
    files = HF | {f"r/checkpoint-5/{name}": content for name, content in change.items()}
    kept = {key: content for key, content in files.items() if content is not None}
    assert evidence(kept) == {"r/checkpoint-5": expected}


def test_a_failing_read_is_never_proof():
    found = units(look(HF, failing=("r/checkpoint-5/trainer_state.json",)))["r/checkpoint-5"]
    assert (found.evidence.value, found.proof, found.flags) == ("doubtful", None, ("metadata_unavailable",))
    files = {"ck/epoch=1.ckpt": zipped()}
    assert evidence(files, failing=("ck/epoch=1.ckpt",)) == {"ck/epoch=1.ckpt": "doubtful"}


def test_metrics_come_from_the_entry_of_the_step_and_keep_what_is_not_finite():
    state = (
        b'{"global_step": 5, "eval_acc": Infinity, "log_history": [{"step": 4, "x": 1}, {"step": 5, "eval_loss": NaN}]}'
    )
    found = units(look(HF | {"r/checkpoint-5/trainer_state.json": state}))["r/checkpoint-5"]
    assert str(found.metrics) == "(('eval_acc', inf), ('eval_loss', nan))"
    assert found.kind is Kind.WEIGHTS


def test_an_empty_directory_is_a_save_that_has_begun_where_the_name_is_distinct():
    found = units(look(HF, dirs=("r/checkpoint-6", "g/iter_0000030", "y/2024", "o/step-3", "z/checkpoint_4")))
    assert {k: (c.evidence.value, c.files) for k, c in found.items() if k != "r/checkpoint-5"} == {
        "r/checkpoint-6": ("partial", 0),
        "g/iter_0000030": ("partial", 0),
    }
    steps = evidence({"o/step-2/__0_0.distcp": 5, "o/step-2/.metadata": 1}, dirs=("o/step-3",))
    assert steps == {"o/step-2": "proven", "o/step-3": "partial"}


def test_only_the_newest_trainer_state_names_the_best():
    old = b'{"best_model_checkpoint": "/elsewhere/checkpoint-1", "global_step": 5}'
    new = b'{"best_model_checkpoint": "r/checkpoint-5", "global_step": 10}'
    files = HF | {
        "r/checkpoint-5/trainer_state.json": old,
        "r/checkpoint-10/trainer_state.json": new,
        "r/checkpoint-10/model.safetensors": 5,
    }
    (run,) = look(files)
    assert [(p.role, p.target) for p in run.pointers] == [(PointerRole.BEST, "s:r/checkpoint-5")]


def test_an_adapter_needs_its_base_where_that_is_in_the_store():
    files = HF | {
        "a/checkpoint-1/trainer_state.json": b"{}",
        "a/checkpoint-1/adapter_model.safetensors": 5,
        "a/checkpoint-1/adapter_config.json": b'{"base_model_name_or_path": "s3://bucket/r/checkpoint-5/"}',
    }
    found = units(look(files))["a/checkpoint-1"]
    assert (found.kind, found.needs) == (Kind.ADAPTER, ("r/checkpoint-5",))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"model.safetensors": 5, "random_states_0.pkl": 5}, "whole"),
        ({"model.safetensors": 0, "random_states_0.pkl": 5}, "partial"),
        ({"random_states_0.pkl": 5}, "partial"),
        ({"model.safetensors": 5, "random_states_0.pkl": 5, "random_states_2.pkl": 5}, "partial"),
        ({"model.safetensors": 5, "random_states_0.pkl": 0}, "partial"),
        ({"model.safetensors": 5, "optimizer.bin": 5}, "partial"),
        ({"model.safetensors": (2).to_bytes(8, "little") + b"{}", "random_states_0.pkl": 5}, "whole"),
    ],
)
def test_accelerate_evidence(files: Files, expected: str):
    assert evidence({f"p/checkpoint_3/{k}": v for k, v in files.items()}) == {"p/checkpoint_3": expected}


def test_safetensors_that_promise_more_than_they_hold_are_cut_short():
    header = b'{"w": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}'
    data = len(header).to_bytes(8, "little") + header
    files = {"p/checkpoint_3/random_states_0.pkl": 5}
    assert evidence(files | {"p/checkpoint_3/model.safetensors": data + b"x" * 36}) == {"p/checkpoint_3": "whole"}
    assert evidence(files | {"p/checkpoint_3/model.safetensors": data + b"x" * 35}) == {"p/checkpoint_3": "partial"}


def test_lightning_files():
    files: dict[str, bytes | int] = {
        "ck/epoch=1-step=7-val_loss=0.5-v2.ckpt": zipped(),
        "ck/epoch=2.ckpt": zipped(cut=30),
        "ck/epoch=3.ckpt": 0,
        "ck/last.ckpt": zipped(),
        "ck/model_final.ckpt": zipped(),
        "ck/epoch=1.ckpt.bak": zipped(),
        "sd/last.ckpt": zipped(),
        "sd/v1-5-pruned.ckpt": zipped(),
    }
    (run,) = look(files)
    assert {c.name: c.evidence.value for c in run.checkpoints} == {
        "epoch=1-step=7-val_loss=0.5-v2.ckpt": "proven",
        "epoch=2.ckpt": "partial",
        "epoch=3.ckpt": "partial",
        "last.ckpt": "proven",
    }
    first = run.checkpoints[0]
    assert (first.step, first.epoch, first.metrics) == (7, 1.0, (("val_loss", 0.5),))
    assert [(p.role, p.target) for p in run.pointers] == [(PointerRole.LATEST, "s:ck/last.ckpt")]


def test_a_directory_of_a_sweep_is_no_metric_with_a_slash():
    files = {"m/lr=0.1,model=gpt-small/epoch=1.ckpt": zipped(), "m/epoch=0-val/acc=-0.5.ckpt": zipped()}
    assert {run.path for run in look(files)} == {"m/lr=0.1,model=gpt-small", "m"}


def test_dcp_shards_newer_than_the_metadata_by_more_than_clocks_differ_stand_for_nothing():
    files = {"o/step-1/.metadata": 9, "o/step-1/__0_0.distcp": 9}
    assert evidence(files, times={"o/step-1/__0_0.distcp": 2, "o/step-1/.metadata": 2}) == {"o/step-1": "proven"}
    for seconds, seen in ((0.02, "proven"), (2, "proven"), (2.001, "doubtful"), (3, "doubtful"), (86_400, "doubtful")):
        times = {"o/step-1/__0_0.distcp": 9 * 10**9 + int(seconds * 10**9), "o/step-1/.metadata": 9 * 10**9}
        assert evidence(files, times=times) == {"o/step-1": seen}, f"{seconds} s"
    assert evidence({"o/step-1/__0_0.distcp": 9}) == {"o/step-1": "partial"}
    assert evidence({"o/step-1/.metadata": 9, "o/step-1/__0_0.distcp": 0}) == {"o/step-1": "partial"}


def test_parts_of_bigger_units_are_no_units():
    for name in ("weights", "model_and_optim", "optim", "optimizer_0", "pytorch_model_fsdp_0"):
        assert evidence({f"x/{name}/__0_0.distcp": 5, f"x/{name}/.metadata": 5}) == {}
    assert evidence({"x/final/__0_0.distcp": 5, "x/final/.metadata": 5}) == {"x/final": "proven"}


def test_megatron():
    done = {"g/iter_0000010/metadata.json": 2, "g/iter_0000010/.metadata": 9, "g/iter_0000010/__0_0.distcp": 9}
    files = done | {"g/iter_0000020/__0_0.distcp": 31, "g/iter_0000030/.metadata": 1, "g/iter_0000030/__0_0.distcp": 1}
    assert evidence(files) == {"g/iter_0000010": "proven", "g/iter_0000020": "partial", "g/iter_0000030": "partial"}
    plain: dict[str, bytes | int] = {"g/iter_0000030/.metadata": 1, "g/iter_0000030/__0_0.distcp": 1}
    tracker: dict[str, bytes | int] = {"g/latest_checkpointed_iteration.txt": b"30\n"}
    assert evidence(plain) == {"g/iter_0000030": "doubtful"}
    assert evidence(plain | tracker) == {"g/iter_0000030": "proven"}


def test_legacy_megatron_needs_every_rank_and_the_tracker():
    files: dict[str, bytes | int] = {
        f"g/iter_000000{n}/mp_rank_0{r}/model_optim_rng.pt": 5 for n in (1, 2, 3) for r in (0, 1)
    }
    del files["g/iter_0000003/mp_rank_01/model_optim_rng.pt"]
    files["g/latest_checkpointed_iteration.txt"] = b"1"
    found = units(look(files))
    assert {k: c.evidence.value for k, c in found.items()} == {
        "g/iter_0000001": "whole",
        "g/iter_0000002": "doubtful",
        "g/iter_0000003": "doubtful",
    }
    traps = {"g/iter_0000004/mp_rank_00.pth": 5, "g/iter_0000005/mp_rank_00/train_dataloader_dprank000.pt": 5}
    assert evidence(traps) == {}


def test_the_release_of_megatron_is_pinned():
    (run,) = look({"g/release/mp_rank_00/model_optim_rng.pt": 5})
    assert [(p.role, p.target) for p in run.pointers] == [(PointerRole.PIN, "s:g/release")]


OPTIM, STATES = "bf16_zero_pp_rank_{}_mp_rank_00_optim_states.pt", "zero_pp_rank_{}_mp_rank_00_model_states.pt"


def test_deepspeed_needs_model_and_optimizer_states_of_every_rank():
    both = [name.format(rank) for name in (OPTIM, STATES) for rank in (0, 1)]
    files: dict[str, bytes | int] = {f"d/step_50/{name}": 40 for name in both}
    files |= {f"d/step_100/{name}": 40 for name in both if name != STATES.format(1)}
    files |= {f"d/step_150/{name}": 40 for name in both if "_0_" in name}
    files["d/latest"] = b"step_100"
    found = units(look(files))
    assert {k: c.evidence.value for k, c in found.items()} == {
        "d/step_50": "whole",
        "d/step_100": "partial",
        "d/step_150": "doubtful",
    }
    assert found["d/step_50"].step == 50
    files["d/latest"] = b"step_50"
    assert evidence(files)["d/step_50"] == "proven"


def test_nemo_is_not_complete_while_its_sibling_stands():
    files = {"c/m--step=1/weights/w.distcp": 90, "c/m--step=2-last/weights/__0_0.distcp": 9}
    assert evidence(files) == {"c/m--step=1": "whole", "c/m--step=2-last": "partial"}
    assert evidence(files | {"c/m--step=1-unfinished": 0})["c/m--step=1"] == "writing"


def test_orbax_on_an_object_store_needs_its_commit_file():
    files = {"run/900/default/_METADATA": 9, "run/900/commit_success.txt": 1, "run/1000/default/_METADATA": 9}
    found = units(look(files | {"run/1100/default/d/0": 9, "run/1100/_CHECKPOINT_METADATA": 2}, flavour=Flavour.OBJECT))
    assert {k: (c.evidence.value, c.flags) for k, c in found.items()} == {
        "run/900": ("proven", ()),
        "run/1000": ("doubtful", ("commit_marker_missing",)),
        "run/1100": ("partial", ()),
    }
    assert found["run/900"].proof == "run/900/commit_success.txt"


@pytest.mark.parametrize(
    "files",
    [
        {f"m/{n}/{file}": 9 for n in ("bert", "resnet", "vit") for file in (".metadata", "__0_0.distcp")},
        {
            f"m/{n}/{file}": 9
            for n in ("a", "b")
            for file in ("mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt")
        },
        {f"m/{n}.{end}": 9 for n in ("a", "b") for end in ("index", "data-00000-of-00001")} | {"m/checkpoint": b""},
    ],
    ids=("dcp", "deepspeed", "tensorflow"),
)
def test_what_tells_no_step_is_not_ranked_beside_others(files: dict[str, bytes | int]):
    """Three people's models in one directory: the newest is no successor of the others."""
    found = units(look(files))
    assert len(found) > 1
    assert {(c.evidence.value, c.flags) for c in found.values()} == {("doubtful", ("step_unknown",))}
    alone = min(found)
    (one,) = units(look({k: v for k, v in files.items() if k.startswith(alone) or k == "m/checkpoint"})).values()
    assert (one.evidence.value, one.flags) in {("proven", ()), ("whole", ())}


def test_exports_without_a_number_are_whole():
    found = units(look({f"serve/{n}/saved_model.pb": 9 for n in ("1", "2", "best")}))
    assert {c.evidence.value for c in found.values()} == {"whole"}


def test_doomed_steps_are_told_or_claimed_as_doomed():
    files = {"run/_todelete/50/commit_success.txt": 1, "run/100/commit_success.txt": 1}
    (run,) = look(files)
    assert {c.name: (c.evidence.value, c.flags) for c in run.checkpoints} == {
        "100": ("proven", ()),
        "_todelete/50": ("doomed", ("pending_delete",)),
    }
    (run,) = look(files, Conventions(ignore=("_todelete/**",)))
    assert [c.name for c in run.checkpoints] == ["100"]
    assert run.flags == (("run/_todelete/50", "pending_delete"),)


def test_tensorflow_groups():
    files: dict[str, bytes | int] = {
        "t/ckpt-1.index": 5, "t/ckpt-1.data-00000-of-00002": 5, "t/ckpt-1.data-00001-of-00002": 5,
        "t/ckpt-2.index": 5, "t/ckpt-2.data-00000-of-00002": 5, "t/ckpt-3.data-00000-of-00001": 5,
        "t/checkpoint": b'model_checkpoint_path: "/old/place/ckpt-2"\n', "f/faiss.index": 5,
    }  # fmt: skip
    (run,) = look(files)
    assert {c.name: c.evidence.value for c in run.checkpoints} == {
        "ckpt-1": "proven", "ckpt-2": "partial", "ckpt-3": "partial",
    }  # fmt: skip
    assert [p.target for p in run.pointers] == ["s:t/ckpt-2"]
    assert run.checkpoints[0].members[0] == "t/ckpt-1.data-00000-of-00002"
    assert run.checkpoints[0].proof == "t/ckpt-1.index"


def test_composer_groups_and_their_pointer():
    files: dict[str, bytes | int] = {
        "k/ep0-ba1-rank0.pt": 5, "k/ep0-ba1-rank1.pt": 5, "k/ep0-ba2-rank0.pt": 5, "k/ep0-ba2-rank1.pt": 0,
        "k/latest-rank0.pt.symlink": b"prefix/k/ep0-ba1-rank0.pt",
    }  # fmt: skip
    (run,) = look(files, flavour=Flavour.OBJECT)
    assert {c.name: (c.evidence.value, c.step) for c in run.checkpoints} == {
        "ep0-ba1-rank": ("whole", 1), "ep0-ba2-rank": ("partial", 2),
    }  # fmt: skip
    assert [p.target for p in run.pointers] == ["s:k/ep0-ba1-rank"]


def declared(template: str, **more) -> Conventions:
    return Conventions(declared=(Declared("mine", template, **more),))


def test_declared_directories_come_before_built_in_rows():
    files = {"r/step-1/w": 9, "r/step-1/DONE": 0, "r/step-2/w": 9, "r/step-02x/w": 9, "r/step-3/busy": 1}
    found = units(look(files, declared("step-{step}", proof="DONE", writing="busy")))
    assert {k: (c.evidence.value, c.step, c.proof) for k, c in found.items()} == {
        "r/step-1": ("proven", 1, "r/step-1/DONE"),
        "r/step-2": ("partial", 2, None),
        "r/step-3": ("writing", 3, None),
    }
    assert {c.layout for c in units(look(HF, declared("checkpoint-{step}"))).values()} == {"mine"}
    assert units(look(files, declared("step-{step}", runs=("other/**",)))) == {}


def test_declared_times_and_metrics():
    files = {"r/20260815T1500-step-200-loss0.25/w": 9}
    (found,) = units(look(files, declared("{time}-step-{step}-loss{loss}"))).values()
    assert (found.saved_at_ns, found.metrics) == (1786806000 * 10**9, (("loss", 0.25),))


def test_declared_files_match_the_whole_name():
    files: dict[str, bytes | int] = {
        "ck/epoch=1.ckpt": zipped(),
        "ck/epoch=1.ckpt.bak": 9,
        "ck/xepoch=2.ckpt": 9,
        "ck/epoch=3.ckpt": zipped(9),
    }
    found = {k: c.evidence.value for k, c in units(look(files, declared("epoch={step}.ckpt"))).items()}
    assert found == {"ck/epoch=1.ckpt": "proven", "ck/epoch=3.ckpt": "partial"}


def test_declared_groups_miss_members_and_tell_temporary_files():
    files = {f"r/ckpt-{n}-shard{s}.pt": 9 for n in (1, 2, 3, 10) for s in (0, 1)}
    del files["r/ckpt-1-shard0.pt"]
    files |= {"r/ckpt-3.tmp": 1, "r/ckpt-10-shard1.pt": 0, "r/ckpt-2-shard0.pt.bak": 9}
    found = units(look(files, declared("ckpt-{step}", shape=Shape.GROUP)))
    assert {k: (c.evidence.value, c.flags) for k, c in found.items()} == {
        "r/ckpt-1": ("doubtful", ("members_missing",)),
        "r/ckpt-2": ("whole", ()),
        "r/ckpt-3": ("writing", ()),
        "r/ckpt-10": ("partial", ("empty_shard",)),
    }
    assert found["r/ckpt-2"].members == ("r/ckpt-2-shard0.pt", "r/ckpt-2-shard1.pt")


def test_holds_above_and_leases_beside_count():
    files = {"runs/c/HOLD": 0, "runs/c/ckpts/step-900/DONE": 0, "runs/c/ckpts/step-900.lease": 1}
    conventions = Conventions((Declared("g", "step-{step}", proof="DONE"),), (), frozenset({"HOLD"}), ".lease")
    (run,) = look(files, conventions, times={"runs/c/ckpts/step-900.lease": 7})
    assert (run.holds, run.leases) == (("HOLD",), (("runs/c/ckpts/step-900", 7),))


def test_a_deep_write_makes_a_run_active():
    files = {"r/step-1/.metadata": 1, "r/step-1/__0_0.distcp": 1, "r/logs/deep/er/out": 1}
    times = {"r/step-1/.metadata": 5, "r/step-1/__0_0.distcp": 5, "r/logs/deep/er/out": 9}
    (run,) = look(files, times=times)
    assert run.active_at_ns == 9


def uploading(key: str, files: Files) -> Listing:
    listing = tree(files, flavour=Flavour.OBJECT)
    assert isinstance(listing.folders, dict)
    parent, _, name = key.rpartition("/")
    for depth in range(1, parent.count("/") + 2):
        path = "/".join(parent.split("/")[:depth])
        if path not in listing.folders:
            above, _, part = path.rpartition("/")
            listing.folders[path] = Folder(path)
            listing.folders[above].dirs.append(part)
    listing.folders[parent].uploads[name] = Upload("u", 77)
    return listing


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("run2/periodic-step=20.ckpt", "run2/periodic-step=20.ckpt"),
        ("run2/checkpoint-7/optimizer.pt", "run2/checkpoint-7"),
        ("run2/iter_0000007/deep/__0_0.distcp", "run2/iter_0000007"),
        ("run2/notes.txt", None),
    ],
)
def test_open_uploads_become_writing_in_a_run_of_their_own(key: str, unit: str | None):
    runs = survey("s", uploading(key, {"x": 1}), None, Conventions())
    assert [(r.path, r.writing) for r in runs] == ([("run2", ((unit, 77),))] if unit else [])


def test_an_upload_into_a_unit_that_is_there_is_told_of_that_unit():
    runs = survey("s", uploading("r/checkpoint-5/optimizer.pt", HF), None, Conventions())
    assert [r.writing for r in runs] == [(("r/checkpoint-5", 77),)]


def test_what_a_run_was_resumed_from_is_told_across_runs():
    files = {
        "run1/periodic-step=10.ckpt": zipped(),
        "run2/hparams.json": b'{"ckpt_path": "s3://bucket/run1/periodic-step=10.ckpt"}',
    }
    runs = look(files, flavour=Flavour.OBJECT)
    pointers = [p for run in runs for p in run.pointers]
    assert [(p.run, p.role, p.target) for p in pointers] == [
        ("run2", PointerRole.RESUME, "s:run1/periodic-step=10.ckpt")
    ]


@pytest.mark.parametrize(
    ("links", "target", "flags"),
    [
        ({"r/last.ckpt": "epoch=1.ckpt"}, "s:r/epoch=1.ckpt", ()),
        ({"r/last.ckpt": "../r/./epoch=1.ckpt"}, "s:r/epoch=1.ckpt", ()),
        ({"r/last.ckpt": "via/epoch=1.ckpt", "r/via": "../r"}, "s:r/epoch=1.ckpt", ()),
        ({"r/last.ckpt": "../../x/epoch=1.ckpt"}, None, ("external_reference",)),
        ({"r/last.ckpt": "/mnt/epoch=9.ckpt"}, None, ("external_reference",)),
        ({"r/last.ckpt": "a", "r/a": "b", "r/b": "a"}, None, ("pointer_loop",)),
        ({"r/last.ckpt": "epoch=9.ckpt"}, "s:r/epoch=9.ckpt", ()),
    ],
)
def test_links_are_resolved_on_paper(links: dict[str, str], target: str | None, flags: tuple[str, ...]):
    (run,) = look({"r/epoch=1.ckpt": zipped()}, links=links)
    assert [(p.target, p.flags) for p in run.pointers if p.key == "r/last.ckpt"] == [(target, flags)]


def test_a_tracker_that_cannot_be_read_stops_the_run():
    files: dict[str, bytes | int] = {"d/best/mp_rank_00_model_states.pt": 5, "d/latest": b"best"}
    (run,) = look(files, failing=("d/latest",))
    assert not run.complete
    assert [(p.target, p.flags) for p in run.pointers] == [(None, ("metadata_unavailable",))]


def test_odd_names_and_steps_beyond_the_database_are_told():
    files = {"r/step-1/\x10w": 9, "r/step-99999999999999999999/w": 9, "r/step-\u0663/w": 9, "r/step-2/w": 9}
    found = units(look(files, declared("step-{step}")))
    assert {k: (c.step, c.flags) for k, c in found.items()} == {
        "r/step-1": (1, ("name_unusual",)),
        "r/step-99999999999999999999": (None, ("name_unusual",)),
        "r/step-2": (2, ()),
    }


def test_another_owners_unit_is_foreign():
    listing = tree(HF | {k.replace("-5", "-6"): v for k, v in HF.items()})
    listing.folders["r/checkpoint-6"].owner = 2
    (run,) = survey("s", listing, None, Conventions())
    assert {c.name: c.flags for c in run.checkpoints if "foreign" in c.flags} == {"checkpoint-6": ("foreign",)}


def test_metrics_of_a_file_of_the_run_join_by_step():
    files: dict[str, bytes | int] = {
        "m/step-1/w": 9,
        "m/log.jsonl": b'{"step": 1, "val/reward": 0.5}\nnonsense\n{"step": 2, "val/reward": 1}\n',
    }
    conventions = Conventions((Declared("g", "step-{step}"),), metric_sources=(MetricSource("log.jsonl"),))
    assert [c.metrics for c in units(look(files, conventions)).values()] == [(("val/reward", 0.5),)]
    assert [c.metrics for c in units(look(files, conventions, failing=("m/log.jsonl",))).values()] == [()]


def test_a_run_seen_only_in_part_is_not_complete():
    (run,) = survey("s", tree(HF), None, Conventions(), "r/checkpoint-5")
    assert (run.path, run.complete, len(run.checkpoints)) == ("r", False, 1)
    (run,) = survey("s", tree(HF), None, Conventions(), "r")
    assert run.complete


def test_an_unlistable_directory_inside_makes_the_run_incomplete():
    listing = tree(HF | {"q/checkpoint-1/trainer_state.json": b"{}"})
    assert isinstance(listing.folders, dict)
    listing.folders["r/checkpoint-5"].dirs.append("sub")
    listing.folders["r/checkpoint-5/sub"] = Folder("r/checkpoint-5/sub", error="permission denied")
    runs = survey("s", listing, memory(HF), Conventions())
    assert {run.path: run.complete for run in runs} == {"r": False, "q": True}
