"""What is slow or hangs holds up nobody else, and what is dear is made once: with events in place of time."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from lifecycle.errors import LifecycleError
from lifecycle.service.web import kept
from lifecycle.service.web.kept import Kept, Made
from lifecycle.service.web.workers import Busy, Workers
from tests.service.web.place import Client, Place


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """What hangs until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def test_an_answer_and_a_failure_come_back():
    workers = Workers(1, 10)

    def fails() -> int:
        raise LifecycleError("no", code="no")

    async def ask() -> int:
        with pytest.raises(LifecycleError, match="no"):
            await workers.run(fails)
        return await workers.run(lambda: 7)

    assert asyncio.run(ask()) == 7


def test_who_hangs_keeps_a_place_and_no_more(hang: threading.Event):
    workers = Workers(2, 0.05)

    async def ask() -> int:
        with pytest.raises(Busy):
            await workers.run(hang.wait)
        assert await workers.run(lambda: 7) == 7, "the other place is free"
        with pytest.raises(Busy):
            await workers.run(hang.wait)
        with pytest.raises(Busy):
            await workers.run(lambda: 8)
        hang.set()
        while True:
            try:
                return await workers.run(lambda: 9)
            except Busy:
                continue

    assert asyncio.run(ask()) == 9, "its place comes free when it ends"


def test_a_loop_that_ended_is_told_nothing(hang: threading.Event):
    workers, ended = Workers(1, 0.05), threading.Event()

    def late() -> None:
        hang.wait()
        ended.set()

    async def ask() -> None:
        with pytest.raises(Busy):
            await workers.run(late)

    asyncio.run(ask())
    hang.set()
    assert ended.wait(10)
    assert asyncio.run(workers.run(lambda: 1)) == 1


def test_health_is_told_while_pages_hang(place: Place, hang: threading.Event, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.service.web.app.PATIENCE_S", 0.05)
    monkeypatch.setattr("lifecycle.service.web.app.READY_PATIENCE_S", 0.05)
    views = place.views()
    monkeypatch.setattr(views, "look", hang.wait)
    client = place.client(views=views)

    async def both() -> list[int]:
        paths = ["/ticks"] * 6 + ["/healthz", "/readyz", "/static/style.css"]
        answers = await asyncio.gather(*(client._client.get(path) for path in paths))
        assert answers[7].text == "slow\n"
        return [answer.status_code for answer in answers]

    assert Client.runner.run(both()) == [503] * 6 + [200, 503, 200]


class Maker:
    """Makes a value when it is allowed to."""

    def __init__(self) -> None:
        self.count, self.go, self.error = 0, threading.Event(), False

    def __call__(self) -> int:
        self.go.wait(10)
        self.count += 1
        if self.error:
            raise LifecycleError("it failed")
        return self.count


def settled(get: Callable[[], Made[int] | None], wanted: Made[int]) -> None:
    while get() != wanted:
        pass


def test_it_is_made_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept, "IMPATIENCE_S", 0.01)
    make = Maker()
    one = Kept(make, 1000, 0.01)
    assert one.get("a") is None and one.get("a") is None, "nobody waits for ever"
    make.go.set()
    settled(lambda: one.get("a"), Made(1, False))
    assert one.get("a") == Made(1, False) and make.count == 1
    make.go.clear()
    assert one.get("b") == Made(1, True), "the old one is better than none, and it is said"
    make.go.set()
    settled(lambda: one.get("b"), Made(2, False))


def test_it_is_made_again_when_it_is_old():
    make = Maker()
    make.go.set()
    one = Kept(make, 0, 10)
    assert one.get("a") == Made(1, True) and one.get("a") == Made(2, True)


def test_a_failure_is_told_until_something_changes():
    make = Maker()
    make.go.set()
    make.error = True
    one = Kept(make, 1000, 10)
    for _ in range(2):
        with pytest.raises(LifecycleError, match="it failed"):
            one.get("a")
    assert make.count == 1
    make.error = False
    assert one.get("b") == Made(2, False)
