"""What stands, comes or goes at a copy's keys while it comes in: nobody else's object or upload is ever touched."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lifecycle.core.copies import Member
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Target
from lifecycle.stores import s3_client
from lifecycle.stores.s3_bucket import Bucket
from lifecycle.stores.s3_intake import S3Intake
from tests.servers import Server
from tests.stores.contract import act_on, retire
from tests.stores.intake_contract import Parcel, checkpoint, in_pieces, lay, parcel
from tests.stores.s3_bench import OneClient, S3Bench
from tests.stores.test_s3_edges import before, content, fail, hooked, ignored, overwrite
from tests.stores.test_s3_faults import failing

KEY = "runs/r/step-1"
BIG, SMALL, PROOF = (f"{KEY}/{name}" for name in ("big", "small", "DONE"))


@pytest.fixture
def bench(moto: Server, monkeypatch: pytest.MonkeyPatch) -> S3Bench:
    monkeypatch.setattr("lifecycle.stores.s3_intake.SINGLE_MAX_BYTES", 100)
    made = OneClient(moto)
    assert made.store.probe()
    return made


def unit() -> Parcel:
    return parcel(checkpoint(KEY, Shape.DIR, (), PROOF), {PROOF: b"1", BIG: b"0123456789" * 20, SMALL: b"small"})


def begun(bench: S3Bench) -> tuple[S3Intake, Parcel]:
    intake, sent = S3Intake(bench.store), unit()
    intake.begin(sent.manifest)
    return intake, sent


def laid(bench: S3Bench) -> tuple[S3Intake, Parcel]:
    intake, sent = S3Intake(bench.store), unit()
    lay(intake, sent)
    return intake, sent


def put(intake: S3Intake, sent: Parcel, key: str) -> None:
    (member,) = (m for m in sent.manifest.members if m.key == key)
    intake.put("c1", member, in_pieces(sent.content[key]))


def uploads(bench: S3Bench) -> list[tuple[str, str]]:
    found = bench.client.list_multipart_uploads(Bucket=bench.bucket, Prefix=bench.prefix).get("Uploads", ())
    return [(item["Key"].removeprefix(bench.prefix), item["UploadId"]) for item in found]


def notes(bench: S3Bench, copy_id: str = "c1") -> list[str]:
    area = f"{bench.prefix}.lifecycle/incoming/{copy_id}/"
    found = bench.client.list_objects_v2(Bucket=bench.bucket, Prefix=area).get("Contents", ())
    return sorted(item["Key"][len(area) :].split("/")[0] for item in found)


def steal(bench: S3Bench, key: str) -> Callable[[str], object]:
    """Somebody else writes to the key, whoever is asking for whatever."""
    return lambda _: bench.put(key, b"a stranger's")


# -- put


@pytest.mark.parametrize("key", [BIG, SMALL])
def test_what_comes_between_the_look_and_the_write_is_left_alone(bench: S3Bench, key: str):
    intake, sent = begun(bench)
    operation = "CompleteMultipartUpload" if key == BIG else "PutObject"
    with before(bench, operation, steal(bench, key)), pytest.raises(Occupied):
        put(intake, sent, key)
    assert content(bench, key) == b"a stranger's"
    assert uploads(bench) == [] and notes(bench) == ["manifest.json"]
    intake.abandon("c1")
    assert bench.keys("") == [bench.prefix + key]


@pytest.mark.parametrize("key", [BIG, SMALL])
def test_a_write_whose_answer_is_lost_is_no_failure(bench: S3Bench, key: str):
    """The client asks again and meets its own object; only its mark tells."""
    intake, sent = begun(bench)
    operation = "CompleteMultipartUpload" if key == BIG else "PutObject"
    with failing(bench.store, "lost", 1, operation) as fired:
        put(intake, sent, key)
    assert fired() and content(bench, key) == sent.content[key]
    assert uploads(bench) == [] and notes(bench) == ["manifest.json"]


def test_where_no_condition_is_kept_a_look_stands_in(bench: S3Bench):
    """A store that passes over If-None-Match: what came while the parts were sent is seen all the same."""
    intake, sent = begun(bench)

    def careless(params: dict[str, Any], **_: Any) -> None:
        params.pop("IfNoneMatch", None)

    sent_parts = before(bench, "UploadPart", steal(bench, BIG))
    events = bench.store.bucket.client.meta.events
    events.register("before-parameter-build.s3.CompleteMultipartUpload", careless)
    try:
        with sent_parts, pytest.raises(Occupied):
            put(intake, sent, BIG)
    finally:
        events.unregister("before-parameter-build.s3.CompleteMultipartUpload", careless)
    assert content(bench, BIG) == b"a stranger's" and uploads(bench) == []


def test_another_process_that_puts_the_same_copy_is_not_overwritten(bench: S3Bench):
    intake, sent = begun(bench)
    other = S3Intake(bench.reopen()[0])
    once: list[str] = []

    def meanwhile(_: str) -> None:
        if not once:
            once.append("")
            put(other, sent, SMALL)

    with before(bench, "PutObject", meanwhile), pytest.raises(Occupied):
        put(intake, sent, SMALL)
    assert b"".join(intake.staged("c1", sent.manifest.members[2])) == sent.content[SMALL]


def test_a_write_whose_fate_nobody_tells_is_a_failure(bench: S3Bench):
    """The write fails, and so does the look that would settle it; done again it is right."""
    intake, sent = begun(bench)
    heads: list[str] = []

    def second_look(key: str) -> None:
        heads.append(key)
        if len(heads) > 1:
            fail("AccessDenied")(key)

    failing_put = before(bench, "PutObject", fail("AccessDenied"))
    with before(bench, "HeadObject", second_look), failing_put, pytest.raises(Denied):
        put(intake, sent, SMALL)
    assert len(heads) == 2
    put(intake, sent, SMALL)


def test_an_upload_that_somebody_aborted(bench: S3Bench):
    intake, sent = begun(bench)
    with before(bench, "UploadPart", fail("NoSuchUpload")), pytest.raises(StoreError) as told:
        put(intake, sent, BIG)
    assert told.value.code == "upload_aborted" and uploads(bench) == []


def test_an_abort_that_fails_is_left_to_abandon(bench: S3Bench):
    intake, _ = begun(bench)
    with before(bench, "AbortMultipartUpload", fail("InternalError")), pytest.raises(Changed):
        intake.put("c1", Member(BIG, 300, 0), [b"too short"])
    assert [key for key, _ in uploads(bench)] == [BIG] and notes(bench) == ["manifest.json", "uploads"]
    S3Intake(bench.reopen()[0]).abandon("c1")
    assert uploads(bench) == [] and notes(bench) == [] and bench.keys("") == []


def test_an_upload_that_cannot_be_noted_is_not_begun(bench: S3Bench):
    intake, sent = begun(bench)
    parts: list[str] = []
    failing_put = before(bench, "PutObject", fail("AccessDenied"))
    with failing_put, before(bench, "UploadPart", parts.append), pytest.raises(Denied):
        put(intake, sent, BIG)
    assert not parts and uploads(bench) == []


def test_a_note_of_a_finished_upload_does_no_harm(bench: S3Bench):
    """It could not be dropped; the publishing drops it."""
    intake, sent = begun(bench)
    with before(bench, "DeleteObject", fail("InternalError")):
        put(intake, sent, BIG)
    assert notes(bench) == ["manifest.json", "uploads"]
    for key in (SMALL, PROOF):
        put(intake, sent, key)
    intake.publish(sent.sealed)
    assert notes(bench) == [] and content(bench, BIG) == sent.content[BIG]


def test_what_is_published_is_not_replaced(bench: S3Bench):
    """Not even by a process that began before it was."""
    late, sent = begun(bench)
    intake, _ = laid(bench)
    intake.publish(sent.sealed)
    with pytest.raises(Occupied):
        put(late, sent, SMALL)
    again = S3Intake(bench.reopen()[0])
    again.begin(sent.manifest)
    again.put("c1", Member(SMALL, 4, 0), [b"evil"])
    assert content(bench, SMALL) == b"small"
    evil = {**sent.content, SMALL: b"evil!"}
    with pytest.raises(Occupied):
        again.publish(Parcel(sent.manifest, evil).sealed)
    assert not bench.store.incoming() and len(bench.store.copies()) == 1


@pytest.mark.parametrize("storage", ["STANDARD_IA", "GLACIER"])
def test_copies_are_stored_as_the_store_is_told(bench: S3Bench, storage: str):
    bench.store.storage_class = storage
    intake, sent = laid(bench)
    intake.publish(sent.sealed)
    (folder,) = bench.store.walk(KEY)
    assert folder.classes == dict.fromkeys(("DONE", "big", "small"), storage)
    for key in (BIG, SMALL):
        if storage == "GLACIER":
            with pytest.raises(StoreError) as told:
                list(bench.store.stream(key, len(sent.content[key])))
            assert told.value.code == "storage_archived"
        else:
            assert b"".join(bench.store.stream(key, len(sent.content[key]))) == sent.content[key]


def test_links_have_no_object(bench: S3Bench):
    intake, _ = begun(bench)
    for member in (Member(f"{KEY}/l", 3, 0, link="big"), Member(f"{KEY}/same", 200, 0, same=BIG)):
        intake.put("c1", member, [b"never read"])
        assert list(intake.staged("c1", member)) == []
    assert bench.keys("") == []


def test_parts_carry_checksums_where_the_store_takes_them(s3_server: Server, monkeypatch: pytest.MonkeyPatch):
    """As against AWS: the upload is begun with the kind of checksum that its parts and its end carry."""
    monkeypatch.setattr("lifecycle.stores.s3_intake.SINGLE_MAX_BYTES", 100)
    bench = OneClient(s3_server)
    client = Server(s3_server.kind, s3_server.endpoint_url).client
    s3_client._read_pages_ourselves(client)
    bench.store.bucket = Bucket(client, bench.bucket, "s")
    begins: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        (begins if model.name == "CreateMultipartUpload" else ends).append(dict(params))

    events = [f"before-parameter-build.s3.{name}" for name in ("CreateMultipartUpload", "CompleteMultipartUpload")]
    for event in events:
        client.meta.events.register(event, note)
    intake, sent = laid(bench)
    intake.publish(sent.sealed)
    assert [begin["ChecksumAlgorithm"] for begin in begins] == ["CRC32"]
    assert all("ChecksumCRC32" in part for end in ends for part in end["MultipartUpload"]["Parts"])
    assert content(bench, BIG) == sent.content[BIG]


# -- begin and publish


def test_what_the_trash_holds_is_in_the_way(bench: S3Bench):
    """Its members stand where they were until the purge, with this copy's mark: an undo needs them."""
    intake, sent = laid(bench)
    intake.publish(sent.sealed)
    retire(bench, act_on(bench.store, KEY, proof=PROOF))
    intake.forget("c1")
    with pytest.raises(Occupied):
        S3Intake(bench.reopen()[0]).begin(sent.manifest)
    bench.trash.restore("t1")
    assert {key: content(bench, key) for key in sent.content} == sent.content


