"""How large checkpoints are: by the parameter, by set-up, by optimizer, padded, and as MLPerf Storage writes them."""

from __future__ import annotations

import math
from typing import Any

from lifecycle.sizing import optimizers, padding
from lifecycle.sizing.decoders import Decoder, trunk
from lifecycle.sizing.estimate import STEP_BYTES
from lifecycle.sizing.optimizers import OPTIMIZERS
from lifecycle.sizing.prices import GIB
from lifecycle.sizing.setups import DEFAULT, GRADIENTS_BF16, GRADIENTS_FP32, SETUPS, Roles
from lifecycle.sizing.tensors import Part, Tensor, params
from tests.truth.answers import Inputs, answers
from tests.truth.params import SEEN

MANY = 10**12
"""Parameters enough that rounding up to a byte is nothing."""


def a_param(setup: str) -> float:
    """By a model whose matrices are those that optimizers were measured on."""
    return SETUPS[setup].bytes_for(params(SEEN), SEEN).total / params(SEEN)


MEANT = {
    "fp32_adam": "fp32-adam",
    "bf16_mixed_master_adam": DEFAULT,
    "master_adam_no_bf16_copy": "bf16-master-only",
    "bf16_weights_fp32_moments_no_master": "bf16-no-master",
    "bf16_master_adam8bit": "bf16-mixed-adam8bit",
    "bf16_only_adam8bit": "bf16-adam8bit",
    "bf16_master_adafactor_nomom": "bf16-mixed-adafactor",
    "megatron_precision_aware_bf16_moments": "bf16-mixed-bf16-moments",
    "hf_trainer_plus_deepspeed_zero": "hf-deepspeed",
}
GRADIENTS = {"plus_grads_fp32": GRADIENTS_FP32, "kartik_vast_rule": GRADIENTS_BF16}
"""Rules for memory: gradients on top of what is saved."""


@answers("bytes_per_param", "setup")
def by_setup(given: Inputs) -> float:
    name = given["setup"]
    return a_param(DEFAULT) + GRADIENTS[name] if name in GRADIENTS else a_param(MEANT[name])


OPTIMIZER = {
    "AdamW fp32": "adamw",
    "AdamW on bf16 params": "adamw",
    "AdamW amsgrad": "amsgrad",
    "SGD momentum": "sgd-momentum",
    "AdaFactor with fp32... pytorch_optimizer (momentum bf16)": "adafactor-momentum",
    "torchao AdamW8bit": "adamw-8bit",
    "torchao AdamWFp8": "adamw-fp8",
    "bitsandbytes AdamW8bit": "adamw-8bit-bnb",
    "bitsandbytes Lion8bit": "lion-8bit-bnb",
}


@answers("optimizer", "optimizer")
def measured(given: Inputs) -> float:
    """With torch's step counters, which the measurement has too: 0.000002 bytes a parameter of this model."""
    name = OPTIMIZER.get(given["optimizer"], given["optimizer"].lower())
    state = optimizers.find(name).bytes_for(params(SEEN), SEEN, 2 if "bf16 params" in given["optimizer"] else 4)
    counters = STEP_BYTES * sum(t.times for t in SEEN) if name in {"adamw", "amsgrad", "rmsprop", "adagrad"} else 0
    return (state + counters) / params(SEEN)


@answers("optimizer", "matrices", "vectors", named="soap")
def soap(given: Inputs) -> int:
    matrices = [Tensor("matrix", tuple(shape), 1, Part.LINEAR) for shape in given["matrices"]]
    tensors = [*matrices, *(Tensor("vector", (n,)) for n in given["vectors"])]
    return OPTIMIZERS["soap"].bytes_for(params(tensors), tensors)


@answers("optimizer", "block")
def by_blocks(given: Inputs) -> float:
    return OPTIMIZERS[{256: "adamw-fp8", 128: "adamw-4bit"}[given["block"]]].bytes_for(MANY, None) / MANY


@answers("padding", "bucket_elems", "dp")
def megatron(given: Inputs) -> int:
    return padding.megatron(given["bucket_elems"], given["dp"])


@answers("padding", "group_elems", "dp")
def zero12(given: Inputs) -> int:
    return padding.zero12(given["group_elems"], given["dp"])


@answers("padding", "param_elems", "dp")
def zero3(given: Inputs) -> int:
    return padding.zero3(given["param_elems"], given["dp"])


# -- what was published


