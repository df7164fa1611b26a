"""What S3 stores promise, on two servers."""

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import Occupied, StoreError
from lifecycle.ports import Store, Trash
from tests.servers import Server
from tests.stores import contract
from tests.stores.contract import Bench, StoreContract, every_shape, fill, retire, shown, unit_action, unit_keys
from tests.stores.s3_bench import S3Bench


@pytest.fixture
def bench(s3_server: Server) -> S3Bench:
    return S3Bench(s3_server)


class TestS3(StoreContract):
    """All of it, but for what is not possible where nothing can be moved aside."""

    @pytest.mark.parametrize("name", contract.ODD_NAMES)
    def test_odd_names_come_through(self, bench: Bench, name: str):
        if "\n" in name and isinstance(bench, S3Bench) and bench.server.kind == "moto":
            pytest.skip("moto takes no newline in an address")
        super().test_odd_names_come_through(bench, name)

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


def both(bench: S3Bench) -> tuple[Store, Trash]:
    """That the classes fit the ports is for the type checker to say."""
    return bench.store, bench.trash
