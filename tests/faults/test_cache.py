"""A node's cache under a crowd and under kills: one downloads, whoever dies is followed, nothing half is ever ready."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lifecycle.stores.cache_dir import AREA, CacheDir
from tests.cli.harness import NOW_S
from tests.faults.forks import Nursery
from tests.faults.sweeps import CALLS, counted, killed, noted, sample
from tests.servers import Server
from tests.stores.places import memory_directory

CROWD = 8


def crowd(count: int, *words: str, **env: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.crowd", str(count), *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == count, done
    return [{"code": one["code"], **json.loads(one["out"])} for one in told]


class Gets(logging.Handler):
    """Counts how often an object was asked for, by the server's own log."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key, self.count = key, 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "GET " in record.getMessage() and self.key in record.getMessage()


def test_of_many_at_once_one_downloads_and_all_use_it(moto: Server, tmp_path: Path):
    prefix = uuid.uuid4().hex
    for name, content in (("model.safetensors", bytes(9_000_000)), ("config.json", b"{}")):
        moto.client.put_object(Bucket=moto.bucket, Key=f"{prefix}/run/llama/{name}", Body=content)
    log, gets = logging.getLogger("werkzeug"), Gets("llama/config.json")
    level = log.level
    log.addHandler(gets)
    log.setLevel(logging.INFO)
    try:
        url = f"s3://{moto.bucket}/{prefix}/run/llama"
        place = ("--dir", str(tmp_path), "--budget", "1GB", "--min-free", "none", "--for", "pod-%n", "--json")
        told = crowd(CROWD, "cache", "fill", url, *place, AWS_ENDPOINT_URL=moto.endpoint_url)
    finally:
        log.removeHandler(gets)
        log.setLevel(level)
    assert [one["code"] for one in told] == [0] * CROWD
    assert sorted(one["how"] for one in told)[0] == "filled"
    assert sum(one["how"] == "filled" for one in told) == 1
    assert gets.count == 1, "the file was fetched once"
    assert len({one["path"] for one in told}) == 1
    path = Path(told[0]["path"])
    assert (path / "config.json").read_bytes() == b"{}" and (path / "model.safetensors").stat().st_size == 9_000_000
    [entry] = CacheDir(str(tmp_path)).entries(0)
    assert len(CacheDir(str(tmp_path)).leases(entry.id)) == CROWD


def test_a_crowd_with_different_models_stays_under_the_budget(tmp_path: Path):
    for n in range(CROWD):
        (tmp_path / f"m{n}").mkdir()
        (tmp_path / f"m{n}" / "w.bin").write_bytes(bytes([n]) * 100_000)
    (tmp_path / "cache").mkdir()
    place = ("--dir", str(tmp_path / "cache"), "--budget", "250kB", "--min-free", "none", "--for", "pod-%n", "--json")
    told = crowd(CROWD, "cache", "fill", str(tmp_path / "m%n"), *place)
    ready = [one for one in told if one["code"] == 0]
    assert len(ready) == 2, told
    assert {one["error"]["code"] for one in told if one["code"]} == {"cache_full"}
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {AREA, *(Path(one["path"]).name for one in ready)}


