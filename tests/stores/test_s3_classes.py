"""Classes changed in place on real servers: all else stays, strangers too, whatever fails on the way."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, LifecycleError, NotFound, Refused, StoreError
from lifecycle.sizing.waits import Speed
from lifecycle.stores.local import LocalStore
from lifecycle.stores.objects import Head
from lifecycle.stores.posix_intake import LocalIntake
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_classes import S3Classes
from lifecycle.stores.s3_intake import S3Intake
from lifecycle.stores.s3_state import state_of
from lifecycle.stores.s3_upload import MIB
from tests.servers import Server
from tests.stores.intake_contract import Parcel, checkpoint, lay, parcel
from tests.stores.s3_bench import OneClient, S3Bench
from tests.stores.test_s3_cases import versioned
from tests.stores.test_s3_faults import Fragile, failing

KEY = "runs/r/step-1"
PROOF, SMALL, EMPTY, BIG = (f"{KEY}/{name}" for name in ("DONE", "small +", "empty", "big"))
CALLS_MAX = 120
WORST = pytest.mark.parametrize(
    ("server", "how"),
    [*(pytest.param("seaweed", how, marks=pytest.mark.seaweed) for how in ("lost", "cut")), ("moto", "lost")],
)
EVERY = pytest.mark.parametrize("kind", ["moto", "ministack", pytest.param("seaweed", marks=pytest.mark.seaweed)])


class Reopened(OneClient, Fragile):
    """Both."""


def unit(big: bytes = b"0123456789" * 90) -> Parcel:
    return parcel(checkpoint(KEY, Shape.DIR, (), PROOF), {PROOF: b"1", SMALL: b"small", EMPTY: b"", BIG: big})


def published(bench: S3Bench, sent: Parcel) -> S3Intake:
    intake = S3Intake(bench.store)
    lay(intake, sent)
    intake.publish(sent.sealed)
    return intake


def small_parts(intake: S3Intake, single: int = 100, part: int = 5 * MIB) -> S3Intake:
    """The same, with objects over 100 bytes copied as if they were huge, one request after the other."""
    intake.classes = partial(S3Classes, intake.store, single_max_bytes=single, part_bytes=part, at_once=1)
    return intake


def shown(bench: S3Bench) -> dict[str, tuple[str, bytes, dict[str, str], str]]:
    """Class, content, metadata and type of each object, as a plain client sees them."""
    found = {}
    for key in bench.keys(KEY):
        head = bench.client.head_object(Bucket=bench.bucket, Key=key)
        body = bench.client.get_object(Bucket=bench.bucket, Key=key)["Body"].read()
        told = (head.get("StorageClass") or "STANDARD", body, head["Metadata"], head["ContentType"])
        found[key.removeprefix(bench.prefix)] = told
    return found


def uploads(bench: S3Bench) -> list[str]:
    found = bench.client.list_multipart_uploads(Bucket=bench.bucket, Prefix=bench.prefix).get("Uploads", ())
    return [item["UploadId"] for item in found]


def noted(bench: S3Bench) -> list[str]:
    area = f"{bench.prefix}.lifecycle/classes/"
    return [o["Key"] for o in bench.client.list_objects_v2(Bucket=bench.bucket, Prefix=area).get("Contents", ())]


def tags(bench: S3Bench, key: str) -> Any:
    return bench.client.get_object_tagging(Bucket=bench.bucket, Key=bench.prefix + key)["TagSet"]


@EVERY
def test_all_but_the_class_stays(kind: str, request: pytest.FixtureRequest):
    bench, sent = S3Bench(request.getfixturevalue(kind)), unit(os.urandom(5 * MIB + 1))
    intake = small_parts(published(bench, sent), single=5 * MIB)
    for key in (SMALL, BIG):
        bench.tag(key, {"owner": "ann + co", "x": "1"})
    before = shown(bench)
    fingerprint = bench.store.sight(sent.target).totals.fingerprint
    asked: list[str] = []
    bench.store.bucket.client.meta.events.register("before-call.s3", lambda model, **_: asked.append(model.name))
    assert intake.change_class(sent.manifest, "GLACIER_IR") == ""
    assert asked.count("UploadPartCopy") == 2 and "CopyObject" in asked
    after = shown(bench)
    assert {key: told[0] for key, told in after.items()} == {
        PROOF: "STANDARD", SMALL: "GLACIER_IR", EMPTY: "GLACIER_IR", BIG: "GLACIER_IR",
    }  # fmt: skip
    assert {key: told[1:3] for key, told in after.items()} == {key: told[1:3] for key, told in before.items()}
    assert after[SMALL] == ("GLACIER_IR", *before[SMALL][1:])
    assert after[BIG][3] == before[BIG][3], "its type"
    for key in (SMALL, BIG):
        assert {tag["Key"]: tag["Value"] for tag in tags(bench, key)} == {"owner": "ann + co", "x": "1"}
    assert bench.store.sight(sent.target).totals.fingerprint != fingerprint, "a new upload has a new time or ETag"
    assert (uploads(bench), noted(bench)) == ([], [])
    asked.clear()
    assert intake.change_class(sent.manifest, "GLACIER_IR") == ""
    assert not {"CopyObject", "CreateMultipartUpload"} & set(asked), "what is there already is left alone"
    (folder,) = (f for f in bench.store.walk(KEY) if f.names)
    assert folder.classes == {key.removeprefix(f"{KEY}/"): "GLACIER_IR" for key in (SMALL, EMPTY, BIG)}


def test_a_single_object_is_its_own_proof_and_is_changed(moto: Server):
    bench, key = S3Bench(moto), "r/one.ckpt"
    sent = parcel(checkpoint(key, Shape.FILE, (key,), key), {key: b"x" * 9})
    published(bench, sent).change_class(sent.manifest, "STANDARD_IA")
    assert bench.store.states([key])[key].storage_class == "STANDARD_IA"


@EVERY
def test_what_is_not_the_copys_own_is_left_alone(kind: str, request: pytest.FixtureRequest):
    bench, sent = S3Bench(request.getfixturevalue(kind)), unit()
    intake = small_parts(published(bench, sent))
    where = {"Bucket": bench.bucket, "Key": bench.prefix + BIG}
    stranger = bench.client.create_multipart_upload(**where)["UploadId"]
    intake.change_class(sent.manifest, "STANDARD_IA")
    assert uploads(bench) == [stranger]
    bench.put(BIG, b"other bytes" * 90)
    with pytest.raises(Changed):
        intake.change_class(sent.manifest, "GLACIER_IR")
    assert bench.store.states([SMALL])[SMALL].storage_class == "STANDARD_IA", "nothing was begun"
    bench.remove(BIG)
    with pytest.raises(NotFound):
        intake.change_class(sent.manifest, "GLACIER_IR")


@EVERY
@pytest.mark.parametrize("key", [SMALL, BIG])
def test_what_is_replaced_in_the_very_moment_stays_and_gets_no_mark(
    kind: str, key: str, request: pytest.FixtureRequest
):
    bench, sent = S3Bench(request.getfixturevalue(kind)), unit()
    intake = small_parts(published(bench, sent))
    theirs = b"theirs" * (150 if key == BIG else 1)

    def replace(params: Any, **_: Any) -> None:
        if key in str(params):
            bench.put(key, theirs)

    operation = "UploadPartCopy" if key == BIG else "CopyObject"
    bench.store.bucket.client.meta.events.register(f"before-call.s3.{operation}", replace)
    with pytest.raises(Changed):
        intake.change_class(sent.manifest, "GLACIER_IR")
    _, body, metadata, _ = shown(bench)[key]
    assert (body, metadata) == (theirs, {})
    assert uploads(bench) == []


@pytest.fixture
def scene(server: str, request: pytest.FixtureRequest) -> tuple[Reopened, Parcel, str]:
    content = {PROOF: b"1", SMALL: b"small", BIG: b"0123456789" * 90}
    bench, sent = Reopened(request.getfixturevalue(server)), parcel(checkpoint(KEY, Shape.DIR, (), PROOF), content)
    published(bench, sent)
    where = {"Bucket": bench.bucket, "Key": bench.prefix + BIG}
    return bench, sent, bench.client.create_multipart_upload(**where)["UploadId"]


def sweep(bench: S3Bench, how: str, act: Callable[[S3Intake], object]) -> Iterator[int]:
    """Do it with the k-th request failing, for all k."""
    for k in range(1, CALLS_MAX):
        store = bench.reopen()[0]
        with failing(store, how, k) as fired, suppress(LifecycleError):
            act(small_parts(S3Intake(store)))
        yield k
        if not fired():
            assert k > 10
            return
    pytest.fail("the fault never stopped firing")


@WORST
def test_a_change_that_fails_anywhere_is_done_again(scene: tuple[Reopened, Parcel, str], how: str):
    bench, sent, stranger = scene
    kept = {key: told[1:3] for key, told in shown(bench).items()}
    turns = ["STANDARD_IA", "GLACIER_IR"]
    for _ in sweep(bench, how, lambda intake: intake.change_class(sent.manifest, turns[0])):
        wanted = turns[0]
        turns.reverse()
        now = shown(bench)
        assert {key: told[1:3] for key, told in now.items()} == kept, "an object is not whole, or not marked"
        assert len(uploads(bench)) <= 2
        small_parts(S3Intake(bench.reopen()[0])).change_class(sent.manifest, wanted)
        now = shown(bench)
        assert {key: told[1:3] for key, told in now.items()} == kept
        assert {told[0] for key, told in now.items() if key != PROOF} == {wanted}
        assert (uploads(bench), noted(bench)) == ([stranger], []), "something is left open, or a stranger's was ended"


def test_a_change_that_was_cut_short_is_cleared_away_without_going_on(moto: Server):
    bench, sent = Reopened(moto), unit()
    published(bench, sent)
    for how in ("lost", "reset"):
        for operation in ("CreateMultipartUpload", "UploadPartCopy", "CompleteMultipartUpload"):
            store = bench.reopen()[0]
            ends = failing(store, "reset", 1, "AbortMultipartUpload")
            with failing(store, how, 1, operation), ends, suppress(StoreError):
                small_parts(S3Intake(store)).change_class(sent.manifest, "STANDARD_IA")
            S3Intake(bench.reopen()[0]).end_change(sent.manifest)
            assert (uploads(bench), noted(bench)) == ([], [])
            S3Intake(bench.reopen()[0]).change_class(sent.manifest, "STANDARD")


def test_a_forged_note_of_an_upload_reaches_nothing(moto: Server):
    bench, sent = S3Bench(moto), unit()
    intake = published(bench, sent)
    where = {"Bucket": bench.bucket, "Key": bench.prefix + "runs/other"}
    stranger = bench.client.create_multipart_upload(**where)["UploadId"]
    note = f'["{bench.prefix}runs/other","{stranger}",[]]'
    for text in (note, "nonsense", f'["{bench.prefix}{BIG}",3,[]]'):
        bench.store.bucket.put(f"{bench.store.state}classes/c1/x", text.encode())
        with pytest.raises(StoreError) as caught:
            intake.end_change(sent.manifest)
        assert caught.value.code == "broken_manifest"
    assert uploads(bench) == [stranger]


@pytest.mark.parametrize("kind", ["moto", pytest.param("seaweed", marks=pytest.mark.seaweed)])
def test_what_is_locked_keeps_its_class_and_versions_are_told(kind: str, request: pytest.FixtureRequest):
    bench, sent = versioned(request.getfixturevalue(kind), lock=True), unit()
    intake = published(bench, sent)
    assert intake.change_class(sent.manifest, "STANDARD_IA") == "version_remnant"
    versions = bench.client.list_object_versions(Bucket=bench.bucket, Prefix=bench.prefix + SMALL)["Versions"]
    assert sorted(v["StorageClass"] for v in versions) == ["STANDARD", "STANDARD_IA"]
    hold: Any = {"Status": "ON"}
    bench.client.put_object_legal_hold(Bucket=bench.bucket, Key=bench.prefix + SMALL, LegalHold=hold)
    with pytest.raises(Denied) as caught:
        intake.change_class(sent.manifest, "GLACIER_IR")
    assert caught.value.code == "locked"
    assert {told[0] for key, told in shown(bench).items() if key != PROOF} == {"STANDARD_IA"}


def test_a_store_that_passes_over_classes_is_told(moto: Server):
    bench, sent = S3Bench(moto), unit()
    intake = published(bench, sent)

    def forget(params: Any, **_: Any) -> None:
        params["headers"].pop("x-amz-storage-class", None)
        params["headers"]["x-amz-metadata-directive"] = "REPLACE"
        params["headers"].update({f"x-amz-meta-{n}": v for n, v in head["Metadata"].items()})

    head = bench.client.head_object(Bucket=bench.bucket, Key=bench.prefix + SMALL)
    bench.store.bucket.client.meta.events.register("before-call.s3.CopyObject", forget)
    with pytest.raises(StoreError) as caught:
        intake.classes("c1").change({bench.prefix + SMALL: intake._members(sent.manifest)[bench.prefix + SMALL]}, "X")
    assert caught.value.code == "class_ignored"


# -- archives


@pytest.mark.parametrize("kind", ["moto", "ministack"])
def test_what_is_archived_is_neither_read_nor_copied_and_comes_back_when_asked(
    kind: str, request: pytest.FixtureRequest
):
    bench, sent = S3Bench(request.getfixturevalue(kind)), unit()
    intake = published(bench, sent)
    intake.change_class(sent.manifest, "GLACIER")
    keys = [PROOF, SMALL, EMPTY, BIG]
    states = bench.store.states(keys)
    assert [states[key].readable for key in keys] == [True, False, False, False]
    assert {state.copy_id for state in states.values()} == {"c1"}
    with pytest.raises(StoreError) as caught:
        b"".join(bench.store.stream(BIG, 900))
    assert caught.value.code == "storage_archived"
    with pytest.raises(StoreError) as caught:
        intake.change_class(sent.manifest, "STANDARD")
    assert caught.value.code == "storage_archived", "MiniStack would have copied it all the same"
    assert intake.ask_back(sent.manifest, Speed.BULK, 2) == 3
    if kind == "ministack":  # moto has it there at once
        state = bench.store.states([BIG])[BIG]
        assert state.restoring or state.until_ns, "unless this machine was slower than the server"
        assert intake.ask_back(sent.manifest, Speed.BULK, 2) == 0, "nothing is asked for, and paid, twice"
    end = time.monotonic() + 30
    while not all(state.readable for state in bench.store.states(keys).values()):
        assert time.monotonic() < end
        time.sleep(0.2)
    state = bench.store.states([BIG])[BIG]
    assert state.until_ns > time.time_ns() and state.storage_class == "GLACIER" and not state.restoring
    assert b"".join(bench.store.stream(BIG, 900)) == sent.content[BIG]
    assert intake.ask_back(sent.manifest, Speed.BULK, 2) == 0
    intake.change_class(sent.manifest, "STANDARD_IA")
    assert bench.store.states([BIG])[BIG] == state._replace(storage_class="STANDARD_IA", until_ns=0)


def test_a_request_that_another_was_quicker_with_is_none(ministack: Server):
    bench, sent = S3Bench(ministack), unit()
    intake = published(bench, sent)
    intake.change_class(sent.manifest, "GLACIER")

    def first(model: Any, **_: Any) -> None:
        bench.store.bucket.client.meta.events.unregister("before-call.s3.RestoreObject", first)
        for key in (SMALL, EMPTY, BIG):
            bench.client.restore_object(Bucket=bench.bucket, Key=bench.prefix + key, RestoreRequest={"Days": 1})

    bench.store.bucket.client.meta.events.register("before-call.s3.RestoreObject", first)
    assert intake.ask_back(sent.manifest, Speed.STANDARD, 2) == 3


@pytest.mark.seaweed
def test_a_store_without_restores_says_so(seaweed: Server):
    bench, sent = S3Bench(seaweed), unit()
    intake = published(bench, sent)
    intake.change_class(sent.manifest, "GLACIER")
    with pytest.raises(StoreError) as caught:
        intake.ask_back(sent.manifest, Speed.STANDARD, 2)
    assert caught.value.code == "unsupported"


@pytest.mark.parametrize(
    ("meta", "restore", "asleep", "told"),
    [
        ({}, "", False, ("STANDARD", True, False, 0)),
        ({"StorageClass": "GLACIER_IR"}, "", False, ("GLACIER_IR", True, False, 0)),
        ({"StorageClass": "GLACIER"}, "", False, ("GLACIER", False, False, 0)),
        ({"StorageClass": "GLACIER"}, 'ongoing-request="true"', False, ("GLACIER", False, True, 0)),
        (
            {"StorageClass": "DEEP_ARCHIVE"},
            'ongoing-request="false", expiry-date="Wed, 02 Dec 2026 00:00:00 GMT"',
            False,
            ("DEEP_ARCHIVE", True, False, 1_796_169_600 * 10**9),
        ),
        (
            {"StorageClass": "GLACIER"},
            'ongoing-request="false", expiry-date="soon"',
            False,
            ("GLACIER", False, False, 0),
        ),
        ({"StorageClass": "GLACIER"}, "nonsense", False, ("GLACIER", False, False, 0)),
        ({"StorageClass": "INTELLIGENT_TIERING"}, "", True, ("INTELLIGENT_TIERING", False, False, 0)),
        ({"StorageClass": "STANDARD_IA"}, 'ongoing-request="true"', False, ("STANDARD_IA", True, False, 0)),
    ],
)
def test_what_a_head_tells_of_a_class(meta: dict[str, Any], restore: str, asleep: bool, told: tuple[Any, ...]):
    state = state_of(Head("k", 3, "e", 0, meta, restore=restore, asleep=asleep))
    assert (state.storage_class, state.readable, state.restoring, state.until_ns) == told


def test_a_file_system_has_no_classes(tmp_path: Any):
    (tmp_path / "here").mkdir()
    store, sent = LocalStore("l", tmp_path / "here", url="l"), unit()
    intake = LocalIntake(store)
    with pytest.raises(Refused) as caught:
        intake.change_class(sent.manifest, "GLACIER")
    assert caught.value.code == "no_classes"
    assert intake.ask_back(sent.manifest, Speed.BULK, 1) == 0 and store.states([BIG]) == {}
    intake.end_change(sent.manifest)


def test_an_archived_proof_cannot_be_put_aside(moto: Server):
    from tests.stores.contract import act_on, retire

    bench, key = S3Bench(moto), "r/one.ckpt"
    sent = parcel(checkpoint(key, Shape.FILE, (key,), key), {key: b"x" * 9})
    published(bench, sent).change_class(sent.manifest, "GLACIER")
    with pytest.raises(Refused) as caught:
        retire(bench, act_on(bench.store, key, Shape.FILE, (key,)))
    assert caught.value.code == "no_undo"


def test_a_copy_is_put_as_the_class_that_it_names(moto: Server):
    from dataclasses import replace

    bench, sent = S3Bench(moto), unit()
    bench.store.storage_class = "ONEZONE_IA"
    manifest = replace(sent.manifest, storage_class="GLACIER_IR")
    intake = S3Intake(bench.store)
    intake.begin(manifest)
    again = S3Intake(bench.reopen()[0])  # another process goes on with what was begun
    for one, key in ((intake, SMALL), (again, BIG)):
        (member,) = (m for m in manifest.members if m.key == key)
        one.put("c1", member, [sent.content[key]])
    assert {s.storage_class for s in bench.store.states([SMALL, BIG]).values()} == {"GLACIER_IR"}
    assert isinstance(bench.store, S3Store)


def test_out_of_a_tier_inside_a_class_it_comes_back_for_good(moto: Server):
    bench, sent = S3Bench(moto), unit()
    intake, asked = published(bench, sent), list[Any]()
    events = bench.store.bucket.client.meta.events

    def asleep(parsed: dict[str, Any], **_: Any) -> None:
        parsed.update(StorageClass="INTELLIGENT_TIERING", ArchiveStatus="ARCHIVE_ACCESS")

    def note(params: dict[str, Any], **_: Any) -> None:
        asked.append(params["RestoreRequest"])
        raise ConnectionResetError("enough seen")

    events.register("after-call.s3.HeadObject", asleep)
    events.register("before-parameter-build.s3.RestoreObject", note)
    with pytest.raises(StoreError):
        intake.ask_back(sent.manifest, Speed.STANDARD, 5)
    assert asked[0] == {"GlacierJobParameters": {"Tier": "Standard"}}, "S3 refuses days there"


def test_a_store_that_fell_silent_is_not_believed(moto: Server):
    bench, sent = S3Bench(moto), unit()
    intake, dead = published(bench, sent), list[str]()

    def fall(model: Any, **_: Any) -> None:
        if model.name == "CopyObject" or dead:
            dead.append(model.name)
            raise ConnectionResetError("silent")

    bench.store.bucket.client.meta.events.register("before-call.s3", fall)
    with pytest.raises(StoreError) as caught:
        intake.change_class(sent.manifest, "STANDARD_IA")
    assert caught.value.code == "store_failed" and "HeadObject" in dead


def test_a_note_that_another_process_clears_away_is_no_failure(moto: Server):
    bench, sent = S3Bench(moto), unit()
    intake = published(bench, sent)
    note = f"{bench.store.state}classes/c1/x"
    bench.store.bucket.put(note, b'["k","",[]]')

    def first(**_: Any) -> None:
        bench.client.delete_object(Bucket=bench.bucket, Key=note)

    bench.store.bucket.client.meta.events.register("before-call.s3.GetObject", first)
    intake.end_change(sent.manifest)
    assert noted(bench) == []
