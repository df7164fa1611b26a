"""What only buckets have: odd keys, placeholders, uploads, batches, versions, locks, archives, proofs and races."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import Listing, join
from lifecycle.core.model import Shape
from lifecycle.core.warrant import issue, issue_purge
from lifecycle.errors import Changed, ConfigInvalid, Denied, LifecycleError, NotFound, Refused, StoreError
from lifecycle.ports import Freed, Target
from lifecycle.stores import s3_trash
from lifecycle.stores.s3 import S3Store
from tests.servers import ACCESS_KEY, SECRET_KEY, Server
from tests.stores.contract import NOW, PLAN, act_on, purge_warrant, retire, scan, warrant_for
from tests.stores.s3_bench import S3Bench

UNIT = "runs/r/step-1"


@pytest.fixture
def bench(s3_server: Server) -> S3Bench:
    return S3Bench(s3_server)


@pytest.fixture
def mb(moto: Server) -> S3Bench:
    """Moto alone, where the server does not matter."""
    return S3Bench(moto)


def unit(bench: S3Bench, count: int = 3, key: str = UNIT) -> None:
    """A unit of ``count`` objects and its proof."""
    for i in range(count):
        bench.put(f"{key}/shard-{i:04}", b"x" * 10)
    bench.put(f"{key}/DONE", b"done")


def deletion(bench: S3Bench, action: Action, trash_id: str = "t1") -> Freed:
    """Retire with the verb DELETE, as a policy with ``trash: none`` plans it."""
    gone = replace(action, verb=Verb.DELETE, trash_s=None)
    return bench.trash.retire(warrant_for(bench.store, gone, trash_id), NOW)


@contextmanager
def calls(store: S3Store) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Every request the store sends meanwhile: operation and parameters."""
    sent: list[tuple[str, dict[str, Any]]] = []

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        sent.append((model.name, params))

    events = store.bucket.client.meta.events
    events.register("before-parameter-build.s3", note)
    try:
        yield sent
    finally:
        events.unregister("before-parameter-build.s3", note)


ODD_KEYS = [
    "x//y", "./dot", "a/../b", "/lead", "//two", "trail/", "nl\nl", "\x01ctl", "tab\tx", "%2e%2e/p", "50%", "a+b c",
    "\u202egnp", "e\u0301/\u00e9", "<&>'\"", "]]>", "long/" + "k" * 400, "x", "x/", "U+FFFE\ufffe",
]  # fmt: skip


def test_odd_keys_are_listed_deleted_and_gone(bench: S3Bench):
    """Each key comes back exactly, is deleted alone and as part of a unit, and no neighbour goes with it."""
    for key in ODD_KEYS:
        with suppress(Exception):  # some servers refuse some keys, or keep them under another name
            bench.client.put_object(Bucket=bench.bucket, Key=f"{bench.prefix}u/{key}", Body=b"odd")
    stored = {key.removeprefix(bench.prefix) for key in bench.keys("u")}
    assert len(stored & {f"u/{key}" for key in ODD_KEYS}) >= 12
    folders = list(bench.store.walk())
    shown = {join(f.path, name) for f in folders for name in f.names}
    assert stored == shown | {f"{f.path}/" for f in folders if f.placeholder}
    proof = "u/DONE"
    bench.put(proof, b"")
    bench.put("u0/beside", b"stays")
    unit_now = bench.store.sight(Target("u", Shape.DIR, ())).totals
    assert unit_now == scan(bench.store).unit("u", ())
    retire(bench, act_on(bench.store, "u", proof=proof))
    assert {join(f.path, name) for f in bench.store.walk() for name in f.names} == {"u0/beside"}
    bench.trash.purge(purge_warrant())
    assert bench.keys("u") == [] and bench.keys("u0") == [f"{bench.prefix}u0/beside"]


