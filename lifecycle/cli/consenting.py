"""``upcoming``, ``approvals``, ``approve`` and ``reject``: what goes, until when, and who has said what to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lifecycle.cli.acting import confirm
from lifecycle.cli.desk import Desk
from lifecycle.cli.holding import owner_name
from lifecycle.core.consent import signature
from lifecycle.core.units import escape, format_minute, parse_duration
from lifecycle.errors import ConfigInvalid, NotFound
from lifecycle.flows.consents import consent_of
from lifecycle.flows.propose import propose
from lifecycle.flows.upcoming import Asked, When, acted_on, look_ahead
from lifecycle.ports.consents import APPROVED, REJECTED, Answer, Coming, Consents, Outlook, Request
from lifecycle.render.consents import (
    Scene,
    Shown,
    content_lines,
    key_of,
    outlook_lines,
    request_lines,
    state_of,
    word_of,
)
from lifecycle.render.plan import finding_lines
from lifecycle.render.report import reasons, tell

if TYPE_CHECKING:
    from lifecycle.core.plan import Plan
    from lifecycle.world import World

SECOND_NS = 1_000_000_000
ID_MIN = 4
"""So much of a request's id must be typed at least."""


# -- what is going to go


def show_upcoming(desk: Desk, owner: str | None, within: str | None, run: str | None) -> int:
    """``lifecycle upcoming``: by the index alone; of a store that is too full, the trash is looked at besides."""
    asked = Asked(user_id(owner), _span(within), run if run is None or ":" in run else f"*:{run}")
    ticking = desk.settings.tick
    with desk.world(write=False, create=False) as world:
        now_ns, reader = world.clock.now_ns(), world.index.reader
        # Holds beside the data are those of the index as well, and a store that cannot be reached from here would count
        # as held, all of it: then this would promise that nothing goes.
        plan = propose(
            reader,
            world.rules,
            tuple(world.stores),
            holds=reader.holds(),
            now_ns=now_ns,
            engine=world.engine,
            prices=dict(world.settings.prices),
            lying=world.lying,
        )
        consent = consent_of(world.index.consents, world.rules, now_ns, approve_all=ticking.approves)
        when = When(ticking.schedule.after if ticking.schedule else None, ticking.applies)
        outlook = look_ahead(plan, consent, acted_on(reader, tuple(world.stores), plan), asked, when)
        shown = _shown(outlook, plan, world.index.consents)
        scanned = {name: row.scanned_at_ns for name, row in reader.stores().items() if name in world.stores}
    scene = Scene(now_ns, shown, desk.typing, desk.look)
    value = {
        "now_ns": now_ns,
        "next_tick_ns": when.after(now_ns) if when.after else None,
        "applies": when.applies,
        "scanned_at_ns": scanned,
        "coming": [_value(one, scene) for one in outlook.coming],
        "others": outlook.others,
        "unowned": outlook.unowned,
        "unwanted": [notice._asdict() for notice in outlook.unwanted],
        "findings": [f._asdict() for f in plan.findings],
    }
    findings = [f for f in plan.findings if f.severity in ("refusal", "error") or f.code == "usage_unknown"]
    lines = [*outlook_lines(outlook, scene), *_facts(scanned), *finding_lines(findings, desk.look, everything=False)]
    desk.answer(value, lines)
    return 0


def _facts(scanned: dict[str, int]) -> list[str]:
    """What it rests on."""
    if not scanned:
        return []
    oldest = min(scanned, key=lambda name: scanned[name])
    text = (
        f"By what scans saw ({escape(oldest)} at {format_minute(scanned[oldest])}) and the policies here, as of now; "
    )
    return ["", text + "what grows old enough later, or is overtaken by newer ones, comes in then."]


def _shown(outlook: Outlook, plan: Plan, consents: Consents) -> dict[str, Shown]:
    """Reasons, and the request that asks for a yes."""
    open_request = next((request for request in consents.requests() if request.asked), None)
    names = {one.signature for one in consents.content(open_request.id)} if open_request else set()
    ids = {one.action.checkpoint for one in outlook.coming}
    told = {t.id: t for t in map(tell, plan.lines) if t.id in ids}
    found = {}
    for one in outlook.coming:
        asks = open_request is not None and "awaiting_approval" in one.waits and signature(one.action) in names
        answer = open_request.answer if open_request else None
        no = answer.by if asks and answer is not None and answer.word == REJECTED else ""
        why = next(iter(reasons(told[one.action.checkpoint])), "its place is another one")
        found[key_of(one.action)] = Shown(why, open_request.id if asks and open_request else "", no)
    return found


