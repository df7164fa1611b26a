"""How values of the core become database rows and come back exactly; nothing here decides."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, fields, make_dataclass, replace
from functools import lru_cache
from typing import Any

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Checkpoint, Evidence, Kind, OnDangle, Pointer, PointerRole, Run, Shape
from lifecycle.layouts.pace import pace_ns
from lifecycle.ports import Memory
from lifecycle.review.regret import How, Release, Sign, Wanted, Way, causes_text, read_causes

INT64_MAX = 2**63 - 1

_encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII only: lone surrogates survive as escapes
_encode_often = lru_cache(maxsize=4096)(_encode)  # few distinct values over many rows

_KINDS = {kind.value: kind for kind in Kind}
_SHAPES = {shape.value: shape for shape in Shape}
_EVIDENCE = {evidence.value: evidence for evidence in Evidence}


def blob(value: str) -> bytes:
    """The bytes a name was decoded from.

    Lone surrogates that no file name decodes to can only come out of somebody's JSON; they are kept
    distinct rather than refused.
    """
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def text(value: bytes) -> str:
    """The inverse of ``blob``."""
    return value.decode("utf-8", "surrogateescape")


def clamp(value: int | None) -> int | None:
    """The nearest integer that a 64-bit column holds."""
    return None if value is None else max(-INT64_MAX, min(INT64_MAX, value))


def _odd(c: Checkpoint) -> dict[str, Any]:
    """Fields whose value no 64-bit column holds: huge numbers, and NaN, which SQLite turns into NULL."""
    numbers = ("step", "epoch", "saved_at_ns", "changed_at_ns", "bytes", "files", "shared_bytes", "inode", "owner")
    values = {name: getattr(c, name) for name in numbers}
    return {k: v for k, v in values.items() if v is not None and not -INT64_MAX <= v <= INT64_MAX}


def signed(inode: int) -> int:
    """An inode number in a signed column: file systems use all 64 bits, and different ones stay different."""
    return ((inode + 2**63) & (2**64 - 1)) - 2**63


def checkpoint_row(c: Checkpoint) -> tuple[Any, ...]:
    """The columns ``key``, CHECKPOINT_FACTS and COPY_FACTS of a checkpoint, in this order."""
    epoch, step, owner = c.epoch, c.step, c.owner
    saved_ns, changed_ns, size, files, shared, inode = (
        c.saved_at_ns, c.changed_at_ns, c.bytes, c.files, c.shared_bytes, c.inode,
    )  # fmt: skip
    odd = None
    integers = (saved_ns, changed_ns, size, files, shared, inode, step or 0, owner or 0)
    fits = max(integers) <= INT64_MAX and min(integers) >= -INT64_MAX
    if not fits or not (epoch is None or -INT64_MAX <= epoch <= INT64_MAX):
        odd = _encode(_odd(c))
        epoch = None if "epoch" in _odd(c) else epoch
        step, owner = clamp(step), clamp(owner)
        saved_ns, changed_ns, size, files, shared = (
            max(-INT64_MAX, min(INT64_MAX, n)) for n in (saved_ns, changed_ns, size, files, shared)
        )
        inode = signed(inode)
    return (
        blob(c.key),
        blob(c.name),
        blob(c.layout),
        c.kind._value_,  # `value`, a property, is slower than encoding a name
        step,
        0.0 if epoch == 0 else epoch,  # without its sign: one kind of database keeps that, another does not
        saved_ns,
        _metrics_text(c) if c.metrics else None,
        _encode_often(c.tags) if c.tags else None,
        _encode_often(c.parts) if c.parts else None,
        _encode(c.needs) if c.needs else None,
        odd,
        c.shape._value_,
        c.evidence._value_,
        changed_ns,
        size,
        files,
        shared,
        blob(c.fingerprint),
        inode,
        owner,
        _encode(c.members) if c.members else None,
        None if c.proof is None else blob(c.proof),
        _encode_often(c.why) if c.why else None,
        _encode_often(c.flags) if c.flags else None,
        c.online,
        c.storage_class or None,
        blob(c.home) if c.home else b"",
        blob(c.copy_id) if c.copy_id else b"",
    )


_decode = json.JSONDecoder().raw_decode  # what we wrote ourselves has no white space around it


def _strings(value: str | None) -> tuple[str, ...]:
    return tuple(_decode(value)[0]) if value else ()


def _pairs(value: str | None) -> tuple[tuple[str, Any], ...]:
    return tuple([(k, v) for k, v in _decode(value)[0]]) if value else ()


def _metrics_text(c: Checkpoint) -> str:
    """The metrics, and behind them where each comes from: one text for all, or one a metric.

    It is a second value in the same column, for an engine that does not know it reads the first and no further.
    """
    sources = c.metrics_from
    told = "" if not any(sources) else _encode_often(sources[0] if len(set(sources)) == 1 else sources)
    return _encode(c.metrics) + told


def _origins(value: str) -> tuple[str, ...]:
    found, end = _decode(value)
    told = _source_often(value[end:]) if end < len(value) else ()
    return (told,) * len(found) if isinstance(told, str) else told


@lru_cache(maxsize=4096)
def _source_often(value: str) -> str | tuple[str, ...]:
    told = _decode(value)[0]
    return told if isinstance(told, str) else tuple(told)


_pairs_often = lru_cache(maxsize=4096)(_pairs)


@lru_cache(maxsize=4096)
def _sentence(value: str | None) -> str:
    return str(_decode(value)[0]) if value else ""


# A frozen dataclass stores every field by a call; with 32 of them that is most of the time of reading an index. This is
# the same class, but open: one is filled, and then becomes a Checkpoint.
_Open: Any = make_dataclass("_Open", [field.name for field in fields(Checkpoint)], slots=True)


def read_checkpoint(store: str, run: str, row: Sequence[Any], home: str = "", copy_id: str = "") -> Checkpoint:
    """The inverse of ``checkpoint_row``; ``row`` holds what the driver gave: bytes where a Name stands.

    The last two columns, whose copy it is, come by themselves, for few rows have them.
    """
    (
        key, name, layout, kind, step, epoch, saved_ns, metrics, tags, parts, needs, odd, shape, evidence,
        changed_ns, size, files, shared, fingerprint, inode, owner, members, proof, why, flags, online,
        storage_class, *_,
    ) = row  # fmt: skip
    key = key.decode("utf-8", "surrogateescape")  # as `text` does, without half a million calls of it
    found = _Open(
        store=store,
        run=run,
        key=key,
        name=name.decode("utf-8", "surrogateescape"),
        layout=text(layout),
        shape=_SHAPES[shape],
        evidence=_EVIDENCE[evidence],
        kind=_KINDS[kind],
        step=step,
        epoch=epoch,
        saved_at_ns=saved_ns,
        changed_at_ns=changed_ns,
        bytes=size,
        files=files,
        shared_bytes=shared,
        fingerprint=text(fingerprint),
        inode=inode,
        owner=owner,
        members=_strings(members),
        proof=None if proof is None else text(proof),
        why=_sentence(why),
        metrics=_pairs(metrics),
        metrics_from=_origins(metrics) if metrics else (),
        tags=_pairs_often(tags),
        parts=_pairs_often(parts),
        needs=_strings(needs),
        flags=_strings(flags),
        online=bool(online),
        storage_class=storage_class or "",
        home=home,
        copy_id=copy_id,
        here=True,
        elsewhere=(),
        id=f"{store}:{key}",
    )
    found.__class__ = Checkpoint
    checkpoint: Checkpoint = found
    return replace(checkpoint, **json.loads(odd)) if odd else checkpoint


def run_facts(run: Run) -> str:
    """Everything of a run that is neither its checkpoints nor a column."""
    pointers = [(p.key, p.role.value, p.target, p.text, p.form, p.on_dangle.value, p.flags) for p in run.pointers]
    return _encode((run.active_at_ns, pointers, run.holds, run.leases, run.writing, run.flags))


def read_pointers(store: str, path: str, facts: str) -> tuple[Pointer, ...]:
    """The pointers out of ``run_facts``."""
    return tuple(
        Pointer(store, path, key, PointerRole(role), target, held, form, OnDangle(dangle), tuple(flags))
        for key, role, target, held, form, dangle, flags in json.loads(facts)[1]
    )


def read_run(store: str, path: str, facts: str, checkpoints: tuple[Checkpoint, ...], *, complete: bool) -> Run:
    """The inverse of ``run_facts``."""
    active, _, holds, leases, writing, flags = json.loads(facts)
    return Run(
        store=store,
        path=path,
        checkpoints=checkpoints,
        pointers=read_pointers(store, path, facts),
        active_at_ns=active,
        complete=complete,
        holds=tuple(holds),
        leases=tuple((key, at) for key, at in leases),
        writing=tuple((key, at) for key, at in writing),
        flags=tuple((key, code) for key, code in flags),
        pace_ns=pace_ns(checkpoints),
    )


def memory_blob(memory: Memory | None) -> bytes | None:
    """What is remembered of a run's directories, compressed."""
    if memory is None:
        return None
    return zlib.compress(_encode([memory.stamps, memory.inside]).encode("ascii"), 1)


