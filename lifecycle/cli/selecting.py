"""What people type, turned into what the index knows: stores, runs, checkpoints, times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from lifecycle.cli.spelling import spelt
from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.select import glob
from lifecycle.core.units import escape, parse_duration
from lifecycle.errors import ConfigInvalid, NotFound
from lifecycle.flows.propose import run_of, runs_of
from lifecycle.flows.undo import lying
from lifecycle.layouts.unions import roots_of
from lifecycle.ports import Reader
from lifecycle.world import World

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What ``ls`` is asked for; None asks for all."""

    selector: str | None = None
    store: str | None = None
    layout: str | None = None
    status: str | None = None
    kind: str | None = None
    older: str | None = None
    limit: int | None = None


class Found(NamedTuple):
    """What a name means: a checkpoint in its run, or a place with runs at or below it."""

    id: str
    run: Run | None
    checkpoint: Checkpoint | None


def known_stores(world: World, names: list[str]) -> list[str]:
    """``names``, if all are stores here. Raises ConfigInvalid."""
    for name in names:
        if name not in world.stores:
            known = ", ".join(sorted(world.stores))
            raise ConfigInvalid(f"there is no store {name!a}", code="usage", hint=f"stores here: {known}")
    return names


def moment(text: str, now_ns: int) -> int:
    """A time: ``8h`` from now, ``2026-01-31`` or ``2026-01-31T06:00Z``, in UTC.

    Raises:
        ConfigInvalid: it is neither.
    """
    try:
        return now_ns + parse_duration(text) * SECOND_NS
    except ValueError as e:
        why = str(e)
    if text[:1].isdigit() and "-" in text:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            return int(at.timestamp()) * SECOND_NS
        why = f'"{escape(text)}" is not a date: write 2026-01-31 or 2026-01-31T06:00Z'
    raise ConfigInvalid(why, code="usage")


def identity(world: World, text: str) -> str:
    """``store:key`` for what was typed: that itself, a path below a local root, or a key where one store is.

    A name that no screen can show may be typed as it was shown.

    Raises:
        ConfigInvalid: it lies in no store, or could lie in several, or could be two names.
    """
    store, colon, key = text.partition(":")
    if colon and store in world.stores:
        return f"{store}:{_meant(world, store, key)}"
    if text.startswith(("/", "./", "../", "~")) or (os.path.lexists(text) and "/" in text):
        path = Path(os.path.abspath(os.path.expanduser(text)))
        for name, one in world.stores.items():
            roots = [url.removeprefix("file://") for url in roots_of(one.url) if url.startswith("file://")]
            for base in dict.fromkeys(Path(path) for root in roots for path in (root, os.path.realpath(root))):
                if path.is_relative_to(base):
                    inside = path.relative_to(base).as_posix()
                    return f"{name}:{'' if inside == '.' else _meant(world, name, inside)}"
        raise ConfigInvalid(f"{text!a} lies in no store here", code="usage", hint=_stores(world))
    if len(world.stores) == 1:
        store = next(iter(world.stores))
        return f"{store}:{_meant(world, store, text)}"
    raise ConfigInvalid(f"{text!a} does not say which store", code="usage", hint=f"STORE:KEY; {_stores(world)}")


def _meant(world: World, store: str, typed: str) -> str:
    """The key for what was typed: slashes around it are no part of it, unless something has them in its name."""
    plain = typed.strip("/")
    shown = spelt(typed)
    if not shown and plain == typed:
        return plain
    readings = (
        next((key for key in (name, name.strip("/")) if _known(world, store, key)), None) for name in (typed, *shown)
    )
    known = [key for key in dict.fromkeys(readings) if key is not None]
    if len(known) > 1:
        hint = "write each backslash of a name as two, or type the characters themselves"
        raise ConfigInvalid(f"{typed!a} may be two names in store {store}", code="usage", hint=hint)
    return known[0] if known else plain


def _known(world: World, store: str, key: str) -> bool:
    """Whether the index or the trash has something of this name, or below it."""
    reader, below = world.index.reader, f"{key}/"
    for run in runs_above(reader, store, key):
        if any(key == c.key or key in c.members for c in run.checkpoints):
            return True
    if any(run.path == key or run.path.startswith(below) for run in runs_of(reader, (store,))):
        return True
    trash = {name: one for name, one in world.trashes.items() if name == store}
    return any(entry.key == key or entry.key.startswith(below) for _, entry in lying(trash))


def _stores(world: World) -> str:
    return "stores here: " + ", ".join(f"{name} ({one.url})" for name, one in sorted(world.stores.items()))


def find(world: World, text: str) -> Found:
    """What ``text`` names in the index.

    Raises:
        NotFound: nothing there answers to it, with what is close in the hint.
    """
    reader = world.index.reader
    wanted = identity(world, text)
    store, _, key = wanted.partition(":")
    for run in runs_above(reader, store, key):
        for c in run.checkpoints:
            if c.key == key or key in c.members:
                return Found(c.id, run, c)
    at = run_of(reader, store, key)
    if at is not None or not key or any(run.path.startswith(key + "/") for run in runs_of(reader, (store,))):
        return Found(wanted, at, None)
    raise NotFound(
        f"the index knows no run or checkpoint {wanted!a}", code="unknown_target", hint=_close(world, wanted)
    )


def runs_above(reader: Reader, store: str, key: str) -> Iterator[Run]:
    """Runs that ``key`` may be a checkpoint of, the nearest first."""
    path = key
    while path:
        path = path.rpartition("/")[0]
        run = run_of(reader, store, path)
        if run is not None:
            yield run


def _close(world: World, wanted: str) -> str:
    store, _, key = wanted.partition(":")
    reader = world.index.reader
    near = next(runs_above(reader, store, key), None)
    names = [c.id for c in near.checkpoints] if near else [run.id for run in runs_of(reader, (store,))]
    close = get_close_matches(wanted, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}? Is it newer than the last scan: lifecycle scan"
    return "`lifecycle ls` lists runs, `lifecycle ls RUN` its checkpoints; new ones need a `lifecycle scan`"


def matches(pattern: str | None, text: str) -> bool:
    """Whether ``text`` is what ``pattern`` globs; everything is where there is none."""
    return pattern is None or bool(glob(pattern).fullmatch(text))
