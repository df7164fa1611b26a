"""What every command starts from: the options all have, the settings they lead to, and the screen."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.render.redact import Secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from lifecycle.cli.log import Log
    from lifecycle.config.compile import Settings
    from lifecycle.ports import Ask, Clock, Store
    from lifecycle.render.plan import Typing
    from lifecycle.render.table import Look
    from lifecycle.world import World

CONFIG = Path("lifecycle.yaml")


def _same(store: Store) -> Store:
    return store


@contextmanager
def writing() -> Iterator[None]:
    """Tell of an answer that cannot be written, to a full disk for one; a closed pipe is another matter."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as e:
        hint = "what was done is in the journal: `lifecycle ls --trash` shows what was dropped"
        raise LifecycleError(f"the answer cannot be written: {e}", code="output_failed", hint=hint) from e


def flush() -> None:
    """Send what was printed on its way. Raises LifecycleError (``output_failed``)."""
    with writing():
        sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Seams:
    """What tests put in place of the real thing."""

    clock: Clock | None = None
    wrap: Callable[[Store], Store] = _same
    told: Ask | None = None
    """Asks a store what time it is; to be put with the clock, for theirs goes on."""
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    width: int | None = None
    """As wide as this, as if on a terminal."""
    secrets: Secrets = field(default_factory=Secrets)
    """What is never to be told; whoever reads one adds it."""


