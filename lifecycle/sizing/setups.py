"""What a training set-up writes for each parameter, by role: weights, master copy, moments, averages, frozen base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from lifecycle.sizing import optimizers
from lifecycle.sizing.mistakes import SizingError, nearest
from lifecycle.sizing.tensors import Tensor

DAY_S = 86_400
GRADIENTS_FP32 = 4
GRADIENTS_BF16 = 2
"""In memory only: no framework saves gradients. Rules of 16 and 18 bytes a parameter count them."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Bytes of one checkpoint, by what they are for."""

    weights: int = 0
    master: int = 0
    moments: int = 0
    ema: int = 0
    frozen: int = 0
    """A frozen base that is saved with its adapter."""
    other: int = 0
    """Random states, schedulers, tokenizer, step counters and padding."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.items().values())

    def items(self) -> dict[str, int]:
        """Each role's bytes, in the order in which people read them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def a_day(self, every_s: int) -> float:
        """Bytes a day, saving every ``every_s`` seconds."""
        return self.total * DAY_S / every_s


@dataclass(frozen=True, slots=True)
class Setup:
    """How a parameter is kept: bytes of each stored copy, and the optimizer.

    Attributes:
        weights_bytes: of a parameter, as the model file has it; 0 where only the master copy is saved.
        master_bytes: of an fp32 master copy; 0 where there is none.
        moment_bytes: of one element of the optimizer's states.
        words: its precision, for people.
        copies: how often the weights are saved: HF Trainer writes its own beside those of DeepSpeed.
        ema_bytes: of a moving average; 0 where there is none.
        source: who stores it so.
    """

    name: str
    words: str
    weights_bytes: int
    master_bytes: int
    optimizer: str | None
    moment_bytes: int = 4
    copies: int = 1
    ema_bytes: int = 0
    source: str = ""

    def bytes_for(self, params: int, tensors: Sequence[Tensor] | None = None) -> Roles:
        """One checkpoint of a model of which all parameters are trained.

        Args:
            params: how many are stored; of a mixture, those of all experts.
            tensors: their shapes, where they are known: some optimizers need them, and others get exact by them.

        Raises:
            SizingError: the optimizer needs shapes.
        """
        moments = 0
        if self.optimizer is not None:
            moments = optimizers.find(self.optimizer).bytes_for(params, tensors, self.moment_bytes)
        return Roles(
            weights=params * self.weights_bytes * self.copies,
            master=params * self.master_bytes,
            moments=moments,
            ema=params * self.ema_bytes,
        )

    def with_optimizer(self, name: str) -> Setup:
        """The same precision, another optimizer; ``none`` for none. Raises SizingError."""
        found = None if name.lower() == "none" else optimizers.find(name).name
        return replace(self, name=f"{self.name} with {found or 'no optimizer'}", optimizer=found)

    @property
    def per_param(self) -> Fraction | None:
        """Bytes a parameter; None where only the shapes of a model can tell."""
        fixed = self.weights_bytes * self.copies + self.master_bytes + self.ema_bytes
        if self.optimizer is None:
            return Fraction(fixed)
        state = optimizers.find(self.optimizer).rate(self.moment_bytes)
        return None if state is None else fixed + state


_ALL = (
    Setup("bf16-mixed-adam", "bf16 weights, fp32 master", 2, 4, "adamw", source="Megatron, DeepSpeed ZeRO 1-3"),
    Setup("fp32-adam", "fp32 weights", 4, 0, "adamw", source="FSDP2 and TorchTitan by default, PEFT adapters"),
    Setup("bf16-master-only", "fp32 master, no bf16 copy", 0, 4, "adamw", source="Gemini (SOSP 2023) on MT-NLG"),
    Setup("bf16-no-master", "bf16 weights, fp32 states", 2, 0, "adamw", source="counted"),
    Setup("bf16-pure-adam", "bf16 weights, bf16 states", 2, 0, "adamw", 2, source="a model loaded in bf16"),
    Setup(
        "bf16-mixed-bf16-moments",
        "bf16 weights, fp32 master, bf16 states",
        *(2, 4, "adamw", 2),
        source="megatron-core 0.16.1, precision-aware",
    ),
    Setup(
        "hf-deepspeed", "bf16 weights twice, fp32 master", 2, 4, "adamw", copies=2, source="HF Trainer with DeepSpeed"
    ),
    Setup("bf16-mixed-adam8bit", "bf16 weights, fp32 master", 2, 4, "adamw-8bit", source="torchao"),
    Setup("bf16-adam8bit", "bf16 weights", 2, 0, "adamw-8bit", source="torchao"),
    Setup("bf16-mixed-adam4bit", "bf16 weights, fp32 master", 2, 4, "adamw-4bit", source="torchao"),
    Setup("bf16-mixed-adam-fp8", "bf16 weights, fp32 master", 2, 4, "adamw-fp8", source="torchao"),
    Setup("bf16-mixed-adafactor", "bf16 weights, fp32 master", 2, 4, "adafactor", source="torch"),
    Setup("bf16-mixed-muon", "bf16 weights, fp32 master", 2, 4, "muon", source="torch"),
    Setup("weights-bf16", "bf16 weights alone", 2, 0, None, source="a release, a thin copy"),
    Setup("weights-fp32", "fp32 weights alone", 4, 0, None, source="a release, a thin copy"),
)
SETUPS: dict[str, Setup] = {setup.name: setup for setup in _ALL}
DEFAULT = "bf16-mixed-adam"


def find(text: str) -> Setup:
    """The set-up of that name.

    Raises:
        SizingError: there is none; it names the nearest.
    """
    found = SETUPS.get(text.lower().replace("_", "-"))
    if found is None:
        near = ", ".join(nearest(text, SETUPS)) or DEFAULT
        raise SizingError(f"no set-up {text[:40]!a} is known", hint=f"near: {near}; --setups lists all")
    return found
