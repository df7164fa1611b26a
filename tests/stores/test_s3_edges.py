"""What a bucket does between two requests, or answers against what it did: nothing is lost, nothing is made up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from lifecycle.core.action import Verb
from lifecycle.errors import Changed, Denied, LifecycleError, Occupied, StoreError
from lifecycle.stores.objects import Head
from lifecycle.stores.s3_bucket import Bucket
from lifecycle.stores.s3_delete import Honoured, _purge_scratch, _refused_batch, delete_many, delete_one
from lifecycle.stores.s3_shelf import RESTORING
from lifecycle.stores.s3_trash import PROOF_INLINE_MAX_BYTES
from tests.servers import Server
from tests.stores.contract import NOW, act_on, purge_warrant, retire, warrant_for
from tests.stores.s3_bench import S3Bench

UNIT = "runs/r/step-1"
PROOF = f"{UNIT}/DONE"
MEMBERS = (f"{UNIT}/a", f"{UNIT}/b", PROOF)
NO_CONDITION = Honoured(single=False, batch=False, versioned=False)
BATCH = Honoured(single=False, batch=True, versioned=False)


@pytest.fixture
def bench(moto: Server) -> S3Bench:
    """A saved unit, and a store that has found out already what its server can do."""
    made = S3Bench(moto)
    for key in MEMBERS:
        made.put(key, key.encode())
    assert made.store.probe()
    return made


@contextmanager
def before(bench: S3Bench, operation: str, act: Callable[[str], Any]) -> Iterator[None]:
    """Somebody acts on the key directly before each request of this kind."""

    def hook(params: dict[str, Any], **_: Any) -> None:
        act(params.get("Key", ""))

    yield from hooked(bench, f"before-parameter-build.s3.{operation}", hook)


@contextmanager
def ignored(bench: S3Bench, operation: str) -> Iterator[None]:
    """The server says that it did as asked, and does nothing."""

    def hook(**_: Any) -> Any:
        return AWSResponse("", 200, HTTPHeaders(), None), {}

    yield from hooked(bench, f"before-call.s3.{operation}", hook)


@contextmanager
def erring(bench: S3Bench, *keys: str, code: str) -> Iterator[None]:
    """A batch is answered with errors for these keys."""

    def hook(parsed: dict[str, Any], **_: Any) -> None:
        parsed["Errors"] = [{"Key": key, "Code": code} for key in keys]

    yield from hooked(bench, "after-call.s3.DeleteObjects", hook)


def hooked(bench: S3Bench, event: str, hook: Callable[..., Any]) -> Iterator[None]:
    events = bench.store.bucket.client.meta.events
    events.register(event, hook)
    try:
        yield
    finally:
        events.unregister(event, hook)


def fail(code: str) -> Callable[[str], None]:
    def act(key: str) -> None:
        raise ClientError({"Error": {"Code": code}}, "any")

    return act


def content(bench: S3Bench, key: str) -> bytes:
    found: bytes = bench.client.get_object(Bucket=bench.bucket, Key=bench.prefix + key)["Body"].read()
    return found


def standing(bench: S3Bench) -> set[str]:
    return {key.removeprefix(bench.prefix) for key in bench.keys(UNIT)}


def seen(bench: S3Bench, key: str) -> Head:
    found = bench.store.bucket.head(bench.prefix + key)
    assert found is not None
    return found


def remove(bench: S3Bench) -> Callable[[str], object]:
    return lambda key: bench.client.delete_object(Bucket=bench.bucket, Key=key)


def overwrite(bench: S3Bench, only: str = "") -> Callable[[str], object]:
    """Once a key: what is deleted afterwards must not come back by this."""
    done: set[str] = set()

    def act(key: str) -> None:
        if key not in done and (not only or key == bench.prefix + only):
            done.add(key)
            bench.client.put_object(Bucket=bench.bucket, Key=key, Body=b"new")

    return act


# -- deletes


def test_what_is_swept_after_a_probe_is_the_scratch_object_alone(moto: Server):
    name = moto.new_bucket()
    moto.client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for key in ("probe", "probe2"):
        moto.client.put_object(Bucket=name, Key=key, Body=b"x")
        moto.client.delete_object(Bucket=name, Key=key)
    _purge_scratch(Bucket(moto.client, name, "s"), "probe")
    left = moto.client.list_object_versions(Bucket=name)
    assert [v["Key"] for v in (*left["Versions"], *left["DeleteMarkers"])] == ["probe2", "probe2"]


def test_a_batch_with_conditions_that_is_refused_as_a_whole_promises_nothing(
    moto: Server, monkeypatch: pytest.MonkeyPatch
):
    bucket = Bucket(moto.client, moto.new_bucket(), "s")
    bucket.put("probe", b"probe")

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "NotImplemented", "Message": "no such header"}}, "DeleteObjects")

    monkeypatch.setattr(moto.client, "delete_objects", refuse)
    assert not _refused_batch(bucket, "probe") and bucket.head("probe") is not None


def test_what_is_gone_already_is_not_deleted_again(bench: S3Bench):
    head = seen(bench, PROOF)
    bench.remove(PROOF)
    with before(bench, "DeleteObject", fail("AccessDenied")):
        delete_one(bench.store.bucket, head, NO_CONDITION)


def test_a_delete_of_what_just_went_is_done(bench: S3Bench):
    """Some stores answer that with an error."""

    def act(key: str) -> None:
        bench.remove(PROOF)
        fail("NoSuchKey")(key)

    with before(bench, "DeleteObject", act):
        delete_one(bench.store.bucket, seen(bench, PROOF), NO_CONDITION)
    assert standing(bench) == {*MEMBERS} - {PROOF}


def test_a_delete_that_was_not_carried_out_is_told(bench: S3Bench):
    with ignored(bench, "DeleteObject"), pytest.raises(StoreError, match="still there after its delete") as told:
        delete_one(bench.store.bucket, seen(bench, PROOF), NO_CONDITION)
    assert told.value.code == "store_failed"


def test_of_many_the_replaced_ones_stay(bench: S3Bench):
    heads = [seen(bench, key) for key in MEMBERS]
    bench.put(PROOF, b"new")
    outcome = delete_many(bench.store.bucket, heads, NO_CONDITION)
    assert (outcome.gone, outcome.changed, outcome.failed) == (heads[:2], heads[2:], [])
    assert standing(bench) == {PROOF}


def test_an_error_for_a_key_that_was_not_asked_for_touches_no_other(bench: S3Bench):
    heads = [seen(bench, key) for key in MEMBERS]
    with erring(bench, "stranger", code="AccessDenied"):
        outcome = delete_many(bench.store.bucket, heads, BATCH)
    assert (outcome.gone, outcome.changed, outcome.failed) == (heads, [], [])


def test_an_unmet_condition_that_nobody_can_look_into_is_a_failure(bench: S3Bench):
    """Neither gone nor changed: nobody knows."""
    heads = [seen(bench, key) for key in MEMBERS]
    with erring(bench, heads[0].key, code="PreconditionFailed"), before(bench, "HeadObject", fail("AccessDenied")):
        outcome = delete_many(bench.store.bucket, heads, BATCH)
    assert (outcome.gone, outcome.changed) == (heads[1:], [])
    assert [(head, type(error)) for head, error in outcome.failed] == [(heads[0], Denied)]


# -- the shelf


def test_what_lies_beside_the_manifests_is_no_entry(bench: S3Bench):
    bench.put(".lifecycle/trash/t9/proof", b"left over")
    assert bench.store.shelf.entries() == ([], [])


def test_an_entry_that_goes_while_it_is_read_is_gone_not_broken(bench: S3Bench):
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    shelf = bench.reopen()[0].shelf
    shelf.bucket = bench.store.bucket
    with before(bench, "GetObject", remove(bench)):
        assert shelf.entries() == ([], [])


def test_one_entry_that_goes_while_it_is_read_is_gone(bench: S3Bench):
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    assert bench.store.shelf.entry("t1") is not None
    with before(bench, "GetObject", remove(bench)):
        assert bench.store.shelf.entry("t1") is None


def test_an_entry_that_may_not_be_read_is_not_passed_over(bench: S3Bench):
    """Told as broken, it would be taken for one that holds nothing."""
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    shelf = bench.reopen()[0].shelf
    shelf.bucket = bench.store.bucket
    with before(bench, "GetObject", fail("AccessDenied")), pytest.raises(Denied):
        shelf.entries()


# -- retire


def refused(bench: S3Bench, act: Callable[[], object], kind: type[LifecycleError]) -> str:
    """It is refused, the whole unit stands, and the trash is empty; the refusal's code."""
    with pytest.raises(kind) as told:
        act()
    assert standing(bench) == {*MEMBERS} and bench.trash.trash() == []
    return told.value.code