@dataclass(frozen=True)
class Desk:
    """One command's view of its options."""

    seams: Seams
    config: Path | None = None
    root: str | None = None
    as_json: bool = False
    policies: tuple[Path, ...] = ()
    given: Settings | None = None
    """Settings that were read before: no file is looked at then."""
    log_form: str | None = None
    """In which form a log was asked for, whatever the settings say."""

    @cached_property
    def settings(self) -> Settings:
        """The site that the options name. Raises ConfigInvalid."""
        from lifecycle.config.compile import default_settings, load_settings

        if self.given is not None:
            return self.given
        if self.root is not None:
            if self.config is not None:
                raise ConfigInvalid("--root and --config name two different sites: give one of them", code="usage")
            if "://" not in self.root and not os.path.isdir(self.root):
                raise ConfigInvalid(f"--root: {self.root!a} is not a directory", code="usage")
            settings = default_settings(self.root, f"sqlite:///{self._home(self.root) / 'index.db'}")
        else:
            path = self.config or CONFIG
            if self.config is None and not path.exists():
                hint = "`lifecycle plan --root DIR` needs none; `lifecycle init` writes one"
                raise ConfigInvalid("there is no lifecycle.yaml here", code="no_config", hint=hint)
            settings = load_settings(path, self.seams.env)
        self.seams.secrets.learn_url(settings.database)
        return self._with_policies(settings)

    def _with_policies(self, settings: Settings) -> Settings:
        if not self.policies:
            return settings
        from lifecycle.config.policies import load_policies, meaning_digest

        urls = {store.name: store.url for store in settings.stores}
        policies = load_policies(self.policies, list(urls), urls=urls)
        digest = meaning_digest(settings.digest, tuple(p.digest for p in policies))
        return replace(settings, policies=policies, digest=digest)

    def _home(self, root: str) -> Path:
        """Where the index of an unconfigured tree lies: outside it, and the same whatever path leads there."""
        import hashlib

        base = self.seams.env.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        real = root if "://" in root else os.path.realpath(root)
        digest = hashlib.blake2b(real.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        return Path(base) / "lifecycle" / digest

    @property
    def plans(self) -> Path:
        """The directory of plan files: beside the index."""
        return self.home / "plans"

    @property
    def home(self) -> Path:
        """The directory of what goes with the index; on a server: what LIFECYCLE_STATE says, or beside the settings."""
        from lifecycle.index.open import home, on_server

        told = self.seams.env.get("LIFECYCLE_STATE")  # in a container the settings lie where nobody may write
        if told and on_server(self.settings.database):
            return Path(told).absolute()
        return home(self.settings.database, (self.config or CONFIG).absolute().parent)

    @cached_property
    def clock(self) -> Clock:
        """The machine's clock, or the test's."""
        from lifecycle.clock import SystemClock

        return self.seams.clock or SystemClock()

    @cached_property
    def log(self) -> Log:
        """Where each act, stage and failure is told of in a line; by itself it says nothing. Raises ConfigInvalid."""
        from lifecycle.cli.log import Log, logging_of

        how = logging_of(self.settings.log, self.log_form or self.seams.env.get("LIFECYCLE_LOG"))
        return Log(how, self.seams.secrets, self.clock)

    @property
    def told(self) -> Ask:
        """Asks a store itself what time it is, or says what the test does."""
        from lifecycle.ports import ask

        return self.seams.told or ask

    def world(self, *, write: bool, create: bool = True, workers: int | None = None) -> World:
        """Open everything; ``write`` False cannot change anything in a store."""
        from lifecycle.world import open_world

        settings = self.settings
        if workers is not None:
            settings = replace(settings, stores=tuple(replace(s, workers=workers) for s in settings.stores))
        log, seams = self.log, self.seams
        try:
            world = open_world(
                settings, self.clock, write=write, create=create, wrap=seams.wrap, told=self.told, hear=log.act
            )
        except LifecycleError as e:
            if e.code == "index_missing":
                e.hint = f"the first look makes one: {self.typing('plan')}"
            log.ended(type(e), e, None)
            raise
        world.closing.push(log.ended)
        return world

    # -- the screen

    @cached_property
    def look(self) -> Look:
        """What standard output can do."""
        from lifecycle.render.table import Look

        if self.seams.width is not None:
            return Look(self.seams.width)
        if not sys.stdout.isatty():
            return Look()
        env = self.seams.env
        colour = not env.get("NO_COLOR") and env.get("TERM") != "dumb"
        return Look(shutil.get_terminal_size().columns, colour)

    @cached_property
    def typing(self) -> Typing:
        """How the reader would call us again for the same site."""
        from lifecycle.render.plan import Typing, quote

        options = [f"--root {quote(self.root)}"] if self.root is not None else []
        options += [f"-c {quote(str(self.config))}"] if self.config is not None else []
        rules = [f"--policy {quote(str(path))}" for path in self.policies]
        return Typing(self._program(), " ".join(options), " ".join(rules))

    @staticmethod
    def _program() -> str:
        """``lifecycle`` where a shell finds it; else the way that was taken this time."""
        name = os.path.basename(sys.argv[0])
        if name != "lifecycle" or shutil.which("lifecycle"):
            return "lifecycle"
        return sys.argv[0] if "/" in sys.argv[0] else "lifecycle"

    def answer(self, value: Mapping[str, object], lines: Iterable[str]) -> None:
        """Print the answer: one JSON object in ASCII where that was asked for, else the lines."""
        if self.as_json:
            with writing():
                print(json.dumps(value, ensure_ascii=True, allow_nan=False, indent=1))
        for line in () if self.as_json else lines:
            self._print(line)
        if "log" in self.__dict__:  # a log that was never asked for has lost nothing
            self.log.refuse_lost()

    def _print(self, line: str) -> None:
        """Sentences are broken at the screen's edge; what is indented or painted was laid out already."""
        from lifecycle.render.table import wrap

        with writing():
            for part in (line,) if line[:1] in ("", " ", "\x1b") else wrap(line, self.look, indent=2):
                print(part)

    def say(self, text: str) -> None:
        """A line for people while the answer is still to come; nothing where a program reads."""
        if not self.as_json:
            self._print(text)
            flush()

    def warn(self, text: str) -> None:
        """A line on standard error."""
        print(f"lifecycle: {self.seams.secrets.hide(text)}", file=sys.stderr)
