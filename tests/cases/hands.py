"""Hands: does what other people do in a case, and keeps a ledger of it."""

from __future__ import annotations

from lifecycle.core.listing import split
from lifecycle.core.model import Hold
from lifecycle.flows.holds import place
from tests.cases.box import Box, State
from tests.cases.grammar import Case, Unsupported
from tests.cases.happen import Deed
from tests.cases.past import unit_paths, upgrade_with_kills
from tests.cases.session import Engine


class Hands:
    """What works on the box behind the engine's back."""

    def __init__(self, case: Case, box: Box, known: list[str]) -> None:
        self.case, self.box, self.known = case, box, known
        self.ledger: State = {}
        """What would stand there had only other people done anything."""
        self.lease_suffix = ".lease"

    def do(self, deeds: list[Deed], engine: Engine) -> None:
        for deed in deeds:
            before = self.box.state()
            self._one(deed, engine)
            after = self.box.state()
            for path in before.keys() - after.keys():
                self.ledger.pop(path, None)
            self.ledger.update({p: s for p, s in after.items() if before.get(p) != s})

    def _one(self, deed: Deed, engine: Engine) -> None:  # noqa: PLR0912  # one branch a verb
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
            case "rot":
                for one in self._spread(path)[:1]:
                    box.rot(one)
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
