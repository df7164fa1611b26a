"""The lease and its fencing number: whoever sleeps past its time begins nothing more, and what it began loses nothing.

Judged by the journal and the files, not by what a process says of itself.
"""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import LeaseHeld
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recover import recover
from lifecycle.index.open import Index, on_server, open_index
from lifecycle.stores import s3_trash
from lifecycle.stores.open import open_intake, open_trash
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_delete import delete_one
from tests.faults.forks import Nursery
from tests.faults.scenes import Scene, files_of
from tests.faults.test_together import wait_stopped
from tests.flows.place import Place, empty_index
from tests.flows.place import place as installed
from tests.index.scenes import checkpoint
from tests.index.scenes import start as start_act
from tests.postgres import fill_schema
from tests.servers import Server
from tests.stores.places import memory_directory

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
TAKINGS = 200
HOLDERS = 4
TTL = 900 * 1_000_000_000


@pytest.fixture
def home() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, home: Path) -> str:
    """An empty index of each kind."""
    if request.param == "postgres":
        url = str(request.getfixturevalue("server_url"))
        fill_schema(url)
        return url
    (home / "state").mkdir()
    (home / "state" / "index.db").write_bytes(empty_index())
    (home / "state" / "index.db").chmod(0o600)
    return f"sqlite:///{home}/state/index.db"


# -- the lease by itself


class Holder:
    """A process that takes the lease, acts, is late, and does not know it."""

    def __init__(self, name: str, index: Index) -> None:
        self.name, self.index = name, index
        self.stack = ExitStack()
        self.fence: int | None = None
        self.acts = 0

    def take(self, now_ns: int) -> bool:
        with suppress(LeaseHeld):
            self.fence = self.stack.enter_context(self.index.journal.lease(self.name, now_ns, TTL))
            return True
        return False

    def give_back(self) -> None:
        self.stack.close()
        self.stack, self.fence = ExitStack(), None

    def act(self) -> bool:
        assert self.fence is not None
        self.acts += 1
        with suppress(LeaseHeld):
            start_act(self.index, checkpoint(f"run/{self.name}-{self.acts}"), self.fence, plan=self.name)
            return True
        return False

    def renew(self, now_ns: int) -> bool:
        assert self.fence is not None
        with suppress(LeaseHeld):
            self.index.journal.renew(self.fence, now_ns, TTL)
            return True
        return False


