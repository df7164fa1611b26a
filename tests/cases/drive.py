"""Drives one case from the empty box to the verdict."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lifecycle.config.compile import load_settings
from lifecycle.core.listing import split
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.flows.holds import place
from lifecycle.ports import Target
from lifecycle.world import World
from tests.cases import happen
from tests.cases.box import Box, Directory, State
from tests.cases.bucket import BucketBox, DatedBox
from tests.cases.grammar import Case, NeedsMore, Unsupported, case
from tests.cases.happen import Deed
from tests.cases.past import Past, unit_paths, upgrade_with_kills
from tests.cases.seams import FrozenClock, Killed, faults
from tests.cases.session import Engine, Report
from tests.cases.translate import STORE, Site, translate
from tests.cases.verdict import Judge
from tests.servers import Server

FAULTS = {"db_locked", "errno", "http", "silly_rename", "listing_cut", "tags_fail"}
FREED_MAX = 100
"""Larger trees are not freed to the last byte: every object of a bucket costs three requests."""
LATE = {"other_index", "lease_held", "index_busy", "scan_overtaken"}
"""What a process may rightly say that was not the first."""
ZONES = ("Pacific/Pago_Pago", "UTC", "Asia/Tokyo", "Pacific/Kiritimati")
"""Offsets of -11, 0, +9 and +14 hours: a case that names a zone must come out the same in all of them."""


@dataclass
class Verdict:
    """What a case came to."""

    id: str
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""
    told: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.wrong and not self.skipped


def check(raw: dict[str, Any], server: Callable[[], Server], keep_dir: Path | None = None) -> Verdict:
    """Run one case, in every variant that it asks for."""
    verdict = Verdict(str(raw.get("id")))
    try:
        given = case(raw)
        for zone in ZONES if "TZ" in given.env else ("",):
            for kill in _kills(given):
                with _environment(given, zone):
                    _Drive(case(raw), server, kill, keep_dir, verdict).run()
    except NeedsMore as e:
        verdict.skipped = str(e)
    except Unsupported as e:
        verdict.wrong.append(f"not supported: {e}")
    except Exception:  # a traceback is the one thing that no case may end in
        verdict.wrong.append("traceback: " + traceback.format_exc(limit=-4))
    return verdict


def _kills(given: Case) -> tuple[str, ...]:
    """Where a kill can fall: a case that tells of one must come out the same for all of them."""
    sentences = [e.text for e in given.events if happen.KILL.search(e.text) and not happen.MIGRATION.search(e.text)]
    return ("before the act", "after the act", "after the row") if sentences else ("",)


@contextmanager
def _environment(given: Case, zone: str) -> Iterator[None]:
    before = dict(os.environ)
    try:
        if zone:
            os.environ["TZ"] = zone
            time.tzset()
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


class _Drive:
    def __init__(
        self, given: Case, server: Callable[[], Server], kill: str, keep_dir: Path | None, verdict: Verdict
    ) -> None:
        self.case, self.kill, self.verdict = given, kill, verdict
        self.temporary = None if keep_dir else tempfile.TemporaryDirectory(prefix="case-")
        self.home = (keep_dir or Path(self.temporary.name if self.temporary else "")) / given.id
        self.home.mkdir(parents=True, exist_ok=True)
        self.box: Box
        if given.store == "posix":
            self.box = Directory(self.home / "tree", given.now_ns)
        else:
            kind = BucketBox if server().kind == "moto" else DatedBox
            self.box = kind(server(), given.now_ns, given.tree)
        units = [*given.expected.keep, *given.expected.delete, *(str(r.get("id")) for r in given.rows or [])]
        self.known = list(dict.fromkeys([*(e.path for e in given.tree), *units]))
        self.deeds = {at: self._deeds(at) for at in {e.at for e in given.events}}
        self.ledger: State = {}
        self.lease_suffix = ".lease"
        self.trash_of: dict[str, str] = {}

    def _deeds(self, at: str) -> list[Deed]:
        return [deed for event in self.case.happening(at) for deed in happen.deeds(event.text, self.known)]

    def at(self, *moments: str) -> list[Deed]:
        return [deed for moment in moments for deed in self.deeds.get(moment, [])]

    # -- the way

    def run(self) -> None:
        try:
            self._run()
        finally:
            self.box.close()
            if self.temporary:
                self.temporary.cleanup()

    def _run(self) -> None:
        site = translate(self.case, self.box)
        if any(d.verb == "silly_rename" for d in self.at("during_apply")):
            site.policy.setdefault("limits", {}).setdefault("trash", "none")
        self.lease_suffix = site.settings.get("leases", {}).get("suffix", ".lease")
        engine = self._engine(site)
        if engine is None:
            return
        past = Past(self.case, self.box, engine, site.sentinel)
        left = past.lay(self.at("before_scan"))
        self.trash_of = past.trash_of
        past.age_schema()
        self._do(left, engine)
        self.box.settle()
        self.ledger = self.box.state()
        report = self._main(engine, site)
        if any(d.verb == "session" for at in self.deeds.values() for d in at):
            report.errors = [code for code in report.errors if code not in LATE]
        self._judge(report, engine)
        self._converge(engine)

    def _engine(self, site: Site) -> Engine | None:
        """The loader's word on the settings; where it refuses, the case is over."""
        env = {**os.environ, **{k: v for k, v in self.case.env.items() if k != "TZ"}}
        if home := self.case.env.get("HOME"):
            os.environ["HOME"] = home
        for literal in site.literal_roots:
            real = site.settings["stores"][STORE]["url"]
            site.settings["stores"][STORE]["url"] = literal
            try:
                load_settings(site.write(self.home), env)
            except ConfigInvalid as e:
                self._refused(e)
                return None
            site.settings["stores"][STORE]["url"] = real
        if self.case.env.get("HOME", "").strip("/") in {root for root in self.case.roots if root}:
            os.environ["HOME"] = str(self.home / "tree" / self.case.env["HOME"].strip("/"))
        if isinstance(self.box, BucketBox):
            for store in site.settings["stores"].values():
                store["endpoint_url"], store["addressing_style"] = self.box.server.endpoint_url, "path"
        try:
            settings = load_settings(site.write(self.home), env)
        except ConfigInvalid as e:
            self._refused(e)
            return None
        engine = Engine(self.home, settings, FrozenClock(self.case.now_ns), site.names)
        engine.put_right = self.box.put_right if isinstance(self.box, DatedBox) else None
        return engine

    def _refused(self, error: ConfigInvalid) -> None:
        """The configuration was refused: nothing was even looked at."""
        self.box.lay([e for e in self.case.tree if e.kind != "hard"])
        self.ledger = self.box.state()
        report = Report(errors=[error.code], exit_code=error.exit_code, told=[str(error)])
        report.flags.add((".", error.code))
        self._judge(report, None)

    def _judge(self, report: Report, engine: Engine | None) -> None:
        self.verdict.told = report.told
        wrong = Judge(self.case, self.ledger, self.box.state(), report, engine, self.trash_of, self.known).wrong()
        if self.kill == "after the row":  # nothing is left to resume
            wrong = [line for line in wrong if "resumed_delete" not in line]
        if self.kill:
            wrong = [f"({self.kill}) {line}" for line in wrong]
        self.verdict.wrong += [line for line in wrong if line not in self.verdict.wrong]

    def _main(self, engine: Engine, site: Site) -> Report:
        scanning = self.at("during_scan")
        many = [d for d in self.at("concurrent", "during_apply") if d.verb == "many"]
        if many:
            return self._many(engine, many[0].size or 2)
        kill = [d for d in self.at("during_apply", "after_crash") if d.verb == "kill"]
        report = Report()
        try:
            report = engine.run(
                scanning=lambda world: self._scanning(scanning, engine, world),
                planned=lambda world, plan: self._planned(engine, world, plan, bool(kill)),
                applying=lambda world: self._applying(engine, world),
                free=site.purge,
            )
        except Killed:
            engine.watch.on_retire = engine.watch.after_retire = lambda _key: None
            self._do([d for d in self.at("after_crash") if d.verb not in ("kill", "restart")], engine)
            report = engine.run(free=site.purge)
        return report

    def _scanning(self, deeds: list[Deed], engine: Engine, world: World) -> AbstractContextManager[None]:
        changes = [d for d in deeds if d.verb not in FAULTS]

        def once() -> None:
            if changes:
                todo, changes[:] = list(changes), []
                self._do(todo, engine)

        engine.watch.on_walk = once
        found = [replace(d, verb="listing_cut") if d.verb == "errno" else d for d in deeds if d.verb in FAULTS]
        return faults(found, world, engine.watch) if found else nullcontext()

    def _planned(self, engine: Engine, world: World, plan: Plan, kill: bool) -> None:
        """Between plan and apply, and the hooks for what happens during it."""
        deeds = self.at("after_plan")
        if any(d.verb == "stale" for d in deeds):
            for name, store in world.stores.items():
                mine = [a for a in plan.actions if a.store == name]
                targets = [Target(a.key, a.shape, a.members) for a in mine]
                store.freeze({a.run for a in mine}, targets)  # type: ignore[attr-defined]  # a CaseStore
        self._do([d for d in deeds if d.verb not in FAULTS | {"stale"}], engine)
        waiting = [
            d for d in self.at("during_apply", "concurrent") if d.verb not in FAULTS | {"kill", "many", "restart"}
        ]

        def before(_key: str) -> None:
            if waiting:
                now, waiting[:] = list(waiting), []
                self._do(now, engine)
            if kill and self.kill == "before the act":
                raise Killed

        def after(_key: str) -> None:
            if kill and self.kill == "after the act":
                raise Killed

        engine.watch.on_retire, engine.watch.after_retire = before, after
        if kill and self.kill == "after the row":
            real = world.index.journal.end

            def end(row: int, outcome: str, note: str, now_ns: int) -> None:
                real(row, outcome, note, now_ns)
                raise Killed

            world.index.journal.end = end  # type: ignore[method-assign]

    def _applying(self, engine: Engine, world: World) -> AbstractContextManager[None]:
        found = [d for d in self.at("after_plan", "during_apply", "concurrent") if d.verb in FAULTS]
        return faults(found, world, engine.watch) if found else nullcontext()

    def _many(self, engine: Engine, count: int) -> Report:
        """Real processes, all at once; what they say comes back through pipes."""
        import json

        pipes = []
        for _ in range(count):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    report = engine.run()
                    out = [sorted(report.flags), report.errors, report.unjudged, report.acted, report.lease_held]
                    os.write(writing, json.dumps(out).encode())
                    code = 0
                except BaseException:  # told as what it is, by the exit code and the text
                    os.write(writing, json.dumps(traceback.format_exc(limit=-5)).encode())
                finally:
                    os._exit(code)
            os.close(writing)
            pipes.append((child, reading))
        whole = Report()
        for child, reading in pipes:
            with os.fdopen(reading, "rb") as pipe:
                text = pipe.read()
            _, status = os.waitpid(child, 0)
            out = json.loads(text or b'"nothing"')
            if status or isinstance(out, str):
                self.verdict.wrong.append(f"one of {count} processes ended in {out}")
                continue
            whole.flags |= {(a, b) for a, b in out[0]}
            whole.acted += out[3]
            whole.errors += [code for code in out[1] if code not in LATE]
        with engine.open(write=False) as world:
            done = [row.action.id for row in world.index.journal.rows() if row.outcome == "done"]
        if len(done) != len(set(done)) or set(map(engine.case_id, done)) != set(self.case.expected.delete):
            self.verdict.wrong.append(f"journal: one row for each deleted unit expected, got {sorted(done)}")
        return whole

    # -- other people's deeds

    def _do(self, deeds: list[Deed], engine: Engine) -> None:
        for deed in deeds:
            before = self.box.state()
            self._deed(deed, engine)
            after = self.box.state()
            for path in before.keys() - after.keys():
                self.ledger.pop(path, None)
            self.ledger.update({p: s for p, s in after.items() if before.get(p) != s})

    def _deed(self, deed: Deed, engine: Engine) -> None:  # noqa: PLR0912  # one branch a verb
        box, path = self.box, deed.path
        match deed.verb:
            case "remove":
                for one in self._spread(path, whole=True):
                    box.remove(one)
            case "rename":
                box.rename(path, deed.other)
            case "truncate":
                box.truncate(path, deed.size or 0)
            case "write":
                for one in self._spread(path)[:1] if deed.size is None else self._spread(path):
                    if deed.text:
                        box.write(one, deed.text.encode())
                    else:
                        box.change(one, deed.size)
            case "point":
                self._point(path, deed.other)
            case "link":
                box.link(path, deed.other)
            case "copy":
                for one in unit_paths(path, list(box.state())):
                    box.write(deed.other + one[len(path) :], box.read(one))
            case "touch":
                box.touch(path, box.clock_ns)
            case "mkdir":
                box.mkdir(path)
            case "chmod":
                box.chmod(path, deed.size or 0)
            case "unmount":
                box.rename(path, path + "-away")
                box.mkdir(path)
            case "lease":
                box.write(path + self.lease_suffix, b"x")
            case "hold":
                self._hold(path, engine)
            case "tag":
                for one in unit_paths(path, list(box.state())):
                    box.tag(one, *deed.text.split("=", 1))
            case "session":
                Engine(engine.home, engine.settings, engine.clock, engine.roots).run()
            case "kill_migration":
                upgrade_with_kills(engine)
            case "clock":
                engine.clock.at_ns += (deed.size or 0) * 10**9
            case "read" | "restart" | "stale":
                pass
            case verb:
                raise Unsupported(f"deed {verb}")

    def _hold(self, path: str, engine: Engine) -> None:
        with engine.open() as world:
            for run in world.index.reader.runs(tuple(world.stores)):
                for c in run.checkpoints:
                    if engine.case_id(c.id) == path:
                        place(Hold(f"hold-{c.key}", c.id, "user", "wanted", 0), world.index.writer, world.trashes)

    def _spread(self, path: str, *, whole: bool = False) -> list[str]:
        """A unit that is a group is all its files; what is not there yet is meant itself."""
        state = self.box.state()
        if path in state and state[path] != "dir":
            return [path]
        inside = [p for p in state if p.startswith(path + "/")]
        if inside:
            return [path] if whole and self.case.store == "posix" else inside
        if path in self.known and unit_paths(path, list(state)):
            return unit_paths(path, list(state))
        like_a_unit = any(
            p.startswith(f"{u}/") for u in self.known for p in self.known if split(u)[0] == split(path)[0]
        )
        return [path] if whole or not like_a_unit or "." in split(path)[1] else [f"{path}/w"]

    def _point(self, pointer: str, target: str) -> None:
        state = self.box.state()
        name = target.rpartition("/")[2]
        if state.get(pointer, "").startswith("link "):
            self.box.link(pointer, name)
        else:
            self.box.write(pointer, name.encode())

    def _converge(self, engine: Engine) -> None:
        """A second session comes to an end of it; a third does nothing at all."""
        engine.watch.reset()
        try:
            world = engine.open()
        except LifecycleError:
            return  # what cannot be opened changes nothing
        with world:
            second = engine.session(world, Report())
            before = self.box.state()
            third = engine.session(world, Report())
            still = self.box.state() == before
            if still and len(before) <= FREED_MAX:
                self._free(engine, world, before)
        if not still:
            self.verdict.wrong.append("a third run still changed something")
        if third.acted and not third.errors:
            self.verdict.wrong.append(f"a third run still did {third.acted} actions after {second.acted}")

    def _free(self, engine: Engine, world: World, before: State) -> None:
        """When its time is over the trash is freed, and nothing but what was to go goes with it."""
        lying = {
            engine.case_id(f"{name}:{entry.key}") for name, trash in world.trashes.items() for entry in trash.trash()
        }
        engine.clock.at_ns += 3650 * 86_400 * 10**9
        report = Report()
        engine.purge(world, report)
        after = self.box.state()
        for path in sorted(before.keys() | after.keys()):
            wanted = any(unit_paths(unit, [path]) for unit in lying)
            if wanted and path in after and after[path] not in ("dir", "marker") and not report.flags:
                self.verdict.wrong.append(f"{path}: expected to be freed with the trash, got still there")
            elif (
                not wanted and before.get(path) != after.get(path) and "dir" not in (before.get(path), after.get(path))
            ):
                self.verdict.wrong.append(f"{path}: changed when the trash was freed")
