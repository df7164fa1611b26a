"""Many ticks in one process: memory, descriptors, threads, files and rows grow with what is stored, and else not.

`make soak-ticks TICKS=10000` does the long run; every run of the tests does a short one.
"""

import gc
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import _lru_cache_wrapper
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from lifecycle.cli.desk import Desk, Seams
from lifecycle.cli.progress import Meter
from lifecycle.cli.ticking import run_tick
from lifecycle.index.ticks import KEPT_MAX
from lifecycle.index.writer import SCANS_MAX
from lifecycle.stores import plan_files
from tests.cli.harness import NOW_S, StillClock, save_hf
from tests.stores.places import memory_directory

TICKS = int(os.environ.get("LIFECYCLE_TICKS", "30"))
WARM = 12 + TICKS // 10
HOUR_S = 3600
CONFIG = """stores:
  here: {{url: 'file://{home}/ckpt'}}
policies: [p.yaml]
database: 'sqlite:///{home}/state/index.db'
tick: {{apply: auto, purge: auto, verify: {{budget: 1GB}}}}
"""
POLICY = "policy: steady\nkeep:\n  - last: 4\nlimits: {grace: none, trash: 3h, deletes_max: 100}\n"

pytestmark = pytest.mark.timeout(300 + 3 * TICKS)


class Size(NamedTuple):
    """What could grow."""

    objects: int
    rss_kib: int
    descriptors: int
    threads: int
    database_bytes: int
    rows: dict[str, int]
    files: int
    """Of ours, beside the data and beside the index, without plans."""
    plans: int


def forget() -> None:
    """Empty memories of a limited size, such as of what names mean: they fill up with what is new."""
    for one in [each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper)]:
        if one.__module__.startswith("lifecycle."):
            one.cache_clear()


class World:
    """A site whose ticks may do everything, and the hour of day."""

    def __init__(self, home: Path) -> None:
        self.home, self.clock, self.steps = home, StillClock(NOW_S), count(100, 100)
        (home / "ckpt").mkdir()
        (home / "p.yaml").write_text(POLICY)
        (home / "lifecycle.yaml").write_text(CONFIG.format(home=home))
        self.saved = 0

    def save(self) -> None:
        save_hf(self.home / "ckpt" / "run", next(self.steps), HOUR_S / 2, now_s=self.clock.now_s)
        self.saved += 1

    def tick(self) -> None:
        self.clock.now_s += HOUR_S
        desk = Desk(
            Seams(clock=self.clock, told=lambda _store: None), config=self.home / "lifecycle.yaml", as_json=True
        )
        made = run_tick(desk, lambda: False, Meter())
        assert made.exit_code == 0, made.stages

    @property
    def database(self) -> Path:
        return self.home / "state" / "index.db"

    def size(self) -> Size:
        gc.collect()
        forget()
        gc.collect()
        with closing(sqlite3.connect(self.database)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
        own = [
            p for top in ("state", "ckpt/.lifecycle") for p in (self.home / top).rglob("*") if p.parent.name != "plans"
        ]
        return Size(
            objects=len(gc.get_objects()),
            rss_kib=int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024,
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            database_bytes=self.database.stat().st_size,
            rows=rows,
            files=len(own),
            plans=len(list((self.home / "state" / "plans").glob("*"))),
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with memory_directory() as home:
        monkeypatch.chdir(home)
        yield World(home)


def grow(world: World, before_each: Callable[[], None], many: int = TICKS) -> tuple[Size, Size]:
    """What there was after a while, and after many more ticks."""
    sizes = []
    for ticks in (min(WARM, many), many):
        for _ in range(ticks):
            before_each()
            world.tick()
        sizes.append(world.size())
    return sizes[0], sizes[1]


def check_process(warm: Size, end: Size) -> None:
    print(f"\nafter {WARM} ticks: {warm}\nafter {WARM + TICKS} ticks: {end}")
    assert (end.descriptors, end.threads) == (warm.descriptors, warm.threads)
    assert end.objects - warm.objects < 2000 + TICKS, "a tick leaves objects behind"
    assert end.rss_kib - warm.rss_kib < 16 * 1024 + 1 * TICKS, "a tick leaves memory behind"


def test_a_world_at_rest(world: World):
    for _ in range(3):
        world.save()
    warm, end = grow(world, lambda: None)
    check_process(warm, end)
    own = {"ticks", "scans", "usage"}
    same, mine = ({k: n for k, n in size.rows.items() if k not in own} for size in (warm, end))
    assert same == mine, "but for its own rows, a tick at rest writes nothing"
    check_own_rows(end.rows)
    assert end.files == warm.files
    assert end.plans == warm.plans
    added = end.rows["ticks"] - warm.rows["ticks"]
    assert end.database_bytes - warm.database_bytes < 64 * 1024 + 2048 * added, "bytes a tick at rest"


def check_own_rows(rows: dict[str, int]) -> None:
    """A row of each tick and scan, up to a limit; looks at a store's usage get thinner with age."""
    made = WARM + TICKS
    assert rows["ticks"] == min(KEPT_MAX, made)
    assert rows["usage"] <= 7 * 24 + 60 * 24 + made / 24 + 2
    assert rows["scans"] <= min(made, SCANS_MAX + rows["usage"] + 1)


def test_a_world_that_changes_and_stays_as_large(world: World, monkeypatch: pytest.MonkeyPatch):
    """Each hour one is saved and one goes; what has gone is a row of the journal and of the index, and nothing else."""
    monkeypatch.setattr(plan_files, "KEPT_MIN", 5)
    monkeypatch.setattr(plan_files, "KEPT_MAX", 20)
    warm, end = grow(world, world.save)
    check_process(warm, end)
    assert end.files == warm.files, "the trash has a steady size"
    assert end.plans <= 20 + 1
    more = world.saved - WARM
    check_own_rows(end.rows)
    for name in ("checkpoints", "copies", "journal"):
        assert end.rows[name] - warm.rows[name] <= more, f"{name} grows faster than what was saved and dropped"
    grown = end.database_bytes - warm.database_bytes
    assert grown < 64 * 1024 + more * 6 * 1024, f"{grown / more:.0f} bytes a save"


def test_a_leak_would_be_seen(world: World):
    kept: list[object] = []
    warm, end = grow(world, lambda: kept.extend([] for _ in range(4 * TICKS + 800)), 5)
    with pytest.raises(AssertionError, match="objects"):
        check_process(warm, end)
    shutil.rmtree(world.home / "ckpt")