def test_many_takings_in_any_order(database: str):
    """Three seeds in a file; one, and fewer, on a server, where it is the same statements."""
    if on_server(database):
        take_and_act(database, 0, TAKINGS // 4)
        return
    for number in range(3):
        file = Path(database.removeprefix("sqlite:///")).with_name(f"{number}.db")
        file.write_bytes(empty_index())
        file.chmod(0o600)
        take_and_act(f"sqlite:///{file}", number, TAKINGS)


def take_and_act(database: str, number: int, takings: int) -> None:
    """Against a model of three lines: who has the newest number, until when, and whether it was given back."""
    chance, now_ns, newest, until_ns, open_ = Random(number), 0, 0, 0, False
    began: list[tuple[str, int]] = []
    with ExitStack() as stack:
        holders = [Holder(f"h{n}", stack.enter_context(open_index(database, create=False))) for n in range(HOLDERS)]
        while newest < takings:
            holder = chance.choice(holders)
            now_ns += chance.choice([0, 1, TTL // 3, TTL, 2 * TTL]) * (chance.random() < 0.5)
            mine = holder.fence is not None and holder.fence == newest and open_
            match chance.choice(["take", "act", "act", "renew", "give back"]):
                case "take" if holder.fence is None:
                    free = not open_ or until_ns <= now_ns
                    assert holder.take(now_ns) == free
                    if free:
                        newest, until_ns, open_ = newest + 1, now_ns + TTL, True
                        assert holder.fence == newest, "numbers grow by one and are given out once"
                case "act" if holder.fence is not None:
                    # Given back it can be by nobody but its holder, who asks no more: the newest number is enough.
                    assert holder.act() == (holder.fence == newest), "a paused holder began another act"
                    if holder.fence == newest:
                        began.append((holder.name, newest))
                case "renew" if holder.fence is not None:
                    assert holder.renew(now_ns) == mine
                    until_ns = now_ns + TTL if mine else until_ns
                case "give back" if holder.fence is not None:
                    holder.give_back()
                    open_ = open_ and not mine
        rows = holders[0].index.journal.rows()
        assert [(row.plan, row.fence) for row in rows] == began
        assert [row.fence for row in rows] == sorted(row.fence for row in rows)
        for holder in holders:
            holder.stack.close()


# -- real processes, stopped past their lease

CONFIG = """stores:
  here: {{url: 'file://{home}/ckpt'}}
policies: [p.yaml]
database: '{database}'
tick: {{apply: auto, purge: auto}}
"""
STOPS = [
    ("renew", 1),
    ("renew", 2),
    ("renew", 3),
    ("sight", 2),
    ("start", 1),
    ("start", 3),
    ("retire", 1),
    ("retire", 2),
]
STOPS += [("end", 1), ("end", 2), ("identity", 3)]


class Site(Scene):
    """The scene of the fault sweeps, on a database of any kind."""

    def __init__(self, home: Path, database: str) -> None:
        super().__init__(home)
        (home / "lifecycle.yaml").write_text(CONFIG.format(home=home, database=database))

    @property
    def site(self) -> tuple[str, ...]:
        return ("--config", str(self.home / "lifecycle.yaml"))


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", range(2))
def test_a_tick_that_is_stopped_past_its_lease(
    database: str, home: Path, nursery: Nursery, number: int, monkeypatch: pytest.MonkeyPatch
):
    """Another one does all of it, a person brings all of it back; the sleeper wakes, and changes nothing of that."""
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.chdir(home)
    site = Site(home, database)
    site.hold("hf/checkpoint-200")
    clock = home / "clock"
    for stop in Random(number).sample(STOPS, 2):
        clock.write_text(str(site.shell.clock.now_s))
        sleeper = nursery.start(home, "tick", "--json", *site.site, clock=clock, stop_at=stop)
        sleeper.go()
        wait_stopped(sleeper.pid)
        try:
            site.later()
            clock.write_text(str(site.shell.clock.now_s))
            said = site.lifecycle("tick", "--json")
            assert said.code == 0, (stop, said)
            plans = {made["plan"] for made in site.trash().values()}
            assert len(site.trash()) == 3, "the other one has done all of it"
            for plan in plans:
                assert site.lifecycle("undo", plan[:12], "--no-hold").code == 0
            assert files_of(site.root) == site.before
        finally:
            os.kill(sleeper.pid, signal.SIGCONT)
            ended = sleeper.end()
        assert files_of(site.root) == site.before, f"stopped at {stop}, it acted out of turn and ended with {ended}"
        assert site.trash() == {}
        assert files_of(home / "victim") == site.outside
        site.later()
    assert site.lifecycle("tick", "--json").code == 0
    assert len(site.trash()) == 3


# -- in a bucket nothing is locked


@pytest.mark.seaweed
def test_a_sleeper_in_a_bucket_loses_nothing(home: Path, seaweed: Server, monkeypatch: pytest.MonkeyPatch):
    """Stopped between its trash entry and the delete of the proof, it is taken for dead and cleaned up after."""
    base = uuid.uuid4().hex
    made: Place = installed(home)
    store: Any = S3Store(
        "hot", f"s3://{seaweed.bucket}/{base}", endpoint_url=seaweed.endpoint_url, addressing_style="path"
    )
    made.stores = {"hot": store}
    for step in (1, 2):
        for name, body in (("w", b"w" * 99), ("DONE", b"proof")):
            seaweed.client.put_object(Bucket=seaweed.bucket, Key=f"{base}/r/step-{step}/{name}", Body=body)

    def shown() -> dict[str, bytes]:
        pages = seaweed.client.get_paginator("list_objects_v2").paginate(Bucket=seaweed.bucket, Prefix=f"{base}/r/")
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {key: seaweed.client.get_object(Bucket=seaweed.bucket, Key=key)["Body"].read() for key in keys}

    before = shown()
    site = {"trashes": {"hot": open_trash(store)}, "intakes": {"hot": open_intake(store)}, "told": lambda _store: None}
    slept: list[Any] = []

    def sleeping(*args: Any) -> Any:
        if not slept:
            slept.append(args)
            made.clock.now += 2 * LEASE_NS
            with made.index.journal.lease("another", made.clock.now, LEASE_NS):
                found = recover(made.index.journal, made.stores, site["trashes"], site["intakes"], made.clock.now)  # type: ignore[arg-type]
            assert found.not_begun == 1 and not found.open
            made.index.journal.lease("and another", made.clock.now, LEASE_NS).__enter__()
        return delete_one(*args)

    monkeypatch.setattr(s3_trash, "delete_one", sleeping)
    plan = made.plan()
    assert [(a.key, a.shape) for a in plan.actions] == [("r/step-1", Shape.DIR)]
    made.apply(plan, **site)
    assert slept and shown() == before, "the proof of the checkpoint is gone, and nothing can bring it back"
    made.index.close()