def test_an_object_that_lost_bytes_is_not_published(bench: S3Bench):
    intake, sent = laid(bench)
    members = tuple(m._replace(size_bytes=m.size_bytes + 1) for m in sent.sealed.members)
    with pytest.raises(Changed):
        intake.publish(replace(sent.sealed, members=members))
    assert not bench.store.copies()


@pytest.mark.parametrize("key", ["runs/r/step-10/DONE", "runs/r/step-1", ".lifecycle/trash/t1/manifest.json", "x"])
@pytest.mark.parametrize("shape", [Shape.DIR, Shape.GROUP])
def test_a_manifest_that_names_what_is_not_its_own_is_refused(bench: S3Bench, key: str, shape: Shape):
    intake = S3Intake(bench.store)
    unit = checkpoint(KEY, shape, () if shape is Shape.DIR else (SMALL,))
    sent = parcel(unit, {key: b"x"})
    for act in (intake.begin, intake.publish):
        with pytest.raises(StoreError) as told:
            act(sent.sealed)
        assert told.value.code == "broken_manifest"


def test_our_own_files_are_no_unit(bench: S3Bench):
    for key in ("", ".lifecycle"):
        sent = parcel(checkpoint(key, Shape.DIR), {f"{key}/trash".lstrip("/"): b"x", "/y": b""})
        with pytest.raises(StoreError):
            S3Intake(bench.store).begin(sent.manifest)