@pytest.mark.parametrize("key", ["x//y", "./dot", "..", "a/../b", "/lead", "//two", "%2e", "\x01c", "\u202e"])
def test_odd_keys_as_single_units(mb: S3Bench, key: str):
    if key == "..":
        key = "../up"
    mb.put(key, b"one")
    mb.put("x/y", b"another")
    mb.put("b", b"another")
    mb.put("lead", b"another")
    action = act_on(mb.store, key, Shape.FILE, (key,))
    assert action.files == 1 and mb.store.read(key) == b"one"
    deletion(mb, action)
    left = {join(f.path, name) for f in mb.store.walk() for name in f.names}
    assert left == {"x/y", "b", "lead"}


def test_a_run_whose_name_begins_like_another(bench: S3Bench):
    for run in ("run1", "run10", "run1-old", "run1.bak"):
        unit(bench, 1, f"{run}/s")
    assert set(scan(bench.store, "run1").folders) == {"run1", "run1/s"}
    retire(bench, act_on(bench.store, "run1/s", proof="run1/s/DONE"))
    bench.trash.purge(purge_warrant())
    assert [len(bench.keys(run)) for run in ("run1", "run10", "run1-old", "run1.bak")] == [0, 2, 2, 2]


def test_placeholders_prove_nothing_and_go_with_the_unit(bench: S3Bench):
    unit(bench)
    before = bench.store.sight(Target(UNIT, Shape.DIR, ())).totals
    bench.put(f"{UNIT}/", b"")
    bench.put(f"{UNIT}/deep/", b"")
    folders = scan(bench.store).folders
    assert folders[UNIT].placeholder and folders[f"{UNIT}/deep"].placeholder
    assert not folders[f"{UNIT}/deep"].names and (folders[UNIT].names.count("") == 0)
    now = bench.store.sight(Target(UNIT, Shape.DIR, ())).totals
    assert (now.files, now.bytes) == (before.files, before.bytes)
    action = act_on(bench.store, UNIT, proof=f"{UNIT}/DONE")
    retire(bench, action)
    assert UNIT not in scan(bench.store).folders
    assert bench.trash.purge(purge_warrant()).files == 4
    assert bench.keys(UNIT) == []


def test_open_uploads_are_shown_and_left_alone(bench: S3Bench):
    unit(bench)
    made = bench.client.create_multipart_upload(Bucket=bench.bucket, Key=f"{bench.prefix}runs/r/step-2/big file")
    folder = scan(bench.store).folders["runs/r/step-2"]
    upload = folder.uploads["big file"]
    assert folder.names == [] and upload.id == made["UploadId"] and upload.started_at_ns > 10**18
    retire(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    bench.trash.purge(purge_warrant())
    listed = bench.client.list_multipart_uploads(Bucket=bench.bucket, Prefix=bench.prefix)
    assert [u["UploadId"] for u in listed["Uploads"]] == [made["UploadId"]]


def test_storage_classes_are_told_where_not_standard(bench: S3Bench):
    bench.put("r/warm", b"1")
    bench.client.put_object(Bucket=bench.bucket, Key=f"{bench.prefix}r/cold", Body=b"1", StorageClass="STANDARD_IA")
    assert scan(bench.store).folders["r"].classes == {"cold": "STANDARD_IA"}


def test_an_archived_object_says_so(mb: S3Bench):
    mb.client.put_object(Bucket=mb.bucket, Key=f"{mb.prefix}r/ice", Body=b"1", StorageClass="GLACIER")
    with pytest.raises(StoreError) as told:
        mb.store.read("r/ice")
    assert told.value.code == "storage_archived"


def test_more_than_a_thousand_objects_go_in_batches(seaweed: Server):
    bench = S3Bench(seaweed)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: bench.put(f"{UNIT}/shard-{i:04}", b"x"), range(1204)))
    bench.put(f"{UNIT}/DONE", b"")
    action = act_on(bench.store, UNIT, proof=f"{UNIT}/DONE")
    assert action.files == 1205
    retire(bench, action)
    with calls(bench.store) as sent:
        freed = bench.trash.purge(purge_warrant())
    batches = [params["Delete"]["Objects"] for name, params in sent if name == "DeleteObjects"]
    assert [len(batch) for batch in batches] == [1000, 204]
    assert all(item["ETag"] for batch in batches for item in batch)
    assert freed == Freed(1204, 1205) and bench.keys(UNIT) == []


