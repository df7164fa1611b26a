"""Threads that answer requests: so many at once and no more, each waited for so long and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import BoundedSemaphore, Thread
from typing import TypeVar

from lifecycle.clock import monotonic_ns
from lifecycle.errors import LifecycleError

T = TypeVar("T")
_LOOK_AGAIN_S = 0.01


class Busy(LifecycleError):
    """No thread came free in time, or none answered in time."""

    def __init__(self) -> None:
        super().__init__("no answer in time: the index or a store is slow", code="busy", hint="ask again in a moment")


class Workers:
    """Runs what may wait for a disk or a server, away from the loop that answers health.

    A thread that hangs in a dead mount cannot be ended. It keeps its place, so that such threads do not pile up, and it
    is a daemon, so that it keeps no process.

    Args:
        at_once: how many run at the same time.
        patience_s: how long a request waits, for its turn and its answer together.
    """

    def __init__(self, at_once: int, patience_s: float) -> None:
        self._room, self._patience_s = BoundedSemaphore(at_once), patience_s

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` gives. Raises Busy, and whatever ``work`` raises."""
        end_ns = monotonic_ns() + int(self._patience_s * 1e9)
        while not self._room.acquire(blocking=False):
            if monotonic_ns() >= end_ns:
                raise Busy
            await asyncio.sleep(_LOOK_AGAIN_S)
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()

        def answer(value: T | None, error: BaseException | None) -> None:
            if told.done():
                return
            if error is not None:
                told.set_exception(error)
            else:
                told.set_result(value)  # type: ignore[arg-type]  # None only if that is what ``work`` gives

        def act() -> None:
            value, failure = None, None
            try:
                value = work()
            except BaseException as e:  # told to whoever waits, wherever that is
                failure = e
            finally:
                self._room.release()
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(answer, value, failure)

        Thread(target=act, name="lifecycle-web", daemon=True).start()
        try:
            return await asyncio.wait_for(told, (end_ns - monotonic_ns()) / 1e9)
        except TimeoutError:
            raise Busy from None
