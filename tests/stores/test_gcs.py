"""What stores in Google's buckets promise: the contract on fake-gcs-server, the rest where generations are checked.

fake-gcs-server passes over generations on reads, deletes and rewrites; `tests.clouds.Strict` stands before it there.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Target
from lifecycle.stores import gcs_bucket
from lifecycle.stores.cloud import CloudIntake, CloudStore
from lifecycle.stores.cloud_bucket import Part
from lifecycle.stores.gcs_bucket import GcsBucket, _locked
from lifecycle.stores.objects import Head
from lifecycle.stores.open import open_intake
from lifecycle.stores.s3_trash import PROOF_INLINE_MAX_BYTES, S3Trash
from tests.clouds import Gcs, Strict
from tests.stores.cloud_bench import GcsBench
from tests.stores.cloud_contract import BucketContract, NameContract, PartContract, RaceContract
from tests.stores.contract import NOW, UNITS, fill, retire, scan, shown, unit_action, warrant_for
from tests.stores.intake_contract import (
    AgainContract,
    ContentsContract,
    CutContract,
    WayContract,
    checkpoint,
    lay,
    parcel,
    plain_parcel,
)

pytestmark = pytest.mark.gcs
CUTS = "the steps are S3's, which are tried on SeaweedFS in each run; LIFECYCLE_TEST_CUTS=1 makes these run too"


@pytest.fixture
def bench(fake_gcs: Gcs) -> GcsBench:
    return GcsBench(fake_gcs)


@pytest.fixture
def strict(fake_gcs: Gcs, strict_gcs: Strict) -> Iterator[GcsBench]:
    yield GcsBench(fake_gcs, strict_gcs.url)
    strict_gcs.fault = strict_gcs.after = None
    strict_gcs.steps = 1


class TestGcs(BucketContract, NameContract, PartContract):
    """All of it."""


class TestGcsIntake(ContentsContract):
    """What it tells of a unit, and how it streams one."""


@pytest.mark.skipif("LIFECYCLE_TEST_CUTS" not in os.environ, reason=CUTS)
class TestGcsIntakeCuts(WayContract, AgainContract, CutContract):
    """Undisturbed, done again, and cut short everywhere."""


# -- conditions


def test_what_is_found_out_of_conditions(bench: GcsBench, strict: GcsBench):
    assert not bench.store.probe().conditional_delete, "fake-gcs-server has learnt it: run the contract without Strict"
    assert strict.store.probe().conditional_delete
    assert not strict.every(strict.prefix + ".lifecycle"), "the scratch object is left"


class TestRaces(RaceContract):
    """Where generations are checked."""

    @pytest.fixture
    def bench(self, strict: GcsBench) -> GcsBench:
        return strict


def test_one_in_parts_never_overwrites_either(strict: GcsBench, strict_gcs: Strict):
    content = bytes(range(256)) * 2048
    sent = parcel(checkpoint("runs/x.ckpt", Shape.FILE, ("runs/x.ckpt",)), {"runs/x.ckpt": content})
    strict.store.bucket.part_bytes = 256 * 1024  # type: ignore[misc]  # of this one alone
    intake = open_intake(strict.store)
    intake.begin(sent.manifest)
    last: list[str] = []

    def fault(method: str, path: str) -> None:
        if method == "PUT":
            last.append(path)
            if len(last) == 2:
                strict.put("runs/x.ckpt", b"somebody's")

    strict_gcs.fault = fault
    with pytest.raises(Occupied):
        intake.put("c1", sent.manifest.members[0], [content])
    assert len(last) == 2 and strict.store.read("runs/x.ckpt") == b"somebody's"


@pytest.mark.parametrize("times", [1, 99])
def test_a_put_whose_answer_is_lost_is_known_again(strict: GcsBench, strict_gcs: Strict, times: int):
    sent, intake = plain_parcel(Shape.FILE), open_intake(strict.store)
    intake.begin(sent.manifest)
    count = 0

    def lose(method: str, path: str) -> int | None:
        nonlocal count
        count += method == "POST"
        return 503 if method == "POST" and count <= times else None

    strict_gcs.after = lose
    for member in sent.manifest.members:
        intake.put("c1", member, [sent.content[member.key]])
    strict_gcs.after = None
    assert count >= 2
    intake.publish(sent.sealed)
    assert set(strict.store.copies()) == {"c1"}


def test_a_delete_whose_answer_is_lost_is_settled_by_a_look(strict: GcsBench, strict_gcs: Strict):
    fill(strict)
    warrant = warrant_for(strict.store, unit_action(strict, Shape.DIR))
    strict.store.probe()
    strict_gcs.after = lambda method, path: 503 if method == "DELETE" and "DONE" in path else None
    strict.trash.retire(warrant, NOW)
    strict_gcs.after = None
    assert strict.trash.retired(warrant.action, "t1") is True


# -- the way back


@pytest.mark.parametrize("size_bytes", [10, PROOF_INLINE_MAX_BYTES + 1])
def test_a_restore_that_was_cut_after_the_proof_came_back_is_known_again(
    strict: GcsBench, strict_gcs: Strict, size_bytes: int
):
    content = os.urandom(size_bytes)
    strict.put("runs/b/step=2.ckpt", content)
    retire(strict, unit_action(strict, Shape.FILE))
    assert "runs/b/step=2.ckpt" not in shown(strict).files
    strict_gcs.fault = lambda method, path: 400 if method == "DELETE" else None
    with pytest.raises(StoreError):
        strict.trash.restore("t1")
    strict_gcs.fault = None
    assert strict.store.read("runs/b/step=2.ckpt", 0, size_bytes) == content
    assert [(entry.whole, entry.replaced) for entry in strict.trash.trash()] == [(False, False)], "it is its own"
    assert strict.trash.restore("t1").note == "proof_rewritten"
    assert strict.trash.trash() == []


def test_another_proof_of_the_same_size_is_not_taken_for_the_one_put_back(strict: GcsBench, strict_gcs: Strict):
    for size_bytes in (10, PROOF_INLINE_MAX_BYTES + 1):
        strict.put("runs/b/step=2.ckpt", b"a" * size_bytes)
        retire(strict, unit_action(strict, Shape.FILE), f"t{size_bytes}")
        strict_gcs.fault = lambda method, path: 400 if method == "DELETE" else None
        with pytest.raises(StoreError):
            strict.trash.restore(f"t{size_bytes}")
        strict_gcs.fault = None
        strict.put("runs/b/step=2.ckpt", b"b" * size_bytes)
        with pytest.raises(Occupied):
            strict.trash.restore(f"t{size_bytes}")
        assert strict.store.read("runs/b/step=2.ckpt", 0, 1) == b"b"


# -- listings and reads


@pytest.fixture
def paged(strict: GcsBench, monkeypatch: pytest.MonkeyPatch) -> GcsBench:
    monkeypatch.setattr(gcs_bucket, "PAGE_KEYS", 3)
    fill(strict)
    return strict


def test_many_pages_are_one_listing(paged: GcsBench):
    assert sum(len(folder.names) for folder in paged.store.walk()) == 14


@pytest.mark.parametrize("status", [400, 403, 404, 503])
@pytest.mark.parametrize("page", [1, 2, 4])
def test_a_page_that_does_not_come_ends_no_listing(paged: GcsBench, strict_gcs: Strict, status: int, page: int):
    count = 0

    def fail(method: str, path: str) -> int | None:
        nonlocal count
        count += "maxResults" in path
        return status if count >= page else None

    strict_gcs.fault = fail
    paged.store.bucket.pool.connection_pool_kw["retries"] = 0  # type: ignore[attr-defined]  # it is Google's
    with pytest.raises(Refused) as told:
        list(paged.store.walk())
    assert told.value.code == ("source_unavailable" if page == 1 else "listing_incomplete")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda raw: {}, "ValueError"),
        (lambda raw: {**raw, "items": [{"name": "x"}]}, "KeyError"),
        (lambda raw: {**raw, "items": 5}, "TypeError"),
        (lambda raw: {**raw, "nextPageToken": "same", "items": []}, "token came twice"),
        (lambda raw: {**raw, "items": [{**raw["items"][0], "name": "elsewhere"}]}, "another prefix"),
        (lambda raw: {**raw, "items": [{**raw["items"][0], "name": "LAST"}]}, "page came twice"),
    ],
)
def test_a_page_that_contradicts_itself_ends_no_listing(
    paged: GcsBench, monkeypatch: pytest.MonkeyPatch, change, why: str
):
    real, count, last = gcs_bucket._json, 0, ""

    def told(answer):
        nonlocal count, last
        raw = real(answer)
        if raw.get("kind") != "storage#objects":
            return raw
        count += 1
        if count == 1:
            last = raw["items"][-1]["name"]
            return raw
        changed = change(raw)
        for item in changed.get("items", []) if isinstance(changed.get("items"), list) else []:
            item["name"] = item["name"].replace("LAST", last)
        return changed

    monkeypatch.setattr(gcs_bucket, "_json", told)
    with pytest.raises(Refused, match=why) as refused:
        list(paged.store.walk())
    assert refused.value.code == "listing_incomplete"


def test_a_stream_holds_to_one_object(strict: GcsBench):
    strict.put("r/file", b"a" * (20 * 1024 * 1024))
    pieces = strict.store.stream("r/file", 20 * 1024 * 1024)
    next(pieces)
    strict.put("r/file", b"b" * (20 * 1024 * 1024))
    with pytest.raises(Changed):
        for _ in range(3):
            strict.store.bucket.piece(strict.prefix + "r/file", 0, 20 * 1024 * 1024, "12345")
    pieces.close()  # type: ignore[attr-defined]  # it is a generator


def test_an_answer_of_another_generation_is_no_piece(bench: GcsBench):
    """As where a server passes over the condition, but tells which object it read."""
    bench.put("r/file", b"0123456789")
    with pytest.raises(Changed):
        bench.store.bucket.piece(bench.prefix + "r/file", 0, 10, "12345")


# -- what is told of rights, locks and versions


def test_rights_that_are_missing(strict: GcsBench, strict_gcs: Strict):
    fill(strict)
    identity = strict.store.identity()
    strict_gcs.fault = lambda method, path: 403 if "/o" not in path else None
    assert strict.store.identity() != identity and "created=" in strict.store.identity()
    assert strict.store.bucket.keeps_versions(), "who is not told must not promise room"
    strict_gcs.fault = lambda method, path: 403
    with pytest.raises(Refused) as refused:
        strict.store.identity()
    assert refused.value.code == "source_unavailable"
    with pytest.raises(Denied):
        strict.store.sight(Target(*UNITS[Shape.DIR][0:1], Shape.DIR, ()))


def test_an_identity_needs_its_sentinel(strict: GcsBench):
    strict.store.sentinel = "mounted"
    with pytest.raises(Refused, match="sentinel"):
        strict.store.identity()
    strict.put("mounted", b"")
    assert strict.store.identity()


@pytest.mark.parametrize(
    ("raw", "locked"),
    [
        ({}, ""),
        ({"temporaryHold": True}, "hold"),
        ({"eventBasedHold": True}, "hold"),
        ({"retentionExpirationTime": "2030-01-01T00:00:00Z"}, "retained until 2030-01-01T00:00:00Z"),
        ({"retentionExpirationTime": "2020-01-01T00:00:00Z"}, ""),
    ],
)
def test_what_locks_an_object(raw: dict[str, object], locked: str):
    import urllib3

    answer = urllib3.HTTPResponse(headers={"Date": "Sun, 29 Nov 2026 23:00:00 GMT"})
    assert _locked(raw, answer) == locked
    assert bool(_locked(raw, urllib3.HTTPResponse())) is bool(raw)


def test_a_locked_unit_is_left_alone(strict: GcsBench, monkeypatch: pytest.MonkeyPatch):
    fill(strict)
    warrant, before = warrant_for(strict.store, unit_action(strict, Shape.DIR)), shown(strict)
    monkeypatch.setattr(gcs_bucket, "_locked", lambda raw, answer: "hold" if "0.bin" in raw["name"] else "")
    with pytest.raises(Denied) as told:
        strict.trash.retire(warrant, NOW)
    assert told.value.code == "locked" and shown(strict) == before


def test_classes_of_google_are_all_online(bench: GcsBench):
    store = CloudStore("s", bench.store.url, endpoint_url=bench.url, storage_class="ARCHIVE")
    sent = plain_parcel(Shape.FILE)
    lay(CloudIntake(store), sent)
    (folder,) = [f for f in scan(bench.store).folders.values() if f.classes]
    assert set(folder.classes.values()) == {"ARCHIVE"}
    assert bench.store.read(sent.key) == sent.content[sent.key]
    assert scan(bench.store).unit(sent.key, (sent.key,)).bytes == len(sent.content[sent.key])
    assert isinstance(bench.trash, S3Trash)


# -- the ways of requests that a server of ours cannot take


class Answering:
    """Stands for the pool: gives these answers in turn and keeps what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, method: str, url: str, **more: Any) -> Any:
        self.asked.append((method, url, more))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(status: int, raw: object = None, **headers: str) -> Any:
    body = json.dumps(raw).encode()
    if headers.get("Content_Encoding") == "gzip":
        body = gzip.compress(body)
    return SimpleNamespace(status=status, data=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Callable[..., GcsBucket]:
    """A bucket at Google itself, with credentials, whose requests get the answers that are given."""
    import google.auth

    class Credentials:
        def before_request(self, request: object, method: str, url: str, headers: dict[str, str]) -> None:
            headers["authorization"] = "Bearer secret-token"

    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(google.auth, "default", lambda scopes, request: (Credentials(), "project"))

    def make(*answers: Any) -> GcsBucket:
        bucket = GcsBucket("b", "cold")
        bucket.pool = Answering(*answers)  # type: ignore[assignment]  # it stands for the pool
        return bucket

    return make


def test_requests_are_signed_and_errors_tell_no_secret(apart: Callable[..., GcsBucket]):
    import google.auth.exceptions
    import urllib3.exceptions

    lost = urllib3.exceptions.ProtocolError("secret-token")
    refused = google.auth.exceptions.RefreshError("secret-token")
    bucket = apart(answer(404), lost, refused, answer(401))
    assert bucket.head("x") is None
    ((method, url, more),) = bucket.pool.asked  # type: ignore[attr-defined]  # it stands for the pool
    assert (method, url) == ("GET", "https://storage.googleapis.com/storage/v1/b/b/o/x")
    assert more["headers"]["authorization"] == "Bearer secret-token"
    for kind in (StoreError, Denied, Denied):
        with pytest.raises(kind) as told:
            bucket.head("x")
        assert "secret" not in str(told.value)


def test_no_token_goes_out_without_tls(apart: Callable[..., GcsBucket], monkeypatch: pytest.MonkeyPatch):
    assert GcsBucket("b", "cold", "http://127.0.0.1:1").signer.headers("GET", "http://127.0.0.1:1/") == {}
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:2")
    bucket = GcsBucket("b", "cold")
    assert bucket.url == "http://127.0.0.1:2" and bucket.signer.headers("GET", "") == {}


def test_without_credentials_nothing_is_asked(apart: Callable[..., GcsBucket], monkeypatch: pytest.MonkeyPatch):
    import google.auth

    def none(scopes: object, request: object) -> None:
        raise google.auth.exceptions.DefaultCredentialsError("secret path")

    monkeypatch.setattr(google.auth, "default", none)
    with pytest.raises(Refused) as told:
        CloudStore("cold", "gs://b/p").identity()
    assert told.value.code == "source_unavailable" and "secret" not in str(told.value)


def test_a_copy_goes_on_until_it_is_done(apart: Callable[..., GcsBucket]):
    bucket = apart(answer(200, {"done": False, "rewriteToken": "t1"}), answer(200, {"done": True}))
    bucket._copy(Head("from", 5, "77", 0), "to")
    first, second = (url for _, url, _ in bucket.pool.asked)  # type: ignore[attr-defined]  # it stands for the pool
    assert "ifSourceGenerationMatch=77" in first and "rewriteToken" not in first
    assert "ifSourceGenerationMatch=77" in second and second.endswith("rewriteToken=t1")


def test_a_session_that_takes_less_than_was_sent_is_no_upload(apart: Callable[..., GcsBucket]):
    bucket = apart(answer(200, Location="https://storage.googleapis.com/s"), answer(308, Range="bytes=0-9"))
    bucket.part_bytes = 20  # type: ignore[misc]  # of this one alone
    parts = iter([Part(b"x" * 20, 0, False), Part(b"y" * 20, 20, True)])
    with pytest.raises(StoreError, match="did not take all"):
        bucket.upload("key", 40, parts)


def test_compressed_answers_are_read_and_others_refused(apart: Callable[..., GcsBucket]):
    bucket = apart(answer(200, {"kind": "storage#objects"}, Content_Encoding="gzip"), answer(200, []))
    assert list(bucket.pages("")) == [([], [], [], [], {})]
    with pytest.raises(StoreError):
        list(bucket.pages(""))


def test_a_range_that_is_answered_with_the_whole_object(apart: Callable[..., GcsBucket]):
    whole = SimpleNamespace(status=200, data=b"0123456789", headers={})
    bucket = apart(whole)
    assert bucket.read("x", 3, 4) == b"3456"


@pytest.mark.parametrize("name", [".", ".."])
def test_names_that_an_address_would_lose(apart: Callable[..., GcsBucket], name: str):
    with pytest.raises(StoreError) as told:
        apart().head(name)
    assert told.value.code == "name_unusual"


def test_a_body_that_is_cut_is_asked_for_again_and_then_refused(bench: GcsBench, monkeypatch: pytest.MonkeyPatch):
    bench.put("r/file", b"0123456789")
    bucket = bench.make().bucket
    real, count = bucket._fetch, 0

    def short(key: str, start: int, length: int, etag: str) -> bytes:
        nonlocal count
        count += 1
        return real(key, start, length, etag)[: 3 if count < 3 else None]

    monkeypatch.setattr(bucket, "_fetch", short)
    assert bucket.piece(bench.prefix + "r/file", 0, 10, "").data == b"0123456789" and count == 3
    monkeypatch.setattr(bucket, "_fetch", lambda *asked: b"012")
    with pytest.raises(StoreError, match="cut an answer short"):
        bucket.piece(bench.prefix + "r/file", 0, 10, "")


def test_a_read_from_the_end_of_nothing(bench: GcsBench):
    with pytest.raises(NotFound):
        bench.store.read("nothing", -5)


def test_a_copy_of_what_changes_meanwhile_is_refused(strict: GcsBench):
    bucket, made = strict.store.bucket, strict.server.key(strict.prefix + "y").rpartition("/")[2]

    def copied(method: str, part: str, key: str, content: bytes) -> None:
        strict.put("x", b"12345")
        source = bucket.head(strict.prefix + "x")
        assert source is not None
        with strict.meanwhile(method, part, lambda: strict.put(key, content)) as seen:
            try:
                bucket.copy(source, strict.prefix + "y")
            finally:
                assert seen

    with pytest.raises(Changed, match="412"):
        copied("POST", "rewriteTo", "x", b"67890")
    with pytest.raises(Changed, match="while it was copied"):
        copied("GET", made, "x", b"67890")
    with pytest.raises(StoreError, match="not whole"):
        copied("GET", made, "y", b"longer than it")


def test_the_time_is_that_of_the_answer(apart: Callable[..., GcsBucket]):
    bucket = apart(answer(200, {}, Date="Tue, 14 Nov 2023 22:13:20 GMT"), answer(200, {}), answer(403))
    assert bucket.told_ns() == 1_700_000_000 * 1_000_000_000
    with pytest.raises(StoreError) as told:
        bucket.told_ns()
    assert told.value.code == "clock_unknown"
    with pytest.raises(Denied):
        bucket.told_ns()