def test_a_unit_whose_proof_is_not_in_it_stays(bench: S3Bench):
    action = act_on(bench.store, UNIT, proof=f"{UNIT}/OTHER")
    warrant = warrant_for(bench.store, action)
    assert refused(bench, lambda: bench.trash.retire(warrant, NOW), Changed) == "changed_since_plan"


@pytest.mark.parametrize(
    ("operation", "kind", "code"),
    [("HeadObject", Changed, "changed_since_plan"), ("GetObject", StoreError, "store_failed")],
)
def test_a_proof_replaced_after_the_last_look_stays(
    bench: S3Bench, operation: str, kind: type[LifecycleError], code: str
):
    warrant = warrant_for(bench.store, act_on(bench.store, UNIT, proof=PROOF))
    with before(bench, operation, overwrite(bench, PROOF)):
        assert refused(bench, lambda: bench.trash.retire(warrant, NOW), kind) == code
    assert content(bench, PROOF) == b"new"


def test_what_is_wholly_replaced_before_its_delete_stays(bench: S3Bench):
    warrant = warrant_for(bench.store, replace(act_on(bench.store, UNIT), verb=Verb.DELETE))
    with before(bench, "HeadObject", overwrite(bench)):
        assert refused(bench, lambda: bench.trash.retire(warrant, NOW), Changed) == "changed_since_plan"
    assert {content(bench, key) for key in MEMBERS} == {b"new"}


