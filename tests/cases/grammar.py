"""Reads a case file into values: trees, ages, index rows, events and expectations. Its header is the grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

SECOND_NS = 1_000_000_000
UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 365 * 86_400}
AGE = re.compile(r"(-?)((?:\d+(?:\.\d+)?[smhdwy])+|0)")

MOMENTS = ("before_scan", "during_scan", "after_plan", "during_copy", "during_apply", "concurrent", "after_crash")


class Unsupported(Exception):
    """The case says something that this harness, or the engine, has no word for."""


class NeedsMore(Exception):
    """The case needs a part of the engine that does not exist yet: tiers, capacity goals, schedules."""


class NeedsRoot(NeedsMore):
    """The case needs other owners' files, which only root can lay down."""


class Raw(str):
    """A scalar that YAML readers disagree about, as it was written: it goes into our policy file unchanged."""


def age_ns(text: object) -> int:
    """An age such as ``1h30m`` in nanoseconds; negative ages lie in the future."""
    found = AGE.fullmatch(str(text))
    if not found:
        raise Unsupported(f"age {text!r}")
    seconds = sum(float(n) * UNIT_S[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smhdwy])", found[2]))
    return int(seconds * SECOND_NS) * (-1 if found[1] else 1)


def moment_ns(value: object) -> int:
    """A date of the file in nanoseconds since the epoch."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if isinstance(value, datetime):
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
        return int(value.timestamp()) * SECOND_NS
    if value is not None and hasattr(value, "isoformat"):
        return moment_ns(f"{value.isoformat()}T00:00:00+00:00")
    raise Unsupported(f"date {value!r}")


@dataclass(slots=True)
class Entry:
    """One line of a tree."""

    path: str
    size: int = 0
    age_ns: int = 0
    content: str | None = None
    kind: str = ""
    """``zip``, ``zipcut``, ``link``, ``hard``, ``dir``, ``mpu``, ``marker``, ``fifo`` or empty."""
    target: str = ""
    uid: int | None = None
    storage_class: str = ""
    etag: str = ""
    version: str = ""
    latest: bool = True
    lock: dict[str, Any] | None = None
    restore: str = ""
    tags: dict[str, str] = field(default_factory=dict)


ENTRY_KEYS = {
    "p", "k", "s", "age", "c", "kind", "link", "hard", "dir", "uid", "count", "etag", "cls", "vid", "latest",
    "marker", "lock", "restore", "mpu", "tags", "mode", "nlink", "inode", "fifo",
}  # fmt: skip


def entries(tree: list[Any]) -> Iterator[Entry]:
    """The lines of a tree, counted ones written out."""
    for line in tree:
        if isinstance(line, str):
            path, size, age = line.rsplit(None, 2)
            yield Entry(path, int(size), age_ns(age))
            continue
        if unknown := set(line) - ENTRY_KEYS:
            raise Unsupported(f"tree key {', '.join(sorted(unknown))}")
        path = line.get("p", line.get("k"))
        names = [path % n for n in range(int(line["count"]))] if "count" in line else [path]
        for name in names:
            yield _entry(str(name), line)


def _entry(path: str, line: dict[str, Any]) -> Entry:
    kind, target = str(line.get("kind", "")), ""
    if kind not in ("", "zip", "zipcut"):
        raise Unsupported(f"kind {kind}")
    for word in ("link", "hard"):
        if word in line:
            kind, target = word, str(line[word])
    for word in ("dir", "mpu", "marker", "fifo"):
        if line.get(word):
            kind = word
    return Entry(
        path=path.rstrip("/") if kind == "dir" else path,
        size=int(line.get("s", 0)),
        age_ns=age_ns(line.get("age", "0")),
        content=None if line.get("c") is None else str(line["c"]),
        kind=kind,
        target=target,
        uid=line.get("uid"),
        storage_class=str(line.get("cls", "")),
        etag=str(line.get("etag", "")),
        version=str(line.get("vid", "")),
        latest=bool(line.get("latest", True)),
        lock=line.get("lock"),
        restore=str(line.get("restore", "")),
        tags=dict(line.get("tags", {})),
    )


@dataclass(frozen=True, slots=True)
class Event:
    """Something that somebody else does while the engine is at work."""

    at: str
    text: str


@dataclass(slots=True)
class Expected:
    """What must come out."""

    keep: list[str]
    delete: list[str]
    tier: dict[str, str]
    flags: list[tuple[str, str]]
    error: str | None


@dataclass(slots=True)
class Case:
    """One case."""

    id: str
    now_ns: int
    layout: str
    tree: list[Entry]
    policy: dict[str, Any]
    expected: Expected
    store: str = "posix"
    roots: tuple[str, ...] = ()
    rows: list[dict[str, Any]] | None = None
    schema: str = ""
    extra_columns: bool = False
    env: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    capacity: dict[str, Any] | None = None
    objection: str = ""

    def happening(self, at: str) -> list[Event]:
        """The events of one moment."""
        return [event for event in self.events if event.at == at]


CASE_KEYS = {
    "id", "difficulty", "source", "input", "symptom", "why", "now", "layout", "tree", "policy", "expected", "store",
    "root", "roots", "index", "env", "events", "capacity", "objection",
}  # fmt: skip


def read(path: Path) -> list[dict[str, Any]]:
    """The cases of a file, not yet looked at one by one."""
    loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # a safe loader of our own
    if not isinstance(loaded, list):
        raise SystemExit(f"{path}: a case file is a list of cases")
    return loaded


def case(raw: dict[str, Any]) -> Case:
    """One case. Raises Unsupported."""
    if unknown := set(raw) - CASE_KEYS:
        raise Unsupported(f"case key {', '.join(sorted(map(str, unknown)))}")
    index, expected = raw.get("index"), raw.get("expected") or {}
    table = index if isinstance(index, dict) else {}
    if unknown := set(table) - {"schema", "extra_columns_of", "rows"}:
        raise Unsupported(f"index key {', '.join(sorted(unknown))}")
    roots = raw.get("roots") or ([raw["root"]] if raw.get("root") else [])
    found = Case(
        id=str(raw["id"]),
        now_ns=moment_ns(raw["now"]),
        layout=str(raw.get("layout", "")),
        tree=list(entries(raw.get("tree") or [])),
        policy=raw.get("policy") or {},
        expected=Expected(
            keep=list(expected.get("keep") or []),
            delete=list(expected.get("delete") or []),
            tier=dict(expected.get("tier") or {}),
            flags=[(str(subject), str(code)) for subject, code in expected.get("flag") or []],
            error=expected.get("error"),
        ),
        store=str(raw.get("store", "posix")),
        roots=tuple(str(root).strip("/") for root in roots),
        rows=table.get("rows") if isinstance(index, dict) else index,
        schema=str(table.get("schema", "")),
        extra_columns="extra_columns_of" in table,
        env={str(k): str(v) for k, v in (raw.get("env") or {}).items()},
        events=[Event(str(e["at"]), str(e["do"])) for e in raw.get("events") or []],
        capacity=raw.get("capacity"),
        objection=str(raw.get("objection", "")),
    )
    found.tree += abbreviated(found)
    if found.store not in ("posix", "s3", "gcs"):
        raise Unsupported(f"store {found.store}")
    for event in found.events:
        if event.at not in MOMENTS:
            raise Unsupported(f"moment {event.at}")
    return found


ORBAX_ITEM = re.compile(r"((?:.*/)?\d+/[^/]+)/d/[^/]+")


def abbreviated(given: Case) -> list[Entry]:
    """What a tree leaves out where it means a whole unit: Orbax writes metadata into each item it finishes."""
    names = {entry.path.rpartition("/")[2] for entry in given.tree}
    if given.layout != "orbax" or given.store != "posix" or names & {"_METADATA", "manifest.ocdbt"}:
        return []
    items = {m[1]: e for e in given.tree if (m := ORBAX_ITEM.fullmatch(e.path))}
    return [Entry(f"{item}/_METADATA", 9, entry.age_ns) for item, entry in items.items()]


class _Loader(yaml.SafeLoader):
    """A safe loader that keeps scalars as written where YAML 1.1 and people disagree."""


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> object:
    text = node.value
    if node.tag.endswith(":int") and not re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        return Raw(text)
    if node.tag.endswith(":float") and not re.fullmatch(r"-?[0-9]+\.[0-9]+", text):
        return Raw(text)
    if node.tag.endswith(":bool") and text not in ("true", "false"):
        return Raw(text)
    return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)


for _tag in ("int", "float", "bool"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _scalar)
