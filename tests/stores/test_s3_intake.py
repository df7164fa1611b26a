"""How buckets take copies in: the contract on two servers."""

import pytest

from tests.servers import Server
from tests.stores.intake_contract import AgainContract, ContentsContract, CutContract, WayContract
from tests.stores.s3_bench import OneClient


@pytest.fixture
def bench(s3_server: Server) -> OneClient:
    return OneClient(s3_server)


class TestS3Intake(ContentsContract, WayContract, AgainContract):
    """All but the cuts."""


@pytest.mark.seaweed
class TestS3IntakeCuts(CutContract):
    """Many thousand requests: only the quicker server has to bear them all."""

    @pytest.fixture
    def bench(self, seaweed: Server) -> OneClient:
        return OneClient(seaweed)
