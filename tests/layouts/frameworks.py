"""Small trees of every framework that writes in a way of its own: names, sizes, and the little content that tells."""

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

Files = dict[str, bytes | int]

TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"


class Built(NamedTuple):
    """One tree, and which of its files a checkpoint can do without."""

    files: Files
    links: Mapping[str, str] = {}
    spare: tuple[str, ...] = ()
    """Ends of keys that describe and do not matter, or of which nothing tells that they were there."""


def stored(members: Mapping[str, bytes]) -> bytes:
    """A zip file as torch and others write them: nothing compressed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def text(value: str) -> bytes:
    """A text as pickle has it."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def torch_file(*names: str, **numbers: int) -> bytes:
    """What ``torch.save`` makes of a dict: tensors under the names, plain numbers under the others."""
    entries = [text(name) + TENSOR for name in names or ("weight",)]
    entries += [text(name) + b"J" + struct.pack("<i", value) for name, value in numbers.items()]
    return stored({"archive/data.pkl": b"\x80\x02}(" + b"".join(entries) + b"u."})


def dcp(at: str, *ranks: int) -> Files:
    """A directory of shards with its metadata."""
    names = [f"__{rank}_0.distcp" for rank in ranks or (0, 1)]
    listed = b"".join(text(name) for name in names)
    return {f"{at}/.metadata": b"\x80\x02(" + listed + b"t.", **{f"{at}/{name}": 64 for name in names}}


def lines(data: Mapping[str, object]) -> bytes:
    """JSON."""
    return json.dumps(data).encode()


def hdf5(size: int) -> bytes:
    """An HDF5 file of that many bytes with a superblock of version 2."""
    head = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00" + struct.pack("<QQQ", 0, 2**64 - 1, size)
    return head.ljust(64, b"\0")


def each(steps: tuple[int, ...], make: Mapping[str, bytes | int]) -> Files:
    """The same files for every step; ``{n}`` stands for it."""
    return {key.format(n=step): content for step in steps for key, content in make.items()}


def verl(step: int, world: int = 2) -> Files:
    names = [
        f"{part}/{what}_world_size_{world}_rank_{rank}.pt"
        for part in ("actor", "critic")
        for what in ("model", "optim", "extra_state")
        for rank in range(world)
    ]
    return {f"g/global_step_{step}/{name}": 64 for name in [*names, "data.pt"]}


def olmo_core(step: int) -> Files:
    at = f"g/step{step}"
    return {
        **dcp(f"{at}/model_and_optim"),
        f"{at}/train/rank0.pt": 64,
        f"{at}/train/rank1.pt": 64,
        f"{at}/.metadata.json": b'{"ephemeral": false}',
    }


def prime_rl(step: int) -> Files:
    at = f"g/step_{step}"
    return {
        **dcp(f"{at}/trainer"),
        f"{at}/trainer/dataloader/rank_0.pt": 64,
        f"{at}/trainer/dataloader/rank_1.pt": 64,
        f"{at}/weight/model.safetensors": 64,
        f"{at}/STABLE": 0,
    }


def nemo_rl(step: int) -> Files:
    at = f"g/step_{step}"
    return {
        **dcp(f"{at}/policy/weights"),
        **dcp(f"{at}/policy/optimizer"),
        f"{at}/training_info.json": lines({"step": step, "val:accuracy": 0.5}),
        f"{at}/train_dataloader.pt": 64,
        f"{at}/config.yaml": 64,
    }


def bytecheckpoint(step: int) -> Files:
    at = f"g/global_step_{step}"
    ranks = {f"{at}/extra_state/extra_state_rank_{rank}.pt": 64 for rank in (0, 1)}
    return {**dcp(f"{at}/model"), **dcp(f"{at}/optimizer"), **ranks}


def automodel(step: int) -> Files:
    at = f"g/epoch_0_step_{step}"
    return {
        f"{at}/model/model-00001-of-00002.safetensors": 64,
        f"{at}/model/model-00002-of-00002.safetensors": 64,
        **dcp(f"{at}/optim"),
        f"{at}/losses.json": lines({"train_loss": 1.5, "val_loss": 2.0}),
        f"{at}/config.yaml": 64,
    }


def nanochat(step: int) -> Files:
    return {
        f"g/model_{step:06d}.pt": torch_file(),
        f"g/meta_{step:06d}.json": lines({"step": step, "val_bpb": 0.9}),
        f"g/optim_{step:06d}_rank0.pt": torch_file("state"),
        f"g/optim_{step:06d}_rank1.pt": torch_file("state"),
    }


