"""Several boxes as one: what a case calls ``s3://bucket/...``, or a place outside its root, is a box of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.cases.box import Box, Directory, State
from tests.cases.bucket import BucketBox, DatedBox
from tests.cases.grammar import Case, Entry
from tests.servers import Server


def away(case: Case, target: str) -> str:
    """What the paths of another box begin with, for a place of a tier; empty where the case's own box has it."""
    if "://" in target:
        return "/".join(target.split("/")[:3])
    laid = any(e.path == target or e.path.startswith(target + "/") for e in case.tree)
    return "" if laid or any(case.roots) else target.partition("/")[0]


def make_box(case: Case, targets: list[str], server: Callable[[], Server], home: Path) -> Box:
    """The box of a case, with those beside it that its tiers lead to; directories lie below ``home``."""
    beside = [prefix for prefix in dict.fromkeys(away(case, target) for target in targets) if prefix]

    def one(name: str, posix: bool, tree: list[Entry]) -> Box:
        if posix:
            return Directory(home / name / "tree", case.now_ns)
        kind = BucketBox if server().kind == "moto" else DatedBox
        return kind(server(), case.now_ns, tree)

    mine = [e for e in case.tree if not any(e.path.startswith(prefix + "/") for prefix in beside)]
    others = {}
    for n, prefix in enumerate(beside):
        found = [replace(e, path=e.path[len(prefix) + 1 :]) for e in case.tree if e.path.startswith(prefix + "/")]
        others[prefix] = one(f"beside-{n}", "://" not in prefix, found)
        others[prefix].beside = True
    own = one("", case.store == "posix", mine)
    return Boxes(own, others) if others else own


class Boxes(Box):
    """A case's own box and those beside it, told apart by what a path begins with."""

    def __init__(self, home: Box, others: dict[str, Box]) -> None:
        super().__init__(home.clock_ns)
        self.home, self.others = home, others

    def __iter__(self) -> Iterator[Box]:
        yield self.home
        yield from self.others.values()

    def route(self, path: str) -> tuple[Box, str]:
        """The box that has ``path``, and what the path is called in it."""
        for prefix, box in self.others.items():
            if path == prefix or path.startswith(prefix + "/"):
                return box, path[len(prefix) + 1 :]
        return self.home, path

    def url(self, root: str) -> str:
        box, inside = self.route(root)
        return box.url(inside)

    def lay(self, entries: Iterable[Entry]) -> None:
        split: dict[int, tuple[Box, list[Entry]]] = {id(box): (box, []) for box in self}
        for entry in entries:
            box, inside = self.route(entry.path)
            split[id(box)][1].append(replace(entry, path=inside))
        for box, mine in split.values():
            box.lay(mine)

    def state(self) -> State:
        found = self.home.state()
        for prefix, box in self.others.items():
            found |= {f"{prefix}/{path}": sign for path, sign in box.state().items()}
        return found

    def remove(self, path: str) -> None:
        box, inside = self.route(path)
        box.remove(inside)

    def rename(self, old: str, new: str) -> None:
        (box, inside), (other, renamed) = self.route(old), self.route(new)
        assert box is other, f"{old} and {new} are in two boxes"
        box.rename(inside, renamed)

    def write(self, path: str, content: bytes, mtime_ns: int | None = None) -> None:
        box, inside = self.route(path)
        box.write(inside, content, mtime_ns)

    def read(self, path: str) -> bytes:
        box, inside = self.route(path)
        return box.read(inside)

    def rot(self, path: str) -> None:
        box, inside = self.route(path)
        box.rot(inside)

    def storage_class(self, path: str) -> str:
        box, inside = self.route(path)
        return box.storage_class(inside)

    def store_as(self, path: str, storage_class: str) -> None:
        box, inside = self.route(path)
        box.store_as(inside, storage_class)

    def touch(self, path: str, mtime_ns: int) -> None:
        box, inside = self.route(path)
        box.touch(inside, mtime_ns)

    def settle(self) -> None:
        for box in self:
            box.settle()

    def link(self, path: str, target: str) -> None:
        box, inside = self.route(path)
        box.link(inside, target)

    def mkdir(self, path: str) -> None:
        box, inside = self.route(path)
        box.mkdir(inside)

    def chmod(self, path: str, mode: int) -> None:
        box, inside = self.route(path)
        box.chmod(inside, mode)

    def tag(self, path: str, key: str, value: str) -> None:
        box, inside = self.route(path)
        box.tag(inside, key, value)

    def close(self) -> None:
        for box in self:
            box.close()
