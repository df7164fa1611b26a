"""Every request of a copy, a release and a recall between two prefixes of a real server is struck by the network.

A proxy stands between: see `proxy.HOWS`. Of all requests only some are struck, the same ones each time, unless all are
asked for: see `sweeps.sample`. The truth is asked of the server itself, past the proxy and past the product.
"""

import uuid
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.policy import Last, Limits, Match, Policy
from lifecycle.core.policy import Place as Where
from lifecycle.errors import LifecycleError
from lifecycle.flows import carry
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recall import Desk, recall
from lifecycle.flows.recover import recover
from lifecycle.flows.site import Site
from lifecycle.flows.undo import free_due
from lifecycle.flows.views import Views
from lifecycle.stores.open import open_intake, open_trash
from lifecycle.stores.s3 import S3Store
from tests.faults.moves import Serial
from tests.faults.proxy import HOWS, Proxy
from tests.faults.sweeps import EVERYTHING, noted
from tests.flows.place import HOUR, Place
from tests.flows.place import place as installed
from tests.servers import Server

pytestmark = [pytest.mark.seaweed, pytest.mark.timeout(3600 if EVERYTHING else 300)]

UNIT = "r/step-1"
FILES = {f"{UNIT}/DONE": b"1", f"{UNIT}/big": b"b" * 900, f"{UNIT}/w": b"w" * 50}
BESIDE = {f"r/step-{n}/{name}": body * n for n in (2, 3) for name, body in (("DONE", b"1"), ("w", b"w" * 50))}
TIERED = Policy(
    "tier",
    Match(stores=frozenset({"hot"})),
    (Last(9),),
    limits=Limits(trash_s=3600),
    place=(Where(on=("warm",), steps_max=1), Where(on=("hot",))),
    digest="t1",
)
SAMPLES = {"move": 1, "recall": 1}
"""How many requests of a sweep are struck in each way, where not all are."""
COUNTS: dict[str, int] = {}
"""How many requests an undisturbed act sends, once its client knows the server."""


