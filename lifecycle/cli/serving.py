"""``serve``: stays, and does a tick whenever it is due; SIGTERM drains it, SIGHUP has it read its settings now."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lifecycle.cli.acting import Stop
from lifecycle.cli.desk import Desk
from lifecycle.cli.progress import Meter
from lifecycle.cli.ticking import last_began_ns, run_tick, tick_lines, tick_value
from lifecycle.cli.webbing import Around, answering
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, LifecycleError

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings
    from lifecycle.ports.ticks import Stage

STOP, RELOAD = b"s", b"r"
"""What signals ask for."""


def serve(desk: Desk) -> int:
    """``lifecycle serve``"""
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.schedulers.background import BackgroundScheduler

    from lifecycle.service.service import LOUD, Service

    if desk.root is not None:
        raise ConfigInvalid("--root has no schedule: serve needs a lifecycle.yaml", code="usage")
    logging.getLogger("apscheduler").addHandler(logging.NullHandler())  # what it would say is said by the service
    stop, log = Stop(), _fresh(desk).log

    def tell(event: str, text: str, facts: Mapping[str, object]) -> None:
        if event != "tick":
            worst = facts.get("exit_code", 3 * (event in LOUD))
            log.tell(event, worst if isinstance(worst, int) else 1, {"text": text, **facts})
            log.close()
        secrets = desk.seams.secrets
        with suppress(OSError, LifecycleError):  # a service goes on though nobody listens
            if desk.as_json:
                told = {"event": event, **secrets.hide_in({"text": text, **facts})}
                print(json.dumps(told, ensure_ascii=True))
                sys.stdout.flush()
            elif event in LOUD:
                desk.warn(escape(text))
            else:
                desk.say(secrets.hide(text))

    def work(settings: Settings, before: tuple[Stage, ...]) -> None:
        own, hide = _fresh(desk, settings), desk.seams.secrets.hide
        made = run_tick(own, stop, Meter(), tuple(stage._replace(text=hide(stage.text)) for stage in before))
        if desk.as_json:
            tell("tick", f"tick {made.number}", tick_value(made))
            return
        for line in tick_lines(own, made):
            tell("tick", line, {})

    scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone="UTC")
    service = Service(lambda: _fresh(desk).settings, work, scheduler, desk.clock, tell, stop)
    around = Around(lambda: service.settings, lambda: service.trouble, stop, desk.clock.now_ns())
    web = answering(desk, service.settings.http, tell, around)
    with signals(stop) as words, web:
        service.start(last_began_ns(_fresh(desk, service.settings)))
        for word in words:
            if word == STOP:
                break
            service.reload()
        service.drain()  # health is answered meanwhile: what is open may take its time
    return 0


def _fresh(desk: Desk, settings: Settings | None = None) -> Desk:
    """A desk that has read nothing yet, or one with the settings that are given."""
    return replace(desk, given=settings)


@contextmanager
def signals(stop: Stop) -> Iterator[Iterator[bytes]]:
    """What signals ask for, one word each, as they come."""
    # A pipe, since a handler may run in the middle of anything: to write a byte is all that is safe there.
    reading, writing = os.pipe()

    def asked(number: int, frame: object) -> None:
        if number == signal.SIGHUP:
            os.write(writing, RELOAD)
            return
        stop.ask(number, None)
        os.write(writing, STOP)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, asked) for number in numbers}
    try:
        yield iter(lambda: os.read(reading, 1), b"")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
