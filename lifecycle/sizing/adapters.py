"""LoRA adapters: how many parameters a rank adds to a model's matrices, and what a DeepSpeed save takes along."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from lifecycle.sizing.mistakes import SizingError, nearest, shown
from lifecycle.sizing.model import Model
from lifecycle.sizing.tensors import Part, Tensor

RANK_MAX = 65_536
ALL = "all"
FORM = "write --lora r=16,targets=all or --lora r=16,targets=q_proj,v_proj"


@dataclass(frozen=True, slots=True)
class Lora:
    """A rank, and the modules that get an adapter: those named, or all but embeddings, routers and the head."""

    rank: int
    targets: tuple[str, ...] = (ALL,)

    @property
    def words(self) -> str:
        """For people."""
        return f"LoRA of rank {self.rank} on {'all linear layers' if ALL in self.targets else ', '.join(self.targets)}"

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor gets an adapter; ``q`` is ``q_proj``."""
        if tensor.part not in {Part.LINEAR, Part.EXPERT} or len(tensor.shape) < 2:
            return False
        return ALL in self.targets or not {tensor.module, tensor.module.removesuffix("_proj")}.isdisjoint(self.targets)

    def tensors(self, model: Model) -> tuple[Tensor, ...]:
        """Both matrices of every adapter: ``r * (in + out)`` parameters for each matrix of the model.

        Raises:
            SizingError: the model's shapes are not known, or it has no such modules.
        """
        if model.tensors is None:
            hint = "name a model (--models lists them), or give --config or --safetensors"
            raise SizingError("the size of an adapter depends on the shapes of the matrices", hint=hint)
        self._refuse_unknown(model.tensors)
        return tuple(t for tensor in model.tensors if self.fits(tensor) for t in self._pair(tensor))

    def _pair(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        out, into = tensor.shape[-2:]
        count = tensor.times * prod(tensor.shape[:-2])
        return (
            Tensor(tensor.module, (self.rank, into), count, Part.LINEAR),
            Tensor(tensor.module, (out, self.rank), count, Part.LINEAR),
        )

    def _refuse_unknown(self, tensors: Iterable[Tensor]) -> None:
        known = {t.module for t in tensors if Lora(self.rank).fits(t)}
        short = {module.removesuffix("_proj") for module in known}
        for target in self.targets:
            if target != ALL and target not in known | short:
                near = ", ".join(nearest(target, known) or sorted(known))
                raise SizingError(f"--lora: the model has no module {shown(target)}", hint=f"near: {near}")
        if not known:
            raise SizingError("--lora: the model has no matrices that could be adapted")


def parse(text: str) -> Lora:
    """What ``r=16,targets=q_proj,v_proj`` means; all targets where none are named.

    Raises:
        SizingError: it cannot be meant.
    """
    values: dict[str, list[str]] = {}
    key = ""
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = word.partition("=")
        if equals:
            key = name.strip()
            if key in values:
                raise SizingError(f"--lora: {shown(key)} is given twice", hint=FORM)
        if key not in {"r", "targets"} or (key == "r" and not equals):
            raise SizingError(f"--lora: {shown(word)} is not understood", hint=FORM)
        values.setdefault(key, []).append((value if equals else word).strip())
    rank = values.get("r", [""])[0]
    if not rank.isdecimal() or not rank.isascii() or len(rank) > 6 or not 1 <= int(rank) <= RANK_MAX:
        raise SizingError(f"--lora: the rank {shown(rank)} is no whole number from 1 to {RANK_MAX:,}", hint=FORM)
    return Lora(int(rank), tuple(values.get("targets", [ALL])))
