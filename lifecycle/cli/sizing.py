"""``size``: how large a checkpoint is, and by what sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from lifecycle.cli.desk import Desk
from lifecycle.cli.modelling import Named, model_of
from lifecycle.core.units import parse_duration
from lifecycle.errors import ConfigInvalid
from lifecycle.render.size import estimate_lines, model_lines, setup_lines, writes
from lifecycle.sizing import adapters, models, setups
from lifecycle.sizing.estimate import EMA_BYTES, Asked, Estimate, estimate
from lifecycle.sizing.mistakes import shown
from lifecycle.sizing.named import NAMED, SOURCE
from lifecycle.sizing.optimizers import OPTIMIZERS
from lifecycle.sizing.padding import Padding
from lifecycle.sizing.setups import SETUPS

HINT = "lifecycle size 70b, or one of --config FILE, --safetensors FILE, --params N; --models lists names"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Words:
    """The command line, as it was typed."""

    named: Named
    setup: str | None = None
    optimizer: str | None = None
    ema: str | None = None
    lora: str | None = None
    frozen_saved: bool = False
    every: str | None = None
    ranks: int = 0
    pad: str | None = None


def size_checkpoint(desk: Desk, words: Words) -> int:
    """``lifecycle size``"""
    every_s = None if words.every is None else _duration(words.every)
    asked = Asked(
        model=model_of(words.named, HINT),
        setup=None if words.setup is None else setups.find(words.setup),
        optimizer=words.optimizer,
        ema_bytes=0 if words.ema is None else _one_of("--ema", words.ema, EMA_BYTES),
        lora=None if words.lora is None else adapters.parse(words.lora),
        frozen_saved=words.frozen_saved,
        ranks=words.ranks,
        pad=None if words.pad is None else _one_of("--pad", words.pad, {str(p): p for p in Padding}),
    )
    answer = estimate(asked)
    desk.answer(_value(answer, every_s), estimate_lines(answer, every_s, desk.look))
    return 0


def list_setups(desk: Desk) -> int:
    """``lifecycle size --setups``"""
    found = {
        "setups": [
            {
                "name": s.name,
                "bytes_a_parameter": None if s.per_param is None else float(s.per_param),
                "optimizer": s.optimizer,
                "precision": s.words,
                "source": s.source,
            }
            for s in SETUPS.values()
        ],
        "optimizers": [
            {"name": o.name, "bytes_a_parameter": None if (rate := o.rate()) is None else float(rate), "keeps": o.words}
            for o in OPTIMIZERS.values()
        ],
    }
    desk.answer(found, setup_lines(SETUPS.values(), OPTIMIZERS.values(), desk.look))
    return 0


def list_models(desk: Desk) -> int:
    """``lifecycle size --models``"""
    found = [models.find(name) for name in NAMED]
    value = {"models": [{"name": m.name, "params": m.params} for m in found], "source": SOURCE}
    desk.answer(value, model_lines(found, desk.look))
    return 0


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as e:
        raise ConfigInvalid(f"--every: {e}", code="usage") from e


def _one_of(option: str, word: str, known: Mapping[str, _T]) -> _T:
    if word.lower() not in known:
        raise ConfigInvalid(f"{option} {shown(word)}: it is one of {', '.join(known)}", code="usage")
    return known[word.lower()]


def _value(answer: Estimate, every_s: int | None) -> dict[str, object]:
    model, setup = answer.asked.model, answer.setup
    told = None if every_s is None else writes(answer, every_s)
    return {
        "model": {"name": model.name, "params": model.params, "how": model.how, "shapes": model.tensors is not None},
        "setup": {
            "name": setup.name,
            "precision": setup.words,
            "optimizer": setup.optimizer,
            "ema_bytes": setup.ema_bytes,
            "source": setup.source,
        },
        "lora": None if answer.asked.lora is None else answer.asked.lora.words,
        "trained_params": answer.trained,
        "roles": answer.roles.items(),
        "total_bytes": answer.roles.total,
        "every_s": every_s,
        "day_bytes": None if told is None else round(told.day_bytes),
        "year_bytes": None if told is None else round(told.year_bytes),
        "formula": answer.formula,
        "assumptions": list(answer.assumptions),
    }
