"""How buckets take copies in: the contract on two servers."""

import pytest

from tests.servers import Server
from tests.stores.intake_contract import IntakeContract
from tests.stores.s3_bench import OneClient, S3Bench


@pytest.fixture
def bench(s3_server: Server) -> S3Bench:
    return OneClient(s3_server)


class TestS3Intake(IntakeContract):
    """All of it."""
