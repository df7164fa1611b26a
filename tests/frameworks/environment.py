"""A virtual environment for each group of frameworks, made once under `build/frameworks` and kept between runs."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "frameworks"
MAKE_S = 900


class NotMade(Exception):
    """The environment cannot be had on this machine; the text says why."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made if it is missing or if what it asks for has changed.

    Raises:
        NotMade: no installer, or it failed; with its own last words.
    """
    wanted = HERE / "requirements" / f"{name}.txt"
    overrides = wanted.with_suffix(".overrides.txt")
    asked = wanted.read_bytes() + (overrides.read_bytes() if overrides.exists() else b"") + sys.version.encode()
    stamp = hashlib.sha256(asked).hexdigest()
    home = BUILD / name
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = home / "made"
        if not made.exists() or made.read_text() != stamp:
            shutil.rmtree(home, ignore_errors=True)
            _run("venv", "--python", sys.executable, str(home))
            more = ["--overrides", str(overrides)] if overrides.exists() else []
            _run("pip", "install", "--python", str(home / "bin" / "python"), "-r", str(wanted), *more)
            made.write_text(stamp)
    return home / "bin" / "python"


def version_of(python: Path, package: str) -> str:
    """The version of a distribution in an environment."""
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def _run(*words: str) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        raise NotMade("needs uv")
    env = {"UV_SYSTEM_CERTS": "1", **os.environ}
    # A torch for processors only: from where pip is told to look for wheels, else from the index that torch keeps.
    if "PIP_FIND_LINKS" in env:
        env.setdefault("UV_FIND_LINKS", env["PIP_FIND_LINKS"])
    else:
        env.setdefault("UV_TORCH_BACKEND", "cpu")
    try:
        done = subprocess.run(
            [uv, "--quiet", *words], env=env, capture_output=True, text=True, check=False, timeout=MAKE_S
        )
    except subprocess.TimeoutExpired:
        raise NotMade(f"uv {words[0]}: not done after {MAKE_S} s") from None
    if done.returncode:
        raise NotMade(f"uv {words[0]}: {' '.join(done.stderr.split())[:300]}")
