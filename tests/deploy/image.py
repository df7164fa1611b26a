"""Reads the Dockerfile and does what it says without a daemon: the RUN lines of its first stage, in a sandbox."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from tests.deploy.sandbox import Mount, command, why_not
from tests.servers import BUILD, made_once

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy/Dockerfile"
LIMIT_S = 300
MADE = ("build", "lifecycle")
"""What the first stage makes below /opt."""

FROM_HERE = ("PIP_", "UV_", "SSL_", "REQUESTS_CA", "HTTP", "NO_PROXY", "http", "no_proxy")
"""How this machine reaches packages: a builder has proxies and certificates of its own."""

QUICKER = {"UV_COMPILE_BYTECODE": "0", "UV_SYSTEM_CERTS": "1", "UV_NO_CACHE": "0", "UV_CACHE_DIR": "/cache"}
"""Where these tests differ from what the image does: 10 s of compiling, which no test could tell, and loading anew."""


WARM = "cd / && exec /opt/lifecycle/bin/lifecycle tick --config /src/site/lifecycle.yaml"
"""A first night, over nothing: what it imports is compiled, once for all that follow."""

SITE = {
    "lifecycle.yaml": "stores: {hot: file:///src/site/hot}\ndatabase: sqlite:///index.db\n",
    "policies/all.yaml": "policy: all\nkeep:\n  - last: 1\n",
    "hot/nothing": "",
}


@dataclass(frozen=True)
class Stage:
    """One stage of a Dockerfile: (instruction, rest) in their order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """What stands behind each of these instructions."""
        return [rest for found, rest in self.steps if found == instruction]

    def pairs(self, instruction: str) -> dict[str, str]:
        """What ENV, LABEL or ARG set."""
        return dict(_pairs(" ".join(self.all(instruction))))

    @property
    def sources(self) -> list[str]:
        """What it copies from the checkout."""
        lines = [rest.split() for rest in self.all("COPY") if not rest.startswith("--from")]
        return [source for words in lines for source in words[:-1]]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for word in shlex.split(text):
        name, _, value = word.partition("=")
        yield name, value


def stages(text: str) -> list[Stage]:
    """The stages, with the arguments that stand before the first of them put into their bases."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    known: dict[str, str] = {}
    found: list[Stage] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "ARG" and not found:
            known |= dict(_pairs(rest))
        elif word == "FROM":
            base, _, name = rest.partition(" AS ")
            for key, value in known.items():
                base = base.replace(f"${{{key}}}", value)
            found.append(Stage(name, base))
        else:
            found[-1].steps.append((word, rest.strip()))
    return found


@dataclass(frozen=True)
class Image:
    """What the last stage would hold: the mounts that stand for its files, and its environment."""

    mounts: tuple[Mount, ...]
    env: dict[str, str]


def _copy(stage: Stage, target: Path) -> None:
    for rest in stage.all("COPY"):
        *sources, at = rest.split()
        for source in sources:
            into = target / at / Path(source).name if at.endswith("/") else target / at
            into.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, into)


def _digest(stage: Stage) -> str:
    """Of all that the stage is made of."""
    known = sha256(DOCKERFILE.read_bytes() + sys.version.encode())
    for source in stage.sources:
        for path in [ROOT / source, *sorted((ROOT / source).rglob("*"))]:
            if path.is_file() and "__pycache__" not in path.parts:
                known.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return known.hexdigest()[:16]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The environment that the Dockerfile's first stage makes, at the path at which the image has it."""
    if why := why_not():
        pytest.skip(f"no container can be imitated: {why}")
    build, last = stages(DOCKERFILE.read_text())

    def commands(home: Path) -> Iterator[list[str]]:
        for old in BUILD.glob("image-*/"):  # one at a time: each is some hundred MB
            if old != home:
                shutil.rmtree(old)
        for name in MADE:
            (home / name).mkdir(parents=True)
        _copy(build, home / "src")
        here = {name: value for name, value in os.environ.items() if name.startswith(FROM_HERE)}
        env = {
            **here,
            **build.pairs("ENV"),
            **QUICKER,
            "HOME": "/src",
            "PATH": "/base/bin:/usr/local/bin:/usr/bin:/bin",
        }
        root = tmp_path_factory.mktemp("root")
        for path, text in SITE.items():
            (home / "src/site" / path).parent.mkdir(parents=True, exist_ok=True)
            (home / "src/site" / path).write_text(text)
        for line in [*build.all("RUN"), WARM]:
            yield command(["sh", "-euc", line], root, _workshop(home), env, cwd="/src")

    home = made_once(f"image-{_digest(build)}", commands, LIMIT_S)
    return Image((Mount(home / "lifecycle", "/opt/lifecycle", False),), last.pairs("ENV"))


def _workshop(home: Path) -> list[Mount]:
    """What the first stage sees. Its Python with pip is this environment's own: Debian's has none."""
    cache = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache/uv")
    cache.mkdir(parents=True, exist_ok=True)
    own = [Mount(home / name, f"/opt/{name}") for name in MADE]
    theirs = [Mount(path, str(path), False) for path in Path("/opt").iterdir() if path.name not in MADE]
    return [*own, *theirs, Mount(home / "src", "/src"), Mount(cache, "/cache"), Mount(Path(sys.prefix), "/base", False)]
