"""Puts a checkpoint's size together: model, set-up, average, adapter, padding and small files; and says by what sum."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lifecycle.sizing import padding
from lifecycle.sizing.adapters import ALL, Lora
from lifecycle.sizing.mistakes import SizingError
from lifecycle.sizing.model import Model
from lifecycle.sizing.padding import Padding
from lifecycle.sizing.setups import DEFAULT, GRADIENTS_FP32, SETUPS, Roles, Setup
from lifecycle.sizing.tensors import Part, Tensor, params

LORA_DEFAULT = "fp32-adam"
"""PEFT trains adapters in fp32 unless it is told otherwise (``autocast_adapter_dtype``)."""
FROZEN_BYTES = 2
EMA_BYTES = {"fp32": 4, "bf16": 2}

# Sizes that files on the Hugging Face hub have: small beside any model, but not beside an adapter.
RNG_BYTES = 16_000
TRAINER_BYTES = 1_060 + 6_800
"""scheduler.pt and training_args.bin."""
TOKENIZER_BYTES = 17_000_000
STEP_BYTES = 4
"""torch's optimizers count steps in an fp32 number a tensor."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to know the size of.

    Attributes:
        setup: None for what is usual: bf16-mixed-adam, or fp32-adam for an adapter.
        optimizer: the name of one in place of the set-up's own.
        ema_bytes: of a moving average of what is trained; 0 for none.
        frozen_saved: whether every save holds the frozen base too.
        ranks: how many processes write; 0 leaves small files out.
    """

    model: Model
    setup: Setup | None = None
    optimizer: str | None = None
    ema_bytes: int = 0
    lora: Lora | None = None
    frozen_saved: bool = False
    ranks: int = 0
    pad: Padding | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """An answer: bytes by role, what they are a multiple of, and all that was assumed."""

    asked: Asked
    setup: Setup
    trained: int
    """Parameters that have an optimizer state: those of the adapter, where there is one."""
    roles: Roles
    formula: str
    assumptions: tuple[str, ...]


def estimate(asked: Asked) -> Estimate:
    """The size of one checkpoint.

    Raises:
        SizingError: shapes are needed and not known, or options do not go together.
    """
    if asked.frozen_saved and asked.lora is None:
        raise SizingError("--frozen-saved: without --lora nothing is frozen", code="usage")
    if asked.pad is not None and not asked.ranks:
        raise SizingError("--pad needs --ranks: it fills up what each of them holds", code="usage")
    setup = asked.setup or SETUPS[LORA_DEFAULT if asked.lora else DEFAULT]
    setup = setup if asked.optimizer is None else setup.with_optimizer(asked.optimizer)
    setup = replace(setup, ema_bytes=asked.ema_bytes or setup.ema_bytes)
    tensors = asked.lora.tensors(asked.model) if asked.lora else asked.model.tensors
    trained = params(tensors) if asked.lora and tensors is not None else asked.model.params
    roles = setup.bytes_for(trained, tensors)
    frozen = FROZEN_BYTES * asked.model.params if asked.frozen_saved else 0
    roles = replace(roles, frozen=frozen, other=_other(asked, setup, trained, tensors, roles))
    return Estimate(asked, setup, trained, roles, _formula(trained, roles, asked), tuple(_assumed(asked, setup)))


def _other(asked: Asked, setup: Setup, trained: int, tensors: tuple[Tensor, ...] | None, roles: Roles) -> int:
    """Small files, step counters and padding; nothing where nobody said how many ranks there are."""
    if not asked.ranks:
        return 0
    small = asked.ranks * RNG_BYTES + TRAINER_BYTES + TOKENIZER_BYTES
    if tensors is not None and setup.optimizer is not None:
        small += STEP_BYTES * sum(t.times for t in tensors)
    if asked.pad is None:
        return small
    elements = padding.added(asked.pad, trained, tensors, asked.ranks)
    return small - (-elements * (roles.master + roles.moments) // trained)


def _formula(trained: int, roles: Roles, asked: Asked) -> str:
    sizes = {name: size for name, size in roles.items().items() if size and name not in {"frozen", "other"}}
    whole = [f"{size // trained} {name}" for name, size in sizes.items() if size % trained == 0]
    parts = [f"{trained:,} x ({' + '.join(whole)})"] if whole else []
    parts += [f"{size:,} {name}" for name, size in sizes.items() if size % trained]
    parts += [f"{asked.model.params:,} x {FROZEN_BYTES} frozen base"] if roles.frozen else []
    parts += [f"{roles.other:,} other"] if roles.other else []
    return f"{' + '.join(parts) or '0'} = {roles.total:,} B"


def rate(size: int, count: int) -> str:
    """Bytes a parameter, to four places and no zeros at their end."""
    text = f"{size / count:.4f}".rstrip("0").rstrip(".")
    return text if size % count == 0 or "." in text else f"{text}.0"


def _assumed(asked: Asked, setup: Setup) -> list[str]:
    """Everything that is in the answer without having been asked, and everything that is not in it."""
    model = asked.model
    told = list(model.notes)
    if asked.setup is None:
        name = LORA_DEFAULT if asked.lora else DEFAULT
        why = "as PEFT trains adapters" if asked.lora else "what Megatron and DeepSpeed save"
        told.append(f"set-up {name}, {why}; --setup NAME for another")
    if model.tensors is not None and any(t.part is Part.EXPERT for t in model.tensors):
        told.append("all experts are stored, not only those that a token uses")
    if asked.lora:
        if ALL in asked.lora.targets:
            told.append("all linear layers: every matrix but embeddings, routers and the head")
        frozen = f"saved each time, {FROZEN_BYTES} bytes a parameter" if asked.frozen_saved else "not saved"
        told.append(f"the frozen base is {frozen}; DeepSpeed saves it unless exclude_frozen_parameters is set")
    if setup.optimizer is not None:
        told.append(f"gradients are not saved (in memory they are {GRADIENTS_FP32} bytes a parameter in fp32)")
    told.append("each shard is written once: no replica of data parallelism writes it again")
    told.append(_small(asked))
    told.append("what the container adds (0.01 % torch.save, 0.12 % DCP) is not counted")
    return told


def _small(asked: Asked) -> str:
    if not asked.ranks:
        return "random states, scheduler and tokenizer (mostly below 20 MB) are not counted; --ranks N counts them"
    text = (
        f"other: {RNG_BYTES:,} B a rank of random states, {TOKENIZER_BYTES:,} B tokenizer, {TRAINER_BYTES:,} B trainer"
    )
    return f"{text}, padding as {asked.pad} does, in one group" if asked.pad else f"{text}, no padding"
