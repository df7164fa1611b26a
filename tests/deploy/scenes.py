"""A training's volume with five checkpoints, and the chart that looks after it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, save_hf
from tests.deploy.kube import Document, Tools
from tests.deploy.pod import Cluster

US = 10001
"""The user of the pod, and the group that training shares with it."""

TRAINER = 20001
POLICY = """\
policy: pretrain
match: {runs: ["hot:**"]}
keep:
  - last: 2
limits: {grace: none, trash: 72h}
"""
AUTO = {"apply": "auto", "purge": "auto", "stop_after": "1h"}
SMALL: Document = {
    "stores": {"hot": {"claim": "scratch"}},
    "policies": {"pretrain.yaml": POLICY},
    "database": {"sqlite": {"claim": "state"}},
}


@pytest.fixture
def claims(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Volumes that both sides see: training's with five checkpoints, ours with nothing."""
    found = {name: tmp_path / name for name in ("scratch", "state")}
    for path in found.values():
        path.mkdir()
    for i in range(5):
        save_hf(found["scratch"] / "run", 100 * (i + 1), (9 - i) * DAY_S, now_s=int(time.time()))
    given(found["scratch"], US)
    given(found["state"], US)
    # pytest's directories are of root alone; a volume is mounted past what lies above it, and so is ours.
    yield found


def given(root: Path, uid: int, *, shared: bool = False) -> None:
    """Let it all be of one user and our group; ``shared`` if the group may write to directories as well."""
    for path in [root, *root.rglob("*")]:
        times = path.stat()
        os.chown(path, uid, US)
        if path.is_dir():
            os.chmod(path, 0o2775 if shared else 0o2755)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def cluster(tools: Tools, tmp_path: Path, claims: dict[str, Path]) -> Callable[..., Cluster]:
    """What the chart makes of the small values with changes, beside the two volumes."""

    def made(**change: object) -> Cluster:
        home = tmp_path / f"cluster-{len(list(tmp_path.iterdir()))}"
        home.mkdir()
        return Cluster(home, tools.values(SMALL | change), claims)

    return made


def steps(claims: dict[str, Path]) -> set[str]:
    return {path.name.removeprefix("checkpoint-") for path in (claims["scratch"] / "run").iterdir()}


ALL = {"100", "200", "300", "400", "500"}