class Scene:
    """A model and a cache, small and in memory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.shell = SimpleNamespace(clock=SimpleNamespace(now_s=NOW_S))
        model = home / "models" / "llama"
        (model / "tokens").mkdir(parents=True)
        (model / "weights.bin").write_bytes(b"w" * 5000)
        (model / "tokens" / "config.json").write_text("{}")
        self.cache = home / "cache"
        self.cache.mkdir()

    def reset(self) -> None:
        shutil.rmtree(self.cache)
        self.cache.mkdir()

    def place(self, budget: str = "6kB") -> tuple[str, ...]:
        return ("--dir", str(self.cache), "--budget", budget, "--min-free", "none", "--json")

    def fill(self) -> tuple[str, ...]:
        self.reset()
        source = str(self.home / "models" / "llama")
        return ("cache", "fill", source, *self.place(), "--lease", "none")

    def ready(self, budget: str = "6kB") -> None:
        """Whole if it shows at all; and another process brings it to its end, with room for just one."""
        for shown in self.cache.glob("llama@*"):
            cache = CacheDir(str(self.cache))
            if any(not cache.fault(entry.id) for entry in cache.entries(0)):
                assert (shown / "weights.bin").read_bytes() == b"w" * 5000
                assert (shown / "tokens" / "config.json").read_text() == "{}"
        path = self._again()
        self._said("evict", *self.place())  # nothing has to go, but what a killed process left
        assert (path / "weights.bin").read_bytes() == b"w" * 5000
        assert {p.name for p in self.cache.iterdir()} == {AREA, path.name}
        for folder in ("incoming", "going"):
            assert not list((self.cache / AREA / folder).glob("*")), f"{folder} is not tidy"

    def _again(self) -> Path:
        source = str(self.home / "models" / "llama")
        return Path(self._said("fill", source, *self.place(), "--lease", "none")["path"])

    def _said(self, *words: str) -> Any:
        from contextlib import redirect_stderr, redirect_stdout
        from io import StringIO

        from lifecycle.cli.desk import Seams
        from lifecycle.cli.entry import run
        from tests.cli.harness import StillClock

        out = StringIO()
        with redirect_stdout(out), redirect_stderr(StringIO()):
            code = run(("cache", *words), Seams(clock=StillClock()))
        assert code == 0, out.getvalue()
        return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def scene() -> Iterator[Any]:
    with memory_directory() as home:
        yield Scene(home)


FILL_CALLS = (*CALLS, "fchmod")


@pytest.mark.strace
@pytest.mark.timeout(300)
def test_a_fill_that_is_killed_anywhere_is_taken_over(scene: Any, nursery: Nursery):
    ended, counts = counted(scene, nursery, scene.fill(), FILL_CALLS)
    assert ended.code == 0 and counts.keys() >= {"renameat2", "renameat", "mkdirat", "fsync", "write"}, counts
    for call, count in sorted(counts.items()):
        for what in killed(scene, nursery, lambda s: s.fill(), call, sample(count, 1 + count // 2)):
            with noted(what):
                scene.ready()


@pytest.mark.strace
@pytest.mark.timeout(300)
def test_an_eviction_that_is_killed_anywhere_leaves_all_or_nothing_of_an_entry(scene: Any, nursery: Nursery):
    def full(s: Any) -> tuple[str, ...]:
        s.reset()
        s._again()
        return ("cache", "evict", *s.place("1kB"))

    ended, counts = counted(scene, nursery, full(scene), FILL_CALLS)
    assert ended.code == 0 and counts.keys() >= {"renameat2", "unlinkat", "fchmod"}, counts
    for call, count in sorted(counts.items()):
        for what in killed(scene, nursery, full, call, sample(count, 1 + count // 2)):
            with noted(what):
                scene.ready()


def test_who_waits_for_one_that_is_killed_finishes_it(scene: Any, nursery: Nursery):
    words = scene.fill()
    stopped = nursery.start(scene.home, *words, now_s=NOW_S, tag="stopped", stop_at=("move", 1))
    stopped.go()
    while _state(stopped.pid) != "T":
        time.sleep(0.01)
    waiting = nursery.start(scene.home, *words, now_s=NOW_S, tag="waiting")
    waiting.go()
    while not _waits(waiting.pid):
        assert _state(waiting.pid) not in ("Z", "X"), "it did not wait"
        time.sleep(0.01)
    os.kill(stopped.pid, signal.SIGKILL)
    assert nursery.wait(stopped.pid) == -signal.SIGKILL
    assert waiting.end().json["how"] in ("filled", "waited")
    scene.ready()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _waits(pid: int) -> bool:
    """Whether it has its lock file open: from there on it asks for the lock again and again."""
    fds = Path(f"/proc/{pid}/fd")
    for fd in fds.iterdir():
        try:
            if os.readlink(fd).endswith(".fill"):
                return True
        except OSError:
            continue
    return False
