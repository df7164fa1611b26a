"""Every request of a copy fails once, in each way that a network can: a second try converges, and strangers stay."""

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import pytest

from lifecycle.core.copies import CopyManifest, in_order, payload
from lifecycle.core.model import Shape
from lifecycle.errors import LeaseHeld, LifecycleError, StoreError
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_intake import S3Intake
from lifecycle.stores.s3_upload import MIB, Sent, Upload, parts_of
from tests.faults.sweeps import EVERYTHING
from tests.servers import Server
from tests.stores.intake_contract import Parcel, checkpoint, in_pieces, lay, parcel
from tests.stores.s3_bench import S3Bench
from tests.stores.test_s3_faults import FAULTS, Reopened, failing, struck

pytestmark = pytest.mark.timeout(1200 if EVERYTHING else 400)  # sweeps each request of which meets a real server
KEY = "runs/r/step-1"
WORST = pytest.mark.parametrize(
    ("server", "how"), [pytest.param("seaweed", how, marks=pytest.mark.seaweed) for how in ("lost", "cut")]
)
BESIDE = {f"{KEY}0/DONE": b"a neighbour's", "runs/r/loose": b"somebody's"}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is over 100 bytes is uploaded as if it were large, and read in pieces of 1000."""
    monkeypatch.setattr("lifecycle.stores.s3_intake.SINGLE_MAX_BYTES", 100)
    monkeypatch.setattr("lifecycle.stores.objects.PIECE_BYTES", 1000)


def unit() -> Parcel:
    content = {f"{KEY}/DONE": b"", f"{KEY}/big": os.urandom(900), f"{KEY}/deep/\x01odd": b"odd"}
    return parcel(checkpoint(KEY, Shape.DIR, (), f"{KEY}/DONE"), content)


@dataclass
class Scene:
    """A bucket with neighbours of the copy's key, and a stranger's open upload to one of the copy's own keys."""

    bench: S3Bench
    sent: Parcel
    upload: str = ""

    def __post_init__(self) -> None:
        for key, content in BESIDE.items():
            self.bench.put(key, content)
        self.upload = self.open_upload(f"{KEY}/big")

    def open_upload(self, key: str) -> str:
        client, where = self.bench.client, {"Bucket": self.bench.bucket, "Key": self.bench.prefix + key}
        made: str = client.create_multipart_upload(**where)["UploadId"]
        client.upload_part(**where, UploadId=made, PartNumber=1, Body=b"a stranger's")
        return made

    def uploads(self) -> dict[str, list[int]]:
        """Open uploads with the sizes of their parts."""
        client, bucket = self.bench.client, self.bench.bucket
        found = client.list_multipart_uploads(Bucket=bucket, Prefix=self.bench.prefix).get("Uploads", ())
        told = {}
        for item in found:
            parts = client.list_parts(Bucket=bucket, Key=item["Key"], UploadId=item["UploadId"])
            told[item["UploadId"]] = [part["Size"] for part in parts.get("Parts", ())]
        return told

    def standing(self) -> dict[str, bytes]:
        client, bucket, cut = self.bench.client, self.bench.bucket, len(self.bench.prefix)
        found = self.bench.keys("")
        return {key[cut:]: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in found}

    def check_strangers(self) -> None:
        assert BESIDE.items() <= self.standing().items(), "a neighbour was touched"
        left = self.uploads()
        assert left.pop(self.upload) == [len(b"a stranger's")], "a stranger's upload was touched"
        # Nobody can tell whose an upload is whose beginning was not answered: it holds nothing.
        assert all(parts == [] for parts in left.values()), "bytes of ours are left in an open upload"

    def check_gone(self) -> None:
        assert self.standing() == BESIDE
        self.check_strangers()
        store = self.bench.reopen()[0]
        assert not store.copies() and not store.incoming()
        listed = self.bench.client.list_objects_v2(Bucket=self.bench.bucket, Prefix=self.bench.prefix + ".lifecycle/")
        assert [o["Key"] for o in listed.get("Contents", ()) if "/probe/" not in o["Key"]] == []

    def check_published(self) -> None:
        store = self.bench.reopen()[0]
        assert self.standing() == BESIDE | self.sent.content
        assert not store.incoming()
        (held,) = store.copies().values()
        assert CopyManifest.decode(held, self.sent.manifest.copy_id) == self.sent.sealed

    def clear(self) -> None:
        self.bench.remove(KEY)
        self.intake().forget(self.sent.manifest.copy_id)

    def intake(self) -> S3Intake:
        return S3Intake(self.bench.reopen()[0])


