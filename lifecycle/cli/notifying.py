"""``notify``: puts together who is told at the end of a tick, and sends tests."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lifecycle.cli.desk import Desk
from lifecycle.errors import ConfigInvalid
from lifecycle.flows.news import left_of
from lifecycle.flows.stages import Ticked
from lifecycle.flows.telling import Receiver, Telling
from lifecycle.ports.news import Asked, Filling, Letter, Post, Sent
from lifecycle.render.letters import as_json, as_slack
from lifecycle.render.notice import About, Notice, notice, trial

if TYPE_CHECKING:
    from lifecycle.config.notifying import Notify
    from lifecycle.hooks.deliver import Hook
    from lifecycle.ports.ticks import Ticks
    from lifecycle.world import World

BODIES: dict[str, Callable[[Notice], bytes]] = {"slack": as_slack, "json": as_json}


def telling(desk: Desk, world: World, ticks: Ticks) -> Telling | None:
    """The last stage of a tick; None where nobody wants to be told."""
    found = desk.settings.notify
    if not found:
        return None
    return Telling(
        receivers=[Receiver(str(one.to), frozenset(one.events), one.full_within_s) for one in found],
        last=ticks.last,
        post=lambda made: _post(desk, world.host, found, made),
        look_ahead=lambda within_s, asked: look_ahead(desk, world, within_s, asked),
        now_ns=world.clock.now_ns,
    )


def _hook(desk: Desk, one: Notify) -> Hook:
    from lifecycle.hooks.deliver import Hook

    return Hook(one.to, one.allow_http, one.token, one.sign, desk.seams.env)


def _post(desk: Desk, host: str, receivers: Sequence[Notify], made: Ticked) -> Post:
    """Sends letters about a tick, each in the form that its receiver takes."""
    from lifecycle.hooks.deliver import deliver

    by_name = {str(one.to): one for one in receivers}
    stages, left = tuple(made.stages), left_of(made)
    about = About(host, made.started_at_ns, made.number, made.exit_code, stages, made.plan, made.plan_file, left)

    def post(letters: Sequence[Letter], asked: Asked) -> Sequence[Sent]:
        bodies = []
        for letter in letters:
            one = by_name[letter.to]
            bodies.append((_hook(desk, one), BODIES[one.format](notice(letter.news, about, desk.typing))))
        return deliver(bodies, asked)

    return post


def look_ahead(desk: Desk, world: World, within_s: int, asked: Asked) -> Sequence[Filling]:
    """What `lifecycle forecast` says of the stores of which somebody knows how much they hold.

    Raises:
        LifecycleError: facts are missing, or somebody asked to stop.
    """
    reader = world.index.reader
    samples = (reader.sample(name) for name in world.stores)
    if not (world.settings.capacities or any(s is not None and s.usage.size_bytes for s in samples)):
        return ()
    from lifecycle.cli.foreseeing import DAY_S, foresee

    found = foresee(world, max(1, -(-within_s // DAY_S)), asked)
    return [Filling(shelf.stores, shelf.full) for shelf in found.shelves if shelf.full is not None]


# -- tests


def try_receivers(desk: Desk) -> int:
    """``lifecycle notify test``"""
    from lifecycle.hooks.deliver import deliver

    found = desk.settings.notify
    if not found:
        hint = "in lifecycle.yaml: notify: [{to: env:LIFECYCLE_SLACK_URL, format: slack}]"
        raise ConfigInvalid("there is no notify: nobody is told of anything", code="no_notify", hint=hint)
    made = trial(socket.gethostname(), desk.clock.now_ns())
    sent = deliver([(_hook(desk, one), BODIES[one.format](made)) for one in found])
    bad = sum(not one.done for one in sent)
    code = 0 if not bad else 1 if bad == len(sent) else 3
    told = [{"to": str(one.to), "format": one.format, **came._asdict()} for one, came in zip(found, sent, strict=True)]
    desk.answer({"receivers": told, "exit_code": code}, list(map(_line, found, sent)))
    return code


def _line(one: Notify, sent: Sent) -> str:
    where = f" ({sent.host})" if sent.host else ""
    tries = f" at try {sent.tries}" if sent.tries > 1 else ""
    if sent.done:
        return f"sent: {one.format} to {one.to}{where}: answered {sent.status}{tries}"
    return f"NOT SENT: {one.format} to {one.to}{where}: {sent.text}"
