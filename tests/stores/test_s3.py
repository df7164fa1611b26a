"""What S3 stores promise, on two servers."""

import pytest

from lifecycle.ports import Store, Trash
from tests.servers import Server
from tests.stores import contract
from tests.stores.cloud_contract import BucketContract
from tests.stores.contract import Bench
from tests.stores.s3_bench import OneClient, S3Bench


@pytest.fixture
def bench(s3_server: Server, request: pytest.FixtureRequest) -> S3Bench:
    """With a new client for each store, but in sweeps, which open hundreds."""
    return (OneClient if "cut_short" in request.node.name else S3Bench)(s3_server)


class TestS3(BucketContract):
    """All of it, but for what is not possible where nothing can be moved aside."""

    @pytest.mark.parametrize("name", contract.ODD_NAMES)
    def test_odd_names_come_through(self, bench: Bench, name: str):
        if "\n" in name and isinstance(bench, S3Bench) and bench.server.kind == "moto":
            pytest.skip("moto takes no newline in an address")
        super().test_odd_names_come_through(bench, name)


def both(bench: S3Bench) -> tuple[Store, Trash]:
    """That the classes fit the ports is for the type checker to say."""
    return bench.store, bench.trash
