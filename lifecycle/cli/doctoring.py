"""``lifecycle doctor``: looks at the site, the index and each store, and tells what each check came to."""

from __future__ import annotations

import os
import pwd
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.desk import Desk
from lifecycle.core.units import escape, format_age, format_time
from lifecycle.errors import LifecycleError, Refused
from lifecycle.flows.doctor import Check, Found, Patient, Row, Verdict, examine_all, room
from lifecycle.flows.pace import LEASE_NS
from lifecycle.hooks.secrets import NoSecret, secret_of
from lifecycle.layouts.unions import roots_of
from lifecycle.ports import StoreRow, Usage
from lifecycle.ports.ticks import WORDS
from lifecycle.render.report import plural
from lifecycle.render.table import Look, wrap
from lifecycle.world import STATE_NAME, open_one

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings, StoreSettings
    from lifecycle.index.open import Index
    from lifecycle.ports.secret import Reference

FAILED = 1
SILENT_NS = LEASE_NS * 2 // 5
"""How long whoever is at work may give no sign of life: twice as long as a lease is kept without being renewed."""
NOBODY = 65534
"""Whom servers of NFS make of users that they do not know, or of root."""


def examine(desk: Desk) -> int:
    """``lifecycle doctor``"""
    hide = desk.seams.secrets.hide  # what is wrong with settings may be that there is one in them
    rows = [row._replace(text=hide(row.text), hint=hide(row.hint)) for row in _rows(desk)]
    counts = Counter(row.verdict for row in rows)
    code = FAILED if counts[Verdict.FAILED] else 0
    value = {
        "checks": [row._asdict() for row in rows],
        "counts": {verdict.value: counts[verdict] for verdict in Verdict},
        "exit_code": code,
    }
    desk.answer(value, _lines(rows, counts, desk.look))
    return code


def _rows(desk: Desk) -> list[Row]:
    try:
        settings = desk.settings
    except LifecycleError as e:
        first, *more = str(e).split("\n")
        text = f"{first} (and {len(more)} more)" if more else first
        return [Row("site", Check.SETTINGS, Verdict.FAILED, text, e.hint or desk.typing("policy check"))]
    told = f"{plural(len(settings.stores), 'store')}, {plural(len(settings.policies), 'policy')}"
    rows = [Row("site", Check.SETTINGS, Verdict.OK, told), Row("site", Check.ZONES, *_zones(settings))]
    if referred := dict(_referred(settings)):
        rows.append(Row("site", Check.SECRETS, *_secrets(referred, desk.seams.env)))
    with ExitStack() as stack:
        index, found = _index(desk, stack)
        rows.append(Row("index", Check.INDEX, *found))
        lost = found[0] is Verdict.FAILED
        known: dict[str, StoreRow] = {}
        if index is not None:
            rows += [Row("index", check, *told) for check, told in _index_rows(desk, index)]
            known = index.reader.stores()
        with suppress(LifecycleError):  # an index that is no file; that has been told above
            rows.append(Row("index", Check.ROOM, *_room_of(desk.plans.parent)))
        rows += examine_all((spec.name, partial(_patient, desk, spec, index, known, lost)) for spec in settings.stores)
    return rows


def _zones(settings: Settings) -> Found:
    """Settings are only read where every zone is known, so what is told here is which they are."""
    names = {policy.timezone for policy in settings.policies}
    if settings.transfer.window is not None:
        names.add(settings.transfer.window.zone)
    text = f"days are counted in {', '.join(sorted(names)) or 'UTC'}; times are shown in UTC"
    local = _local_zone()
    return Verdict.OK, text if local == "UTC" else f"{text}, local ones here are {local}", ""


def _referred(settings: Settings) -> Iterator[tuple[str, Reference]]:
    """Where settings refer to a secret, and to which."""
    gateway, serving = settings.monitoring.gateway, settings.http
    asked = [("http.token", serving and serving.token), ("monitoring.token", gateway and gateway.token)]
    for receiver in settings.notify:
        asked += [(f"notify.{name}", getattr(receiver, name)) for name in ("to", "token", "sign")]
    yield from ((f"{name} ({reference})", reference) for name, reference in asked if reference)