@pytest.fixture
def scene(server: str, request: pytest.FixtureRequest, small_parts: None) -> Scene:
    return Scene(Reopened(request.getfixturevalue(server)), unit())


def sweep(scene: Scene, how: str, act: Callable[[S3Intake], None]) -> Iterator[int]:
    """Do it with the k-th request failing, for all k that are struck."""
    for k in struck(scene.bench.server.kind, how):
        store = scene.bench.reopen()[0]
        with failing(store, how, k) as fired, suppress(LifecycleError):
            act(S3Intake(store))
        yield k
        if not fired():
            assert k > 5
            return
    pytest.fail("the fault never stopped firing")


def take_in(scene: Scene) -> Callable[[S3Intake], None]:
    def act(intake: S3Intake) -> None:
        lay(intake, scene.sent)
        intake.publish(scene.sent.sealed)

    return act


def check_safe(scene: Scene) -> bool:
    """Nothing looks better than it is; whether it is published."""
    published, standing = bool(scene.intake().store.copies()), scene.standing()
    assert f"{KEY}/DONE" not in standing or standing == BESIDE | scene.sent.content, "half of it looks complete"
    assert not published or standing == BESIDE | scene.sent.content, "said to be published, and is not"
    return published


@FAULTS
def test_a_copy_that_fails_anywhere_is_done_again(scene: Scene, how: str):
    for _ in sweep(scene, how, take_in(scene)):
        check_safe(scene)
        take_in(scene)(scene.intake())
        scene.check_published()
        scene.check_strangers()
        scene.clear()


@WORST
def test_a_copy_that_fails_anywhere_is_given_up(scene: Scene, how: str):
    for _ in sweep(scene, how, take_in(scene)):
        published = check_safe(scene)
        scene.intake().abandon("c1")
        if published:
            scene.check_published()
            scene.clear()
        scene.check_gone()


@WORST
def test_giving_up_that_fails_anywhere(scene: Scene, how: str):
    def half(intake: S3Intake) -> None:
        lay(intake, scene.sent)
        scene.bench.remove(f"{KEY}/big")
        with dying(intake.store), suppress(StoreError):
            put(intake, scene.sent, f"{KEY}/big")

    half(scene.intake())
    for _ in sweep(scene, how, lambda intake: intake.abandon("c1")):
        if scene.intake().store.incoming():
            scene.intake().abandon("c1")
        scene.check_gone()
        half(scene.intake())


@FAULTS
def test_a_stream_that_fails_anywhere(scene: Scene, how: str):
    content = scene.sent.content[f"{KEY}/big"] * 4
    scene.bench.put("big", content)
    for k in range(1, 10):
        store = scene.bench.reopen()[0]
        with failing(store, how, k) as fired:
            try:
                assert b"".join(store.stream("big", len(content))) == content
            except StoreError as error:
                assert error.code == "store_failed"
        if not fired():
            assert k == 5
            return
    pytest.fail("the fault never stopped firing")


def put(intake: S3Intake, sent: Parcel, key: str) -> None:
    (member,) = (m for m in payload(sent.manifest.members) if m.key == key)
    intake.put(sent.manifest.copy_id, member, in_pieces(sent.content[key]))


