"""``size``: how large a checkpoint is, by a name, a count, a config.json or the header of a safetensors file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lifecycle.cli.desk import Desk
from lifecycle.core.units import parse_duration
from lifecycle.errors import ConfigInvalid, Place
from lifecycle.render.size import estimate_lines, model_lines, setup_lines, writes
from lifecycle.sizing import adapters, models, safetensors, setups
from lifecycle.sizing.estimate import EMA_BYTES, Asked, Estimate, estimate
from lifecycle.sizing.families import from_config
from lifecycle.sizing.mistakes import SizingError, shown
from lifecycle.sizing.model import Model, count
from lifecycle.sizing.named import NAMED, SOURCE
from lifecycle.sizing.optimizers import OPTIMIZERS
from lifecycle.sizing.padding import Padding
from lifecycle.sizing.setups import SETUPS

CONFIG_MAX_BYTES = 4 * 1024 * 1024
"""The largest honest config.json names some thousand labels."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Words:
    """The command line, as it was typed."""

    model: str | None = None
    config: Path | None = None
    safetensors: Path | None = None
    params: str | None = None
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
        model=_model(words),
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


def _model(words: Words) -> Model:
    given = [w for w in (words.model, words.config, words.safetensors, words.params) if w is not None]
    if len(given) != 1:
        text = "no model is named" if not given else "several models are named: give one of them"
        hint = "lifecycle size 70b, or one of --config FILE, --safetensors FILE, --params N; --models lists names"
        raise ConfigInvalid(text, code="usage", hint=hint)
    if words.config is not None:
        return _of_config(words.config)
    if words.safetensors is not None:
        return _of_safetensors(words.safetensors)
    if words.params is not None:
        counted = count(words.params)
        if counted is None:
            hint = "write 70b, 1.5b or 70e9; a model's name stands without --params"
            raise SizingError(f"--params {shown(words.params)} is no number", code="usage", hint=hint)
        return Model(words.params.strip().lower(), counted)
    return models.find(words.model or "")


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as e:
        raise ConfigInvalid(f"--every: {e}", code="usage") from e


def _one_of(option: str, word: str, known: Mapping[str, _T]) -> _T:
    if word.lower() not in known:
        raise ConfigInvalid(f"{option} {shown(word)}: it is one of {', '.join(known)}", code="usage")
    return known[word.lower()]


# -- files: only what is a plain file is read, and never more of it than its format may need


def _of_config(path: Path) -> Model:
    path = path / "config.json" if path.is_dir() else path
    data = _read(path, 0, CONFIG_MAX_BYTES + 1)
    if len(data) > CONFIG_MAX_BYTES:
        raise SizingError(
            f"{path}: more than {CONFIG_MAX_BYTES:,} bytes: this is no config.json", code="config_invalid"
        )
    try:
        config = json.loads(data)
    except json.JSONDecodeError as e:
        place = Place(str(path), e.lineno, e.colno)
        raise ConfigInvalid(f"no JSON: {e.msg}", place=place, code="config_invalid") from e
    except (ValueError, RecursionError) as e:
        raise SizingError(f"{path}: no JSON that can be read: {e}", code="config_invalid") from e
    if not isinstance(config, dict):
        raise SizingError(f"{path}: no JSON object", code="config_invalid")
    return from_config(config, name=path.absolute().parent.name or path.name, file=str(path))


def _of_safetensors(path: Path) -> Model:
    if path.is_dir():
        whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
        path = index if not whole.exists() and index.exists() else whole
    if path.suffix != ".json":
        return safetensors.from_entries(
            safetensors.entries(_header(path), str(path)), name=path.name, how=f"as the header of {path.name} says"
        )
    data = _read(path, 0, safetensors.INDEX_MAX_BYTES + 1)
    if len(data) > safetensors.INDEX_MAX_BYTES:
        raise SizingError(f"{path}: more than {safetensors.INDEX_MAX_BYTES:,} bytes", code="safetensors_invalid")
    names, metadata = safetensors.shards(data, str(path))
    missing = sorted(name for name in names if not (path.parent / name).exists())
    if len(missing) == len(names):
        return safetensors.from_index(metadata, name=path.name)
    if missing:
        text = f"{path}: {len(missing)} of {len(names)} files are missing, such as {missing[0]}"
        raise SizingError(text, code="safetensors_invalid", hint="--params N needs no file")
    found: dict[str, safetensors.Entry] = {}
    room = safetensors.HEADER_MAX_BYTES  # for all of them: the largest models known need a tenth of it
    for name in sorted(names):
        header = _header(path.parent / name)
        room -= len(header)
        if room < 0:
            text = f"{path}: its files have more than {safetensors.HEADER_MAX_BYTES:,} bytes of headers"
            raise SizingError(text, code="safetensors_invalid")
        found |= safetensors.entries(header, str(path.parent / name))
    return safetensors.from_entries(found, name=path.name, how=f"as the headers of {len(names)} files say")


def _header(path: Path) -> bytes:
    length = safetensors.header_bytes(_read(path, 0, safetensors.LENGTH_BYTES), str(path))
    header = _read(path, safetensors.LENGTH_BYTES, length)
    if len(header) < length:
        text = f"{path}: cut short: its header has {length:,} bytes"
        raise SizingError(text, code="safetensors_invalid")
    return header


def _read(path: Path, offset: int, limit: int) -> bytes:
    """At most ``limit`` bytes of a plain file; links are followed, for that is how a hub's cache lies."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigInvalid(f"{path} is no plain file", code="usage")
            stream.seek(offset)
            return stream.read(limit)
    except OSError as e:
        raise ConfigInvalid(f"{path} cannot be read: {e.strerror}", code="usage") from e


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
