"""Counts a model from the header of a safetensors file: eight bytes of length, then JSON; and from an index of shards.

The format: github.com/huggingface/safetensors, README. Nothing but headers is read, and the data stays where it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple, TypeGuard

from lifecycle.sizing.mistakes import SizingError, shown
from lifecycle.sizing.model import PARAMS_MAX, Model
from lifecycle.sizing.tensors import Part, Tensor

LENGTH_BYTES = 8
HEADER_MAX_BYTES = 100_000_000
"""The format's own limit."""
INDEX_MAX_BYTES = 64 * 1024 * 1024
SHARDS_MAX = 4096

BITS = {"F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "BF16": 16, "F16": 16, "I16": 16, "U16": 16}
BITS |= {"F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8, "F4": 4, "C64": 64}
BITS |= {"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6}
_WHOLE = frozenset({"I64", "U64", "I32", "U32", "I16", "U16", "I8", "U8", "BOOL"})

_EMBEDDING = re.compile(
    r"(.*_)?embeddings?|embed_(tokens|in|positions)|tok_embeddings|wte|wpe|shared|relative_attention_bias"
)
_HEAD = re.compile(r"lm_head|embed_out|output|score|classifier|shared_head|decoder")


class Entry(NamedTuple):
    """One tensor as a header has it."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int


def header_bytes(head: bytes, file: str) -> int:
    """How long the header is that follows the first eight bytes.

    Raises:
        SizingError: it is no safetensors file.
    """
    length = int.from_bytes(head[:LENGTH_BYTES], "little") if len(head) >= LENGTH_BYTES else 0
    if not 2 <= length <= HEADER_MAX_BYTES:
        raise _wrong(file, f"is no safetensors file: its header would have {length:,} bytes")
    return length


def entries(header: bytes, file: str) -> dict[str, Entry]:
    """The tensors of a header, by name.

    Raises:
        SizingError: it is no JSON, or a tensor's shape, type and place do not fit together.
    """
    found: dict[str, Entry] = {}
    for name, value in _json(header, file).items():
        if name != "__metadata__":
            found[name] = _entry(name, value, file)
    if not found:
        raise _wrong(file, "holds no tensors")
    return found


def _entry(name: str, value: object, file: str) -> Entry:
    data = value if isinstance(value, dict) else {}
    dtype, shape, ends = data.get("dtype"), data.get("shape"), data.get("data_offsets")
    bits = BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise _wrong(file, f"{shown(name)} has the dtype {shown(dtype)}, which nobody knows")
    if not _wholes(shape) or not _wholes(ends) or len(ends) != 2:
        raise _wrong(file, f"{shown(name)} has no shape or no place")
    elements, size = prod(shape), ends[1] - ends[0]
    if elements > PARAMS_MAX or -(-elements * bits // 8) != size:
        raise _wrong(file, f"{shown(name)} of shape {shown(shape)} cannot have {size:,} bytes")
    return Entry(str(dtype), tuple(shape), size)


def shards(index: bytes, file: str) -> tuple[frozenset[str], Mapping[str, object]]:
    """The files that an index names, and what it says of the whole.

    Raises:
        SizingError: it is no index, or names something that is no file beside it.
    """
    data = _json(index, file)
    placed, metadata = data.get("weight_map"), data.get("metadata")
    if not isinstance(placed, dict) or not placed:
        raise _wrong(file, "is no index of safetensors: it has no weight_map")
    names = frozenset(str(name) for name in placed.values())
    odd = sorted(name for name in names if not re.fullmatch(r"[\w.-]+\.safetensors", name) or name.startswith("."))
    if odd:
        raise _wrong(file, f"names {shown(odd[0])}, which is no file beside it")
    if len(names) > SHARDS_MAX:
        raise _wrong(file, f"names {len(names):,} files: more than {SHARDS_MAX:,}")
    return names, metadata if isinstance(metadata, dict) else {}


def from_entries(found: Mapping[str, Entry], *, name: str, how: str) -> Model:
    """The model whose tensors these are. Raises SizingError: it holds more than any model."""
    tensors = _grouped(_tensor(key, entry) for key, entry in sorted(found.items()) if prod(entry.shape))
    count, stored = sum(prod(e.shape) for e in found.values()), sum(e.bytes for e in found.values())
    if not 0 < count <= PARAMS_MAX:
        raise _wrong(name, f"holds {count:,} numbers, which is no model")
    kinds: dict[str, int] = {}
    for entry in found.values():
        kinds[entry.dtype] = kinds.get(entry.dtype, 0) + prod(entry.shape)
    told = ", ".join(f"{kind} {n:,}" for kind, n in sorted(kinds.items(), key=lambda item: -item[1]))
    notes = [f"as stored: {stored:,} B of tensors ({told})"]
    if any(kind in _WHOLE for kind in kinds):
        notes.append("it holds whole numbers: where these are packed weights, they are more parameters than elements")
    return Model(name, count, tensors, how, tuple(notes))


def from_index(metadata: Mapping[str, object], *, name: str) -> Model:
    """A model of which only the index is there: no shapes, and a count where the index has one or its bytes.

    Raises:
        SizingError: the index has neither.
    """
    said, size = metadata.get("total_parameters"), metadata.get("total_size")
    if _count(said):
        return Model(name, said, how=f"total_parameters of {name}")
    if _count(size):
        note = f"{name} has only bytes ({size:,}) and its files are not here: taken as 2 bytes a parameter"
        return Model(name, size // 2, how=f"total_size of {name}", notes=(note,))
    raise _wrong(name, "says neither total_parameters nor total_size, and the files it names are not here")


def _count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= 8 * PARAMS_MAX


def _tensor(name: str, entry: Entry) -> Tensor:
    path = name.removesuffix(".weight").removesuffix(".bias").split(".")
    module, shape = path[-1], entry.shape
    if module in {"default", "lora_A", "lora_B"} and len(path) > 1:
        module = next((part for part in reversed(path) if part not in {"default", "lora_A", "lora_B"}), module)
    return Tensor(module, shape, 1, _part(name, module, path, len(shape)))


def _part(name: str, module: str, path: list[str], dimensions: int) -> Part:
    if "experts" in path and dimensions in {2, 3} and not name.endswith(".bias"):
        return Part.EXPERT
    if dimensions != 2 or name.endswith(".bias"):
        return Part.SMALL
    if _EMBEDDING.fullmatch(module):
        return Part.EMBEDDING
    if _HEAD.fullmatch(module) and len(path) <= 2:
        return Part.HEAD
    if module in {"gate", "router", "shared_expert_gate"}:
        return Part.ROUTER
    return Part.SMALL if module in {"A_log", "qmap", "scales", "qzeros"} else Part.LINEAR


def _grouped(tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Equal ones together: a hundred layers are one line."""
    counts: dict[Tensor, int] = {}
    for tensor in tensors:
        counts[tensor] = counts.get(tensor, 0) + 1
    return tuple(tensor._replace(times=n) for tensor, n in counts.items())


def _wholes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value)


def _json(data: bytes, file: str) -> dict[str, object]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise _wrong(file, "holds no JSON that can be read") from e
    if not isinstance(value, dict):
        raise _wrong(file, "holds no JSON object")
    return value


def _wrong(file: str, what: str) -> SizingError:
    return SizingError(f"{file}: {what}", code="safetensors_invalid", hint="--params N needs no file")
