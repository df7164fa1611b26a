"""Classes changed in place at Google: all else stays, strangers too, whatever fails on the way.

fake-gcs-server passes over the class of a rewrite and is done with each at once: `tests.clouds.Strict`, which stands
before it, does rewrites as Google's reference has them, conditions and tokens included.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, LifecycleError, NotFound, Refused, StoreError
from lifecycle.flows import reclass
from lifecycle.ports import JournalRow
from lifecycle.stores import gcs_bucket
from lifecycle.stores.cloud import CloudIntake, CloudStore
from lifecycle.stores.gcs_bucket import GcsBucket
from lifecycle.stores.objects import Head
from lifecycle.stores.s3_delete import Honoured
from tests.clouds import Gcs, Strict
from tests.stores.cloud_bench import GcsBench
from tests.stores.intake_contract import Parcel, checkpoint, lay, parcel
from tests.stores.test_gcs import answer, apart, strict  # noqa: F401 - fixtures

pytestmark = pytest.mark.gcs

KEY = "runs/r/step-1"
PROOF, SMALL, EMPTY = (f"{KEY}/{name}" for name in ("DONE", "small +", "empty"))


def unit() -> Parcel:
    return parcel(checkpoint(KEY, Shape.DIR, (), PROOF), {PROOF: b"1", SMALL: b"small", EMPTY: b""})


def published(bench: GcsBench) -> tuple[CloudIntake, Parcel]:
    intake, sent = CloudIntake(bench.store), unit()
    lay(intake, sent)
    intake.publish(sent.sealed)
    return intake, sent


def about(bench: GcsBench, key: str) -> dict[str, Any]:
    found: dict[str, Any] = bench.server.ask("GET", bench.server.key(bench.prefix + key)).json()
    return found


def shown(bench: GcsBench) -> dict[str, tuple[str, bytes, dict[str, str], str]]:
    """Class, content, metadata and type of each object, as a plain client sees them."""
    found = {}
    for key in (PROOF, SMALL, EMPTY):
        told = about(bench, key)
        body = bench.server.ask("GET", bench.server.key(bench.prefix + key) + "?alt=media").data
        found[key] = told["storageClass"], body, told.get("metadata", {}), told["contentType"]
    return found


@pytest.mark.parametrize("steps", [1, 3])
def test_all_but_the_class_stays(strict: GcsBench, strict_gcs: Strict, steps: int):  # noqa: F811 - the fixture
    intake, sent = published(strict)
    before, fingerprint = shown(strict), strict.store.sight(sent.target).totals.fingerprint
    generation = about(strict, SMALL)["generation"]
    strict_gcs.steps = steps
    assert intake.change_class(sent.manifest, "NEARLINE") == ""
    after = shown(strict)
    assert [after[key][0] for key in (PROOF, SMALL, EMPTY)] == ["STANDARD", "NEARLINE", "NEARLINE"]
    assert {key: told[1:] for key, told in after.items()} == {key: told[1:] for key, told in before.items()}
    assert about(strict, SMALL)["generation"] != generation and not strict_gcs.rewrites
    assert strict.store.sight(sent.target).totals.fingerprint != fingerprint
    (folder,) = (f for f in strict.store.walk(KEY) if f.names)
    assert folder.classes == {"small +": "NEARLINE", "empty": "NEARLINE"}
    asked: list[str] = []
    strict_gcs.fault = lambda method, path: asked.append(method)
    assert intake.change_class(sent.manifest, "NEARLINE") == ""
    assert "POST" not in asked, "what is there already is left alone"
    assert intake.change_class(sent.manifest, "ARCHIVE") == ""
    states = strict.store.states([PROOF, SMALL, EMPTY, f"{KEY}/none"])
    told = {key: (state.storage_class, state.copy_id, state.readable) for key, state in states.items()}
    archived = ("ARCHIVE", "c1", True)
    assert told == {PROOF: ("STANDARD", "c1", True), SMALL: archived, EMPTY: archived}
    assert strict.store.states([]) == {}
    assert b"".join(strict.store.stream(SMALL, 5)) == b"small"
    intake.change_class(sent.manifest, "STANDARD")
    assert shown(strict) == before, "what is read at once comes back too"


def test_a_single_object_is_its_own_proof_and_is_changed(strict: GcsBench):  # noqa: F811 - the fixture
    key = "r/one.ckpt"
    sent, intake = parcel(checkpoint(key, Shape.FILE, (key,), key), {key: b"x" * 9}), CloudIntake(strict.store)
    lay(intake, sent)
    intake.publish(sent.sealed)
    intake.change_class(sent.manifest, "COLDLINE")
    assert strict.store.states([key])[key].storage_class == "COLDLINE"


def test_what_is_not_the_copys_own_is_left_alone(strict: GcsBench):  # noqa: F811 - the fixture
    intake, sent = published(strict)
    strict.put(SMALL, b"other")
    with pytest.raises(Changed):
        intake.change_class(sent.manifest, "NEARLINE")
    assert {told[0] for told in shown(strict).values()} == {"STANDARD"}, "nothing was begun"
    strict.remove(SMALL)
    with pytest.raises(NotFound):
        intake.change_class(sent.manifest, "NEARLINE")


@pytest.mark.parametrize("at", ["GET", "POST", "token"])
def test_what_is_replaced_in_the_very_moment_stays_as_it_is(
    strict: GcsBench,  # noqa: F811 - the fixture
    strict_gcs: Strict,
    at: str,
):
    intake, sent = published(strict)
    strict_gcs.steps = 2

    def meanwhile(method: str, path: str) -> None:
        due = {"GET": "ifGenerationMatch" in path and method == "GET", "POST": "rewriteTo" in path}
        if "small" in path and due.get(at, "rewriteToken" in path):
            strict.put(SMALL, b"their")

    strict_gcs.fault = meanwhile
    with pytest.raises(Changed):
        intake.change_class(sent.manifest, "NEARLINE")
    assert shown(strict)[SMALL][:3] == ("STANDARD", b"their", {})


def sweep(strict_gcs: Strict, act: Callable[[], object], *, after: bool) -> int:
    """Do it with every single request failing, before or after its deed; how many there are."""
    for k in range(1, 100):
        count = 0

        def fail(method: str, path: str, k: int = k) -> int | None:
            nonlocal count
            count += 1
            return 400 if count == k else None

        strict_gcs.fault, strict_gcs.after = (None, fail) if after else (fail, None)
        with suppress(LifecycleError):
            act()
        strict_gcs.fault = strict_gcs.after = None
        if count < k:
            return k - 1
    pytest.fail("the fault never stopped firing")


@pytest.mark.parametrize("after", [False, True], ids=["refused", "lost"])
def test_a_change_that_fails_anywhere_is_done_again(strict: GcsBench, strict_gcs: Strict, after: bool):  # noqa: F811
    intake, sent = published(strict)
    intake.classes = lambda copy_id: gcs_classes_of(intake, copy_id)  # type: ignore[assignment]  # one by one
    kept = {key: told[1:] for key, told in shown(strict).items()}
    strict_gcs.steps = 2
    turns = ["NEARLINE", "ARCHIVE"]

    def act() -> None:
        wanted = turns[0]
        turns.reverse()
        with suppress(StoreError):
            intake.change_class(sent.manifest, wanted)
        fault, lost, strict_gcs.fault, strict_gcs.after = strict_gcs.fault, strict_gcs.after, None, None
        now = shown(strict)
        assert {key: told[1:] for key, told in now.items()} == kept, "an object is not whole, or not marked"
        assert now[PROOF][0] == "STANDARD"
        intake.end_change(sent.manifest)
        intake.change_class(sent.manifest, wanted)
        now = shown(strict)
        assert {key: told[1:] for key, told in now.items()} == kept
        assert {now[SMALL][0], now[EMPTY][0]} == {wanted}
        strict_gcs.fault, strict_gcs.after = fault, lost

    assert sweep(strict_gcs, act, after=after) >= 10


def gcs_classes_of(intake: CloudIntake, copy_id: str) -> Any:
    from lifecycle.stores.gcs_classes import GcsClasses

    return GcsClasses(intake.store, copy_id, at_once=1)  # type: ignore[arg-type]  # as CloudIntake has it


def test_a_lost_answer_is_settled_by_a_look(strict: GcsBench, strict_gcs: Strict):  # noqa: F811 - the fixture
    intake, sent = published(strict)
    strict_gcs.after = lambda method, path: 400 if "rewriteTo" in path else None
    assert intake.change_class(sent.manifest, "NEARLINE") == ""
    strict_gcs.after = None
    assert shown(strict)[SMALL][0] == "NEARLINE"


def test_recovery_tells_a_finished_change_from_one_cut_short(strict: GcsBench):  # noqa: F811 - the fixture
    intake, sent = published(strict)
    at = sent.sealed.checkpoint
    action = replace(Action.upon(at, trash_s=None, policies=("p",), storage_class="NEARLINE"), store="s")
    assert action.verb is Verb.RECLASS
    row = JournalRow(1, "p", "c1", action, 0, None, "started", "", 1, "here", "1")
    assert not reclass.finish(strict.store, intake, row)
    intake.change_class(sent.manifest, "NEARLINE")
    assert reclass.finish(strict.store, intake, row)
    strict.put(SMALL, b"other")
    assert not reclass.finish(strict.store, intake, row)


def test_what_is_locked_keeps_its_class_and_versions_are_told(
    strict: GcsBench,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
):
    intake, sent = published(strict)
    with monkeypatch.context() as patch:
        patch.setattr(gcs_bucket, "_locked", lambda raw, _: "hold" if "small" in raw["name"] else "")
        with pytest.raises(Denied) as caught:
            intake.change_class(sent.manifest, "NEARLINE")
        assert caught.value.code == "locked"
    assert {told[0] for told in shown(strict).values()} == {"STANDARD"}
    strict.store.honoured = Honoured(single=True, batch=False, versioned=True, locks=True)
    assert intake.change_class(sent.manifest, "NEARLINE") == "version_remnant"


def test_a_store_that_passes_over_classes_is_told(fake_gcs: Gcs):
    bench = GcsBench(fake_gcs)
    intake, sent = published(bench)
    with pytest.raises(StoreError) as caught:
        intake.change_class(sent.manifest, "NEARLINE")
    assert caught.value.code == "class_ignored"
    assert {told[1] for told in shown(bench).values()} == {b"1", b"small", b""}


def test_nothing_at_azure_and_why():
    store = CloudStore("cold", "az://container@account.blob.core.windows.net/prefix")
    intake = CloudIntake(store)
    with pytest.raises(Refused, match="under no condition") as caught:
        intake.change_class(unit().sealed, "Cold")
    assert caught.value.code == "no_classes" and store.states(["x"]) == {}
    intake.end_change(unit().sealed)


# -- what is sent


def told(**more: Any) -> dict[str, Any]:
    """An object as Google tells of it."""
    return {
        "kind": "storage#object", "name": "x", "bucket": "b", "id": "b/x/7", "size": "1", "generation": "7",
        "metageneration": "3", "timeCreated": "2026-01-01T00:00:00Z", "crc32c": "AAAAAA==", "etag": "CAc=",
        "storageClass": "STANDARD", "contentType": "t/x", "metadata": {"lifecycle-copy": "c1"}, "cacheControl": "no",
        "contentLanguage": "de", "customTime": "2026-02-02T00:00:00Z", **more,
    }  # fmt: skip


SEEN = Head("x", 1, "7", 0, {}, digest="AAAAAA==")


def test_all_that_can_be_said_of_it_is_sent_along(apart: Callable[..., GcsBucket]):  # noqa: F811 - the fixture
    key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    done = {"done": True, "resource": told(generation="8", storageClass="NEARLINE")}
    more = {"done": False, "rewriteToken": "t"}
    bucket = apart(answer(200, told(kmsKeyName=f"{key}/cryptoKeyVersions/4")), answer(200, more), answer(200, done))
    bucket.rewrite(SEEN, "NEARLINE")
    asked = bucket.pool.asked  # type: ignore[attr-defined]  # it is a stand-in
    assert [one[0] for one in asked] == ["GET", "POST", "POST"]
    sent = {"contentType": "t/x", "metadata": {"lifecycle-copy": "c1"}, "cacheControl": "no", "contentLanguage": "de"}
    sent |= {"customTime": "2026-02-02T00:00:00Z", "storageClass": "NEARLINE"}
    assert [json.loads(one[2]["body"]) for one in asked[1:]] == [sent] * 2
    for word in ("ifGenerationMatch=7", "ifSourceGenerationMatch=7", "ifSourceMetagenerationMatch=3", "cryptoKeys%2Fk"):
        assert all(word in one[1] for one in asked[1:]), word
    assert "Versions" not in asked[1][1] and "rewriteToken" not in asked[1][1] and "rewriteToken=t" in asked[2][1]


def test_another_checksum_is_told(apart: Callable[..., GcsBucket]):  # noqa: F811 - the fixture
    bucket = apart(answer(200, told()), answer(200, {"done": True, "resource": told(crc32c="BBBBBB==")}))
    with pytest.raises(StoreError, match="another checksum"):
        bucket.rewrite(SEEN, "NEARLINE")
