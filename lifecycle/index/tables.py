"""The tables of the index, as the newest migration leaves them, and the temporary ones a scan is gathered in."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
)

from lifecycle.index.columns import NO_BYTES, Id, Name, Wide, metadata
from lifecycle.index.columns import required as _required

__all__ = ["NO_BYTES", "Name", "metadata"]  # what else goes with tables


class State(StrEnum):
    """What has become of a copy."""

    PRESENT = "present"
    MISSING = "missing"
    """A scan that could see its place found it gone, and it was not us."""
    MOVED = "moved"
    """It stands under another key now; that row carries on its checkpoint."""
    RETIRED = "retired"
    PURGED = "purged"


meta = Table("meta", metadata, Column("name", String(32), primary_key=True), _required("value", BigInteger))

leases = Table(
    "leases",
    metadata,
    Column("name", String(32), primary_key=True),
    _required("holder", Name),
    _required("fence", BigInteger),
    _required("expires_at_ns", BigInteger),
)

stores = Table(
    "stores",
    metadata,
    Column("id", Id, primary_key=True),
    _required("name", Name),
    _required("url", Name),
    _required("identity", Name),
    _required("scanned_at_ns", BigInteger),
    _required("scans", BigInteger),
    UniqueConstraint("name"),
)

scans = Table(
    "scans",
    metadata,
    Column("id", Id, primary_key=True),
    _required("store_id", Id, ForeignKey("stores.id")),
    _required("started_at_ns", BigInteger),
    Column("ended_at_ns", BigInteger),  # NULL: still going on, or cut short
    Column("complete", Boolean),
    Column("added", BigInteger),
    Column("changed", BigInteger),
    Column("missing", BigInteger),
    Column("unchanged", BigInteger),
    Index(None, "store_id"),
)

usage = Table(
    "usage",
    metadata,
    Column("scan_id", Id, ForeignKey("scans.id"), primary_key=True, autoincrement=False),
    _required("store_id", Id, ForeignKey("stores.id")),
    _required("at_ns", BigInteger),
    Column("size_bytes", BigInteger),
    Column("free_bytes", BigInteger),
    Column("inodes", BigInteger),
    Column("inodes_free", BigInteger),
    Column("ours_bytes", BigInteger),  # of present checkpoints; NULL: an older engine did not count them
    Index(None, "store_id", "at_ns"),
)

forecasts = Table(
    "forecasts",
    metadata,
    Column("id", Id, primary_key=True),
    _required("store_id", Id, ForeignKey("stores.id")),
    _required("made_at_ns", BigInteger),
    _required("every_s", BigInteger),  # from plan to plan, as it was taken for granted
    _required("days", BigInteger),  # how far ahead
    _required("scope", String(8)),  # what is counted: all that is used, or checkpoints of ours
    _required("low_bytes", BigInteger),
    _required("middle_bytes", BigInteger),
    _required("high_bytes", BigInteger),
    Index(None, "store_id", "made_at_ns"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True),
    _required("store_id", Id, ForeignKey("stores.id")),
    _required("path", Name),
    _required("present", Boolean),
    _required("complete", Boolean),
    _required("digest", Name),  # empty: the next scan must look at the run again
    _required("facts", Text),
    Column("memory", LargeBinary),
    UniqueConstraint("store_id", "path"),
)


def _checkpoint_facts() -> list[Column[Any]]:
    """What is true of a checkpoint wherever it lies; empty tuples are NULL."""
    return [
        _required("name", Name),
        _required("layout", Name),
        _required("kind", String(16)),
        Column("step", BigInteger),
        Column("epoch", Float(53)),
        _required("saved_at_ns", BigInteger),
        Column("metrics", Text),
        Column("tags", Text),
        Column("parts", Text),
        Column("needs", Text),
        Column("odd", Text),  # values that their own column cannot hold, by field
    ]


def _origin() -> list[Column[Any]]:
    """Whose copy it is and by which name; both empty for what was saved where it stands."""
    return [_required("home", Name), _required("copy_id", Name)]


def _copy_facts() -> list[Column[Any]]:
    """What is true of one copy at its place."""
    return [
        _required("shape", String(8)),
        _required("evidence", String(16)),
        _required("changed_at_ns", BigInteger),
        _required("bytes", BigInteger),
        _required("files", BigInteger),
        _required("shared_bytes", BigInteger),
        _required("fingerprint", Name),
        _required("inode", BigInteger),
        Column("owner", BigInteger),
        Column("members", Text),
        Column("proof", Name),
        Column("why", Text),
        Column("flags", Text),
        _required("online", Boolean),
        Column("storage_class", Text),
        *_origin(),
    ]


CHECKPOINT_FACTS = tuple(column.name for column in _checkpoint_facts())
COPY_FACTS = tuple(column.name for column in _copy_facts())
ORIGIN = tuple(column.name for column in _origin())

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    _required("run_id", Id, ForeignKey("runs.id")),
    *_checkpoint_facts(),
    Index(None, "run_id"),
)

copies = Table(
    "copies",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    _required("checkpoint_id", Id, ForeignKey("checkpoints.id")),
    _required("store_id", Id, ForeignKey("stores.id")),
    _required("key", Name),
    _required("state", String(8)),
    _required("since_ns", BigInteger),  # when it came to be in this state
    _required("scan", BigInteger),  # that last wrote the row, not that last saw it
    *_copy_facts(),
    UniqueConstraint("store_id", "key"),
    Index(None, "checkpoint_id"),
    Index(None, "home", sqlite_where=literal_column("home <> x''")),  # copies only: most rows are none
    Index(None, "store_id", "state", "inode"),
)

holds = Table(
    "holds",
    metadata,
    Column("id", Name, primary_key=True),
    _required("target", Name),
    _required("owner", Name),
    _required("reason", Name),
    _required("created_at_ns", Wide),
    Column("until_ns", Wide),
    _required("inode", Wide),
)

checks = Table(
    "checks",
    metadata,
    Column("id", Id, primary_key=True),
    _required("store", Name),
    _required("key", Name),
    _required("copy_id", Name),
    _required("at_ns", BigInteger),
    _required("outcome", String(8)),
    _required("note", Name),
    Index(None, "copy_id"),
)

restores = Table(
    "restores",
    metadata,
    Column("id", Id, primary_key=True),
    _required("store", Name),
    _required("key", Name),
    _required("copy_id", Name),
    _required("at_ns", BigInteger),
    _required("state", String(8)),
    _required("asked_at_ns", BigInteger),  # 0: it was not us
    _required("until_ns", BigInteger),  # 0: not known
    _required("speed", String(16)),
    Index(None, "copy_id"),
)

journal = Table(
    "journal",
    metadata,
    Column("id", Id, primary_key=True),
    _required("plan", Name),
    _required("store", Name),
    _required("key", Name),
    _required("trash_id", Name),
    _required("action", Text),
    _required("started_at_ns", BigInteger),
    Column("ended_at_ns", BigInteger),
    _required("outcome", String(8)),
    _required("note", Name),
    _required("fence", BigInteger),
    _required("host", Name),
    _required("engine", Name),
    Column("causes", Text),  # the rules that let it go, as JSON; NULL: none, or an older engine did not say
    UniqueConstraint("plan", "store", "key", "trash_id"),  # no two processes start the same act
    Index(None, "store", "key"),
    Index(None, "outcome"),
    sqlite_autoincrement=True,  # the number of a row is never given out again
)

wanted = Table(
    "wanted",
    metadata,
    Column("id", Id, primary_key=True),
    _required("sign", String(8)),
    _required("at_ns", BigInteger),
    _required("checkpoint", Name),  # store:key by its home
    _required("plan", Name),
    _required("released_at_ns", BigInteger),  # this and the next four as the journal had them: it may be lost
    _required("how", String(8)),
    _required("bytes", BigInteger),
    _required("policies", Text),
    _required("causes", Text),
    _required("way", String(16)),
    _required("by", Name),
    _required("host", Name),
    _required("reason", Name),
    UniqueConstraint("plan", "checkpoint", "sign"),  # a job that tries again and again says it once
    Index(None, "checkpoint"),
)

ticks = Table(
    "ticks",
    metadata,
    Column("id", Id, primary_key=True),
    _required("started_at_ns", BigInteger),
    Column("ended_at_ns", BigInteger),  # NULL: at work, or cut short
    _required("host", Name),
    _required("engine", Name),
    Column("exit_code", Integer),
    _required("plan", Name),  # empty: none was made
    _required("facts", Text),  # its stages, as JSON
    sqlite_autoincrement=True,  # the number of a tick is never given out again
)

notices = Table(
    "notices",
    metadata,
    Column("signature", String(64), primary_key=True),
    _required("subject", Name),
    _required("since_ns", BigInteger),
    _required("due_ns", BigInteger),
)

requests = Table(
    "requests",
    metadata,
    Column("id", String(64), primary_key=True),  # of what is asked for: the same again is the same request
    _required("plan", Name),
    _required("asked_at_ns", BigInteger),
    _required("asked", Boolean),  # whether the newest tick asks for just this
    _required("actions", BigInteger),
    _required("bytes", BigInteger),
    _required("content", Text),  # the actions, as JSON
)

answers = Table(
    "answers",
    metadata,
    Column("id", Id, primary_key=True),
    _required("request", String(64)),
    _required("word", String(8)),
    _required("by", Name),
    _required("typed_by", Name),
    _required("at_ns", BigInteger),
    _required("until_ns", BigInteger),
    Index(None, "request"),
    sqlite_autoincrement=True,  # the order in which people spoke
)

approved = Table(
    "approved",
    metadata,
    Column("signature", String(64), primary_key=True),
    _required("request", String(64)),
    _required("since_ns", BigInteger),
    _required("until_ns", BigInteger),
)

staging = MetaData()

staged_runs = Table(
    "staged_runs",
    staging,
    Column("id", Id, primary_key=True, autoincrement=False),
    _required("path", Name),
    _required("complete", Boolean),
    _required("digest", Name),
    _required("facts", Text),
    Column("memory", LargeBinary),
    Column("run_id", Id),
    prefixes=["TEMPORARY"],
)

staged = Table(
    "staged",
    staging,
    Column("id", Id, primary_key=True, autoincrement=False),
    _required("run", Id),
    _required("key", Name),
    *_checkpoint_facts(),
    *_copy_facts(),
    prefixes=["TEMPORARY"],
)

differing = Table(
    "differing",
    staging,
    Column("staged_id", Id, primary_key=True, autoincrement=False),
    _required("checkpoint_id", Id),
    _required("copy_id", Id),
    _required("present", Boolean),
    prefixes=["TEMPORARY"],
)