@contextmanager
def dying(store: S3Store, after: str = "UploadPart") -> Iterator[None]:
    """The process ends with its first answer of this kind: nothing that it would ask for later arrives."""
    dead = False

    def end(**_: Any) -> None:
        nonlocal dead
        dead = True

    def refuse(**_: Any) -> None:
        if dead:
            raise ConnectionResetError("dead")

    store.bucket.wire = None  # what is dead sends nothing by any
    events = store.bucket.client.meta.events
    events.register(f"after-call.s3.{after}", end)
    events.register("before-call.s3", refuse)
    try:
        yield
    finally:
        events.unregister(f"after-call.s3.{after}", end)
        events.unregister("before-call.s3", refuse)


@pytest.fixture
def standing_scene(s3_server: Server, small_parts: None) -> Scene:
    return Scene(S3Bench(s3_server), unit())


KILLED = """
import os, sys, json
import lifecycle.stores.s3_intake as s3_intake, lifecycle.stores.s3_upload as s3_upload
from lifecycle.core.copies import CopyManifest, payload
from lifecycle.stores.s3 import S3Store

s3_intake.SINGLE_MAX_BYTES, s3_upload.PART_MIN_BYTES, s3_upload.AT_ONCE_MAX = 100, 5 << 20, 1
url, endpoint, manifest = sys.argv[1:]
store = S3Store("s", url, endpoint_url=endpoint, region="us-east-1", addressing_style="path")
manifest = CopyManifest.decode(manifest.encode(), "c1")
intake = s3_intake.S3Intake(store)
intake.begin(manifest)
def pieces():
    yield bytes(5 << 20)
    yield bytes(1000)
    os.kill(os.getpid(), 9)
(member,) = (m._replace(size_bytes=6 << 20) for m in payload(manifest.members) if m.key.endswith("/big"))
intake.put("c1", member, pieces())
"""


@pytest.mark.parametrize("finish", ["redo", "abandon"])
def test_an_upload_that_was_killed_half_way(standing_scene: Scene, finish: str):
    scene, bench = standing_scene, standing_scene.bench
    url, manifest = f"s3://{bench.bucket}/{bench.prefix}", scene.sent.manifest.encode().decode()
    command = [sys.executable, "-c", KILLED, url, bench.server.endpoint_url, manifest]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == -9, done.stderr.decode()
    assert sorted(map(sum, scene.uploads().values())) == [len(b"a stranger's"), 5 * MIB], "nothing was left to abort"
    if finish == "redo":
        take_in(scene)(scene.intake())
        scene.check_published()
        scene.check_strangers()
    else:
        scene.intake().abandon("c1")
        scene.check_gone()


