"""Reads the model that is meant: a name, a count, a config.json, or the headers of safetensors files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import NamedTuple

from lifecycle.errors import ConfigInvalid, Place
from lifecycle.sizing import models, safetensors
from lifecycle.sizing.families import from_config
from lifecycle.sizing.mistakes import SizingError, shown
from lifecycle.sizing.model import Model, count

CONFIG_MAX_BYTES = 4 * 1024 * 1024
"""The largest honest config.json names some thousand labels."""


class Named(NamedTuple):
    """A model as the command line names it: one of the four, or none."""

    model: str | None = None
    config: Path | None = None
    safetensors: Path | None = None
    params: str | None = None

    @property
    def given(self) -> int:
        """How many of them are."""
        return sum(word is not None for word in self)


def model_of(named: Named, hint: str) -> Model:
    """The model that is named.

    Raises:
        ConfigInvalid: none is, or several are, which ``hint`` helps with; or it cannot be read or counted.
    """
    if named.given != 1:
        text = "no model is named" if not named.given else "several models are named: give one of them"
        raise ConfigInvalid(text, code="usage", hint=hint)
    if named.config is not None:
        return _of_config(named.config)
    if named.safetensors is not None:
        return _of_safetensors(named.safetensors)
    if named.params is not None:
        counted = count(named.params)
        if counted is None:
            hint = "write 70b, 1.5b or 70e9; a model's name stands without --params"
            raise SizingError(f"--params {shown(named.params)} is no number", code="usage", hint=hint)
        return Model(named.params.strip().lower(), counted)
    return models.find(named.model or "")


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
