"""The sample trees and the built ones as objects of a real server: they are listed, read and judged as on a disk."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from lifecycle.core.listing import Listing
from lifecycle.core.model import Run
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.stores.s3 import S3Store
from tests.layouts.frameworks import BUILT
from tests.layouts.test_frameworks import look, same
from tests.layouts.test_golden import look as look_at
from tests.layouts.test_golden import same_claims
from tests.servers import Server

THREADS = 16


def put_all(server: Server, bucket: str, objects: dict[str, bytes]) -> None:
    """Small objects, several at a time; through signed addresses, for a client call costs five times as much.

    Metadata comes last, as those who write it have it: a store dates an object by its upload.
    """
    client = server.client
    pool = urllib3.PoolManager(maxsize=THREADS)

    def put(item: tuple[str, bytes]) -> None:
        url = client.generate_presigned_url("put_object", {"Bucket": bucket, "Key": item[0]})
        assert pool.request("PUT", url, body=item[1]).status == 200

    with ThreadPoolExecutor(THREADS) as threads:
        for last in (False, True):
            list(threads.map(put, (item for item in objects.items() if ("metadata" in item[0]) is last)))


FILES = {
    f"{family}/{key}": b"x" * content if isinstance(content, int) else content
    for family, built in BUILT.items()
    for key, content in built.files.items()
}


def sampled(samples: Path) -> dict[str, bytes]:
    """The files of sample trees, one of each kind and not all sizes of them; links are not what a bucket has."""
    paths = [path for path in samples.rglob("*") if path.is_file() and not path.is_symlink()]
    return {f"samples/{path.relative_to(samples).as_posix()}": path.read_bytes() for path in paths}


def seen(server: Server, bucket: str, prefix: str) -> list[Run]:
    """What a survey shows of one prefix."""
    url = f"s3://{bucket}/{prefix}"
    store = S3Store("s", url, endpoint_url=server.endpoint_url, addressing_style="path")
    listing = Listing(store.flavour, {folder.path: folder for folder in store.walk()})
    return survey("s", listing, store.read, Conventions(), url=url)


@pytest.mark.seaweed
def test_the_same_trees_in_a_bucket_give_the_same_claims(seaweed: Server, samples: Path):
    bucket, skeletons = seaweed.new_bucket(), samples / "_skeletons"
    put_all(seaweed, bucket, {**sampled(skeletons), **{f"built/{key}": data for key, data in FILES.items()}})
    same(look({**FILES}), seen(seaweed, bucket, "built"))
    same_claims(look_at(skeletons), seen(seaweed, bucket, "samples"))