BIG = bytes(range(256)) * (11 * MIB // 256)


@dataclass
class Uploading:
    """A copy of one object of three parts whose upload was cut short after the first one."""

    scene: Scene
    sent: Parcel

    def requests(self, intake: S3Intake, content: bytes = BIG) -> list[str]:
        """Go on with it; what was sent for it, part by part."""
        asked: list[str] = []
        events = intake.store.bucket.client.meta.events
        told = {"UploadPart": lambda p: str(p["PartNumber"]), "CreateMultipartUpload": lambda _: "new"}
        for name, word in told.items():
            events.register(f"before-parameter-build.s3.{name}", lambda params, w=word, **_: asked.append(w(params)))
        assert intake.begin(self.sent.manifest) == {}
        (member,) = self.sent.manifest.members
        intake.put("c1", member, in_pieces(content), sha256(content).hexdigest)
        assert b"".join(intake.staged("c1", member)) == content
        return asked

    def ours(self) -> set[str]:
        return self.scene.uploads().keys() - {self.scene.upload}


@pytest.fixture
def uploading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Uploading:
    server: Server = request.getfixturevalue(getattr(request, "param", "moto"))
    monkeypatch.setattr("lifecycle.stores.s3_intake.SINGLE_MAX_BYTES", MIB)
    monkeypatch.setattr("lifecycle.stores.s3_upload.PART_MIN_BYTES", 5 * MIB)
    monkeypatch.setattr("lifecycle.stores.s3_upload.AT_ONCE_MAX", 1)
    sent = parcel(checkpoint("r/big", Shape.FILE, ("r/big",)), {"r/big": BIG})
    made = Uploading(Scene(S3Bench(server), sent), sent)
    intake = made.scene.intake()
    intake.begin(sent.manifest)
    with dying(intake.store), suppress(StoreError):
        intake.put("c1", sent.manifest.members[0], in_pieces(BIG, 40), sha256(BIG).hexdigest)
    (left,) = made.ours()
    assert made.scene.uploads()[left] == [5 * MIB], "one part is there"
    return made


@pytest.mark.parametrize("uploading", ["moto", pytest.param("seaweed", marks=pytest.mark.seaweed)], indirect=True)
def test_an_upload_goes_on_with_the_parts_that_are_missing(uploading: Uploading):
    scene, intake = uploading.scene, uploading.scene.intake()
    assert uploading.requests(intake) == ["2", "3"]
    assert scene.intake().begin(uploading.sent.manifest) == {"r/big": sha256(BIG).hexdigest()}, "now it is in"
    intake.publish(uploading.sent.sealed)
    assert not uploading.ours() and scene.standing()["r/big"] == BIG
    listed = scene.bench.client.list_objects_v2(
        Bucket=scene.bench.bucket, Prefix=scene.bench.prefix + ".lifecycle/incoming/"
    )
    assert "Contents" not in listed, "what was noted of it is gone"


def test_a_part_that_is_not_what_is_read_now_is_sent_again(uploading: Uploading):
    other = bytes(reversed(BIG[: 5 * MIB])) + BIG[5 * MIB :]
    assert uploading.requests(uploading.scene.intake(), other) == ["1", "2", "3"]


def test_an_upload_that_somebody_aborted_begins_anew(uploading: Uploading):
    scene, (left,) = uploading.scene, uploading.ours()
    where = {"Bucket": scene.bench.bucket, "Key": scene.bench.prefix + "r/big"}
    scene.bench.client.abort_multipart_upload(**where, UploadId=left)
    intake = scene.intake()
    assert uploading.requests(intake) == ["new", "1", "2", "3"]
    intake.publish(uploading.sent.sealed)
    assert not uploading.ours()


def test_an_upload_of_another_source_is_not_gone_on_with(uploading: Uploading):
    scene, (left,) = uploading.scene, uploading.ours()
    unit = replace(uploading.sent.manifest.checkpoint, fingerprint="as it was later")
    uploading.sent = Parcel(replace(uploading.sent.manifest, checkpoint=unit), uploading.sent.content)
    intake = scene.intake()
    assert uploading.requests(intake) == ["new", "1", "2", "3"]
    intake.publish(uploading.sent.sealed)
    assert left not in scene.uploads(), "and not left behind"


def test_whoever_lost_the_lease_aborts_no_upload(uploading: Uploading):
    """It may be another process's by now."""

    def taken() -> Iterator[bytes]:
        yield BIG[: 6 * MIB]
        raise LeaseHeld("somebody else holds it")

    before, intake = uploading.ours(), uploading.scene.intake()
    intake.begin(uploading.sent.manifest)
    with pytest.raises(LeaseHeld):
        intake.put("c1", uploading.sent.manifest.members[0], taken())
    assert uploading.ours() == before


def test_a_proof_does_not_stand_alone(standing_scene: Scene):
    """Somebody took another object away while the copy waited: it must not look whole meanwhile."""
    scene, intake = standing_scene, standing_scene.intake()
    lay(intake, scene.sent)
    scene.bench.remove(f"{KEY}/deep/\x01odd")
    had = scene.intake().begin(scene.sent.manifest)
    assert set(had) == {f"{KEY}/big"} and f"{KEY}/DONE" not in scene.standing()
    assert set(lay(scene.intake(), scene.sent)) == {f"{KEY}/deep/\x01odd", f"{KEY}/DONE"}


def test_more_parts_than_one_answer_names(standing_scene: Scene):
    """And a server that says the same page again ends it."""
    bucket = standing_scene.intake().store.bucket
    pages = {
        0: {"Parts": [{"PartNumber": 1, "Size": 5, "ETag": '"a"'}], "IsTruncated": True, "NextPartNumberMarker": 1},
        1: {"Parts": [{"PartNumber": 2, "Size": 6, "ETag": '"b"', "ChecksumCRC32": "x"}], "IsTruncated": True,
            "NextPartNumberMarker": 1},
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket.client, "list_parts", lambda **asked: pages[asked.get("PartNumberMarker", 0)])
        found = parts_of(bucket, Upload("k", "u"))
    assert found == {1: Sent(5, "a", {}), 2: Sent(6, "b", {"ChecksumCRC32": "x"})}


@pytest.mark.seaweed
@pytest.mark.slow
@pytest.mark.no_cover
def test_many_small_members(seaweed: Server):
    """More than one page holds, and more than one batch deletes."""
    bench = S3Bench(seaweed)
    content = {f"{KEY}/w/{i:04}.bin": b"%d" % i for i in range(1100)} | {f"{KEY}/DONE": b""}
    sent = parcel(checkpoint(KEY, Shape.DIR, (), f"{KEY}/DONE"), content)
    intake = S3Intake(bench.reopen()[0])
    intake.begin(sent.manifest)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda m: intake.put("c1", m, [content[m.key]]), in_order(sent.manifest)))
    intake.publish(sent.sealed)
    told = bench.store.contents(sent.target)
    assert [(m.key, m.size_bytes) for m in told.members] == [(m.key, m.size_bytes) for m in sent.manifest.members]
    intake.forget("c1")
    again = S3Intake(bench.reopen()[0])
    again.begin(sent.manifest)  # what stands there bears its mark
    again.abandon("c1")
    assert bench.keys("") == []


