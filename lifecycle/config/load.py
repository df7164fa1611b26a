"""Reads one YAML file into typed values with their places; refuses what two readers could read two ways."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml

from lifecycle.config.problems import InvalidFiles, Problem, show
from lifecycle.core.units import escape
from lifecycle.errors import Place

FILE_MAX_BYTES = 1024 * 1024
DEPTH_MAX = 20
NODES_MAX = 100_000

# The C parser where PyYAML was built with it: ten times as fast, the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value as written; ``plain`` when it stands without quotes."""

    text: str
    plain: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping, in the order of the file; a key may still stand in it twice."""

    pairs: tuple[tuple[Scalar, Node], ...]
    place: Place


Node = Scalar | Items | Table


@dataclass(frozen=True, slots=True)
class Document:
    """One file: its tree with places, and the plain values that the tree means."""

    file: str
    root: Table
    value: dict[str, object]

    def place(self, loc: Loc, *, key: bool = False) -> Place:
        """Where the value at ``loc`` stands, or its key; parts that lead nowhere are passed over."""
        node: Node = self.root
        spot = node.place
        for part in loc:
            match node:
                case Table(pairs):
                    found = next(((k, v) for k, v in pairs if k.text == str(part)), None)
                    if found is not None:
                        spot, node = found[0].place if key else found[1].place, found[1]
                case Items(items) if isinstance(part, int) and part < len(items):
                    node = items[part]
                    spot = node.place
                case _:
                    pass
        return spot


def read_file(path: Path) -> Document:
    """Read, compose and type the YAML file at ``path``.

    Raises:
        ConfigInvalid: it cannot be read, is not one YAML mapping, or holds values that are not clear.
    """
    return parse(read_bytes(path), escape(str(path)))


def read_bytes(path: Path) -> bytes:
    """The content of a regular file, at most 1 MiB.

    Raises:
        ConfigInvalid: missing, not readable, not a regular file, or too large.
    """
    place = Place(escape(str(path)))
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidFiles([Problem(place, "is not a regular file")])
            data = stream.read(FILE_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidFiles([Problem(place, f"cannot be read: {why}")]) from error
    if len(data) > FILE_MAX_BYTES:
        raise InvalidFiles([Problem(place, "is larger than 1 MiB, which no policy or configuration needs")])
    return data


def parse(data: bytes, file: str) -> Document:
    """Compose and type the YAML text ``data``; ``file`` is what errors call it.

    Raises:
        ConfigInvalid: with every problem found, each with line and column.
    """
    if len(data) > FILE_MAX_BYTES:
        raise InvalidFiles([Problem(Place(file), "is larger than 1 MiB, which no policy or configuration needs")])
    root = _Composer(file).compose(_decode(data, file))
    problems: list[Problem] = []
    value = _typed(root, problems)
    if problems:
        raise InvalidFiles(problems)
    if not isinstance(root, Table) or not isinstance(value, dict):
        raise InvalidFiles([Problem(root.place, "needs keys with values, such as policy: pretrain")])
    return Document(file, root, value)


_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def _decode(data: bytes, file: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise InvalidFiles([Problem(Place(file, line, column), "is not UTF-8")]) from error
    if found := _UNPRINTABLE.search(text):
        at = found.start()
        place = Place(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        raise InvalidFiles([Problem(place, f"the character {escape(found[0])} may not stand in a file like this")])
    return text


class _Mark(Protocol):
    """A position counted from 0; the two parsers have a class each."""

    line: int
    column: int


@dataclass(slots=True)
class _Frame:
    """A collection that is still open: a mapping has ``key`` set between a key and its value."""

    place: Place
    pairs: list[tuple[Scalar, Node]] | None
    items: list[Node]
    key: Scalar | None = None


class _Composer:
    """Turns parser events into a tree with an explicit stack, so that no nesting can exhaust ours."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.stack: list[_Frame] = []
        self.root: Node | None = None
        self.count = 0

    def compose(self, text: str) -> Node:
        for event in self.events(text):
            self.take(event)
        if self.root is None:
            raise self.wrong(None, "is empty")
        return self.root

    def events(self, text: str) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            problem = error.problem or "unclear"
            mark = error.problem_mark or error.context_mark
            line = text.split("\n")[mark.line] if mark and mark.line <= text.count("\n") else ""
            if "\t" in line[: len(line) - len(line.lstrip())]:
                raise self.wrong(mark, "is indented by a tab: use spaces") from error
            raise self.wrong(mark, f"is not YAML: {problem}") from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise self.wrong(None, "is not YAML") from error

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.AliasEvent():
                raise self.wrong(event.start_mark, "aliases (*) are refused: write the value out")
            case yaml.DocumentStartEvent() if self.root is not None:
                raise self.wrong(event.start_mark, "a second document starts here: one file, one document")
            case yaml.NodeEvent():
                self.node(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                frame = self.stack.pop()
                if frame.pairs is None:
                    self.put(Items(tuple(frame.items), frame.place))
                else:
                    self.put(Table(tuple(frame.pairs), frame.place))
            case _:
                pass

    def node(self, event: yaml.NodeEvent) -> None:
        mark = event.start_mark
        self.count += 1
        if event.anchor:
            raise self.wrong(mark, "anchors (&) are refused: write the value out")
        if getattr(event, "tag", None):
            raise self.wrong(mark, "tags (!) are refused")
        if len(self.stack) >= DEPTH_MAX:
            raise self.wrong(mark, f"is nested deeper than {DEPTH_MAX} levels")
        if self.count > NODES_MAX:
            raise self.wrong(mark, f"has more than {NODES_MAX} values")
        place = self.at(mark)
        match event:
            case yaml.ScalarEvent():
                self.put(Scalar(event.value, event.style is None or event.style == "", place))
            case yaml.MappingStartEvent():
                self.stack.append(_Frame(place, [], []))
            case _:
                self.stack.append(_Frame(place, None, []))

    def put(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        if frame.pairs is None:
            frame.items.append(node)
        elif frame.key is not None:
            frame.pairs.append((frame.key, node))
            frame.key = None
        elif isinstance(node, Scalar):
            frame.key = node
        else:
            raise InvalidFiles([Problem(node.place, "a key must be a word")])

    def at(self, mark: _Mark | None) -> Place:
        return Place(self.file, mark.line + 1, mark.column + 1) if mark else Place(self.file)

    def wrong(self, mark: _Mark | None, text: str) -> InvalidFiles:
        return InvalidFiles([Problem(self.at(mark), text)])


def _typed(node: Node, problems: list[Problem]) -> object:
    match node:
        case Scalar(text, plain):
            try:
                return plain_value(text) if plain else text
            except ValueError as error:
                problems.append(Problem(node.place, str(error)))
                return None
        case Items(items):
            return [_typed(item, problems) for item in items]
        case Table(pairs):
            seen: dict[str, Place] = {}
            table: dict[str, object] = {}
            for key, child in pairs:
                if key.text in seen:
                    first = seen[key.text]
                    text = f"the key {show(key.text)} stands here again, first at line {first.line}"
                    problems.append(Problem(key.place, text))
                elif not key.text or key.text == "<<":
                    text = "merging (<<) is refused: write the keys out" if key.text else "a key is empty"
                    problems.append(Problem(key.place, text))
                seen.setdefault(key.text, key.place)
                table[key.text] = _typed(child, problems)
            return table


_INT = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}")
_OTHER_NUMBER = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?"
    r"|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN)|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)"
)
_WORDS = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false"})
_NULLS = frozenset({"~", "null"})


def plain_value(text: str) -> int | float | bool | str:
    """What an unquoted scalar means: whole numbers, plain decimals, true and false; the rest is text.

    Raises:
        ValueError: YAML 1.1 and 1.2 readers, or people, would disagree about it.
    """
    if text in ("true", "false"):
        return text == "true"
    if text == "":
        raise ValueError("has no value: write one, or leave the key out")
    if text.lower() in _NULLS:
        raise ValueError(f"{text} means nothing here: leave the key out, or write none where that is meant")
    if text.lower() in _WORDS:
        raise ValueError(f'{text} is a boolean to some readers of YAML only: write true, false or "{text}"')
    if _INT.fullmatch(text):
        if len(text) > 19:
            raise ValueError(f"{show(int(text[:19]))[:8]}... has {len(text)} digits, which is too large a number")
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _OTHER_NUMBER.fullmatch(text):
        short = text if len(text) <= 40 else text[:40] + "..."
        raise ValueError(f'{short} is not the same number to all readers of YAML: write plain digits, or "{short}"')
    return text