# -- restore and purge


def test_a_large_proof_whose_copy_is_gone_is_told(bench: S3Bench):
    bench.put(PROOF, b"p" * (PROOF_INLINE_MAX_BYTES + 1))
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    remove(bench)(bench.store.shelf.copy_key("t1"))
    with pytest.raises(StoreError, match="the kept proof") as told:
        bench.trash.restore("t1")
    assert told.value.code == "members_missing"
    assert standing(bench) == {*MEMBERS} - {PROOF} and [e.trash_id for e in bench.trash.trash()] == ["t1"]


def test_a_proof_written_while_the_old_one_comes_back_is_not_overwritten(bench: S3Bench):
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    with before(bench, "PutObject", overwrite(bench, PROOF)), pytest.raises(Occupied):
        bench.trash.restore("t1")
    assert content(bench, PROOF) == b"new" and [e.trash_id for e in bench.trash.trash()] == ["t1"]


def test_a_restore_whose_answer_was_lost_knows_its_proof_again(bench: S3Bench):
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    entry = bench.store.shelf.entry("t1")
    assert entry is not None
    bench.store.shelf.claim(entry, RESTORING)
    bench.put(PROOF, PROOF.encode())
    assert bench.trash.restore("t1").note == "proof_rewritten"
    assert standing(bench) == {*MEMBERS} and not bench.trash.trash()


def test_what_is_being_restored_is_not_purged(bench: S3Bench):
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    entry = bench.store.shelf.entry("t1")
    assert entry is not None
    bench.store.shelf.claim(entry, RESTORING)
    with pytest.raises(Changed) as told:
        bench.trash.purge(purge_warrant())
    assert told.value.code == "being_restored"
    bench.trash.restore("t1")
    assert standing(bench) == {*MEMBERS}


def test_a_purge_that_was_not_carried_out_frees_nothing(bench: S3Bench):
    retire(bench, act_on(bench.store, UNIT, proof=PROOF))
    bench.store.__dict__["honoured"] = BATCH
    with ignored(bench, "DeleteObjects"), pytest.raises(StoreError, match=r"2 objects .* still there") as told:
        bench.trash.purge(purge_warrant())
    assert told.value.code == "store_failed"
    assert [e.trash_id for e in bench.trash.trash()] == ["t1"], "left-overs that nobody knows of"


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_a_store_that_does_not_say_what_time_it_is(bench: S3Bench, date: str):
    """What stands between us and a server may take the date away; then nobody knows, and that is told."""

    def hook(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ResponseMetadata"]["HTTPHeaders"]["date"] = date

    taken = contextmanager(hooked)(bench, "after-call.s3.HeadBucket", hook)
    with taken, pytest.raises(StoreError) as told:
        bench.trash.told_ns()
    assert told.value.code == "clock_unknown"


def test_the_time_is_that_of_the_answer(bench: S3Bench):
    def hook(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ResponseMetadata"]["HTTPHeaders"]["date"] = "Tue, 14 Nov 2023 22:13:20 GMT"

    with contextmanager(hooked)(bench, "after-call.s3.HeadBucket", hook):
        assert bench.store.told_ns() == 1_700_000_000 * 1_000_000_000