def read_memory(value: bytes | None) -> Memory | None:
    """The inverse of ``memory_blob``."""
    if value is None:
        return None
    stamps, inside = json.loads(zlib.decompress(value))
    return Memory(tuple(inside), stamps)


def action_text(action: Action) -> str:
    """An action as the journal keeps it."""
    return _encode(asdict(action))


_OF_ACTIONS = frozenset(field.name for field in fields(Action))


def read_action(value: str) -> Action:
    """The inverse of ``action_text``; fields that a later engine added are passed over."""
    values: dict[str, Any] = {k: v for k, v in json.loads(value).items() if k in _OF_ACTIONS}
    values |= {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
    values |= {"verb": Verb(values["verb"]), "shape": Shape(values["shape"])}
    return Action(**values)


def wanted_row(want: Wanted) -> dict[str, Any]:
    """Something wanted again, as a row."""
    release = want.release
    return {
        "sign": want.sign.value,
        "at_ns": clamp(want.at_ns),
        "checkpoint": release.id,
        "plan": release.plan,
        "released_at_ns": clamp(release.at_ns),
        "how": release.how.value,
        "bytes": clamp(release.bytes),
        "policies": _encode(release.policies),
        "causes": causes_text(release.causes),
        "way": want.way.value,
        "by": want.by,
        "host": want.host,
        "reason": want.reason,
    }


def read_wanted(row: Any) -> Wanted:  # noqa: ANN401 - any columns
    """The inverse of ``wanted_row``."""
    release = Release(
        plan=row.plan,
        id=row.checkpoint,
        at_ns=row.released_at_ns,
        how=How(row.how),
        bytes=row.bytes,
        policies=tuple(json.loads(row.policies)),
        causes=read_causes(row.causes),
    )
    return Wanted(Sign(row.sign), row.at_ns, release, Way(row.way), row.by, row.host, row.reason)