def _secrets(referred: Mapping[str, Reference], env: Mapping[str, str]) -> Found:
    """Whether what is referred to is there, for whoever runs this here."""
    wrong = []
    for name, reference in referred.items():
        try:
            secret_of(reference, env)
        except NoSecret as e:
            wrong.append(f"{name}: {e}")
    if not wrong:
        return Verdict.OK, f"{plural(len(referred), 'secret')} that settings refer to can be read", ""
    hint = "it may be there for the service alone: then ask where that runs"
    return Verdict.FAILED, "; ".join(wrong), hint


def _local_zone() -> str:
    return time.strftime("%Z")


# -- the index


def _index(desk: Desk, stack: ExitStack) -> tuple[Index | None, Found]:
    from lifecycle.index.open import open_index

    try:
        index = stack.enter_context(open_index(desk.settings.database, create=False, readonly=True))
    except Refused as e:
        if e.code == "index_missing":
            return None, (Verdict.WARNING, "there is none yet", f"the first look makes one: {desk.typing('plan')}")
        return None, (Verdict.FAILED, str(e), e.hint)
    except LifecycleError as e:
        return None, (Verdict.FAILED, str(e), e.hint)
    return index, (Verdict.OK, "it can be read, and its schema is this engine's", "")


def _index_rows(desk: Desk, index: Index) -> Iterator[tuple[Check, Found]]:
    for check, asked in ((Check.LEASE, _lease), (Check.TURN, _turn), (Check.JOURNAL, _journal)):
        try:
            yield check, asked(desk, index)
        except LifecycleError as e:
            yield check, (Verdict.FAILED, str(e), e.hint)


def _lease(desk: Desk, index: Index) -> Found:
    holder, until_ns = index.journal.held()
    if not holder:
        return Verdict.OK, "nobody is at work", ""
    return _held(holder, until_ns, desk.clock.now_ns(), "apply waits for its end")


def _turn(desk: Desk, index: Index) -> Found:
    from lifecycle.index.journal import IndexJournal
    from lifecycle.index.ticks import LEASE, IndexTicks

    holder, until_ns = IndexJournal(index.database, LEASE).held()
    now_ns, last = desk.clock.now_ns(), next(iter(IndexTicks(index.database).last(1)), None)
    if holder:
        since_ns = last.started_at_ns if last is not None and last.ended_at_ns is None else None
        return _held(holder, until_ns, now_ns, "another tick ends with 6 until then", since_ns)
    if last is None:
        return Verdict.OK, "there was no tick yet", ""
    began = f"the last tick, {last.id}, began {format_age(max(0, now_ns - last.started_at_ns))} ago"
    if last.exit_code is None:
        return Verdict.WARNING, f"{began} on {last.host} and was cut short", "the next one recovers what it left open"
    return Verdict.OK, f"{began} and ended with {last.exit_code} ({WORDS[last.exit_code]})", ""


def _held(holder: str, until_ns: int, now_ns: int, meanwhile: str, since_ns: int | None = None) -> Found:
    """Who is at work, or was: a lease is renewed several times within its length, by whoever is alive."""
    if until_ns <= now_ns:
        return Verdict.OK, f"{holder} let it run out {format_age(now_ns - until_ns)} ago: the next one takes it", ""
    since = f" since {format_time(since_ns)}" if since_ns is not None else ""
    text = f"{holder} is at work{since}, until {format_time(until_ns)} at the latest"
    silent_ns = now_ns - (until_ns - LEASE_NS)
    if silent_ns > SILENT_NS:
        text += f"; no sign of life for {format_age(silent_ns)}: it may have died"
    return Verdict.WARNING, text, f"{meanwhile}; after a crash it ends by itself"


def _journal(desk: Desk, index: Index) -> Found:
    if rows := index.journal.started():
        text = f"{plural(len(rows), 'act')} begun and not ended, the first: {rows[0].action.id}"
        return Verdict.WARNING, text, f"unless an apply is at work, this closes them: {desk.typing('scan')}"
    return Verdict.OK, "every act that was begun is ended", ""