@answers("size", "params", "bytes_per_param")
def published_gib(given: Inputs) -> float:
    """Sources that print GB or TB and mean GiB."""
    return given["params"] * given["bytes_per_param"] / GIB


@answers("size", "params", "bytes_per_param", named=r"safetensors_total")
@answers("seed", "params", "bytes_per_param")
def published_bytes(given: Inputs) -> float:
    return (
        round(given["params"])
        * {14: a_param(DEFAULT), 6: a_param("bf16-pure-adam"), 2: a_param("weights-bf16")}[given["bytes_per_param"]]
    )


@answers("size", "lora_params", "bytes_per_param")
def adapter(given: Inputs) -> int:
    roles = SETUPS["fp32-adam"].bytes_for(given["lora_params"])
    half = SETUPS["weights-bf16"].bytes_for(given["lora_params"])
    return {8: roles.moments, 4: roles.weights, 2: half.weights}[given["bytes_per_param"]]


@answers("size", "tensor_bytes")
def container(given: Inputs) -> int:
    """A torch.save adds less than any tolerance: nothing is counted for it."""
    return int(given["tensor_bytes"])


@answers("size", "total_GiB")
def as_printed(given: Inputs) -> int:
    """The table has whole units, rounded up: 104.7 is 105, 911.2 is 912; 5.29 TB is 5,293 with a digit less."""
    return math.ceil(given["total_GiB"])


@answers("size", "saves", "per_ckpt_GiB")
def frozen_base(given: Inputs) -> float:
    """Every save of an adapter that takes its frozen base along writes all of it again."""
    one = Roles(weights=round(given["adapter_MiB"] * 2**20), other=0)
    rest = round(given["per_ckpt_GiB"] * GIB) - one.total
    return Roles(weights=one.weights, frozen=rest).total * given["saves"] / GIB


@answers("size", "ckpt_GB", "per_day", "days")
def a_month(given: Inputs) -> float:
    """In PB, where the source counts its GB as such."""
    return Roles(weights=given["ckpt_GB"] * 10**9).a_day(86_400 // given["per_day"]) * given["days"] / 10**15


@answers("seed", "bf16_weights", "fp32_master", "fp32_m", "fp32_v")
def mixed(_: Inputs) -> float:
    return a_param(DEFAULT)


@answers("seed", "ckpt_bytes", "interval_s", named="daily")
def a_day(given: Inputs) -> float:
    return Roles(weights=round(given["ckpt_bytes"])).a_day(given["interval_s"])


@answers("seed", "full_bytes", "reduction")
def selective(given: Inputs) -> list[float]:
    """A share that is named and has no source."""
    return [given["full_bytes"] * (1 - share) for share in given["reduction"]]


# -- MLPerf Storage: dlio_benchmark base_checkpointing.py, whose ranks hold norms of their own and 15 h numbers more


def workload(given: Inputs) -> tuple[int, int, int]:
    """Parameters, bytes of the model's files and bytes of the optimizer's."""
    hidden, heads = given["hidden"], given["heads"]
    kv = hidden // heads * given["kv_heads"]  # heads of the 1T workload do not divide its hidden size
    shape = Decoder(given["vocab"], hidden, given["ffn"], given["layers"], 1, 1, hidden)
    tensors = [t._replace(shape=(kv, hidden)) if t.module in {"k_proj", "v_proj"} else t for t in trunk(shape)]
    tensors.append(Tensor("lm_head", (given["vocab"], hidden), 1, Part.HEAD))
    count = params(tensors)
    norms = params(t for t in tensors if t.module == "norm")
    setup, ranks = SETUPS[DEFAULT], given["tp"] * given["pp"] * given["dp"]
    model = setup.bytes_for(count + norms * (given["tp"] - 1)).weights
    shard = setup.bytes_for(count // ranks)  # rounded down, as there: no padding
    return count, model, ranks * (shard.master + shard.moments + 15 * hidden * 4)


def _mlperf(which: Any, named: str) -> None:
    answers("size", "hidden", "tp", "pp", "dp", named=named)(lambda given: which(*workload(given)))


_mlperf(lambda count, model, states: count, r"\.params$")
_mlperf(lambda count, model, states: model, r"\.model_bytes$")
_mlperf(lambda count, model, states: states, r"\.opt_bytes$")
_mlperf(lambda count, model, states: (model + states) / GIB, r"\.total_GiB$")