def test_the_probe_finds_out_what_each_server_honours(bench: S3Bench):
    powers, honoured = bench.store.probe(), bench.store.honoured
    assert (powers.rename, powers.conditional_delete, powers.versioned) == (False, True, False)
    assert honoured.batch == (bench.server.kind == "seaweed")
    assert not bench.client.list_objects_v2(Bucket=bench.bucket, Prefix=f"{bench.prefix}.lifecycle/").get("Contents")


def test_a_store_that_ignores_conditions_is_noticed(mb: S3Bench):
    """A gateway that drops the header: a HEAD directly before each delete stands in."""

    def drop(params: dict[str, Any], **_: Any) -> None:
        params["headers"].pop("If-Match", None)

    mb.store.bucket.client.meta.events.register("before-call.s3.DeleteObject", drop)
    assert not mb.store.probe().conditional_delete
    unit(mb)
    warrant = warrant_for(mb.store, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"))
    race = before(mb.store, "PutObject", lambda: mb.put(f"{UNIT}/DONE", b"rewritten"))
    with race as done, pytest.raises(Changed):
        mb.trash.retire(warrant, NOW)
    assert done and len(mb.keys(UNIT)) == 4
    with calls(mb.store) as sent:
        retire(mb, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"))
    names = [name for name, params in sent if params.get("Key", "").endswith("/DONE")]
    assert names[-3:] == ["HeadObject", "DeleteObject", "HeadObject"]
    mb.replace(f"{UNIT}/shard-0001")
    assert "changed_since_plan" in mb.trash.purge(purge_warrant()).note
    assert mb.keys(UNIT) == [f"{mb.prefix}{UNIT}/shard-0001"]


# -- races: somebody writes between the last look and the delete


@contextmanager
def before(store: S3Store, operation: str, act: Any) -> Iterator[list[int]]:
    """Do ``act`` once, directly before the store's next ``operation`` goes out; tells whether it came to that."""
    done: list[int] = []

    def once(**_: Any) -> None:
        if not done:
            done.append(1)
            act()

    events = store.bucket.client.meta.events
    events.register(f"before-send.s3.{operation}", once)
    try:
        yield done
    finally:
        events.unregister(f"before-send.s3.{operation}", once)


def test_a_proof_rewritten_at_the_last_moment_stays(bench: S3Bench):
    unit(bench)
    assert bench.store.probe().conditional_delete
    warrant = warrant_for(bench.store, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    race = before(bench.store, "DeleteObject", lambda: bench.put(f"{UNIT}/DONE", b"new"))
    with race as done, pytest.raises(Changed) as told:
        bench.trash.retire(warrant, NOW)
    assert done and told.value.code == "changed_since_plan"
    assert bench.store.read(f"{UNIT}/DONE") == b"new" and bench.trash.trash() == []
    assert bench.trash.retired(warrant.action, "t1") is False


def test_a_single_file_rewritten_at_the_last_moment_stays(bench: S3Bench):
    bench.put("runs/one.ckpt", b"old")
    action = act_on(bench.store, "runs/one.ckpt", Shape.FILE, ("runs/one.ckpt",))
    assert bench.store.probe().conditional_delete
    race = before(bench.store, "DeleteObject", lambda: bench.put("runs/one.ckpt", b"new"))
    with race as done, pytest.raises(Changed) as told:
        deletion(bench, action)
    assert done and told.value.code == "changed_since_plan" and bench.store.read("runs/one.ckpt") == b"new"
    now = act_on(bench.store, "runs/one.ckpt", Shape.FILE, ("runs/one.ckpt",))
    with calls(bench.store) as sent:
        assert deletion(bench, now) == Freed(3, 1)
    assert [name for name, _ in sent if name.startswith("Delete")] == ["DeleteObject"]
    assert bench.trash.purge(purge_warrant()) == Freed(0, 0, "already_gone")


def test_a_member_rewritten_during_the_purge_stays(seaweed: Server):
    bench = S3Bench(seaweed)
    unit(bench)
    retire(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    with before(bench.store, "DeleteObjects", lambda: bench.put(f"{UNIT}/shard-0001", b"new")) as done:
        freed = bench.trash.purge(purge_warrant())
    assert done and freed == Freed(24, 3, "changed_since_plan")
    assert bench.keys(UNIT) == [f"{bench.prefix}{UNIT}/shard-0001"]


def test_a_unit_saved_again_over_its_trash_is_not_purged(bench: S3Bench):
    """The same names with the same content, and its proof: it is a new checkpoint, whatever the ETags say."""
    unit(bench)
    retire(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    unit(bench)
    assert len(scan(bench.store).folders[UNIT].names) == 4
    assert bench.trash.purge(purge_warrant()) == Freed(0, 0, "not_retired")
    assert len(bench.keys(UNIT)) == 4 and bench.trash.trash() == []


def test_a_stale_try_does_not_shorten_a_later_one(mb: S3Bench):
    """A retire that was cut after its manifest leaves an entry; purging that must not free what came later."""
    unit(mb)
    action = act_on(mb.store, UNIT, proof=f"{UNIT}/DONE")
    with mb.cut(2), suppress(StoreError):
        retire(mb, action, "t1")
    assert [(e.trash_id, e.whole) for e in mb.trash.trash()] == [("t1", False)]
    retire(mb, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"), "t2")
    assert [(e.trash_id, e.whole) for e in mb.trash.trash()] == [("t2", True)]
    assert mb.trash.purge(purge_warrant("t1")) == Freed(0, 0, "already_gone")
    mb.trash.restore("t2")
    assert len(mb.keys(UNIT)) == 4


# -- units without a proof, large proofs, what a restore brings back


def test_a_unit_without_proof_cannot_be_retired_but_deleted(bench: S3Bench):
    for i in range(3):
        bench.put(f"{UNIT}/{i}", b"12345")
    action = act_on(bench.store, UNIT)
    with pytest.raises(Refused) as told:
        retire(bench, action)
    assert told.value.code == "no_undo" and "trash: none" in told.value.hint
    assert len(bench.keys(UNIT)) == 3 and bench.trash.trash() == []
    gone = replace(action, verb=Verb.DELETE, trash_s=None)
    assert bench.trash.retired(gone, "t1") is False
    assert deletion(bench, action) == Freed(15, 3)
    assert bench.keys(UNIT) == [] and bench.trash.trash() == [] and bench.trash.retired(gone, "t1") is True


def test_delete_with_a_proof_is_retire_and_then_purge(bench: S3Bench):
    unit(bench)
    deletion(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    assert f"{bench.prefix}{UNIT}/DONE" not in bench.keys(UNIT)
    (entry,) = bench.trash.trash()
    assert (entry.trash_s, entry.whole) == (0, True)
    warrant = issue_purge("t1", retired_at_ns=NOW, trash_s=entry.trash_s, now_ns=NOW, held=False)
    assert bench.trash.purge(warrant) == Freed(34, 4) and bench.keys(UNIT) == []


def test_a_restore_brings_back_what_a_put_can(bench: S3Bench):
    unit(bench)
    meta = {"step": "1", "by": "trainer"}
    bench.client.put_object(
        Bucket=bench.bucket,
        Key=f"{bench.prefix}{UNIT}/DONE",
        Body=b"\x00\xffproof",
        ContentType="application/x-proof",
        Metadata=meta,
        Tagging="keep=yes&by=a%20b",
    )
    retire(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    assert bench.trash.restore("t1").note == "proof_rewritten"
    found = bench.client.get_object(Bucket=bench.bucket, Key=f"{bench.prefix}{UNIT}/DONE")
    assert (found["Body"].read(), found["ContentType"], found["Metadata"]) == (
        b"\x00\xffproof",
        "application/x-proof",
        meta,
    )
    assert dict(bench.store.tags(f"{UNIT}/DONE")) == {"keep": "yes", "by": "a b"}
    assert not bench.client.list_objects_v2(Bucket=bench.bucket, Prefix=f"{bench.prefix}.lifecycle/").get("Contents")


def test_a_large_proof_is_copied_aside(bench: S3Bench):
    bench.put("runs/big.ckpt", b"b" * 70_000)
    action = act_on(bench.store, "runs/big.ckpt", Shape.FILE, ("runs/big.ckpt",))
    retire(bench, action)
    assert bench.keys("runs") == []
    bench.trash.restore("t1")
    assert bench.store.read("runs/big.ckpt", 0, 99_999) == b"b" * 70_000
    retire(bench, act_on(bench.store, "runs/big.ckpt", Shape.FILE, ("runs/big.ckpt",)), "t2")
    bench.trash.purge(purge_warrant("t2"))
    left = bench.client.list_objects_v2(Bucket=bench.bucket, Prefix=bench.prefix)
    assert not left.get("Contents")


def test_a_proof_too_large_to_copy_is_not_retired(mb: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(s3_trash, "PROOF_INLINE_MAX_BYTES", 2)
    monkeypatch.setattr(s3_trash, "COPY_MAX_BYTES", 3)
    mb.put("runs/big.ckpt", b"four")
    action = act_on(mb.store, "runs/big.ckpt", Shape.FILE, ("runs/big.ckpt",))
    with pytest.raises(Refused) as told:
        retire(mb, action)
    assert told.value.code == "no_undo" and mb.keys("runs/big.ckpt") and mb.trash.trash() == []


def test_a_purge_that_has_begun_cannot_be_restored(seaweed: Server):
    bench = S3Bench(seaweed)
    unit(bench)
    retire(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE"))
    with bench.cut(2) as fired, suppress(StoreError):
        bench.trash.purge(purge_warrant())
    assert fired()
    with pytest.raises(Refused) as told:
        bench.trash.restore("t1")
    assert told.value.code == "being_purged"
    assert bench.trash.purge(purge_warrant()).files == 4 and bench.keys(UNIT) == []


# -- manifests are read with distrust


@pytest.mark.parametrize(
    "forge",
    [
        lambda raw: raw.replace(UNIT.encode() + b"/shard-0001", b"runs/victim/model"),
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b'"t1"', b'"t2"'),
        lambda raw: b"\xff\xfe",
        lambda raw: b"[" * 100_000,
    ],
)
def test_a_forged_manifest_reaches_nothing(mb: S3Bench, forge: Any):
    mb.put("runs/victim/model", b"x" * 10)
    unit(mb)
    retire(mb, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"))
    key = f"{mb.prefix}.lifecycle/trash/t1/manifest.json"
    raw = mb.client.get_object(Bucket=mb.bucket, Key=key)["Body"].read()
    mb.client.put_object(Bucket=mb.bucket, Key=key, Body=forge(raw))
    (entry,) = mb.trash.trash()
    assert (entry.trash_id, entry.whole, entry.key) == ("t1", False, "")
    for act in (lambda: mb.trash.purge(purge_warrant()), lambda: mb.trash.restore("t1")):
        with pytest.raises(StoreError) as told:
            act()
        assert told.value.code == "broken_manifest"
    assert len(mb.keys(UNIT)) == 3 and mb.keys("runs/victim/model")


# -- versions and locks


def versioned(server: Server, lock: bool = False) -> S3Bench:
    bucket = server.new_bucket(**({"ObjectLockEnabledForBucket": True} if lock else {}))
    server.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return S3Bench(server, bucket)


def test_in_a_versioned_bucket_nothing_is_freed(s3_server: Server):
    bench = versioned(s3_server)
    unit(bench)
    bench.put(f"{UNIT}/shard-0000", b"a second version")
    listed = bench.client.list_object_versions(Bucket=bench.bucket, Prefix=bench.prefix)["Versions"]
    assert bench.store.probe().versioned
    assert "version_remnant" in retire(bench, act_on(bench.store, UNIT, proof=f"{UNIT}/DONE")).note
    freed = bench.trash.purge(purge_warrant())
    assert (freed.bytes, freed.files) == (0, 4) and "version_remnant" in freed.note
    assert bench.keys(UNIT) == []
    now = bench.client.list_object_versions(Bucket=bench.bucket, Prefix=f"{bench.prefix}runs/")
    ids = {v["VersionId"] for v in now["Versions"]}
    assert {v["VersionId"] for v in listed} <= ids, "a version that is not current was deleted"


@pytest.mark.parametrize("hold", ["legal", "retention"])
def test_a_lock_keeps_the_unit_and_leaves_no_marker(s3_server: Server, hold: str):
    bench = versioned(s3_server, lock=True)
    unit(bench)
    key = f"{bench.prefix}{UNIT}/DONE"
    if hold == "legal":
        bench.client.put_object_legal_hold(Bucket=bench.bucket, Key=key, LegalHold={"Status": "ON"})
    else:
        until = datetime.now(UTC) + timedelta(days=2)
        bench.client.put_object_retention(
            Bucket=bench.bucket, Key=key, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": until}
        )
    action = act_on(bench.store, UNIT, proof=f"{UNIT}/DONE")
    with pytest.raises(Denied) as told:
        bench.trash.retire(
            issue(
                action,
                plan=PLAN,
                trash_id="t1",
                seen=bench.store.sight(Target(UNIT, Shape.DIR, ())).totals,
                standing=frozenset(),
                held=False,
                now_ns=time.time_ns(),
            ),
            time.time_ns(),
        )
    assert told.value.code == "locked"
    assert len(bench.keys(UNIT)) == 4 and bench.trash.trash() == []
    found = bench.client.list_object_versions(Bucket=bench.bucket, Prefix=f"{bench.prefix}runs/")
    assert not found.get("DeleteMarkers")


# -- identity, sentinels, secrets


def test_a_retention_that_is_over_locks_nothing(mb: S3Bench):
    """Objects carry the date for ever; the store's own clock says whether it still holds."""
    told: list[datetime] = []

    def retain(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ObjectLockRetainUntilDate"] = told[0]

    mb.put("k", b"")
    mb.store.bucket.client.meta.events.register("after-call.s3.HeadObject", retain)
    for until, locked in ((timedelta(hours=1), True), (timedelta(hours=-1), False)):
        told[:] = [datetime.now(UTC) + until]
        head = mb.store.bucket.head(f"{mb.prefix}k")
        assert head is not None and bool(head.locked) is locked


def test_a_lock_on_one_object_keeps_it_from_being_deleted_at_once(s3_server: Server):
    bench = versioned(s3_server, lock=True)
    for i in range(3):
        bench.put(f"{UNIT}/{i}", b"12345")
    key = f"{bench.prefix}{UNIT}/1"
    bench.client.put_object_legal_hold(Bucket=bench.bucket, Key=key, LegalHold={"Status": "ON"})
    with pytest.raises(Denied) as told:
        deletion(bench, act_on(bench.store, UNIT))
    assert told.value.code == "locked" and len(bench.keys(UNIT)) == 3


def test_an_archived_proof_can_be_deleted_but_not_retired(mb: S3Bench):
    unit(mb)
    key = f"{mb.prefix}{UNIT}/DONE"
    mb.client.put_object(Bucket=mb.bucket, Key=key, Body=b"ice", StorageClass="GLACIER")
    with pytest.raises(Refused) as told:
        retire(mb, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"))
    assert told.value.code == "no_undo" and len(mb.keys(UNIT)) == 4 and mb.trash.trash() == []
    deletion(mb, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"))
    with pytest.raises(Refused) as refused:
        mb.trash.restore("t1")
    assert refused.value.code == "no_undo"
    assert mb.trash.purge(purge_warrant()).files == 4 and mb.keys(UNIT) == []


def opened(server: Server, url: str, **more: Any) -> S3Store:
    return S3Store(
        "s", url, endpoint_url=server.endpoint_url, region="us-east-1", addressing_style="path", attempts=1, **more
    )


def test_identity_tells_stores_apart(bench: S3Bench):
    other = bench.server.new_bucket()
    same = bench.reopen()[0]
    assert bench.store.identity() == same.identity()
    urls = {f"s3://{other}/{bench.prefix}", f"s3://{bench.bucket}/else", f"s3://{bench.bucket}"}
    assert len({bench.store.identity(), *(opened(bench.server, url).identity() for url in urls)}) == 4


def test_identity_of_the_same_name_at_another_endpoint(moto: Server, seaweed: Server):
    for server in (moto, seaweed):
        with suppress(Exception):
            server.client.create_bucket(Bucket="same-name")
    assert opened(moto, "s3://same-name").identity() != opened(seaweed, "s3://same-name").identity()


def test_identity_survives_a_right_that_is_missing(mb: S3Bench):
    def deny(**_: Any) -> Any:
        from botocore.exceptions import ClientError

        raise ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET_KEY}}, "ListBuckets")

    mb.store.bucket.client.meta.events.register("before-call.s3.ListBuckets", deny)
    assert mb.store.identity() == mb.store.identity() != ""


def test_a_missing_bucket_or_sentinel_is_no_empty_store(bench: S3Bench):
    for store in (
        opened(bench.server, "s3://no-such-bucket-here"),
        opened(bench.server, bench.store.url, sentinel="SENTINEL"),
    ):
        with pytest.raises(Refused) as told:
            store.identity()
        assert told.value.code == "source_unavailable"
    with pytest.raises(Refused) as told:
        list(opened(bench.server, "s3://no-such-bucket-here").walk())
    assert told.value.code == "source_unavailable"
    bench.put("SENTINEL", b"")
    assert opened(bench.server, bench.store.url, sentinel="SENTINEL").identity()


@pytest.mark.parametrize(
    ("url", "endpoint_url"),
    [
        (f"s3://{ACCESS_KEY}:{SECRET_KEY}@bucket/prefix", None),
        (f"s3://{ACCESS_KEY}@bucket", None),
        ("s3://bucket", f"http://{ACCESS_KEY}:{SECRET_KEY}@localhost:1"),
        ("s3:///prefix", None),
        ("https://bucket", None),
    ],
)
def test_urls_with_credentials_or_without_bucket_are_refused(url: str, endpoint_url: str | None):
    with pytest.raises(ConfigInvalid) as told:
        S3Store("s", url, endpoint_url=endpoint_url)
    assert SECRET_KEY not in f"{told.value}{told.value.hint}" and ACCESS_KEY not in str(told.value)


def test_no_secret_is_told_when_the_store_refuses_us(seaweed: Server, monkeypatch: pytest.MonkeyPatch):
    """A wrong secret: the server's answer names the key, ours must not, nor may what is chained to it."""
    import traceback

    canary = "canary/WRONG7MDENGbPxRfiCYSECRETKEY00000"
    bench = S3Bench(seaweed)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", canary)
    store, trash = bench.reopen()
    acts = [
        store.identity,
        lambda: list(store.walk()),
        lambda: store.read("k"),
        lambda: store.tags("k"),
        store.probe,
        store.notes,
        lambda: trash.write_note("n", b"x"),
        lambda: trash.restore("t1"),
        lambda: store.sight(Target("k", Shape.DIR, ())),
    ]
    for act in acts:
        with pytest.raises(LifecycleError) as told:
            act()
        text = "".join(traceback.format_exception(told.value)) + told.value.hint
        assert canary not in text and ACCESS_KEY not in text and "Signature=" not in text


def test_no_client_can_be_made_without_a_profile(monkeypatch: pytest.MonkeyPatch, credentials: None):
    with pytest.raises(Refused) as told:
        S3Store("s", "s3://bucket", profile="no-such-profile").identity()
    assert told.value.code == "source_unavailable"


def test_boto3_is_not_imported_before_it_is_needed():
    import subprocess
    import sys

    code = "import sys, lifecycle.stores.s3_trash, lifecycle.stores.s3 as m; m.S3Store('s', 's3://b');"
    code += "sys.exit('botocore' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_another_process_holds_in_trash_is_found_missing(mb: S3Bench):
    """A scan sees neither the members nor the trash itself, and a Listing of it answers as if they were gone."""
    unit(mb)
    unit(mb, key="runs/r/step-2")
    retire(mb, act_on(mb.store, UNIT, proof=f"{UNIT}/DONE"))
    listing = Listing(mb.store.flavour, {f.path: f for f in mb.reopen()[0].walk()})
    assert listing.get(UNIT) is None and listing.get("runs/r/step-2") is not None
    assert not [path for path in listing.folders if ".lifecycle" in path]
    with pytest.raises(NotFound):
        mb.store.sight(Target(UNIT, Shape.DIR, ()))
