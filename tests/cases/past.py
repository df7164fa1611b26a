"""What happened before a case begins: an earlier scan, holds, things in the trash, an older or newer index."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from lifecycle.core.action import Action
from lifecycle.core.copies import copy_name
from lifecycle.core.model import Checkpoint, Hold
from lifecycle.core.warrant import issue, issue_purge
from lifecycle.flows.apply import trash_name
from lifecycle.flows.carry import Carrier
from lifecycle.ports import Target
from lifecycle.world import World
from tests.cases.box import Box
from tests.cases.grammar import Case, Entry, Unsupported, moment_ns
from tests.cases.happen import Deed
from tests.cases.seams import Killed, dying_at
from tests.cases.session import Engine, Report
from tests.cases.translate import Site

EARLIER_NS = 600 * 1_000_000_000
"""How long before now the earlier scan was."""
PLAN = "a-plan-of-before"
KILLED = 77
MEMBER = re.compile(r"[-._](?!lease$|bak$|lock$)[^/]*", re.DOTALL)
"""What may follow the stem of a group in the names of its files."""
ROW_KEYS = {
    "id", "inode", "pinned", "members", "state", "trashed_at", "path", "delete_requested", "in_use", "held", "hold",
    "new_kind_of_hold", "base", "depends_on", "needs", "delta_of", "parent", "requires", "step", "started_at", "size",
    "status", "etag", "mtime", "run", "class",
}  # fmt: skip


def unit_paths(unit: str, paths: Iterator[str] | list[str]) -> list[str]:
    """Paths of a unit: itself or all below it, or else the files that have it as their stem."""
    every = list(paths)
    found = [path for path in every if path == unit or path.startswith(unit + "/")]
    return found or [p for p in every if p.startswith(unit) and MEMBER.fullmatch(p[len(unit) :])]


class Past:
    """Lays out what came before, scans it, and leaves the box as the case's tree says."""

    def __init__(self, case: Case, box: Box, engine: Engine, site: Site) -> None:
        self.case, self.box, self.engine = case, box, engine
        self.sentinel, self.tiers = site.sentinel, site.tiers
        self.rows = [row for row in case.rows or [] if "path" not in row]
        for row in case.rows or []:
            if unknown := set(row) - ROW_KEYS:
                raise Unsupported(f"index row key {', '.join(sorted(unknown))}")
        self.trash_of: dict[str, str] = {}
        """Path in the case's trash to the key it had before it was retired."""
        self.copies: dict[str, str] = {}
        """Path of the tree at a tier to the path at home of which an earlier copy of ours is there."""
        self.taken: set[str] = set()
        """Paths of the tree that our own half-done act has in its trash."""

    def lay(self, deeds: list[Deed]) -> list[Deed]:
        """Make it all so; the deeds before the scan that are left to do."""
        self._find_copies()
        tree = [e for e in self.case.tree if not self._in_trash(e.path) and e.path not in self.copies]
        self._sentinels(tree)
        if not self.rows:
            self.box.lay(tree)
            return deeds
        earlier, left = self._earlier(tree, deeds)
        self.box.lay(earlier)
        self._index(earlier)
        keep = {entry.path for entry in tree} | self.copies.keys() | {tier.root for tier in self.tiers}
        renames = {deed.path: deed.other for deed in deeds if deed.verb == "rename" and deed not in left}
        for old, new in renames.items():
            self.box.rename(old, new)
        tree = [entry for entry in tree if entry.path not in self.taken]
        now = set(self.box.state())
        for path in sorted(now - keep - {self._sentinel_key(root) for root in self.case.roots or ("",)}):
            self.box.remove(path)
        self._sweep(keep)
        laid = {
            re.sub(f"^{re.escape(old)}(?=/|$)", new, e.path)
            for e in earlier
            for old, new in (renames or {"": ""}).items()
        }
        self.box.lay([entry for entry in tree if entry.path not in laid or entry.path not in now])
        self._unmount(tree)
        return left

    # -- the earlier tree

    def _earlier(self, tree: list[Entry], deeds: list[Deed]) -> tuple[list[Entry], list[Deed]]:
        left = list(deeds)
        renamed = {deed.path: deed for deed in deeds if deed.verb == "rename"}
        found: dict[str, Entry] = {}
        for row in self.rows:
            unit = self.plain(str(row["id"]))
            if row.get("state") == "trashed":
                mine = [replace(e, path=self.trash_of[e.path]) for e in self.case.tree if self._in_trash(e.path)]
                mine = [e for e in mine if unit_paths(unit, [e.path])]
            elif row.get("state") == "tiered":
                mine = [replace(e, path=self.copies[e.path]) for e in self.case.tree if e.path in self.copies]
                mine = [e for e in mine if unit_paths(unit, [e.path])]
            elif names := unit_paths(unit, [e.path for e in tree]):
                mine = [e for e in tree if e.path in names]
            elif unit in renamed:
                deed = renamed[unit]
                left.remove(deed)
                names = unit_paths(deed.other, [e.path for e in tree])
                mine = [replace(e, path=unit + e.path[len(deed.other) :]) for e in tree if e.path in names]
            else:
                mine = self._like_a_sibling(unit, tree)
                left = [d for d in left if not (d.verb == "remove" and d.path == unit)]
            if row.get("state") in ("deleting", "purging", "started"):
                named = {e.path for e in mine}
                mine += [e for e in self._like_a_sibling(unit, tree) if e.path not in named]
            have = {e.path for e in mine}
            size = next((e.size for e in mine if e.size), 9)
            age = max((e.age_ns for e in mine), default=0)
            mine += [Entry(str(m), size, age) for m in row.get("members") or [] if m not in have]
            found.update((e.path, e) for e in mine)
        return list(found.values()), left

    def _like_a_sibling(self, unit: str, tree: list[Entry]) -> list[Entry]:
        """Files for a unit that the tree no longer has, made after one that it has."""
        parent = unit.rpartition("/")[0]
        units = [*self.case.expected.keep, *self.case.expected.delete, *(str(row["id"]) for row in self.rows)]
        for other in sorted(units, key=lambda u: u.rpartition("/")[0] != parent):
            names = unit_paths(other, [e.path for e in tree])
            if names and other != unit:
                return [
                    replace(e, path=unit + e.path[len(other) :]) for e in tree if e.path in names and e.kind != "mpu"
                ]
        age = max((e.age_ns for e in tree), default=0)
        return [Entry(f"{unit}/w", 9, age), Entry(f"{unit}/DONE", 0, age)]

    def plain(self, spelled: str) -> str:
        """A path as it would be spelled today."""
        text = re.sub(r"^[a-z0-9]+://[^/]+/", "", spelled)
        parts = [part for part in text.split("/") if part not in ("", ".")]
        return "/".join(parts)

    def _in_trash(self, path: str) -> bool:
        """Whether a path of the case lies in its idea of a trash; notes what it was before."""
        for row in self.rows:
            unit = self.plain(str(row["id"]))
            at = path.find(f"/{unit}")
            if row.get("state") == "trashed" and at >= 0 and unit_paths(unit, [path[at + 1 :]]):
                self.trash_of[path] = path[at + 1 :]
                return True
        return False

    def _sentinel_key(self, root: str) -> str:
        return f"{root}/{self.sentinel}".lstrip("/") if self.sentinel else ""

    def _sentinels(self, tree: list[Entry]) -> None:
        """The sentinel of each root that the case shows with something in it, and at first of all."""
        if self.sentinel:
            for root in self.case.roots or ("",):
                key = self._sentinel_key(root)
                if key not in {e.path for e in tree}:
                    self.box.write(key, b"", self.case.now_ns - 90 * 86_400 * 10**9)

    def _unmount(self, tree: list[Entry]) -> None:
        """A root that the case shows empty is an unmounted one: its sentinel is not there."""
        for root in self.case.roots if self.sentinel else ():
            if not any(e.path.startswith(root + "/") for e in tree):
                self.box.remove(self._sentinel_key(root))
                if self.case.store == "posix":
                    self.box.mkdir(root)

    def _sweep(self, keep: set[str]) -> None:
        """Remove directories that nothing of the tree is in."""
        if self.case.store != "posix":
            return
        roots = {*self.case.roots, *(tier.root for tier in self.tiers)}
        for path, sign in sorted(self.box.state().items(), reverse=True):
            if sign == "dir" and path not in keep | roots:
                self.box.remove(path)

    # -- the earlier index

    def _index(self, earlier: list[Entry]) -> None:
        clock, engine = self.engine.clock, self.engine
        clock.at_ns = self.case.now_ns - EARLIER_NS
        report = Report()
        with engine.open() as world:
            engine.scan(world, report)
            if report.errors:
                raise AssertionError(f"the earlier scan failed: {report.told}")
            for row in self.rows:
                self._intent(world, row)
        self._respell()
        clock.at_ns = self.case.now_ns

    def _intent(self, world: World, row: dict[str, Any]) -> None:
        """Holds, and what was retired or begun before."""
        checkpoint = self._checkpoint(world, self.plain(str(row["id"])))
        if row.get("pinned") or row.get("held") or row.get("hold"):
            if checkpoint is None:
                raise Unsupported(f"a pin on {row['id']}, which is no checkpoint")
            given = row.get("hold")
            more = given if isinstance(given, dict) else {}
            until = more.get("until")
            world.index.writer.add_hold(
                Hold(
                    id=f"pin-{checkpoint.key}",
                    target=checkpoint.id,
                    owner=str(more.get("owner", "somebody")),
                    reason=str(more.get("reason", "pinned")),
                    created_at_ns=self.case.now_ns - EARLIER_NS,
                    until_ns=None if until is None else moment_ns(until),
                    inode=checkpoint.inode,
                )
            )
        match row.get("state", "present"):
            case "present" | "complete" | "ok":
                pass
            case "copied" | "tiered":
                self._copy(world, checkpoint, str(row.get("class", "")))
            case "trashed":
                self._retire(world, checkpoint, moment_ns(row["trashed_at"]))
            case "deleting" | "purging" | "started":
                at = moment_ns(row["started_at"]) if "started_at" in row else self.case.now_ns - EARLIER_NS
                self._begin(world, checkpoint, at)
            case state:
                raise Unsupported(f"index state {state}")

    def _copy(self, world: World, checkpoint: Checkpoint | None, storage_class: str) -> None:
        """A copy on the first tier, as a plan of then made it, and what the bucket's own rules made of it since."""
        if checkpoint is None or not self.tiers:
            raise Unsupported("a copy of what is no checkpoint, or without a tier")
        place = self.tiers[0]
        carrier = Carrier(world.stores[checkpoint.store], world.stores[place.name], world.intakes[place.name])
        name = copy_name(PLAN, checkpoint, place.name)
        at_ns = self.case.now_ns - EARLIER_NS
        made = carrier.carry(name, checkpoint, checkpoint, plan=PLAN, now_ns=at_ns)
        for member in made.members:
            path = f"{place.root}/{member.key}"
            self.copies[path] = self.engine.case_id(f"{checkpoint.store}:{member.key}")
            if storage_class:
                self.box.store_as(path, storage_class)

    def _find_copies(self) -> None:
        homes = self.case.roots or ("",)
        for row in self.rows if self.tiers else ():
            if row.get("state") in ("copied", "tiered"):
                unit = self.plain(str(row["id"]))
                root = next(r for r in homes if not r or unit.startswith(r + "/"))
                there = f"{self.tiers[0].root}/{unit[len(root) :].strip('/')}"
                names = unit_paths(there, [e.path for e in self.case.tree])
                self.copies |= {name: unit + name[len(there) :] for name in names}

    def _checkpoint(self, world: World, path: str) -> Checkpoint | None:
        for run in world.index.reader.runs(tuple(world.stores)):
            for c in run.checkpoints:
                if self.engine.case_id(c.id) == path:
                    return c
        return None

    def _begin(self, world: World, checkpoint: Checkpoint | None, at_ns: int) -> None:
        """What a crash leaves of an act: a row without an end, and as much done as the case's tree lacks.

        We take a unit out of sight in one step and only then remove what is in it, so a unit that a case shows
        half removed is in our trash.
        """
        unit = self.engine.case_id(checkpoint.id) if checkpoint else ""
        tree = set(unit_paths(unit, [e.path for e in self.case.tree]))
        before = set(unit_paths(unit, list(self.box.state())))
        if before <= tree:
            self._retire(world, checkpoint, at_ns, act=False)
            return
        self._retire(world, checkpoint, at_ns, close=False)
        self.taken |= tree
        if self.case.store == "posix" and checkpoint is not None:
            trash = world.trashes[checkpoint.store]
            for entry in trash.trash():
                leave = issue_purge(entry.trash_id, retired_at_ns=at_ns, trash_s=0, now_ns=at_ns, held=False)
                with suppress(Killed), dying_at(2 if tree else 1000):
                    trash.purge(leave)

    def _retire(
        self, world: World, checkpoint: Checkpoint | None, at_ns: int, *, act: bool = True, close: bool = True
    ) -> None:
        """Retire it at that time, as a plan of then did; or only begin to, as a crash leaves it."""
        if checkpoint is None:
            raise Unsupported("an act on what is no checkpoint")
        policy = world.rules.policies[0]
        action = Action.upon(checkpoint, trash_s=policy.limits.trash_s or 0, policies=(policy.name,), floor=())
        name = trash_name(PLAN, action)
        with world.index.journal.lease("before", at_ns, 10**12) as fence:
            row = world.index.journal.start(
                plan=PLAN, trash_id=name, action=action, now_ns=at_ns, fence=fence, host="before", engine=world.engine
            )
            if not act:
                return
            store = world.stores[checkpoint.store]
            seen = store.sight(Target(action.key, action.shape, action.members)).totals
            warrant = issue(action, plan=PLAN, trash_id=name, seen=seen, standing=frozenset(), held=False, now_ns=at_ns)
            world.trashes[checkpoint.store].retire(warrant, at_ns)
            if close:
                world.index.journal.end(row, "done", "", at_ns)

    def _respell(self) -> None:
        """Write keys as the case spells them: an index that came from elsewhere."""
        odd = {
            self.plain(str(row["id"])): str(row["id"])
            for row in self.rows
            if self.plain(str(row["id"])) != str(row["id"])
        }
        if not odd:
            return
        with closing(sqlite3.connect(self.engine.home / "index.db")) as db, db:
            for plain, spelled in odd.items():
                roots = [root for root in self.engine.roots.values() if root and plain.startswith(root + "/")]
                key = plain[len(roots[0]) + 1 :] if roots else plain
                db.execute("UPDATE copies SET key = ? WHERE key = ?", (spelled.encode(), key.encode()))
                run, old = spelled.rpartition("/")[0], key.rpartition("/")[0]
                db.execute("UPDATE OR IGNORE runs SET path = ? WHERE path = ?", (run.encode(), old.encode()))

    # -- the schema

    def age_schema(self) -> None:
        """Bring the index to the schema that the case says."""
        if not self.case.schema:
            return
        path = self.engine.home / "index.db"
        if not path.exists():
            with self.engine.open():
                pass
        if self.case.schema == "n+1":
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("UPDATE alembic_version SET version_num = '9999'")
        elif self.case.schema == "n-1":
            from lifecycle.index.database import Database
            from lifecycle.index.schema import REVISIONS, migrate
            from lifecycle.index.sqlite import Sqlite

            with closing(Database(Sqlite(str(path), references=False))) as database:
                migrate(database, REVISIONS[-2])
        elif self.case.schema != "n":
            raise Unsupported(f"schema {self.case.schema}")


def upgrade_with_kills(engine: Engine) -> None:
    """Upgrade the index, killed after its first statement, after its second, and so on until it comes through.

    Each try is a process of its own, that really ends where it is killed.
    """
    import alembic.command  # noqa: F401  # loaded once, not in every child
    from sqlalchemy import event
    from sqlalchemy.engine import Engine as SqlEngine

    from lifecycle.index.open import upgrade

    code = KILLED
    for limit in range(1, 1000):
        child = os.fork()
        if child == 0:
            left = limit

            def after(*_: Any) -> None:
                nonlocal left
                left -= 1
                if not left:
                    os._exit(KILLED)

            code = 1
            try:
                event.listen(SqlEngine, "after_cursor_execute", after)
                upgrade(engine.settings.database, stamp=f"try-{limit}")
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != KILLED:
            break
    assert code == 0, "the migration failed after it had been killed"