def _room_of(place: Path) -> Found:
    there = next(path for path in (place, *place.parents) if path.exists())
    now = os.statvfs(there)
    usage = Usage(
        size_bytes=now.f_blocks * now.f_frsize,
        free_bytes=now.f_bavail * now.f_frsize,
        inodes=now.f_files or None,
        inodes_free=now.f_favail if now.f_files else None,
    )
    return room(usage)


# -- the stores


def _patient(desk: Desk, spec: StoreSettings, index: Index | None, known: dict[str, StoreRow], lost: bool) -> Patient:
    store, trash = open_one(spec, None if index is None else index.reader, desk.seams.wrap)
    owner: Callable[[], Found | None] = lambda: None  # noqa: E731 - one of two
    roots = [Path(url.removeprefix("file://")) for url in roots_of(spec.url) if url.startswith("file://")]
    if roots:
        owner = partial(_owners, roots)
    return Patient(
        store=store,
        trash=trash,
        known=known.get(spec.name),
        clock=desk.clock,
        told=desk.told,
        owner=owner,
        lost=lost,
        blind=index is None and not _placed(spec),
    )


def _placed(spec: StoreSettings) -> bool:
    """Whether our own directory of a store is where it is, whatever an index would say."""
    if spec.state is not None:
        return True
    return all(os.path.lexists(f"{url.removeprefix('file://')}/{STATE_NAME}") for url in roots_of(spec.url))


def _owners(roots: list[Path]) -> Found:
    """What is worst of all roots, and of which of several it is."""
    order = (Verdict.FAILED, Verdict.WARNING, Verdict.OK)
    root, found = min(((root, _owner(root)) for root in roots), key=lambda one: order.index(one[1][0]))
    verdict, text, hint = found
    return found if len(roots) == 1 else (verdict, f"{text} ({root}, one of {len(roots)} roots)", hint)


def _owner(root: Path) -> Found:
    """Whose the root is, and what we may do in it."""
    try:
        found = root.stat()
    except OSError as e:
        return Verdict.FAILED, f"its root cannot be looked at: {e.strerror}", ""
    if not os.access(root, os.R_OK | os.X_OK):
        return Verdict.FAILED, "its root cannot be listed by us", "run as a user who may read it"
    uid, me = found.st_uid, os.geteuid()
    if uid == me:
        return Verdict.OK, "its root belongs to the user we run as", ""
    hint = "the server maps users (root_squash, idmapd), or this machine or container lacks the site's users"
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return Verdict.WARNING, f"its root belongs to user {uid}, of whom this machine does not know", hint
    if uid == NOBODY:
        return Verdict.WARNING, f"its root belongs to {name}", hint
    if me == 0 or os.access(root, os.W_OK):
        return Verdict.OK, f"its root belongs to {name}, and we may write there", ""
    text = f"its root belongs to {name}, and we (user {me}) may not write there: what is directly in it stays"
    return Verdict.WARNING, text, "run as its owner, or leave it to its owner"


# -- the screen

INDENT = 21


def _lines(rows: list[Row], counts: Counter[Verdict], look: Look) -> Iterator[str]:
    paint = {Verdict.FAILED: look.bad, Verdict.WARNING: look.odd, Verdict.UNKNOWN: look.odd, Verdict.OK: look.good}
    for subject, group in groupby(rows, lambda row: row.subject):
        yield look.bold(f"{subject[0].upper()}{subject[1:]}")
        for row in group:
            head = f"  {row.verdict.value:<8} {row.check:<9} "
            first, *more = wrap(escape(row.text), look, indent=INDENT, first=head)
            yield paint[row.verdict](first[: len(head)]) + first[len(head) :]
            yield from more
            if row.hint and row.verdict is not Verdict.OK:
                yield from wrap(escape(f"hint: {row.hint}"), look, indent=INDENT, first=" " * INDENT)
    yield ""
    parts = [f"{counts[v]} {v.value}" for v in Verdict if counts[v]]
    yield f"{plural(len(rows), 'check')}: {', '.join(parts)}."
