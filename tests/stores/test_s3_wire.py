"""The fast wire: it does what boto3 would have done, or leaves it to boto3; and which of both it was shows nowhere."""

import logging
import os
import signal
import sys
import uuid
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import obstore
import obstore.store
import pytest
from botocore.retries.standard import ExponentialBackoff
from hypothesis import example, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from lifecycle.core.copies import payload
from lifecycle.core.model import Shape
from lifecycle.errors import LifecycleError, Occupied, StoreError
from lifecycle.stores import s3_wire
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_client import Endpoint, connect
from lifecycle.stores.s3_intake import S3Intake
from lifecycle.stores.s3_wire import (
    GET_MAX_BYTES,
    MISSES_MAX,
    PUT_MAX_BYTES,
    Address,
    ObstoreWire,
    Unspoken,
    address_of,
    check_speakable,
    sent_as_is,
)
from tests.faults.proxy import HOWS, Proxy
from tests.faults.sweeps import EVERYTHING
from tests.servers import SECRET_KEY, Server
from tests.stores.intake_contract import Parcel, assert_published, checkpoint, lay, parcel
from tests.stores.s3_bench import S3Bench

KEY = "runs/r/step-1"
NOWHERE = "http://127.0.0.1:1"
BODY = b"0123456789" * 30


