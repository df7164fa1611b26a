"""What is opened once for all who are at it, and closed when nobody is."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from lifecycle.stores.shared import Shared


class Door:
    def __init__(self) -> None:
        self.log: list[str] = []
        self.stuck = False

    @contextmanager
    def opening(self, name: str) -> Iterator[str]:
        self.log.append(f"open {name}")
        if name == "locked":
            raise OSError("locked")
        yield name
        self.log.append(f"close {name}")
        if self.stuck:
            raise OSError("stuck")


def test_the_first_one_opens_and_the_last_one_closes():
    door, shared = Door(), Shared[str]()
    with ExitStack() as one, ExitStack() as two:
        assert one.enter_context(shared.use("a", door.opening)) == "a"
        two.enter_context(shared.use("a", door.opening))
        with shared.use("b", door.opening):
            pass
        one.close()
        assert door.log == ["open a", "open b", "close b"]
    assert door.log[3:] == ["close a"]
    with shared.use("a", door.opening):
        assert door.log[4:] == ["open a"]


def test_what_cannot_be_opened_is_tried_anew_by_the_next_one():
    door, shared = Door(), Shared[str]()
    for _ in range(2):
        with pytest.raises(OSError, match="locked"), shared.use("locked", door.opening):
            pass
    assert door.log == ["open locked"] * 2


def test_it_is_closed_whatever_went_wrong_inside_and_says_what_went_wrong_at_the_end():
    door, shared = Door(), Shared[str]()
    with pytest.raises(KeyError), shared.use("a", door.opening):
        raise KeyError
    assert door.log == ["open a", "close a"]
    door.stuck = True
    with pytest.raises(OSError, match="stuck"), shared.use("a", door.opening):
        pass
    door.stuck = False
    with shared.use("a", door.opening):
        pass
    assert door.log[-2:] == ["open a", "close a"]
