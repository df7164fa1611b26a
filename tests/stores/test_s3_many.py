"""Copies of many small objects: what is not asked one by one is known all the same."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lifecycle.core.copies import payload
from lifecycle.core.model import Shape
from lifecycle.errors import Occupied, StoreError
from lifecycle.stores import s3_many
from lifecycle.stores.objects import Head
from lifecycle.stores.s3_intake import S3Intake
from lifecycle.stores.s3_many import WORTH, Seen, refuses_to_overwrite
from tests.servers import Server
from tests.stores.intake_contract import Parcel, assert_published, checkpoint, lay, parcel
from tests.stores.s3_bench import OneClient, S3Bench
from tests.stores.test_s3_edges import before, content, fail, hooked

KEY = "runs/r/step-1"
MANY = WORTH + 3


@pytest.fixture
def bench(moto: Server) -> S3Bench:
    made = OneClient(moto)
    assert made.store.probe()
    return made


def unit(many: int = MANY) -> Parcel:
    files = {f"{KEY}/{n:03}": b"%d" % n for n in range(many - 1)}
    return parcel(checkpoint(KEY, Shape.DIR, (), f"{KEY}/DONE"), {**files, f"{KEY}/DONE": b""})


@contextmanager
def counted(bench: S3Bench) -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()

    def count(model: Any, **_: Any) -> None:
        counts[model.name] += 1

    for _ in hooked(bench, "before-call.s3", count):
        yield counts


def read_back(intake: S3Intake, sent: Parcel) -> None:
    for member in payload(sent.manifest.members):
        assert b"".join(intake.staged("c1", member)) == sent.content[member.key]


@contextmanager
def careless(bench: S3Bench) -> Iterator[None]:
    """The store passes over the condition that nothing stands there."""

    def drop(params: dict[str, Any], **_: Any) -> None:
        params["headers"].pop("If-None-Match", None)

    for _ in hooked(bench, "before-call.s3.PutObject", drop):
        yield


def test_a_small_object_takes_a_put_and_a_get_and_no_look(bench: S3Bench):
    sent, intake = unit(), S3Intake(bench.store)
    with counted(bench) as counts:
        lay(intake, sent)
        read_back(intake, sent)
        intake.publish(sent.sealed)
    few = 10
    assert counts["PutObject"] < MANY + few and counts["GetObject"] < MANY + few
    assert counts["HeadObject"] < few and counts["ListObjectsV2"] < few
    assert_published(bench, sent)


def test_few_objects_are_looked_at_as_ever(bench: S3Bench):
    sent, intake = unit(3), S3Intake(bench.store)
    with counted(bench) as counts:
        lay(intake, sent)
        read_back(intake, sent)
        intake.publish(sent.sealed)
    assert counts["HeadObject"] >= 6 and "refuses_to_overwrite" not in vars(bench.store)
    assert_published(bench, sent)


def test_what_others_put_there_after_the_beginning_is_left_alone(bench: S3Bench):
    sent, intake = unit(), S3Intake(bench.store)
    intake.begin(sent.manifest)
    member = sent.manifest.members[1]
    bench.put(member.key, b"a stranger's")
    with pytest.raises(Occupied):
        intake.put("c1", member, [sent.content[member.key]])
    assert content(bench, member.key) == b"a stranger's"


def test_a_second_put_of_the_same_member_takes_the_place_of_the_first(bench: S3Bench):
    sent, intake = unit(), S3Intake(bench.store)
    intake.begin(sent.manifest)
    member = sent.manifest.members[1]
    intake.put("c1", member, [b"?" * member.size_bytes])
    intake.put("c1", member, [sent.content[member.key]])
    assert content(bench, member.key) == sent.content[member.key]


def test_where_a_store_overwrites_all_the_same_each_key_is_looked_at_first(bench: S3Bench):
    sent, intake = unit(), S3Intake(bench.store)
    with careless(bench):
        intake.begin(sent.manifest)
        member = sent.manifest.members[1]
        bench.put(member.key, b"a stranger's")
        with pytest.raises(Occupied):
            intake.put("c1", member, [sent.content[member.key]])
    assert not bench.store.refuses_to_overwrite and content(bench, member.key) == b"a stranger's"


def test_where_it_cannot_be_tried_nothing_is_promised_and_nothing_is_left(bench: S3Bench):
    area = f"{bench.prefix}.lifecycle/try/"
    with before(bench, "PutObject", fail("AccessDenied")):
        assert not refuses_to_overwrite(bench.store.bucket, area)
    assert refuses_to_overwrite(bench.store.bucket, area)
    assert bench.store.bucket.listed(area) == []


Change = Callable[[S3Bench, str], object]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda bench, key: bench.put(key, b"a stranger's"), "occupied"),
        (lambda bench, key: bench.remove(key), "members_missing"),
    ],
)
def test_what_changed_since_it_was_read_back_is_not_published(bench: S3Bench, change: Change, code: str):
    sent, intake = unit(), S3Intake(bench.store)
    lay(intake, sent)
    read_back(intake, sent)
    change(bench, f"{KEY}/007")
    with pytest.raises(StoreError) as caught:
        intake.publish(sent.sealed)
    assert caught.value.code == code and not bench.store.copies()


def test_where_the_listing_fails_each_is_asked_for_by_itself(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    sent, intake = unit(), S3Intake(bench.store)
    lay(intake, sent)
    read_back(intake, sent)
    real = Seen.unchanged

    def unchanged(self: Seen, bucket: Any, copy_id: str, prefix: str) -> frozenset[str]:
        with before(bench, "ListObjectsV2", fail("AccessDenied")):
            return real(self, bucket, copy_id, prefix)

    monkeypatch.setattr(Seen, "unchanged", unchanged)
    with counted(bench) as counts:
        intake.publish(sent.sealed)
    assert counts["HeadObject"] >= MANY
    assert_published(bench, sent)


def test_what_is_remembered_is_bounded_and_forgotten(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(s3_many, "SEEN_MAX", 2)
    seen = Seen()
    for n in range(3):
        seen.note("c", Head(str(n), 1, "", 1))
    assert len(seen._heads["c"]) == 2
    seen.forget("c")
    assert seen._heads == {}


def test_small_bodies_are_sent_without_being_announced(bench: S3Bench, monkeypatch: pytest.MonkeyPatch):
    said: list[bool] = []

    def look(request: Any, **_: Any) -> None:
        said.append("Expect" in request.headers)

    monkeypatch.setattr("lifecycle.stores.s3_client.SENT_AT_ONCE_BYTES", 10)
    for _ in hooked(bench, "before-send.s3.PutObject", look):
        bench.store.bucket.put(f"{bench.prefix}small", b"x" * 10)
        bench.store.bucket.put(f"{bench.prefix}large", b"x" * 11)
    assert said == [False, True]
