"""Rules of a bucket that act behind our back are found, and those that cannot are not made a noise about."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lifecycle.errors import Denied, StoreError
from lifecycle.ports.ruled import BucketRule, Ruled
from lifecycle.stores.bucket_rules import of_google, of_s3, reaching
from lifecycle.stores.s3 import S3Store
from tests.servers import Server
from tests.stores.test_gcs import answer
from tests.stores.test_gcs import apart as apart  # noqa: PLC0414 - a fixture


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"Expiration": {"Days": 30}, "Prefix": "x/"}, [("x/", "deletes objects after 30 days")]),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "y/"}}, [("y/", "deletes objects after 30 days")]),
        ({"Expiration": {"Days": 30}, "Filter": {}}, [("", "deletes objects after 30 days")]),
        (
            {"Expiration": {"Date": datetime(2030, 1, 2, tzinfo=UTC)}, "Filter": {"Tag": {"Key": "a", "Value": "b"}}},
            [("", "deletes objects from 2030-01-02 on (some, by tag or size)")],
        ),
        (
            {"Expiration": {"Days": 1}, "Filter": {"And": {"Prefix": "z/", "ObjectSizeGreaterThan": 5}}},
            [("z/", "deletes objects after 1 days (some, by tag or size)")],
        ),
        (
            {"Transitions": [{"Days": 9, "StorageClass": "GLACIER"}, {"Date": "?", "StorageClass": "DEEP_ARCHIVE"}]},
            [("", "moves objects to GLACIER after 9 days"), ("", "moves objects to DEEP_ARCHIVE by date")],
        ),
        ({"Expiration": {"ExpiredObjectDeleteMarker": True}}, []),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 3}}, []),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}}, []),
    ],
)
def test_what_s3_tells(rule: dict[str, Any], told: list[tuple[str, str]]):
    assert [(r.prefix, r.does) for r in of_s3([{"Status": "Enabled", **rule}])] == told
    assert list(of_s3([{"Status": "Disabled", **rule}])) == []


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"action": {"type": "Delete"}, "condition": {"age": 30}}, [("", "deletes objects after 30 days")]),
        (
            {"action": {"type": "Delete"}, "condition": {"age": 3, "matchesPrefix": ["a/", "b/"], "isLive": True}},
            [("a/", "deletes objects after 3 days"), ("b/", "deletes objects after 3 days")],
        ),
        (
            {"action": {"type": "SetStorageClass", "storageClass": "ARCHIVE"}, "condition": {"matchesSuffix": [".pt"]}},
            [("", "moves objects to ARCHIVE (some, by other conditions)")],
        ),
        ({"action": {"type": "Delete"}, "condition": {"isLive": False, "age": 1}}, []),
        ({"action": {"type": "Delete"}, "condition": {"numNewerVersions": 3}}, []),
        ({"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 1}}, []),
        ({}, []),
    ],
)
def test_what_google_tells(rule: dict[str, Any], told: list[tuple[str, str]]):
    assert [(r.prefix, r.does) for r in of_google([rule])] == told


def test_only_what_can_meet_is_told():
    def met(prefix: str) -> bool:
        return bool(reaching([BucketRule("r", prefix, "")], "ckpt/a/", "ckpt/.lifecycle-a/"))

    assert met("") and met("ckpt/") and met("ckpt/a/run") and met("ckpt/.lifecycle-a/trash")
    assert not met("logs/") and not met("ckpt/b/")


@pytest.fixture
def bucket(moto: Server) -> Iterator[tuple[Server, str]]:
    yield moto, moto.new_bucket()


def test_s3_is_asked(bucket: tuple[Server, str]):
    server, name = bucket
    store = S3Store("hot", f"s3://{name}/ckpt", endpoint_url=server.endpoint_url, addressing_style="path")
    assert isinstance(store, Ruled)
    assert store.rules() == (), "a bucket without any"
    rule = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": "ckpt/old"}, "Expiration": {"Days": 7}}
    logs = {"ID": "logs", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 7}}
    server.client.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": [rule, logs]})
    assert store.rules() == (BucketRule("tidy", "ckpt/old", "deletes objects after 7 days"),)
    gone = S3Store("hot", "s3://no-such-bucket-here/p", endpoint_url=server.endpoint_url, addressing_style="path")
    with pytest.raises(StoreError):
        gone.rules()


def test_google_is_asked(apart: Any):
    rule = {"action": {"type": "Delete"}, "condition": {"age": 2}}
    bucket = apart(answer(200, {"name": "b", "lifecycle": {"rule": [rule]}}), answer(200, {"name": "b"}), answer(403))
    assert [r.does for r in bucket.rules()] == ["deletes objects after 2 days"]
    assert list(bucket.rules()) == []
    with pytest.raises(Denied):
        list(bucket.rules())
