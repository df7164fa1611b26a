"""Values as JSON and back, strictly by their types: what a stranger wrote becomes a value of that type, or an error."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

NUMBER_MAX = 10**300
"""No size, time or inode number is larger; sums of numbers up to here still are floats."""
_ODD = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
"""Metrics may be these, and JSON has no word for them."""


class UnclearError(ValueError):
    """What is not a value of the type that is expected."""


def plain(value: object) -> object:
    """A value as JSON takes it: records as tables of what differs from its default, the rest as it is."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, list | tuple | frozenset):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, frozenset) else items
    if is_dataclass(value) and not isinstance(value, type):
        named = ((name, getattr(value, name), default) for name, default in _defaults(type(value)))
        return {name: plain(found) for name, found, default in named if found != default}
    if type(value) is int:
        return max(-NUMBER_MAX, min(NUMBER_MAX, value))
    return value


@lru_cache(maxsize=64)
def _defaults(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    return tuple((f.name, f.default) for f in fields(kind) if f.init)


Read = Callable[[object], Any]


@lru_cache(maxsize=256)
def reader(hint: Any) -> Read:  # noqa: ANN401 - whatever a type hint may be
    """What reads a value of a type; it raises UnclearError."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, types.UnionType):
        [inner] = [reader(part) for part in parts if part is not type(None)]
        return lambda raw: None if raw is None else inner(raw)
    if kind is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return _many(reader(parts[0]))
    if kind is tuple:
        return _row(tuple, [reader(part) for part in parts])
    if kind in (list, frozenset):
        every = _many(reader(parts[0]))
        return lambda raw: kind(every(raw))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _word(hint)
    if isinstance(hint, type) and issubclass(hint, tuple):
        hints = get_type_hints(hint)
        named: Any = hint  # a NamedTuple
        return _row(named._make, [reader(hints[name]) for name in named._fields])
    if isinstance(hint, type) and is_dataclass(hint):
        return _table(hint)
    return _SIMPLE[kind]


def _bool(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise UnclearError("needs true or false")
    return raw


def _int(raw: object) -> int:
    if type(raw) is not int or not -NUMBER_MAX <= raw <= NUMBER_MAX:
        raise UnclearError("needs a whole number")
    return raw


def _float(raw: object) -> float | int:
    if isinstance(raw, str) and raw in _ODD:
        return _ODD[raw]
    if type(raw) is float:
        return raw
    return _int(raw)


def _str(raw: object) -> str:
    if not isinstance(raw, str):
        raise UnclearError("needs a text")
    return raw


_SIMPLE: dict[object, Read] = {bool: _bool, int: _int, float: _float, str: _str}


def _list(raw: object) -> list[object]:
    if not isinstance(raw, list):
        raise UnclearError("needs a list")
    return raw


def _many(inner: Read) -> Read:
    return lambda raw: tuple(map(inner, _list(raw)))


def _row(make: Callable[[tuple[Any, ...]], object], inner: list[Read]) -> Read:
    def read(raw: object) -> object:
        items = _list(raw)
        if len(items) != len(inner):
            raise UnclearError(f"needs {len(inner)} values")
        return make(tuple([one(item) for one, item in zip(inner, items, strict=True)]))

    return read


def _word(kind: type[StrEnum]) -> Read:
    def read(raw: object) -> StrEnum:
        try:
            return kind(_str(raw))
        except ValueError:
            raise UnclearError(f"is no {kind.__name__.lower()}") from None

    return read


def _table(kind: type[Any]) -> Read:
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind) if f.init}
    needed = {f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING}
    inner: dict[str, Read] = {}

    def read(raw: object) -> object:
        if not inner:  # not before: a record may hold others of its kind
            inner.update((name, reader(hints[name])) for name in known)
        if not isinstance(raw, dict) or not needed <= raw.keys() <= known:
            raise UnclearError(f"is no {kind.__name__.lower()}")
        return kind(**{name: inner[name](value) for name, value in raw.items()})

    return read
