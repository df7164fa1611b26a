"""How buckets take copies in: the contract on two servers."""

import pytest

from tests.faults.sweeps import EVERYTHING
from tests.servers import Server
from tests.stores.intake_contract import AgainContract, ContentsContract, CutContract, WayContract
from tests.stores.s3_bench import OneClient


@pytest.fixture
def bench(s3_server: Server) -> OneClient:
    return OneClient(s3_server)


class TestS3Intake(ContentsContract, WayContract, AgainContract):
    """All but the cuts."""


@pytest.mark.seaweed
@pytest.mark.no_cover
class TestS3IntakeCuts(CutContract):
    """Many thousand requests: only the quicker server has to bear them, nothing is measured, and where a cut may be
    made good in several ways it is so in one of them by turns, unless all are asked for.
    """

    @pytest.fixture
    def bench(self, seaweed: Server) -> OneClient:
        made = OneClient(seaweed)
        made.by_turns = not EVERYTHING
        return made
