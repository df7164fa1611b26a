"""What every bucket without a move promises: the contract, but for what is not possible there."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.copies import Member
from lifecycle.core.listing import join
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Occupied, StoreError
from lifecycle.stores.open import open_intake
from tests.stores.cloud_bench import CloudBench
from tests.stores.contract import (
    NOW,
    Bench,
    StoreContract,
    act_on,
    every_shape,
    fill,
    purge_warrant,
    retire,
    scan,
    shown,
    unit_action,
    unit_keys,
    warrant_for,
)
from tests.stores.intake_contract import checkpoint, lay, parcel, plain_parcel


class BucketContract(StoreContract):
    """All of it, but for what is not possible where nothing can be moved aside."""

    @every_shape
    def test_restore_never_overwrites(self, bench: Bench, shape: Shape):
        """As everywhere; only what was overwritten in place is gone, and then the proof stays away."""
        fill(bench)
        action = unit_action(bench, shape)
        retire(bench, action)
        bench.put(max(unit_keys(shape)), b"new")
        occupied = shown(bench)
        with pytest.raises(Occupied):
            bench.trash.restore("t1")
        assert shown(bench) == occupied
        assert [e.trash_id for e in bench.trash.trash()] == ["t1"]
        bench.remove(max(unit_keys(shape)))
        if shape is Shape.DIR:
            with pytest.raises(StoreError) as told:
                bench.trash.restore("t1")
            assert told.value.code == "members_missing"
        else:
            bench.trash.restore("t1")
            assert unit_keys(shape) <= set(shown(bench).files)

    def test_restore_into_a_run_that_is_gone(self, bench: Bench):
        """Members that somebody else deleted are lost: a proof without them would be a lie."""
        fill(bench)
        retire(bench, unit_action(bench, Shape.DIR))
        bench.remove("runs/a")
        before = shown(bench)
        with pytest.raises(StoreError) as told:
            bench.trash.restore("t1")
        assert told.value.code == "members_missing"
        assert shown(bench) == before


KEYS = (
    "a//b",
    "trail/",
    "star*",
    "ask?",
    "brack[et]",
    "per%cent",
    "per%2Fcent",
    "ha#sh",
    "日本",
    "sp ace+plus",
    "x.",
)


class NameContract:
    """Names that file systems over objects are known to mangle."""

    @pytest.mark.parametrize("name", KEYS)
    def test_a_name_is_itself_from_the_listing_to_the_delete(self, bench: CloudBench, name: str):
        key = f"run/{name}"
        bench.put(key, b"this")
        bench.put("run/other", b"that")
        assert bench.keys("run")
        keys = {join(folder.path, one) for folder in bench.store.walk() for one in folder.names}
        assert keys == {key, "run/other"}
        assert bench.store.read(key) == b"this" and b"".join(bench.store.stream(key, 4)) == b"this"
        (head,) = bench.store.bucket.listed(bench.prefix + key)
        assert bench.store.bucket.head(head.key) is not None and head.key == bench.prefix + key
        bench.store.bucket.remove(head.key, head.etag)
        assert bench.keys("run") == [bench.prefix + "run/other"]

    def test_a_placeholder_proves_nothing_and_goes_with_its_unit(self, bench: CloudBench):
        bench.put("run/step-1/", b"")
        bench.put("run/step-1/DONE", b"1")
        folder = scan(bench.store).folders["run/step-1"]
        assert folder.placeholder and folder.names == ["DONE"]
        retire(bench, act_on(bench.store, "run/step-1", Shape.DIR, (), "run/step-1/DONE"))
        bench.trash.purge(purge_warrant())
        assert bench.keys("run") == []

    def test_a_name_that_no_address_can_hold(self, bench: CloudBench):
        for act in (bench.store.bucket.head, bench.store.bucket.remove):
            with pytest.raises(StoreError) as told:
                act(f"{bench.prefix}bad\udcff")
            assert told.value.code == "name_unusual"


class PartContract:
    """Uploads in several parts, and what several threads do at once."""

    @pytest.fixture
    def small(self, bench: CloudBench) -> Iterator[int]:
        """Parts of 256 KiB, the least that Google takes."""
        bench.store.bucket.part_bytes = 256 * 1024  # type: ignore[misc]  # of this one alone
        yield 256 * 1024
        del bench.store.bucket.part_bytes

    @pytest.mark.parametrize("parts", [1, 2.5, 3])
    def test_an_object_in_parts_is_whole_and_marked(self, bench: CloudBench, small: int, parts: float):
        content = random.Random(7).randbytes(int(small * parts))
        sent = parcel(checkpoint("runs/x.ckpt", Shape.FILE, ("runs/x.ckpt",)), {"runs/x.ckpt": content})
        intake = open_intake(bench.store)
        lay(intake, sent)
        assert b"".join(intake.staged("c1", sent.manifest.members[0])) == content
        intake.publish(sent.sealed)
        assert bench.reopen()[0].copies().keys() == {"c1"}

    @pytest.mark.parametrize("lie", [-1, 1])
    def test_of_a_source_that_changes_nothing_is_left(self, bench: CloudBench, small: int, lie: int):
        content = b"x" * (small * 2 + lie)
        sent = parcel(checkpoint("runs/x.ckpt", Shape.FILE, ("runs/x.ckpt",)), {"runs/x.ckpt": b"x" * (small * 2)})
        intake = open_intake(bench.store)
        intake.begin(sent.manifest)
        with pytest.raises(Changed):
            intake.put("c1", sent.manifest.members[0], [content])
        assert bench.keys("runs") == []

    def test_what_comes_first_stays_with_parts_as_well(self, bench: CloudBench, small: int):
        content = b"x" * (small * 2)
        sent = parcel(checkpoint("runs/x.ckpt", Shape.FILE, ("runs/x.ckpt",)), {"runs/x.ckpt": content})
        intake = open_intake(bench.store)
        intake.begin(sent.manifest)

        def pieces() -> Iterator[bytes]:
            yield content[:small]
            bench.put("runs/x.ckpt", b"somebody's")
            yield content[small:]

        with pytest.raises(Occupied):
            intake.put("c1", sent.manifest.members[0], pieces())
        assert bench.store.read("runs/x.ckpt") == b"somebody's"

    def test_many_threads_share_a_store(self, bench: CloudBench):
        contents = {f"runs/{i}.ckpt": bytes([i]) * 5000 for i in range(24)}
        sent = parcel(checkpoint("runs/0.ckpt", Shape.GROUP, tuple(contents), "runs/0.ckpt"), contents)
        intake = open_intake(bench.store)
        intake.begin(sent.manifest)

        def through(member: Member) -> bytes:
            intake.put("c1", member, [contents[member.key]])
            return b"".join(intake.staged("c1", member))

        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(through, sent.manifest.members))
        assert found == [contents[member.key] for member in sent.manifest.members]
        intake.publish(sent.sealed)


class RaceContract:
    """What somebody else does between our look and our deed is never lost."""

    def test_a_proof_that_is_replaced_just_before_its_delete_stays(self, bench: CloudBench):
        fill(bench)
        warrant = warrant_for(bench.store, unit_action(bench, Shape.DIR))
        with (
            bench.meanwhile("DELETE", "DONE", lambda: bench.put("runs/a/step-2/DONE", b"another")) as seen,
            pytest.raises(Changed),
        ):
            bench.trash.retire(warrant, NOW)
        assert seen and bench.store.read("runs/a/step-2/DONE") == b"another"
        assert bench.trash.trash() == []

    def test_a_purge_leaves_what_is_replaced_just_before_its_delete(self, bench: CloudBench):
        fill(bench)
        retire(bench, unit_action(bench, Shape.DIR))
        with bench.meanwhile("DELETE", "0.bin", lambda: bench.put("runs/a/step-2/w/0.bin", b"another")) as seen:
            freed = bench.trash.purge(purge_warrant())
        assert seen and "changed_since_plan" in freed.note
        assert bench.store.read("runs/a/step-2/w/0.bin") == b"another"

    def test_a_delete_without_trash_leaves_what_is_replaced(self, bench: CloudBench):
        fill(bench)
        action = replace(unit_action(bench, Shape.FILE), verb=Verb.DELETE)
        warrant = warrant_for(bench.store, action)
        with (
            bench.meanwhile("DELETE", "ckpt", lambda: bench.put(action.key, b"another")) as seen,
            pytest.raises(Changed),
        ):
            bench.trash.retire(warrant, NOW)
        assert seen and bench.store.read(action.key) == b"another"

    def test_a_copy_never_overwrites_what_comes_first(self, bench: CloudBench):
        sent, intake = plain_parcel(Shape.FILE), open_intake(bench.store)
        intake.begin(sent.manifest)
        (member,) = sent.manifest.members
        # A PUT; a POST at Google.
        with bench.meanwhile("P", "", lambda: bench.put(member.key, b"somebody's")) as seen, pytest.raises(Occupied):
            intake.put("c1", member, [sent.content[member.key]])
        assert seen and bench.store.read(member.key) == b"somebody's"
        intake.abandon("c1")
        assert bench.store.read(member.key) == b"somebody's"
