"""Holds what is there after a case against what must be there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from tests.cases.box import Box, State
from tests.cases.grammar import Case
from tests.cases.past import unit_paths
from tests.cases.session import Engine, Report
from tests.cases.tiers import Tier


@dataclass
class Judge:
    """One session's outcome beside the case's expectations."""

    case: Case
    ledger: State
    """What would stand there had only other people done anything."""
    now: State
    report: Report
    engine: Engine | None
    trash_of: dict[str, str]
    known: list[str]
    box: Box
    tiers: list[Tier]
    found: list[str] = field(default_factory=list)

    def wrong(self) -> list[str]:
        """Everything that is otherwise than expected, as lines."""
        expected = self.case.expected
        for unit in expected.delete:
            self._check_gone(unit)
        for unit in expected.keep:
            self._check_kept(unit)
        for unit, storage_class in expected.tier.items():
            self._check_moved(unit, storage_class)
        leaving = [*expected.delete, *expected.tier]
        gone = {path for unit in leaving for path in self._mine(unit)}
        self._check_rest(gone | {path for unit in expected.delete for path in self._stood(unit)})
        self._check_error()
        for subject, code in expected.flags:
            if not any(code == c and self._same(subject, s) for s, c in self.report.flags):
                mine = sorted({c for s, c in self.report.flags if self._same(subject, s)})
                self.found.append(f"flag [{subject}, {code}] expected, got {mine or sorted(self.report.flags)}")
        return self.found

    @property
    def _bucket(self) -> bool:
        return self.case.store != "posix"

    def _check_rest(self, gone: set[str]) -> None:
        """Nothing else has changed, and nothing new has come."""
        for path, sign in sorted(self.ledger.items()):
            filled = sign == "dir" and any(p.startswith(path + "/") for p in self.now)
            if path not in gone and self.now.get(path) != sign and not filled:
                got = "changed" if path in self.now else "gone"
                self.found.append(f"{path}: expected to be as before, got {got}")
        extra = {path for path in self.now.keys() - self.ledger.keys() if self.now[path] != "dir"}
        for unit in self.case.expected.keep:
            for there in self._there(unit):
                extra -= self._copied(unit, there)
        for unit in self.case.expected.tier:
            extra -= {path for there in self._there(unit) for path in unit_paths(there, list(self.now))}
        if extra:
            self.found.append(f"nothing new expected, got {sorted(extra)[:3]}")

    # -- tiers

    def _there(self, unit: str) -> list[str]:
        """What a unit is called at each tier."""
        root = next((r for r in self.case.roots if unit.startswith(r + "/")), "")
        return [f"{tier.root}/{unit[len(root) :].strip('/')}" for tier in self.tiers]

    def _stood(self, unit: str) -> list[str]:
        """Paths of it that stood at a tier before."""
        return [path for there in self._there(unit) for path in unit_paths(there, list(self.ledger))]

    def _copied(self, unit: str, there: str) -> set[str]:
        """Paths of a whole copy; nothing where there is none."""
        mine = self._mine(unit)
        if mine:
            unit = mine[0][: mine[0].index(unit) + len(unit)]
        names = {there + path[len(unit) :]: path for path in mine}
        found = set(unit_paths(there, list(self.now)))
        whole = found == names.keys() and all(self._alike(name, path) for name, path in names.items())
        return found if whole else set()

    def _alike(self, name: str, path: str) -> bool:
        """Whether what stands at a tier is what stood at home, whatever signs the two boxes give."""
        sign = self.ledger[path]
        if sign == "dir" or sign.startswith("link "):
            return self.now[name] == sign
        content = self.box.read(name)
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return sign in (hashlib.sha256(content).hexdigest(), f'"{md5}" {len(content)}', f"{md5} {len(content)}")

    def _check_moved(self, unit: str, storage_class: object) -> None:
        """It stands at a tier, whole and in its class, and no longer at home."""
        before, found = self._stood(unit), set[str]()
        for there, tier in zip(self._there(unit), self.tiers, strict=True):
            mine = unit_paths(there, list(self.now))
            if not mine:
                continue
            found |= set(mine)
            if self._mine(unit) and not self._copied(unit, there):
                self.found.append(f"{unit}: expected at {tier.root}, got there something else: {mine[:3]}")
            classes = {self.box.storage_class(path) for path in mine} - {""}
            wanted = str(storage_class or "")
            if wanted and classes and classes != {wanted} and wanted != tier.root:
                self.found.append(f"{unit}: expected as {wanted}, got {sorted(classes)}")
        if not found or any(self.now.get(path) != self.ledger[path] for path in before):
            self.found.append(f"{unit}: expected at a tier, got not there or not as it was")
        left = [path for path in self._mine(unit) if path in self.now]
        if left and not (self._bucket and unit in self._trash):
            self.found.append(f"{unit}: expected to have moved, got still there: {left[0]}")

    # -- what stays and what goes

    def _mine(self, unit: str) -> list[str]:
        found = unit_paths(unit, list(self.ledger))
        for root in self.case.roots:
            found = found or unit_paths(f"{root}/{unit}", list(self.ledger))
        return found

    @cached_property
    def _trash(self) -> set[str]:
        """Units that lie whole in a trash."""
        if self.engine is None:
            return set()
        with self.engine.open() as world:
            return {
                self.engine.case_id(f"{name}:{entry.key}")
                for name, trash in world.trashes.items()
                for entry in trash.trash()
                if entry.whole
            }

    def _before_trash(self, unit: str) -> str | None:
        """Where a path of the case's trash was before it was retired."""
        for path, old in self.trash_of.items():
            if path.startswith(unit + "/"):
                return old[: len(old) - (len(path) - len(unit))]
        return None

    def _check_gone(self, unit: str) -> None:
        if (old := self._before_trash(unit)) is not None:
            if old in self._trash:
                self.found.append(f"{unit}: expected to be purged, got still in the trash")
            return
        mine = self._mine(unit)
        if not mine and not self._stood(unit) and unit not in self.known:
            self.found.append(f"{unit}: expected to be deleted, but the case never had it")
        there = [path for path in mine if path in self.now]
        if there and not (self._bucket and unit in self._trash):
            self.found.append(f"{unit}: expected to be deleted, got still there: {there[0]}")
        for place in self._there(unit):
            left = unit_paths(place, list(self.now))
            if left and not ("://" in place and place in self._trash):
                self.found.append(f"{unit}: expected to be deleted, got a copy of it: {left[0]}")

    def _check_kept(self, unit: str) -> None:
        if (old := self._before_trash(unit)) is not None:
            if old not in self._trash:
                self.found.append(f"{unit}: expected in the trash, got gone")
            return
        if unit in self.case.expected.tier:
            return
        mine = self._mine(unit) or self._stood(unit)
        if not mine:
            self.found.append(f"{unit}: expected to be kept, but the case never had it")
        for path in mine:
            if self.now.get(path) != self.ledger[path]:
                got = "changed" if path in self.now else "deleted"
                self.found.append(f"{unit}: expected to be kept, got {path} {got}")
                return
        if self._bucket and unit in self._trash:
            self.found.append(f"{unit}: expected to be kept, got in the trash")

    def _check_error(self) -> None:
        want, report = self.case.expected.error, self.report
        if want is None:
            if report.errors:
                self.found.append(f"error: null expected, got {report.errors}")
            flagged = {code for _, code in self.case.expected.flags}
            if odd := sorted(set(report.unjudged) - flagged):
                self.found.append(f"error: null expected, got groups not judged: {odd}")
            return
        found = report.errors or ([] if report.acted else report.unjudged)
        if want not in found:
            self.found.append(f"error: {want} expected, got {found or None}")
        if report.acted:
            self.found.append(f"error: {want} means that nothing is done, got {report.acted} done")
        if not report.exit_code:
            self.found.append(f"error: {want} expected, got exit code 0")

    def _same(self, subject: str, told: str) -> bool:
        """The thing itself; a run told of by a directory above it; a policy, which has no path."""
        told = told.rstrip("/") or "."
        if subject == told or {subject, told} <= {"", ".", *self.case.roots[:1]}:
            return True
        runs = {path.rpartition("/")[0] for path in self.known}
        runs |= {run.rpartition("/")[0] for run in runs}
        if told.startswith(subject + "/") and told in runs and told not in self.known:
            return True
        # What stops a whole store is told of the store, and means every run in it.
        stops = self.report.errors or self.report.unjudged
        if stops and told in (*self.case.roots, ".") and subject not in self.known and subject in runs:
            return True
        return told == "case" and not any(unit_paths(subject, [path]) for path in self.known)