def _value(one: Coming, scene: Scene) -> dict[str, object]:
    a, c, shown = one.action, one.checkpoint, scene.of(one)
    return {
        "id": a.id,
        "verb": a.verb,
        "what": word_of(a),
        "checkpoint": a.checkpoint,
        "run": one.run,
        "step": c.step,
        "bytes": a.bytes,
        "saved_at_ns": c.saved_at_ns,
        "owner": c.owner,
        "at_ns": one.at_ns,
        "due_at_ns": one.due_ns,
        "in_s": None if one.at_ns is None else max(0, one.at_ns - scene.now_ns) // SECOND_NS,
        "waits": list(one.waits),
        "request": shown.request,
        "rejected_by": shown.rejected_by,
        "policies": list(a.policies),
        "why": shown.why,
        "stop": scene.stop(one),
    }


def user_id(name: str | None) -> int | None:
    """The number of a user of this machine. Raises ConfigInvalid."""
    from lifecycle.config.fields import owner
    from lifecycle.config.problems import Bad

    if name is None:
        return None
    if name == "me":
        return os.getuid()
    try:
        return owner(int(name) if name.isdecimal() else name)
    except Bad as e:
        raise ConfigInvalid(f"--owner: {e}", code="usage") from e


def _span(text: str | None) -> int | None:
    try:
        return None if text is None else parse_duration(text) * SECOND_NS
    except ValueError as e:
        raise ConfigInvalid(f"--within: {e}", code="usage") from e


# -- what people are asked, and what they say


def list_requests(desk: Desk) -> int:
    """``lifecycle approvals``"""
    now_ns = desk.clock.now_ns()
    with desk.world(write=False, create=False) as world:
        consents = world.index.consents
        requests = consents.requests()
        value = {"requests": [_request_value(consents, r, now_ns) for r in requests]} if desk.as_json else {}
    desk.answer(value, request_lines(requests, now_ns, desk.look))
    return 0


def _request_value(consents: Consents, request: Request, now_ns: int) -> dict[str, object]:
    facts = {name: part for name, part in request._asdict().items() if name not in ("answer", "actions")}
    return {
        **facts,
        "state": state_of(request, now_ns),
        "answers": [answer._asdict() for answer in consents.answers(request.id)],
        "actions": [action._asdict() for action in consents.content(request.id)],
    }


def approve(desk: Desk, wanted: str, by: str | None, *, yes: bool) -> int:
    """``lifecycle approve``"""
    with desk.world(write=False, create=False) as world:
        request = find(world.index.consents, wanted)
        actions = world.index.consents.content(request.id)
        for line in content_lines(request, actions, desk.look):
            desk.say(line)
        if not request.asked:
            desk.warn("the newest tick did not ask for just this any more: what is still the same of it may go")
        confirm(desk, f"Let {'this' if len(actions) == 1 else f'these {len(actions)}'} go?", yes)
        now_ns = desk.clock.now_ns()
        until_ns = now_ns + desk.settings.tick.approved_for_s * SECOND_NS
        answer = Answer(APPROVED, by or owner_name(), _typist(world), now_ns, until_ns)
        world.index.consents.answer(request.id, answer)
    lines = [
        f"Approved by {escape(answer.by)} until {format_minute(until_ns)}: ticks do what of it is the same then, once.",
        "What was announced still goes on its date, and what is held or has changed does not go.",
        f"To take it back: {desk.typing('reject', request.id[:12])}",
    ]
    desk.answer({"request": request.id, "actions": len(actions), **answer._asdict()}, lines)
    return 0


def reject(desk: Desk, wanted: str, by: str | None) -> int:
    """``lifecycle reject``"""
    with desk.world(write=False, create=False) as world:
        request = find(world.index.consents, wanted)
        now_ns = desk.clock.now_ns()
        answer = Answer(REJECTED, by or owner_name(), _typist(world), now_ns, now_ns)
        world.index.consents.answer(request.id, answer)
    lines = [
        f"Rejected by {escape(answer.by)}: nothing of request {request.id[:12]} goes until somebody approves it.",
        "Should its policy ask for no yes any more, it goes all the same; a hold keeps it.",
    ]
    desk.answer({"request": request.id, "actions": request.actions, **answer._asdict()}, lines)
    return 0


def find(consents: Consents, wanted: str) -> Request:
    """The one request that ``wanted`` names, by its id or the beginning of it. Raises NotFound."""
    found = [request for request in consents.requests() if request.id.startswith(wanted) and len(wanted) >= ID_MIN]
    if len(found) != 1:
        text = f"{len(found)} requests begin with {wanted!a}" if found else f"there is no request {wanted!a}"
        raise NotFound(text, code="no_such_request", hint="`lifecycle approvals` lists them")
    return found[0]


def _typist(world: World) -> str:
    return f"{owner_name()}@{world.host}"