class Behind(S3Bench):
    """A bucket of SeaweedFS, seen through a proxy."""

    def __init__(self, server: Server, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(server)

    def reopen(self) -> Any:
        store, trash = super().reopen()
        store.endpoint = store.endpoint._replace(url=self.proxy.url)
        return store, trash


@pytest.fixture
def behind(seaweed: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Behind:
    """Its clients try once more without a pause, and soon give up on an answer."""
    import botocore.config

    real = botocore.config.Config
    retries = {"mode": "standard", "total_max_attempts": 2}
    monkeypatch.setattr(
        botocore.config, "Config", lambda **given: real(**{**given, "read_timeout": 1, "retries": retries})
    )
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
    return Behind(seaweed, proxy)


@pytest.fixture
def bench(seaweed: Server) -> S3Bench:
    return S3Bench(seaweed)


def wire_of(store: S3Store) -> ObstoreWire:
    assert isinstance(store.bucket.wire, ObstoreWire)
    return store.bucket.wire


# -- which keys


ODD = ["/a", "a/", "a//b", "", "/", ".", "..", "a/../b", "a/./b", "a\x01", "a\n", "a%2Fb", "é", "a\udcff", "a#b", "a?b"]


@pytest.mark.parametrize("key", ODD)
def test_a_key_that_might_be_changed_on_the_way_is_left_to_boto3(key: str):
    assert not sent_as_is(key)


def test_obstore_does_change_keys():
    """Otherwise the rule were needless."""
    store = MemoryStore()
    obstore.put(store, "/a/", b"")
    assert [found["path"] for page in store.list() for found in page] == ["a"]


@settings(max_examples=60)
@given(st.text(st.sampled_from("ab/.. +=,~%\n\x7f"), max_size=8))
@example("runs/r/step-1/model-00001-of-00002.safetensors")
@example("a b/c+d=e,(f)!$&';:@g")
def test_what_is_sent_as_it_is_lies_where_it_was_put(key: str):
    if sent_as_is(key):
        store = MemoryStore()
        obstore.put(store, key, b"")
        assert [found["path"] for page in store.list() for found in page] == [key]


@pytest.mark.seaweed
def test_every_such_sign_is_signed_as_the_server_signs_it(bench: S3Bench):
    signs = [chr(n) for n in range(32, 127) if sent_as_is(f"a{chr(n)}b") and not chr(n).isalnum()]
    assert len(signs) > 15
    keys = {f"{bench.prefix}a{sign}b/{sign}c" for sign in signs if sign != "/"}
    for key in keys:
        assert not sent_as_is(key) or wire_of(bench.store).put_new(key, BytesIO(b"1"), {}), key
        assert wire_of(bench.store).piece(key, 0, 1, 1, "") is not None or not sent_as_is(key)
    assert set(bench.keys("")) == {key for key in keys if sent_as_is(key)}


# -- for which clients


def test_the_address_is_the_one_that_boto3_sends_to(credentials: None, monkeypatch: pytest.MonkeyPatch):
    """No request is sent for it: nobody answers there."""
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    for endpoint, url, region in (
        (Endpoint(NOWHERE, "us-east-1", None, "path", 1), f"{NOWHERE}/b.c", "us-east-1"),
        (Endpoint(None, "eu-west-1", None, None, 1), "https://s3.eu-west-1.amazonaws.com/b.c", "eu-west-1"),
    ):
        assert address_of(connect(endpoint).client, "b.c")[:2] == (url, region)
    virtual = connect(Endpoint(None, "eu-west-1", None, "virtual", 1)).client
    assert address_of(virtual, "bucket").url == "https://bucket.s3.eu-west-1.amazonaws.com"


def test_a_request_that_carries_more_is_not_obstores(credentials: None):
    client = connect(Endpoint(NOWHERE, "us-east-1", None, "path", 1)).client

    def pay(request: Any, **_: Any) -> None:
        request.headers["x-amz-request-payer"] = "requester"

    client.meta.events.register("before-sign.s3", pay)
    with pytest.raises(Unspoken, match="carry x-amz-request-payer"):
        address_of(client, "b")


def test_a_request_that_is_signed_otherwise_is_not_obstores(credentials: None, monkeypatch: pytest.MonkeyPatch):
    client = connect(Endpoint(NOWHERE, "us-east-1", None, "path", 1)).client
    events: Any = client.meta.events
    events.register("choose-signer.s3", lambda **_: "s3")
    with pytest.raises(Unspoken, match="signed in another way"):
        address_of(client, "b")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    client = connect(Endpoint(NOWHERE, "us-east-1", None, "path", 1)).client
    with pytest.raises(Unspoken, match="cannot be prepared: NoCredentialsError"):
        address_of(client, "b")


def test_a_client_whose_requests_cannot_be_seen_is_not_obstores():
    def answered(**_: Any) -> None: ...

    events = SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)
    client: Any = SimpleNamespace(meta=SimpleNamespace(events=events), head_object=answered)
    with pytest.raises(Unspoken, match="cannot be seen"):
        address_of(client, "b")


@pytest.mark.parametrize(
    ("url", "environment", "bundle", "why"),
    [
        ("http://s/b", ["AWS_REGION", "AWS_ENDPOINT_URL_S3", "HOME"], True, None),
        ("https://s/b", ["AWS_PROFILE"], False, None),
        ("https://s/b", [], True, "certificates"),
        ("http://s/b", ["AWS_SKIP_SIGNATURE"], False, "AWS_SKIP_SIGNATURE is set"),
        ("http://s/b", ["aws_server_side_encryption"], False, "aws_server_side_encryption is set"),
        ("http://s/b", ["AWS_REGION_X"], False, "AWS_REGION_X is set"),
    ],
)
def test_what_one_of_both_would_heed(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: list[str], bundle: bool, why: str | None
):
    monkeypatch.setattr(s3_wire, "getproxies", lambda: {"no": "localhost"})
    address = Address(url, "us-east-1", "k")
    if why is None:
        check_speakable(address, environment, bundle)
    else:
        with pytest.raises(Unspoken, match=why):
            check_speakable(address, environment, bundle)


def test_a_proxy_is_not_obstores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(s3_wire, "getproxies", lambda: {"https": "http://proxy:3128", "no": "x"})
    with pytest.raises(Unspoken, match="a proxy is set"):
        check_speakable(Address("http://s/b", "us-east-1", "k"), [], False)


@pytest.mark.seaweed
def test_variables_change_nothing_that_boto3_has_settled(
    bench: S3Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
):
    """Obstore heeds some before what it is told; boto3's client was made before they were set."""
    assert bench.store.bucket.name == bench.bucket, "it is made by now"
    for name, text in {
        "ENDPOINT_URL_S3": NOWHERE,
        "ENDPOINT_URL": NOWHERE,
        "ACCESS_KEY_ID": "another",
        "SESSION_TOKEN": "another",
        "REGION": "eu-west-9",
        "ROLE_ARN": "arn:aws:iam::1:role/x",
        "WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "nothing"),
        "CONTAINER_CREDENTIALS_RELATIVE_URI": "/x",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", text)
    assert wire_of(bench.store).put_new(f"{bench.prefix}a", BytesIO(b"1"), {})
    assert bench.keys("a") == [f"{bench.prefix}a"]


def left(bench: S3Bench) -> str:
    """Why the wire leaves a put to boto3, which does it."""
    bench.store.bucket.put_new(f"{bench.prefix}left", BytesIO(BODY), {})
    (found,) = bench.keys("left")
    assert b"".join(bench.store.stream("left", len(BODY))) == BODY and found
    return wire_of(bench.store).why_not


@pytest.mark.seaweed
def test_without_obstore_boto3_does_it(bench: S3Bench, monkeypatch: pytest.MonkeyPatch, caplog: Any):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with caplog.at_level(logging.DEBUG, "lifecycle"):
        assert left(bench) == "it is not installed"
    assert [r.getMessage() for r in caplog.records] == [
        f"objects of {bench.bucket} go by boto3 alone: it is not installed"
    ]


@pytest.mark.seaweed
def test_an_obstore_that_refuses_its_settings(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("obstore.store.S3Store", lambda **_: 1 / 0)
    assert left(bench) == "it refuses its settings: ZeroDivisionError"


@pytest.mark.seaweed
def test_credentials_are_the_sessions_own(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    session = wire_of(bench.store)._session
    monkeypatch.setattr(session, "get_credentials", lambda: None)
    assert left(bench) == "requests are signed with other credentials than the session's"


@pytest.mark.seaweed
def test_credentials_that_change_are_used_at_once(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    """Boto3 refreshes them; obstore keeps none."""
    wire = wire_of(bench.store)
    assert wire.put_new(f"{bench.prefix}a", BytesIO(b"1"), {})
    own = wire._session.get_credentials()
    assert own is not None
    right = own.secret_key
    own.secret_key = "wrong"
    assert not wire.put_new(f"{bench.prefix}b", BytesIO(b"1"), {})
    own.secret_key = right
    assert wire.put_new(f"{bench.prefix}b", BytesIO(b"1"), {})


@pytest.mark.seaweed
def test_a_child_that_was_forked_leaves_it_to_boto3(bench: S3Bench):
    """The threads that would answer it are the parent's."""
    bench.put("file", BODY)
    assert wire_of(bench.store).piece(f"{bench.prefix}file", 0, 10, len(BODY), "") is not None
    child = os.fork()
    if not child:  # pragma: no cover - it ends before anything is written down
        signal.alarm(30)
        alone = wire_of(bench.store).piece(f"{bench.prefix}file", 0, 10, len(BODY), "") is None
        os._exit(not (alone and b"".join(bench.store.stream("file", len(BODY))) == BODY))
    assert os.waitpid(child, 0)[1] == 0


# -- what it does


@pytest.mark.seaweed
def test_all_that_a_put_says_arrives(bench: S3Bench):
    key, meta = f"{bench.prefix}a", {"lifecycle-copy": "c1", "lifecycle-put": "t", "lifecycle-sha256": "0" * 64}
    wire = wire_of(bench.store)
    assert wire.put_new(key, BytesIO(BODY), {"Metadata": meta, "StorageClass": "STANDARD_IA"})
    head = bench.store.bucket.head(key)
    assert head is not None and head.meta["Metadata"] == meta and head.meta["StorageClass"] == "STANDARD_IA"
    piece = wire.piece(key, 10, 20, len(BODY), head.etag)
    assert piece == (BODY[10:20], head.etag, "c1", head.mtime_ns)
    assert not wire.put_new(f"{bench.prefix}b", BytesIO(BODY), {"Tagging": "a=b"}), "it cannot say that"
    assert not wire.put_new(f"{bench.prefix}b", BytesIO(bytes(PUT_MAX_BYTES + 1)), {}), "it would take too long"
    long = GET_MAX_BYTES + 1
    bench.put("long", bytes(long))
    key = f"{bench.prefix}long"
    assert wire.piece(key, 1, long, long, "") is not None and wire.piece(key, 0, long, long, "") is None
    assert bench.keys("b") == []


@pytest.mark.seaweed
def test_a_sum_is_sent_where_boto3_sends_one(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    """As against AWS: a bucket with retention takes no object without."""
    client, seen = bench.server.client, {}
    assert client.meta.config.request_checksum_calculation == "when_supported"
    real = obstore.store.S3Store

    def noted(**given: Any) -> Any:
        seen.update(given["config"])
        return real(**given)

    monkeypatch.setattr("obstore.store.S3Store", noted)
    wire = ObstoreWire(client, wire_of(bench.store)._session, bench.bucket)
    assert wire.put_new(f"{bench.prefix}a", BytesIO(BODY), {}) and seen["checksum_algorithm"] == "SHA256"
    told = bench.client.head_object(Bucket=bench.bucket, Key=f"{bench.prefix}a", ChecksumMode="ENABLED")
    assert told["ChecksumSHA256"] == b64encode(sha256(BODY).digest()).decode()


def spoiled(bench: S3Bench, what: str) -> Callable[[], object]:
    """What ends in an error."""
    bucket, key = bench.store.bucket, f"{bench.prefix}file"
    match what:
        case "nothing there":
            return lambda: bucket.piece(f"{bench.prefix}nothing", 0, 10, "")
        case "replaced":
            return lambda: bucket.piece(key, 0, len(BODY), "0" * 32)
        case "shorter":
            return lambda: bucket.piece(key, 0, len(BODY) + 1, "")
        case "longer":
            return lambda: bucket.piece(key, 0, len(BODY) - 1, "")
        case "much shorter":
            return lambda: bucket.piece(key, len(BODY) + 10, len(BODY) + 20, "")
        case "something there":
            return lambda: bucket.put_new(key, BytesIO(b"other"), {})
        case _:
            return lambda: bucket.put_new(f"{bench.prefix}{'x' * 1100}", BytesIO(b"1"), {})


@pytest.mark.seaweed
@pytest.mark.parametrize(
    "what", ["nothing there", "replaced", "shorter", "longer", "much shorter", "something there", "too long a key"]
)
def test_errors_are_the_same_by_both(bench: S3Bench, what: str):
    bench.put("file", BODY)
    act, told = spoiled(bench, what), []
    for wire in (wire_of(bench.store), None):
        bench.store.bucket.wire = wire
        with pytest.raises(StoreError) as error:
            act()
        told.append((type(error.value), error.value.code, str(error.value)))
    assert told[0] == told[1]
    assert bench.client.get_object(Bucket=bench.bucket, Key=f"{bench.prefix}file")["Body"].read() == BODY


@pytest.mark.seaweed
def test_whoever_may_not_is_told_so_by_both_and_nothing_secret_is_said(
    seaweed: Server, monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    canary = "canary" + uuid.uuid4().hex
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", canary)
    store = S3Store("s", f"s3://{seaweed.bucket}/x", endpoint_url=seaweed.endpoint_url, addressing_style="path")
    told = []
    with caplog.at_level(logging.DEBUG, "lifecycle"):
        for _ in range(MISSES_MAX):
            with pytest.raises(StoreError) as error:
                store.bucket.put_new("x/a", BytesIO(b"1"), {})
            told.append((type(error.value).__name__, error.value.code, str(error.value)))
    assert {word[:2] for word in told} == {("Denied", "permission")}
    assert wire_of(store).why_not == f"{MISSES_MAX} requests in a row failed, the last with PermissionDeniedError"
    said = " ".join([*(text for *_, text in told), wire_of(store).why_not, caplog.text])
    assert canary not in said and SECRET_KEY not in said and "127.0.0.1" not in caplog.text


@pytest.mark.seaweed
def test_an_answer_about_the_object_is_no_failure_of_the_wire(bench: S3Bench):
    bench.put("file", BODY)
    wire = wire_of(bench.store)
    for _ in range(MISSES_MAX + 1):
        assert not wire.put_new(f"{bench.prefix}file", BytesIO(b"1"), {})
        assert wire.piece(f"{bench.prefix}nothing", 0, 1, 1, "") is None
        assert wire.piece(f"{bench.prefix}file", 0, 1, len(BODY), "0" * 32) is None
    assert wire.why_not == ""


# -- what the network does to it


@pytest.mark.seaweed
@pytest.mark.parametrize("how", HOWS)
def test_a_request_that_is_struck_is_sent_once_and_then_by_boto3(behind: Behind, how: str):
    """An answer that is lost counts as none: what has been put by then is known by its mark alone."""
    bucket = behind.store.bucket
    assert wire_of(behind.store).put_new(f"{behind.prefix}first", BytesIO(BODY), {})
    options = {"Metadata": {"lifecycle-copy": "c1"}}
    with behind.proxy.strike(how, {1}.__contains__), suppress(LifecycleError):
        bucket.put_new(f"{behind.prefix}new", BytesIO(BODY), options)
    assert behind.proxy.fired and [method for method, _ in behind.proxy.log] == ["PUT", "PUT"]
    head = bucket.head(f"{behind.prefix}new")
    assert head is not None and (head.size, head.meta["Metadata"]) == (len(BODY), options["Metadata"])
    with behind.proxy.strike(how, {1}.__contains__):
        piece = bucket.piece(f"{behind.prefix}new", 0, len(BODY), "")
    assert (piece.data, piece.copy_id) == (BODY, "c1")
    assert [method for method, _ in behind.proxy.log] == ["GET"] * (1 if how == "double" else 2)


def unit() -> Parcel:
    content = {f"{KEY}/DONE": b"1", f"{KEY}/a": b"a" * 700, f"{KEY}/b": b"b" * 30}
    return parcel(checkpoint(KEY, Shape.DIR, (), f"{KEY}/DONE"), content)


def take_in(intake: S3Intake, sent: Parcel) -> None:
    lay(intake, sent)
    for member in payload(sent.manifest.members):
        assert b"".join(intake.staged("c1", member)) == sent.content[member.key]
    intake.publish(sent.sealed)


@pytest.mark.seaweed
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("how", "on"),
    [*((how, False) for how in HOWS), *((how, True) for how in HOWS if EVERYTHING or how in ("reset", "lost"))],
)
def test_a_copy_whose_objects_are_struck(behind: Behind, how: str, on: bool):
    """A put or a get of an object, once and from then on; nothing half looks whole, and it is done again.

    Of the six in each way one or two, others by turns, unless all are asked for.
    """
    sent, bucket = unit(), behind.store.bucket
    own = f"/{behind.bucket}/{behind.prefix}.lifecycle/"
    with behind.proxy.strike("", lambda _: False):
        take_in(S3Intake(behind.store), sent)
    requests = [n for n, (m, path) in enumerate(behind.proxy.log, 1) if m in ("PUT", "GET") and "?" not in path]
    struck = [n for n in requests if not behind.proxy.log[n - 1][1].startswith(own)]
    assert len(struck) == 6
    first = HOWS.index(how)
    for n in struck if EVERYTHING else struck[first % 5 :: 5]:
        S3Intake(behind.store).forget("c1")
        behind.remove(KEY)
        bucket.wire = ObstoreWire(bucket.client, wire_of(behind.store)._session, bucket.name)
        numbers = range(n, 1000) if on else (n,)
        with behind.proxy.strike(how, numbers.__contains__), suppress(LifecycleError):
            take_in(S3Intake(behind.store), sent)
        assert behind.proxy.fired
        standing = {key.removeprefix(behind.prefix) for key in behind.keys(KEY)}
        assert f"{KEY}/DONE" not in standing or standing == sent.content.keys(), "half of it looks whole"
        assert not behind.store.copies() or standing == sent.content.keys(), "published and not whole"
        take_in(S3Intake(behind.store), sent)
        assert_published(behind, sent)


@pytest.mark.seaweed
def test_what_comes_between_the_look_and_the_put_is_left_alone(bench: S3Bench):
    sent, intake = unit(), S3Intake(bench.store)
    intake.begin(sent.manifest)
    wire = wire_of(bench.store)

    class Slow:
        piece = wire.piece

        def put_new(self, key: str, body: BytesIO, options: Any) -> bool:
            bench.put(f"{KEY}/a", b"a stranger's")
            return wire.put_new(key, body, options)

    bench.store.bucket.wire = Slow()
    (member,) = (m for m in sent.manifest.members if m.key == f"{KEY}/a")
    with pytest.raises(Occupied):
        intake.put("c1", member, [sent.content[member.key]])
    assert bench.client.get_object(Bucket=bench.bucket, Key=f"{bench.prefix}{KEY}/a")["Body"].read() == b"a stranger's"
