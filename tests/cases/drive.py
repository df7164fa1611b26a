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
from threading import Lock
from typing import Any

from lifecycle.config.compile import load_settings
from lifecycle.core.action import Verb
from lifecycle.core.plan import Plan
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.ports import Target
from lifecycle.world import World
from tests.cases import happen
from tests.cases.box import State
from tests.cases.boxes import Boxes, make_box
from tests.cases.bucket import BucketBox
from tests.cases.grammar import Case, NeedsMore, Unsupported, case
from tests.cases.hands import Hands
from tests.cases.happen import Deed
from tests.cases.past import Past, unit_paths
from tests.cases.seams import FrozenClock, Killed, copy_faults, faults
from tests.cases.session import Engine, Report
from tests.cases.tiers import tiers
from tests.cases.translate import STORE, Site, translate
from tests.cases.verdict import Judge
from tests.servers import Server

FAULTS = {"db_locked", "errno", "http", "silly_rename", "listing_cut", "tags_fail"}
COPY_FAULTS = {"errno", "http", "rot"}
COPY_KILLS = ("in the first piece", "before it appears", "after it appeared")
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
    if not sentences:
        return ("",)
    copying = any(happen.KILL.search(e.text) for e in given.happening("during_copy"))
    return COPY_KILLS if copying else ("before the act", "after the act", "after the row")


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
        self.server = server
        self.tiers = tiers(given)
        self.box = make_box(given, [tier.root for tier in self.tiers], server, self.home)
        units = [*given.expected.keep, *given.expected.delete, *(str(r.get("id")) for r in given.rows or [])]
        places = [tier.root for tier in self.tiers]
        self.known = list(dict.fromkeys([*(e.path for e in given.tree), *units, *places]))
        self.deeds = {at: self._deeds(at) for at in {e.at for e in given.events}}
        self.hands = Hands(given, self.box, self.known)
        self.trash_of: dict[str, str] = {}

    def _put_right(self, store: Any) -> None:
        bucket = getattr(store, "bucket", None)
        for box in list(self.box) if isinstance(self.box, Boxes) else [self.box]:
            if bucket is not None and isinstance(box, BucketBox) and box.name == bucket.name:
                box.put_right(bucket)

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
        self.hands.lease_suffix = site.settings.get("leases", {}).get("suffix", ".lease")
        engine = self._engine(site)
        if engine is None:
            return
        for tier in self.tiers:
            if "://" not in tier.root and self.case.store == "posix":
                self.box.mkdir(tier.root)
        past = Past(self.case, self.box, engine, site)
        left = past.lay(self.at("before_scan"))
        self.trash_of = past.trash_of
        past.age_schema()
        self.hands.do(left, engine)
        self.box.settle()
        self.hands.ledger = self.box.state()
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
        for store in site.settings["stores"].values():
            if store["url"].startswith("s3://"):
                store["endpoint_url"], store["addressing_style"] = self.server().endpoint_url, "path"
        try:
            with self._linked_roots():
                settings = load_settings(site.write(self.home), env)
        except ConfigInvalid as e:
            self._refused(e)
            return None
        engine = Engine(self.home, settings, FrozenClock(self.case.now_ns), site.names, self.case.capacity)
        engine.put_right = self._put_right
        return engine

    @contextmanager
    def _linked_roots(self) -> Iterator[None]:
        """Roots that are links lead there already when the settings are read."""
        roots = {tier.root for tier in self.tiers}
        links = [e for e in self.case.tree if e.kind == "link" and e.path in roots]
        self.box.lay(links)
        try:
            yield
        finally:
            for entry in links:
                self.box.remove(entry.path)

    def _refused(self, error: ConfigInvalid) -> None:
        """The configuration was refused: nothing was even looked at."""
        self.box.lay([e for e in self.case.tree if e.kind != "hard"])
        self.hands.ledger = self.box.state()
        report = Report(errors=[error.code], exit_code=error.exit_code, told=[str(error)])
        report.flags.add((".", error.code))
        self._judge(report, None)

    def _judge(self, report: Report, engine: Engine | None) -> None:
        self.verdict.told = report.told
        judge = Judge(
            self.case,
            self.hands.ledger,
            self.box.state(),
            report,
            engine,
            self.trash_of,
            self.known,
            self.box,
            self.tiers,
        )
        wrong = judge.wrong()
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
        kill = [d for d in self.at("during_copy", "during_apply", "after_crash") if d.verb == "kill"]
        report = Report()
        try:
            report = engine.run(
                scanning=lambda world: self._scanning(scanning, engine, world),
                planned=lambda world, plan: self._planned(engine, world, plan, bool(kill)),
                applying=lambda world: self._applying(engine, world),
                free=site.purge,
            )
        except Killed:
            engine.watch.reset()
            self.hands.do([d for d in self.at("after_crash") if d.verb not in ("kill", "restart")], engine)
            report = engine.run(free=site.purge)
        return report

    def _scanning(self, deeds: list[Deed], engine: Engine, world: World) -> AbstractContextManager[None]:
        changes = [d for d in deeds if d.verb not in FAULTS]

        def once() -> None:
            if changes:
                todo, changes[:] = list(changes), []
                self.hands.do(todo, engine)

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
        self.hands.do([d for d in deeds if d.verb not in FAULTS | {"stale"}], engine)
        waiting = [
            d for d in self.at("during_apply", "concurrent") if d.verb not in FAULTS | {"kill", "many", "restart"}
        ]

        def before(_key: str) -> None:
            if waiting:
                now, waiting[:] = list(waiting), []
                self.hands.do(now, engine)
            if kill and self.kill == "before the act":
                raise Killed

        def after(_key: str) -> None:
            if kill and self.kill == "after the act":
                raise Killed

        engine.watch.on_retire, engine.watch.after_retire = before, after
        self._copying(engine)
        if kill and self.kill == "after the row":
            real = world.index.journal.end

            def end(row: int, outcome: str, note: str, now_ns: int) -> None:
                real(row, outcome, note, now_ns)
                raise Killed

            world.index.journal.end = end  # type: ignore[method-assign]

    def _copying(self, engine: Engine) -> None:
        """What happens to a file after the first piece of it was sent; what is no such file waits for any."""
        waiting = [d for d in self.at("during_copy") if d.verb not in COPY_FAULTS | {"kill", "restart"}]
        lock = Lock()
        sources = {e.path for e in self.case.tree}

        def sent(path: str) -> None:
            with lock:
                now = [d for d in waiting if d.path not in sources or d.path == path]
                waiting[:] = [d for d in waiting if d not in now]
                self.hands.do(now, engine)
            if self.kill == "in the first piece":
                raise Killed

        def kill(when: str) -> None:
            if self.kill == when:
                raise Killed

        engine.watch.on_piece = sent
        engine.watch.on_publish = lambda: kill("before it appears")
        engine.watch.after_publish = lambda: kill("after it appeared")

    @contextmanager
    def _applying(self, engine: Engine, world: World) -> Iterator[None]:
        found = [d for d in self.at("after_plan", "during_apply", "concurrent") if d.verb in FAULTS]
        copying = [d for d in self.at("during_copy") if d.verb in COPY_FAULTS]
        with faults(found, world, engine.watch), copy_faults(copying, world, engine.watch):
            yield

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
            rows = [row.action for row in world.index.journal.rows() if row.outcome == "done"]
        done = [action.id for action in rows if action.verb is not Verb.COPY]
        leaving = {*self.case.expected.delete, *self.case.expected.tier}
        if len(done) != len(set(done)) or set(map(engine.case_id, done)) != leaving:
            self.verdict.wrong.append(f"journal: one row for each deleted unit expected, got {sorted(done)}")
        return whole

    # -- the end

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
