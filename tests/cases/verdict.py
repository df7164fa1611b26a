"""Holds what is there after a case against what must be there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tests.cases.box import State
from tests.cases.grammar import Case
from tests.cases.past import unit_paths
from tests.cases.session import Engine, Report


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
    found: list[str] = field(default_factory=list)

    def wrong(self) -> list[str]:
        """Everything that is otherwise than expected, as lines."""
        expected = self.case.expected
        for unit in expected.delete:
            self._check_gone(unit)
        for unit in expected.keep:
            self._check_kept(unit)
        self._check_rest({path for unit in expected.delete for path in self._mine(unit)})
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
            if path not in gone and self.now.get(path) != sign:
                got = "changed" if path in self.now else "gone"
                self.found.append(f"{path}: expected to be as before, got {got}")
        if extra := sorted(path for path in self.now.keys() - self.ledger.keys() if self.now[path] != "dir"):
            self.found.append(f"nothing new expected, got {extra[:3]}")

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
        if not mine and unit not in self.known:
            self.found.append(f"{unit}: expected to be deleted, but the case never had it")
        there = [path for path in mine if path in self.now]
        if there and not (self._bucket and unit in self._trash):
            self.found.append(f"{unit}: expected to be deleted, got still there: {there[0]}")

    def _check_kept(self, unit: str) -> None:
        if (old := self._before_trash(unit)) is not None:
            if old not in self._trash:
                self.found.append(f"{unit}: expected in the trash, got gone")
            return
        mine = self._mine(unit)
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
        if self.report.errors and told in (*self.case.roots, ".") and subject not in self.known and subject in runs:
            return True
        return told == "case" and not any(unit_paths(subject, [path]) for path in self.known)