@pytest.mark.seaweed
@pytest.mark.slow
@pytest.mark.no_cover
def test_a_large_upload_needs_little_memory(seaweed: Server):
    """With the parts that are really sent: eight of them at once."""
    bench, size_bytes, piece = S3Bench(seaweed), 300 * MIB, os.urandom(MIB)
    sent = parcel(checkpoint("r/big", Shape.FILE, ("r/big",)), {"r/big": b""})
    member = in_order(sent.manifest)[0]._replace(size_bytes=size_bytes)
    manifest = CopyManifest(**{**vars_of(sent.manifest), "members": (member,)})
    intake = S3Intake(bench.reopen()[0])
    intake.begin(manifest)
    tracemalloc.start()
    try:
        intake.put("c1", member, (piece for _ in range(300)))
        sending = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert sum(map(len, intake.staged("c1", member))) == size_bytes
        reading = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sending < 150 * MIB and reading < 80 * MIB, (sending // MIB, reading // MIB)
    intake.abandon("c1")


def vars_of(manifest: CopyManifest) -> dict[str, Any]:
    return {name: getattr(manifest, name) for name in CopyManifest.__dataclass_fields__}


def test_what_is_noted_of_an_upload_is_json(standing_scene: Scene):
    """So that another version can read it."""
    scene, intake = standing_scene, standing_scene.intake()
    intake.begin(scene.sent.manifest)
    with dying(intake.store), suppress(StoreError):
        put(intake, scene.sent, f"{KEY}/big")
    store = scene.bench.reopen()[0]
    (note,) = store.bucket.listed(f"{store.state}incoming/c1/uploads/")
    key, upload = json.loads(store.bucket.read(note.key, 0, 10_000))
    assert key == store.full(f"{KEY}/big") and upload in scene.uploads()