SB3 = stored({"data": b"{}", "policy.pth": b"x", "policy.optimizer.pth": b"x", "_stable_baselines3_version": b"2.9.2"})
PICKLE = b"\x80\x04}."
KERAS = stored({"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b"x"})
FAIRSEQ = torch_file("model", "args", "optimizer_history", "extra_state", "last_optimizer_state", num_updates=700)
TIMM = torch_file("state_dict", "arch", "optimizer", epoch=2)
YOLO = torch_file("model", "ema", "optimizer", "best_fitness", "train_args", epoch=3)
COQUI = torch_file("config", "model", "optimizer", "model_loss", step=9000, epoch=4)
NNUNET = torch_file("network_weights", "optimizer_state", "trainer_name", current_epoch=7)
MMENGINE = torch_file("meta", "state_dict", "message_hub", "optimizer")
RAY = "checkpoint_2026-01-01_00-00-0{}.000000"
T5X: Files = {
    "g/checkpoint_{n}/checkpoint": b"\x82\xa6target",
    "g/checkpoint_{n}/target.encoder.w/.zarray": 2,
    "g/checkpoint_{n}/target.encoder.w/0.0": 64,
    "g/checkpoint_{n}/state.param_states.encoder.w.v/.zarray": 2,
    "g/checkpoint_{n}/state.param_states.encoder.w.v/0.0": 64,
}
LEVANTER = {
    "g/step-{n}/model/w/.zarray": 2,
    "g/step-{n}/model/w/0.0": 64,
    "g/step-{n}/optimizer_state/mu/.zarray": 2,
}
CKPT = "g/CKPT+2026-01-0{n}+10-00-00+00/"
SNAPSHOT = lines({"manifest": {"0/w": {"type": "Tensor", "location": "0/w"}, "0/b": {"location": "batched/1"}}})

BUILT: dict[str, Built] = {
    "fvcore": Built(
        {
            **each((14, 19), {"g/model_00000{n}.pth": torch_file("model", "optimizer", iteration=19)}),
            "g/model_final.pth": torch_file("model", "optimizer", iteration=19),
            "g/last_checkpoint": b"model_final.pth",
        }
    ),
    "mmengine": Built(
        {
            **each((1, 2), {"g/epoch_{n}.pth": MMENGINE}),
            "g/epoch_2-1a2b3c4d.pth": torch_file("meta", "state_dict"),
            "g/best_bbox_mAP_epoch_2.pth": MMENGINE,
            "g/last_checkpoint": b"/gone/g/epoch_2.pth",
        }
    ),
    "timm": Built(
        {
            **each((1, 2), {"g/checkpoint-{n}.pth.tar": TIMM}),
            "g/last.pth.tar": TIMM,
            "g/model_best.pth.tar": TIMM,
            "g/recovery-2-500.pth.tar": TIMM,
            "g/tmp.pth.tar": TIMM[:-9],
        }
    ),
    "ultralytics": Built(
        {"g/args.yaml": 1, **{f"g/weights/{name}.pt": YOLO for name in ("epoch3", "last", "best")}},
    ),
    "nnunet": Built({f"g/fold_0/checkpoint_{name}.pth": NNUNET for name in ("latest", "best", "final")}),
    "espnet": Built(
        {
            **each((1, 2, 3), {"g/{n}epoch.pth": torch_file()}),
            "g/checkpoint.pth": torch_file("model", "reporter", "optimizers"),
            "g/valid.acc.ave_3best.pth": torch_file(),
        },
        {"g/latest.pth": "3epoch.pth", "g/valid.acc.best.pth": "2epoch.pth"},
    ),
    "coqui": Built(
        {
            "g/config.json": b"{}",
            "g/checkpoint_9000.pth": COQUI,
            "g/best_model_9000.pth": COQUI,
            "g/best_model.pth": COQUI,
        },
    ),
    "speechbrain": Built(
        {
            **each((1, 2), {CKPT + name: 64 for name in ("model.ckpt", "optimizer.ckpt")}),
            **each((1, 2), {CKPT + "CKPT.yaml": b"WER: 3.5\nend-of-epoch: true\nepoch: 2\nunixtime: 1767261600.5\n"}),
        }
    ),
    "fairseq": Built(
        {
            **each((1, 2), {"g/checkpoint{n}.pt": FAIRSEQ}),
            **each((0, 1), {"g/checkpoint3-shard{n}.pt": FAIRSEQ, "g/checkpoint_last-shard{n}.pt": FAIRSEQ}),
            "g/checkpoint_3_12000.pt": FAIRSEQ,
            "g/checkpoint_best.pt": FAIRSEQ,
            "g/checkpoint.best_loss_4.1230.pt": FAIRSEQ,
            "g/checkpoint_last.pt": FAIRSEQ,
            "g/checkpoint_last.pt.tmp": FAIRSEQ[:-9],
        }
    ),
    "nanogpt": Built(
        {"g/ckpt.pt": torch_file("model", "optimizer", "model_args", "config", iter_num=2000, best_val_loss=3)}
    ),
    "nanochat": Built({**nanochat(1000), **nanochat(2000)}),
    "litgpt": Built(
        {
            **each(
                (1000, 2000),
                {
                    "g/step-0000{n}/lit_model.pth": torch_file("model", "optimizer"),
                    "g/step-0000{n}/model_config.yaml": 64,
                    "g/step-0000{n}/tokenizer.json": 64,
                },
            ),
            "g/final/lit_model.pth": torch_file("model"),
            "g/final/model_config.yaml": 64,
        },
        spare=("tokenizer.json",),
    ),
    "sb3": Built(
        {
            **each((100, 200), {"g/rl_model_{n}_steps.zip": SB3, "g/rl_model_replay_buffer_{n}_steps.pkl": PICKLE}),
            **each((100, 200), {"g/rl_model_vecnormalize_{n}_steps.pkl": PICKLE}),
        }
    ),
    "verl": Built(
        {**verl(50), **verl(100), "g/latest_checkpointed_iteration.txt": b"100", "g/global_step_25/data.pt": 9}
    ),
    "nemo_rl": Built({**nemo_rl(10), **nemo_rl(20), "g/tmp_step_30/training_info.json": 2}, spare=("config.yaml",)),
    "prime_rl": Built({**prime_rl(100), **prime_rl(200), "g/step_300/trainer/__0_0.distcp": 64}),
    "bytecheckpoint": Built({**bytecheckpoint(0), **bytecheckpoint(100)}),
    "automodel": Built(
        {
            **automodel(100),
            **automodel(200),
            "g/epoch_0_step_300/model/w.safetensors": 9,
            "g/epoch_0_step_300/.incomplete": 0,
        },
        {"g/LATEST": "epoch_0_step_200", "g/LOWEST_VAL": "epoch_0_step_100"},
        spare=("config.yaml",),
    ),
    "olmo_core": Built({**olmo_core(0), **olmo_core(500), "g/step900-tmp/train/rank0.pt": 64}),
    "olmo": Built(
        {
            "g/step500-unsharded/config.yaml": 1,
            **{f"g/step500-unsharded/{part}.pt": 64 for part in ("model", "optim", "train")},
            **each(
                (500, 900),
                {
                    "g/step{n}/config.yaml": 1,
                    **{f"g/step{{n}}/{part}/rank{r}.safetensors": 64 for part in ("model", "optim") for r in (0, 1)},
                    **{f"g/step{{n}}/train/rank{r}.pt": 64 for r in (0, 1)},
                },
            ),
        },
        {"g/latest": "step900", "g/latest-unsharded": "step500-unsharded"},
    ),
    "levanter": Built(
        {
            **each((1000, 2000), LEVANTER),
            **{f"g/step-{n}/metadata.json": lines({"step": n, "timestamp": "2026-01-01"}) for n in (1000, 2000)},
            "g/step-3000/model/w/.zarray": 2,
        },
        spare=(".zarray",),
    ),
    "t5x": Built(
        {**each((1000, 2000), T5X), "g/checkpoint_1000/PINNED": 1, "g/checkpoint_3000.tmp-17/checkpoint": 9},
        spare=("PINNED", ".zarray"),
    ),
    "flax": Built({**each((100, 200), {"g/checkpoint_{n}": b"\x82\xa6params\x80\xa3opt\x80"}), "g/checkpoint_tmp": 9}),
    "flax_arrays": Built({"g/checkpoint_100": b"\x82\xa6params\x80\xa3opt\x80", "g/checkpoint_100_gda/w/.zarray": 2}),
    "ray_train": Built(
        {
            **{f"g/{RAY.format(n)}/checkpoint-5/model.safetensors": 64 for n in (1, 2, 3)},
            "g/checkpoint_manager_snapshot.json": lines(
                {
                    "checkpoint_results": [
                        {"checkpoint_dir_name": RAY.format(n), "metrics": {"loss": 1 / n}} for n in (1, 2)
                    ],
                    "latest_checkpoint_result": {"checkpoint_dir_name": RAY.format(2)},
                }
            ),
        },
    ),
    "ray_tune": Built({"g/t1/result.json": 9, "g/t1/params.json": 9, "g/t1/checkpoint_000001/model.pt": 64}),
    "dlrover": Built(
        {
            **each((100, 200, 300), {f"g/{{n}}/rank_{rank}.pt": torch_file() for rank in (0, 1)}),
            "g/dlrover_latest.txt": b"200",
            "g/._dlrover_ckpt_stage/300.done/0": 0,
        }
    ),
    "torchsnapshot": Built({"g/any/.snapshot_metadata": SNAPSHOT, "g/any/0/w": 64, "g/any/batched/1": 64}),
    "torchtune": Built(
        {
            **each(
                (0, 1),
                {
                    "g/epoch_{n}/model-00001-of-00002.safetensors": 64,
                    "g/epoch_{n}/model-00002-of-00002.safetensors": 64,
                    "g/epoch_{n}/config.json": 64,
                },
            ),
            "g/recipe_state/recipe_state.pt": 64,
        },
        spare=("config.json",),
    ),
    "keras": Built(
        {
            **each((1, 2), {"g/model-0{n}-1.85.keras": KERAS, "h/epoch_{n}.weights.h5": hdf5(64)}),
            "g/latest.keras": KERAS,
        }
    ),
    "llm_foundry": Built(
        {**each((10, 20), {"g/huggingface/ba{n}/config.json": 2, "g/huggingface/ba{n}/model.safetensors": 64})},
        spare=("",),
    ),
    "openrlhf": Built(
        {
            **{
                f"g/best_global_step40/{name}": 64
                for name in ("mp_rank_00_model_states.pt", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
            },
            "g/best_global_step40/metric.json": lines({"reward": 0.75}),
        },
        spare=("",),
    ),
}

ZOO = {f"zoo/{name}": torch_file() for name in ("model_final.pth", "best.pt", "1epoch.pth", "last.pth.tar")}

TRAPS: dict[str, Files] = {
    "a zoo of models": {**ZOO, "zoo/resnet50.keras": KERAS, "zoo/resnet101.keras": KERAS, "zoo/bert_2.weights.h5": 9},
    "data": each(
        (1, 2),
        {
            "data/step_{n}/data.pt": 9,
            "data/epoch_{n}/part-0000.parquet": 9,
            "data/global_step_{n}/traces.jsonl": 9,
            "data/100{n}/rank_0.txt": 9,
            "data/step-000{n}00/tokens.bin": 9,
            "data/step{n}/config.yaml": 9,
            "data/checkpoint_{n}.json": 9,
            "data/shard_{n}_steps.zip.part": 9,
            "data/episode_{n}_steps.pkl": 9,
        },
    ),
    "numbers beside a rank": each((1, 2), {"r/{n}/rank_0.pt": torch_file()}),
    "code": {
        "code/model/__init__.py": 9,
        "code/model_and_optim/x.py": 9,
        "code/checkpoint.py": 9,
        "code/epoch_1/model.py": 9,
        "code/final/main.py": 9,
        "code/weights/README.md": 9,
        "code/huggingface/ba7/x.py": 9,
    },
    "boards": {"run/events.out.tfevents.1": 9, "run/plugins/profile/2026_01_01/x.pb": 9, "run/step_1/plot.png": 9},
    "registries": {
        "w/artifacts/model-x:v3/epoch=1.ckpt": torch_file("state_dict"),
        "w/wandb/run-1/files/model_0000001.pth": torch_file("model"),
        "w/mlruns/0/1/artifacts/checkpoints/epoch_1/checkpoint.pth": torch_file("model"),
    },
    "traces": {
        "p/rollouts/step_1/weight/model.safetensors": 9,
        "p/broadcasts/step_1/STABLE": 0,
        "p/evals/step_1/results.json": 9,
        "p/step_1/training_info.json": 9,
    },
    "levels of a game": {"game/level_10_steps.txt": 9, "game/checkpoint_1/save.dat": 9, "game/CKPT+1/readme": 9},
}

ALIKE: dict[str, Files] = {
    "a script's own files": {
        **each((1, 2), {"mine/checkpoint{n}.pt": torch_file("net"), "mine/checkpoint-{n}.pth.tar": torch_file("net")}),
        **each((1, 2), {"mine/checkpoint_{n}.pth": torch_file("net"), "mine/model_000000{n}.pth": torch_file("net")}),
        "mine/config.json": 2,
        "mine/last_checkpoint": b"x",
        "mine/ckpt.pt": torch_file("net"),
        "mine/checkpoint_7": b"notes",
        "mine/run_7_steps.zip": stored({"a.txt": b"x"}),
    },
    "directories": {
        "mine/step-5/model/w": 9,
        "mine/step-5/metadata.json": b"{}",
        "mine/epoch_1_step_2/model/w.bin": 9,
        "mine/step7/config.yaml": 9,
        "mine/step7/model.pt": 9,
        "mine/final/lit_model.pth": b"notes",
        "mine/CKPT+mine/CKPT.yaml": 9,
        "mine/CKPT+mine/a.ckpt": 9,
    },
}
"""What has a framework's names and not its content: it may be told of and never counts as complete."""