@dataclass
class Remote(Place):
    """An installation whose stores are both behind the proxy."""

    server: Any = None
    base: str = ""

    @property
    def site(self) -> Site:
        trashes = {name: open_trash(store) for name, store in self.stores.items()}
        intakes = {name: open_intake(store) for name, store in self.stores.items()}
        return replace(
            super().site, trashes=trashes, intakes=intakes, told=lambda _store: None
        )  # it is another year here

    def shown(self, store: str) -> dict[str, bytes]:
        """What stands in a store's prefix, as the server itself tells it."""
        client, bucket, cut = self.server.client, self.server.bucket, len(f"{self.base}/{store}/")
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{self.base}/{store}/")
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {key[cut:]: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}

    def put(self, key: str, body: bytes) -> None:
        self.server.client.put_object(Bucket=self.server.bucket, Key=f"{self.base}/{key}", Body=body)

    def uploads(self) -> list[int]:
        """Bytes in each open upload."""
        client, bucket = self.server.client, self.server.bucket
        found = client.list_multipart_uploads(Bucket=bucket, Prefix=self.base).get("Uploads", ())
        parts = [client.list_parts(Bucket=bucket, Key=u["Key"], UploadId=u["UploadId"]) for u in found]
        return [sum(part["Size"] for part in told.get("Parts", ())) for told in parts]

    def recover(self) -> None:
        self.clock.now += 2 * LEASE_NS
        site = self.site
        found = recover(site.journal, site.stores, site.trashes, site.intakes, self.clock.now)
        assert not found.open, found

    def recall(self) -> None:
        site = self.site
        views = Views(site.stores, site.reader, site.conventions, site.clock)
        recall(Desk(site.stores, site.intakes, site.journal, views, site.clock, "here", "1"), "hot", UNIT)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts, one file after the other, no pause before a retry, and a client that soon gives up on an answer."""
    import botocore.config
    from botocore.retries.standard import ExponentialBackoff

    real = botocore.config.Config

    def config(**options: Any) -> Any:
        return real(**{**options, "read_timeout": 1, "retries": {"mode": "standard", "total_max_attempts": 2}})

    monkeypatch.setattr(botocore.config, "Config", config)
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
    monkeypatch.setattr("lifecycle.stores.s3_intake.SINGLE_MAX_BYTES", 100)
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 1000)
    monkeypatch.setattr(carry, "ThreadPoolExecutor", Serial)


class Scenes:
    """Makes installations, each in a prefix of its own; they share what a client costs."""

    def __init__(self, proxy: Proxy, server: Server, path: Path) -> None:
        self.proxy, self.server, self.path = proxy, server, path
        self.first: dict[str, S3Store] = {}

    def new(self) -> Remote:
        base = uuid.uuid4().hex[:12]
        home = self.path / base
        home.mkdir()
        bare = installed(home, ())
        made = Remote(bare.index, {}, TIERED, server=self.server, base=base)
        for name in ("hot", "warm"):
            url = f"s3://{self.server.bucket}/{base}/{name}"
            store = S3Store(name, url, endpoint_url=self.proxy.url, region="us-east-1", addressing_style="path")
            first = self.first.setdefault(name, store)
            if first is not store:
                store.bucket, store.honoured = first.bucket, first.honoured
            made.stores[name] = store  # type: ignore[assignment]  # it is only asked what every store answers
        for key, body in (FILES | BESIDE).items():
            made.put(f"hot/{key}", body)
        made.put("warm/other/step-1/DONE", b"somebody's")
        made.put("warm0/neighbour", b"not in this store")
        return made


@pytest.fixture
def scenes(proxy: Proxy, seaweed: Server, tmp_path: Path, quick: None) -> Scenes:
    return Scenes(proxy, seaweed, tmp_path)


# -- what must be true


def check(made: Remote, *, home: bool = True) -> str:
    """V1 to V5 and V7 at any moment; where the unit is. ``home``: whether it was there in the beginning."""
    hot, warm = made.shown("hot"), made.shown("warm")
    assert BESIDE.items() <= hot.items(), "V3: what had to stay was touched"
    assert warm.get("other/step-1/DONE") == b"somebody's", "V3: what was at the place was touched"
    assert made.shown("warm0") == {"neighbour": b"not in this store"}, "V4: something outside was touched"
    here, there = ({k: v for k, v in one.items() if k in FILES} for one in (hot, warm))
    assert here.items() <= FILES.items() and there.items() <= FILES.items(), "V1: it is something else now"
    for name, at in (("home", here), ("its place", there)):
        assert f"{UNIT}/DONE" not in at or at == FILES, f"V7: half of it looks whole at {name}"
    published = [name for name in warm if name.startswith(".lifecycle/copies/")]
    assert not published or there == FILES, "V1: published and not whole"
    assert here == FILES or published, "V1: it is not whole at home, and no copy is published"
    rows = [(r.action.verb, r.outcome) for r in made.index.journal.rows() if r.action.key == UNIT]
    verbs = {verb for verb, _ in rows}
    assert not home or here == FILES or Verb.RETIRE in verbs, "V5: it was touched without a journal row"
    assert not there or Verb.COPY in verbs, "V5: it was copied without a journal row"
    if here == FILES:
        return "copied" if published else "place"
    return "half" if f"{UNIT}/DONE" in here else "moved"


def check_tidy(made: Remote) -> None:
    """V6: nothing is open, nothing is on its way, and no bytes are hidden in an open upload."""
    assert made.index.journal.started() == []
    for store in ("hot", "warm"):
        assert [name for name in made.shown(store) if "/incoming/" in name] == [], "something is left of a copy"
    assert not any(made.uploads()), "bytes are left in an open upload"


def settle(made: Remote) -> None:
    """V6: recovery and a second run bring it to its end; a third finds nothing to do."""
    made.recover()
    where = check(made)
    plan = made.plan()
    if made.index.journal.rows(outcome="undone"):
        # What was brought back into a bucket has a new time and is not known again: it stays, and is told of.
        made.apply(plan)
        check(made)
        return
    wanted = {"place": ["copy", "retire"], "copied": ["retire"], "moved": []}[where]
    assert [a.verb.value for a in plan.actions] == wanted, f"with {where}"
    if wanted:
        outcome = made.apply(plan)
        assert outcome.counts == {"done": len(wanted)}, outcome
    assert check(made) == "moved"
    check_tidy(made)
    third = made.plan()
    assert not third.actions, "V6: a third run finds something to do"


def numbers(act: str, how: str) -> range:
    """Which requests are struck: all, or as many as a sample takes, others for each fault."""
    count = COUNTS[act]
    if EVERYTHING:
        return range(1, count + 1)
    stride = count // SAMPLES[act]
    return range(1 + HOWS.index(how) * stride // len(HOWS), count + 1, stride)


def check_fired(proxy: Proxy, act: str, k: int) -> None:
    """How many requests there are differs by one or two, since some go side by side."""
    assert proxy.fired or k > COUNTS[act] - 3, "the fault never fired"


@pytest.mark.parametrize("how", HOWS)
def test_any_request_of_a_move_is_struck(scenes: Scenes, proxy: Proxy, how: str):
    while "move" not in COUNTS:
        for _ in range(2):
            made = scenes.new()
            plan = made.plan()
            with proxy.strike(how, lambda _: False):
                assert made.apply(plan).counts == {"done": 2}
            assert check(made) == "moved"
            made.index.close()
        COUNTS["move"] = len(proxy.log)
        assert COUNTS["move"] > 40
    for k in numbers("move", how):
        made = scenes.new()
        plan = made.plan()
        with noted(f"{how} at request {k} of {COUNTS['move']}"):
            with proxy.strike(how, {k}.__contains__):
                try:
                    outcome = made.apply(plan)
                except LifecycleError as error:
                    assert error.exit_code in (1, 3, 4), error
                else:
                    assert sum(outcome.counts.values()) == 2
            check_fired(proxy, "move", k)
            check(made)
            settle(made)
        made.index.close()


def test_any_request_of_a_recall_is_struck(scenes: Scenes, proxy: Proxy):
    made = scenes.new()
    assert made.apply(made.plan()).counts == {"done": 2}
    made.clock.now += 2 * HOUR
    free_due(made.site.trashes, made.index.journal, (), made.clock.now)
    take_away(made)
    with proxy.strike("", lambda _: False):
        made.recall()
    COUNTS["recall"] = len(proxy.log)
    assert COUNTS["recall"] > 20 and check(made, home=False) == "copied"
    for how, k in [(word, k) for word in HOWS for k in numbers("recall", word)]:
        take_away(made)
        made.clock.now += 2 * LEASE_NS
        with noted(f"{how} at request {k} of {COUNTS['recall']}"):
            with proxy.strike(how, {k}.__contains__):
                try:
                    made.recall()
                except LifecycleError as error:
                    assert error.exit_code in (1, 3, 4), error
            check_fired(proxy, "recall", k)
            check(made, home=False)
            made.recover()
            # What is not published yet is hidden from us, whole as it may look: who was told so recalls it again.
            if check(made, home=False) != "copied" or made.stores["hot"].incoming():
                made.recall()
            assert check(made, home=False) == "copied"
            check_tidy(made)
            assert not made.stores["hot"].copies(), "what is home again is no copy of itself"
    made.index.close()


def take_away(made: Remote) -> None:
    """Remove the unit at home as its owner would who knows of its copy."""
    for key in FILES:
        made.server.client.delete_object(Bucket=made.server.bucket, Key=f"{made.base}/hot/{key}")


def test_a_server_that_never_answers_is_not_asked_for_ever(scenes: Scenes, proxy: Proxy):
    """From some request on all fail: each is sent as often as was configured, and no more."""
    made = scenes.new()
    plan = made.plan()
    with proxy.strike("503", lambda number: number > 15):
        try:
            outcome = made.apply(plan)
            assert outcome.counts["done"] == 0 and outcome.exit_code in (3, 4)
        except LifecycleError as error:
            assert error.exit_code in (1, 3, 4)
    asked = Counter(proxy.log[15:])
    assert asked and len(proxy.log) < 80, "it goes on and on"
    assert all(times <= 2 * 6 for times in asked.values()), asked
    check(made)
    settle(made)
    made.index.close()


def test_what_the_proxy_passes_is_what_the_server_says(proxy: Proxy, seaweed: Server):
    """A proxy that is broken would prove nothing."""
    made = S3Store("s", f"s3://{seaweed.bucket}/{uuid.uuid4().hex}", endpoint_url=proxy.url, addressing_style="path")
    client: Any = made.bucket.client
    where = {"Bucket": seaweed.bucket, "Key": f"{made.prefix}x y+z"}
    body = bytes(range(256)) * 5000
    client.put_object(**where, Body=body)
    assert client.get_object(**where)["Body"].read() == body
    assert client.head_object(**where)["ContentLength"] == len(body)
    client.delete_object(**where)
    assert made.bucket.head(where["Key"]) is None