def test_a_forged_manifest_reaches_nobody_elses_objects(bench: S3Bench):
    """It lies where ours do and names other objects, one of them even with the mark."""
    intake, sent = laid(bench)
    bench.put("runs/r/step-2/DONE", b"precious")
    members = (*sent.manifest.members, Member("runs/r/step-2/DONE", 8, 0))
    key = f"{bench.prefix}.lifecycle/incoming/c1/manifest.json"
    bench.client.put_object(Bucket=bench.bucket, Key=key, Body=replace(sent.manifest, members=members).encode())
    with pytest.raises(StoreError) as told:
        intake.abandon("c1")
    assert told.value.code == "broken_manifest" and content(bench, "runs/r/step-2/DONE") == b"precious"
    assert len(bench.keys(KEY)) == 3


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'["a"]', b'["a", "b", "c"]', b'["x", "y"]', b"[[], 3]", b"\xff"])
def test_a_forged_note_aborts_nobody_elses_upload(bench: S3Bench, body: bytes):
    intake, _ = begun(bench)
    where = {"Bucket": bench.bucket, "Key": bench.prefix + "runs/other"}
    upload = bench.client.create_multipart_upload(**where)["UploadId"]
    other = f'["{where["Key"]}", "{upload}"]'.encode()
    for note in (body, other):
        bench.client.put_object(Bucket=bench.bucket, Key=f"{bench.prefix}.lifecycle/incoming/c1/uploads/n", Body=note)
        with pytest.raises(StoreError) as told:
            intake.abandon("c1")
        assert told.value.code == "broken_manifest"
    assert uploads(bench) == [("runs/other", upload)]
    assert set(bench.store.incoming()) == {"c1"}


