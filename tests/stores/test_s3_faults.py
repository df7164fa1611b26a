"""Every request of every act fails once, in each way that a network can: nothing half-deleted may look whole."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from bench.s3_replay import BUCKET, Query, listing, replayed, serving
from lifecycle.core.model import Shape
from lifecycle.errors import LifecycleError, NotFound, Refused, StoreError
from lifecycle.ports import Target
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_trash import S3Trash
from tests.faults.sweeps import EVERYTHING
from tests.servers import Server
from tests.stores.contract import NOW, act_on, purge_warrant, retire, warrant_for
from tests.stores.s3_bench import OneClient, S3Bench

pytestmark = pytest.mark.timeout(1200 if EVERYTHING else 400)  # sweeps each request of which meets a real server

UNIT = "runs/r/step-1"
PROOF = f"{UNIT}/DONE"
MEMBERS = {f"{UNIT}/a", f"{UNIT}/deep/b", f"{UNIT}/\x01odd", PROOF}
CALLS_MAX = 120


def struck(server: str, how: str) -> range:
    """Which requests fail in this way. On SeaweedFS each fails in one of two ways by turns, before and after it is
    carried out, unless all are asked for: `503` or `reset`, `lost` or `cut`.
    """
    if EVERYTHING or server != "seaweed":
        return range(1, CALLS_MAX)
    return range({"503": 1, "reset": 2, "lost": 1, "cut": 2}[how], CALLS_MAX, 2)


@contextmanager
def failing(store: S3Store, how: str, k: int, operation: str = "*") -> Iterator[Callable[[], bool]]:
    """The k-th request that the store sends fails; tells whether it came to that.

    ``503``: the server is too busy. ``reset``: the request never arrives. ``lost``: it arrives and is carried
    out, and the answer is lost. ``cut``: the answer's body ends half-way.
    """
    from botocore.awsrequest import AWSResponse
    from botocore.compat import HTTPHeaders
    from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

    client = store.bucket.client
    store.bucket.wire = None  # its requests are struck on their way: see test_s3_wire.py
    count = 0

    def hook(request: Any, **_: Any) -> Any:
        nonlocal count
        count += 1
        if count != k:
            return None
        if how == "503":
            answer: Any = AWSResponse(request.url, 503, HTTPHeaders(), None)
            answer._content = b"<Error><Code>SlowDown</Code><Message>x</Message></Error>"
            return answer
        if how == "reset":
            raise ConnectionClosedError(endpoint_url=request.url)
        answer = client._endpoint.http_session.send(request)  # type: ignore[attr-defined]  # beside the client's own
        content = answer.content if not isinstance(answer.content, Iterator) else b"".join(answer.content)
        if how == "lost":
            raise ReadTimeoutError(endpoint_url=request.url)
        answer._content = content[: len(content) // 2]
        return answer

    event = "before-send.s3" if operation == "*" else f"before-send.s3.{operation}"
    client.meta.events.register(event, hook)
    try:
        yield lambda: count >= k
    finally:
        client.meta.events.unregister(event, hook)


class Fragile(S3Bench):
    """Its store asks only once, so that each fault is felt."""

    def reopen(self) -> tuple[S3Store, S3Trash]:
        store = S3Store(
            "s",
            f"s3://{self.bucket}/{self.prefix}",
            endpoint_url=self.server.endpoint_url,
            region="us-east-1",
            addressing_style="path",
            attempts=1,
        )
        return store, S3Trash(store)

    def save(self) -> None:
        for key in sorted(MEMBERS):
            self.put(key, key.encode())

    def standing(self) -> set[str]:
        return {key.removeprefix(self.prefix) for key in self.keys(UNIT)}

    def clear(self) -> None:
        self.remove(UNIT)
        for key in self.client.list_objects_v2(Bucket=self.bucket, Prefix=f"{self.prefix}.lifecycle/").get(
            "Contents", ()
        ):
            self.client.delete_object(Bucket=self.bucket, Key=key["Key"])


class Reopened(OneClient, Fragile):
    """Both."""


@pytest.fixture
def fragile(server: str, request: pytest.FixtureRequest) -> Fragile:
    return Reopened(request.getfixturevalue(server))


def check_safe(bench: Fragile, trash: S3Trash) -> None:
    """V1: whole, or in the trash. V7: what is not whole has no proof, and is shown to nobody as a unit."""
    standing = bench.standing()
    if standing == MEMBERS:
        return
    assert PROOF not in standing, "half of it is left, and looks complete"
    assert [e.key for e in trash.trash() if e.whole] == [UNIT], "neither whole nor in the trash"
    with pytest.raises(NotFound):
        trash.store.sight(Target(UNIT, Shape.DIR, ()))


def sweep(bench: Fragile, how: str, prepare: Callable[[], None], act: Callable[[S3Trash], object]) -> Iterator[S3Trash]:
    """Prepare, let the k-th request of ``act`` fail, check, and give a trash opened anew; for all k that are struck."""
    for k in struck(bench.server.kind, how):
        bench.clear()
        prepare()
        store, trash = bench.reopen()
        assert store.probe()
        with failing(store, how, k) as fired, suppress(StoreError, Refused):
            act(trash)
        if not fired():
            assert k > 3
            return
        after = bench.reopen()[1]
        yield after
    pytest.fail("the fault never stopped firing")


# All ways on the server that deletes in batches; on the one that deletes singly the worst of them.
# On the first nothing is measured: it would double the time, and the other goes the same ways.
QUICK = (pytest.mark.seaweed, pytest.mark.no_cover)
FAULTS = pytest.mark.parametrize(
    ("server", "how"),
    [
        *(pytest.param("seaweed", how, marks=QUICK) for how in ("503", "reset", "lost", "cut")),
        ("moto", "lost"),
    ],
)


@FAULTS
def test_a_retire_that_fails_anywhere(fragile: Fragile, how: str):
    def act(trash: S3Trash) -> object:
        action = act_on(fragile.store, UNIT, proof=PROOF)
        return trash.retire(warrant_for(fragile.store, action), NOW)

    fragile.save()
    planned = act_on(fragile.store, UNIT, proof=PROOF)
    for trash in sweep(fragile, how, fragile.save, act):
        check_safe(fragile, trash)
        whole = fragile.standing() == MEMBERS
        assert trash.retired(planned, "t1") is (not whole), "the journal's question gets a wrong answer"
        if not whole:
            trash.restore("t1")
        assert fragile.standing() == MEMBERS
        # A second run converges and a third has nothing to do.
        fragile.trash.retire(warrant_for(fragile.store, act_on(fragile.store, UNIT, proof=PROOF), "t2"), NOW)
        assert [e.trash_id for e in fragile.trash.trash()] == ["t2"]
        fragile.trash.purge(purge_warrant("t2"))
        assert fragile.standing() == set() and fragile.trash.trash() == []


@FAULTS
def test_a_restore_that_fails_anywhere(fragile: Fragile, how: str):
    def prepare() -> None:
        fragile.save()
        retire(fragile, act_on(fragile.store, UNIT, proof=PROOF))

    for trash in sweep(fragile, how, prepare, lambda trash: trash.restore("t1")):
        check_safe(fragile, trash)
        with suppress(NotFound):
            trash.restore("t1")
        assert fragile.standing() == MEMBERS and trash.trash() == []


@FAULTS
def test_a_purge_that_fails_anywhere(fragile: Fragile, how: str):
    def prepare() -> None:
        fragile.save()
        retire(fragile, act_on(fragile.store, UNIT, proof=PROOF))

    for trash in sweep(fragile, how, prepare, lambda trash: trash.purge(purge_warrant())):
        standing = fragile.standing()
        assert PROOF not in standing
        assert not standing or [e.trash_id for e in trash.trash()] == ["t1"], "left-overs that nobody knows of"
        trash.purge(purge_warrant())
        assert fragile.standing() == set() and trash.trash() == []
        assert trash.purge(purge_warrant()) == (0, 0, "already_gone")


@pytest.mark.parametrize("k", [1, 2])
def test_a_change_whose_answer_is_lost_is_no_failure(s3_server: Server, k: int):
    """The manifest and the proof: each was done, only nobody said so. A look settles it."""
    bench = Fragile(s3_server)
    bench.save()
    warrant = warrant_for(bench.store, act_on(bench.store, UNIT, proof=PROOF))
    assert bench.store.probe()
    operation = {1: "PutObject", 2: "DeleteObject"}[k]
    with failing(bench.store, "lost", 1, operation) as fired:
        moved = bench.trash.retire(warrant, NOW)
    assert fired() and moved.files == len(MEMBERS)
    assert [e.whole for e in bench.trash.trash()] == [True]
    with failing(bench.store, "lost", k, "PutObject") as fired:
        bench.trash.restore("t1")
    assert fired() and bench.standing() == MEMBERS and bench.trash.trash() == []


@FAULTS
def test_a_read_that_fails_is_not_an_empty_file(fragile: Fragile, how: str):
    """A cut body is asked for again; whatever else fails is told."""
    fragile.put("file", b"0123456789")
    with failing(fragile.store, how, 1) as fired:
        try:
            assert fragile.store.read("file") == b"0123456789"
        except StoreError as error:
            assert error.code == "store_failed"
    assert fired()


def test_passing_faults_are_not_felt_at_all(s3_server: Server):
    bench = S3Bench(s3_server)
    for key in sorted(MEMBERS):
        bench.put(key, b"x")
    action = act_on(bench.store, UNIT, proof=PROOF)
    assert bench.store.probe()
    for how in ("503", "reset", "lost"):
        for k in (1, 4, 6):
            with failing(bench.store, how, k):
                assert bench.store.sight(Target(UNIT, Shape.DIR, ())).totals.files == action.files
                assert len(list(bench.store.walk())) == 5


def test_a_key_that_fails_for_the_moment_is_asked_for_again(seaweed: Server):
    """Errors of single keys inside a batch that was answered with 200."""
    bench = S3Bench(seaweed)
    for key in sorted(MEMBERS):
        bench.put(key, b"x")
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    sent: list[list[str]] = []

    def spoil(parsed: dict[str, Any], **_: Any) -> None:
        if len(sent) == 1:
            parsed["Errors"] = [{"Key": f"{bench.prefix}{UNIT}/a", "Code": "InternalError"}]

    def note(params: dict[str, Any], **_: Any) -> None:
        sent.append([item["Key"] for item in params["Delete"]["Objects"]])

    events = bench.store.bucket.client.meta.events
    events.register("before-parameter-build.s3.DeleteObjects", note)
    events.register("after-call.s3.DeleteObjects", spoil)
    assert bench.trash.purge(purge_warrant()).files == 4
    assert [len(batch) for batch in sent] == [2, 1] and sent[1] == [f"{bench.prefix}{UNIT}/a"]


def test_a_key_that_is_denied_is_told_and_the_rest_goes(seaweed: Server):
    bench = S3Bench(seaweed)
    for key in sorted(MEMBERS):
        bench.put(key, b"x")
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))

    def deny(params: dict[str, Any], **_: Any) -> None:
        left = [item for item in params["Delete"]["Objects"] if not item["Key"].endswith("/a")]
        params["Delete"]["Objects"] = left

    def tell(parsed: dict[str, Any], **_: Any) -> None:
        parsed["Errors"] = [{"Key": f"{bench.prefix}{UNIT}/a", "Code": "AccessDenied"}]

    events = bench.store.bucket.client.meta.events
    events.register("before-parameter-build.s3.DeleteObjects", deny)
    events.register("after-call.s3.DeleteObjects", tell)
    with pytest.raises(LifecycleError) as told:
        bench.trash.purge(purge_warrant())
    assert (type(told.value).__name__, told.value.code) == ("Denied", "permission")
    assert bench.keys(UNIT) == [f"{bench.prefix}{UNIT}/a"]
    assert [e.trash_id for e in bench.trash.trash()] == ["t1"]


# -- listings


def told(answer: Callable[[Query], bytes]) -> Refused:
    """What a walk over a server that answers like this is refused with."""
    with serving(answer) as url:
        store = S3Store(
            "s", f"s3://{BUCKET}", endpoint_url=url, region="us-east-1", addressing_style="path", attempts=2
        )
        shown = []
        with pytest.raises(Refused) as refused:
            shown += list(store.walk())
        assert not shown, "folders were given before the listing was whole"
    return refused.value


def altered(number: int, change: Callable[[bytes], bytes], pages: int = 4, keys: int = 10) -> Callable[[Query], bytes]:
    made = listing(pages, keys)
    made[number] = change(made[number])
    return replayed(made)


def cut_row(body: bytes) -> bytes:
    start = body.index(b"<Contents>")
    return body[:start] + body[body.index(b"</Contents>") + len(b"</Contents>") :]


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a lost object": cut_row,
    "a repeated token": lambda body: body.replace(b"<NextContinuationToken>t3", b"<NextContinuationToken>t1"),
    "its own token": lambda body: body.replace(b"<NextContinuationToken>t3", b"<NextContinuationToken>t2"),
    "no token": lambda body: body.replace(b"<NextContinuationToken>t3</NextContinuationToken>", b""),
    "the last, and a token": lambda body: body.replace(b"<IsTruncated>true", b"<IsTruncated>false"),
    "nothing about the last": lambda body: body.replace(b"<IsTruncated>true</IsTruncated>", b""),
    "nothing about what follows": lambda body: re.sub(
        b"<IsTruncated>.*?</IsTruncated>|<NextContinuationToken>.*?</NextContinuationToken>", b"", body
    ),
    "a cut body": lambda body: body[:-100],
    "no body": lambda body: b"",
    "no XML": lambda body: b"<html><body>proxy</body></html>",
    "another page": lambda body: body.replace(b"<ContinuationToken>t2", b"<ContinuationToken>t1"),
    "no size": lambda body: body.replace(b"<Size>", b"<Length>").replace(b"</Size>", b"</Length>"),
    "an error in disguise": lambda body: b"<Error><Code>InternalError</Code></Error>",
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_listing_with_a_broken_page_is_no_listing(change: str, credentials: None):
    refused = told(altered(2, CHANGES[change]))
    assert refused.code == "listing_incomplete"
    assert re.search("after (20|29|30) keys", str(refused)), "it does not say how far it came"


def test_a_dropped_page_is_noticed(credentials: None):
    made = listing(4, 10)
    made[2] = made[3]
    assert told(replayed(made)).code == "listing_incomplete"


def test_a_full_page_that_lies_about_being_the_last_is_noticed(credentials: None):
    """No token, no contradiction: only asking what comes after it tells."""
    made = listing(2, 1000)
    lie = made[0].replace(b"<NextContinuationToken>t1</NextContinuationToken>", b"")
    lie = lie.replace(b"<IsTruncated>true", b"<IsTruncated>false")

    def answer(query: Query) -> bytes:
        if "start-after" in query:
            return made[1]
        return lie if query.get("prefix") == [""] and "uploads" not in query else replayed(made)(query)

    assert told(answer).code == "listing_incomplete"


def test_a_broken_first_page_is_an_unavailable_store(credentials: None):
    assert told(altered(0, lambda body: b"")).code == "source_unavailable"


def test_a_passing_cut_is_asked_for_again(credentials: None):
    made = listing(4, 10)
    cut = [True]

    def answer(query: Query) -> bytes:
        body = replayed(made)(query)
        if query.get("continuation-token") == ["t2"] and cut:
            cut.clear()
            return body[:-50]
        return body

    with serving(answer) as url:
        store = S3Store("s", f"s3://{BUCKET}", endpoint_url=url, region="us-east-1", addressing_style="path")
        assert sum(len(folder.names) for folder in store.walk()) == 40
    assert not cut


def test_uploads_that_cannot_be_listed_stop_the_scan(credentials: None):
    """What is being written would not be known; a store that has no such request has no such uploads."""
    made = listing(1, 10)
    assert told(lambda q: b"" if "uploads" in q else replayed(made)(q)).code == "listing_incomplete"
    endless = b"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>"
    assert told(lambda q: endless if "uploads" in q else replayed(made)(q)).code == "listing_incomplete"