def test_a_manifest_too_large_to_be_read_back_is_not_written(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.s3_intake.READ_MAX_BYTES", 100)
    with pytest.raises(StoreError) as told:
        S3Intake(bench.store).begin(unit().manifest)
    assert told.value.code == "too_large" and notes(bench) == []


def test_a_manifest_without_checksums_is_refused_by_name(bench: S3Bench):
    intake, sent = laid(bench)
    with pytest.raises(Refused) as told:
        intake.publish(sent.manifest)
    assert told.value.code == "not_sealed"


# -- abandon


@pytest.mark.parametrize("key", [PROOF, SMALL])
def test_what_is_replaced_while_it_is_removed_stays(bench: S3Bench, key: str):
    intake, _ = laid(bench)
    with before(bench, "DeleteObject", overwrite(bench, key)):
        intake.abandon("c1")
    assert bench.keys("") == [bench.prefix + key] and content(bench, key) != unit().content[key]
    assert not bench.store.incoming()


def test_a_proof_that_was_replaced_since_the_look_stays(bench: S3Bench):
    """Before the delete looks for itself."""
    intake, _ = laid(bench)
    looks: list[str] = []

    def second(key: str) -> None:
        if key.endswith(PROOF):
            looks.append(key)
            if len(looks) == 2:
                bench.put(PROOF, b"a stranger's")

    with before(bench, "HeadObject", second):
        intake.abandon("c1")
    assert bench.keys("") == [bench.prefix + PROOF] and content(bench, PROOF) == b"a stranger's"


@pytest.mark.parametrize(("code", "kind"), [("AccessDenied", Denied), ("InternalError", StoreError)])
def test_what_cannot_be_removed_is_told_and_remembered(bench: S3Bench, code: str, kind: type[StoreError]):
    intake, _ = laid(bench)

    def guard(key: str) -> None:
        if key.endswith(SMALL):
            raise ClientError({"Error": {"Code": code}}, "any")

    with before(bench, "DeleteObject", guard), pytest.raises(kind) as told:
        intake.abandon("c1")
    assert "such as" in str(told.value) and isinstance(told.value, Denied) is (kind is Denied)
    assert bench.keys("") == [bench.prefix + SMALL] and set(bench.store.incoming()) == {"c1"}
    intake.abandon("c1")
    assert bench.keys("") == [] and notes(bench) == []


def test_a_store_that_only_says_that_it_removes_is_not_believed(bench: S3Bench):
    intake, _ = laid(bench)

    with ignored(bench, "DeleteObject"), pytest.raises(StoreError):
        intake.abandon("c1")
    assert set(bench.store.incoming()) == {"c1"}


def test_what_was_published_and_forgotten_is_never_given_up(bench: S3Bench):
    """The note that a crash left of it must not pass for a copy that was never published."""
    intake, sent = laid(bench)
    with before(bench, "DeleteObject", fail("InternalError")), pytest.raises(StoreError):
        intake.publish(sent.sealed)
    assert set(bench.store.incoming()) == set(bench.store.copies()) == {"c1"}
    intake.forget("c1")
    assert not {*bench.store.incoming(), *bench.store.copies()}
    S3Intake(bench.reopen()[0]).abandon("c1")
    assert {key: content(bench, key) for key in sent.content} == sent.content


def test_nothing_but_a_note_to_abandon(bench: S3Bench):
    intake, _ = begun(bench)
    intake.abandon("c1")
    assert notes(bench) == []


def test_the_proof_goes_first(bench: S3Bench):
    intake, _ = laid(bench)
    order: list[str] = []
    with before(bench, "DeleteObject", order.append):
        intake.abandon("c1")
    own = [key for key in order if "/.lifecycle/" in key]
    assert next(key for key in order if key not in own) == bench.prefix + PROOF
    assert order[-1].endswith("/manifest.json") and len(order) == 5


# -- reading


def test_an_object_that_is_replaced_while_it_is_read(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 10)
    monkeypatch.setattr("lifecycle.stores.s3_stream.AHEAD", 1)
    bench.put("file", b"0123456789" * 5)
    pieces = bench.store.stream("file", 50)
    assert next(pieces) == b"0123456789"
    bench.put("file", b"9876543210" * 5)
    with pytest.raises(Changed):
        list(pieces)


def test_an_object_that_is_replaced_where_no_condition_is_kept(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 10)
    bench.put("file", b"0123456789" * 5)

    def careless(params: dict[str, Any], **_: Any) -> None:
        params.pop("IfMatch", None)

    bench.store.bucket.client.meta.events.register("before-parameter-build.s3.GetObject", careless)
    pieces = bench.store.stream("file", 50)
    assert next(pieces) == b"0123456789"
    bench.put("file", b"9876543210" * 5)
    with pytest.raises(Changed):
        list(pieces)


@pytest.mark.parametrize(
    ("status", "span", "code"),
    [
        (206, "bytes 5-9/30", "range_unknown"),
        (206, "bytes 0-9/*", "range_unknown"),
        (206, "", "range_unknown"),
        (206, "bytes 0-9/31", "changed_since_plan"),
        (200, None, None),
    ],
)
def test_answers_that_are_another_range(
    bench: S3Bench, monkeypatch: pytest.MonkeyPatch, status: int, span: str | None, code: str | None
):
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 30)
    bench.put("file", b"0123456789" * 3)

    def change(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ResponseMetadata"]["HTTPStatusCode"] = status
        parsed.pop("ContentRange", None)
        if span is not None:
            parsed["ContentRange"] = span

    for _ in hooked(bench, "after-call.s3.GetObject", change):
        if code is None:
            assert b"".join(bench.store.stream("file", 30)) == b"0123456789" * 3
        else:
            with pytest.raises(StoreError) as told:
                list(bench.store.stream("file", 30))
            assert told.value.code == code


def test_a_store_that_passes_over_ranges_is_told(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    """Otherwise every piece would be the first one."""
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 10)
    bench.put("file", b"0123456789" * 3)

    def careless(params: dict[str, Any], **_: Any) -> None:
        params.pop("Range", None)

    bench.store.bucket.client.meta.events.register("before-parameter-build.s3.GetObject", careless)
    with pytest.raises(StoreError) as told:
        list(bench.store.stream("file", 30))
    assert told.value.code == "range_unknown"


def test_what_another_copy_put_is_not_read_back(bench: S3Bench):
    intake, _ = laid(bench)
    for key, body in ((SMALL, b"other"), (PROOF, b"")):
        bench.put(key, body)
        with pytest.raises(Changed):
            list(intake.staged("c1", Member(key, len(body), 0)))
    with pytest.raises(NotFound):
        list(intake.staged("c1", Member(f"{KEY}/nothing", 0, 0)))


def test_a_stream_that_is_left_early_asks_for_no_more(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 10)
    bench.put("file", b"0123456789" * 100)
    asked: list[str] = []
    with before(bench, "GetObject", asked.append):
        pieces = bench.store.stream("file", 1000)
        next(pieces)
        pieces.close()  # type: ignore[attr-defined]  # a generator
    assert 1 <= len(asked) <= 3


def test_a_placeholder_is_nothing_to_copy(bench: S3Bench):
    bench.put(f"{KEY}/", b"")
    bench.put(SMALL, b"small")
    assert [m.key for m in bench.store.contents(Target(KEY, Shape.DIR, ())).members] == [SMALL]


def test_what_goes_while_manifests_are_read_is_passed_over(bench: S3Bench):
    begun(bench)
    client, area = bench.client, f"{bench.prefix}.lifecycle/incoming/"
    for name in ("c1/other.json", "c1/deep/manifest.json", "stray", "/manifest.json"):
        client.put_object(Bucket=bench.bucket, Key=area + name, Body=b"x")
    assert set(bench.store.incoming()) == {"c1"}
    with before(bench, "GetObject", lambda key: client.delete_object(Bucket=bench.bucket, Key=key)):
        assert dict(bench.store.incoming()) == {}


def test_manifests_that_cannot_be_read_are_not_missing(bench: S3Bench):
    begun(bench)
    with before(bench, "GetObject", fail("AccessDenied")), pytest.raises(Denied):
        bench.store.incoming()


def test_what_was_put_without_a_checksum_is_put_again(bench: S3Bench):
    intake, sent = begun(bench)
    put(intake, sent, SMALL)
    assert S3Intake(bench.store).begin(sent.manifest) == {}
