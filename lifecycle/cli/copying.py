"""``recall`` and ``verify``: what people do with copies beside the nightly plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from lifecycle.cli.desk import Desk
from lifecycle.cli.holding import recorder_of
from lifecycle.cli.progress import Meter, bytes_of, pace_of
from lifecycle.cli.selecting import identity, matches
from lifecycle.core.copies import CopyManifest
from lifecycle.core.units import escape, format_bytes, parse_duration, parse_size
from lifecycle.errors import ConfigInvalid, NotFound
from lifecycle.flows.drill import Drilled, drill, newest
from lifecycle.flows.money import currency_of, told_back
from lifecycle.flows.recall import Desk as Place
from lifecycle.flows.recall import Recalled, recall, recall_to
from lifecycle.flows.thaw import Asked, Tell, Wish, ask_back
from lifecycle.flows.verify import Verified, verify_copies
from lifecycle.flows.verify import Wish as Reading
from lifecycle.flows.views import Views
from lifecycle.ports import Intake, Store
from lifecycle.render.archive import Pending, pending_lines
from lifecycle.render.bill import back_text
from lifecycle.render.report import plural
from lifecycle.sizing.bill import Back
from lifecycle.sizing.cost import Load
from lifecycle.sizing.waits import Speed
from lifecycle.world import World

PENDING = 3
"""Ends a recall of what was asked for and is not there yet."""


class Asking(NamedTuple):
    """What was wished for besides, as it was typed."""

    tier: str
    days: int
    weights_only: bool


def bring_home(desk: Desk, what: str, to: Path | None, asking: Asking) -> int:
    """``lifecycle recall``"""
    wish, only = _wished(asking), asking.weights_only
    with desk.world(write=True) as world, bytes_of("Recalling", desk.as_json) as meter:
        home, _, key = identity(world, what).partition(":")
        place = _place(world, meter)

        def bring() -> Recalled:
            if to is None:
                return recall(place, home, key, weights_only=only)
            return recall_to(place, home, key, *_directory(_there(to)), weights_only=only)

        try:
            found = bring()
        except NotFound as e:
            if e.code != "copy_archived":
                raise
            fees: list[Back] = []
            asked = ask_back(place, home, key, wish, _teller(desk, world, wish, fees))
            if asked.restore.state != "there":
                more = (*(() if to is None else ("--to", str(to))), *(("--weights-only",) if only else ()))
                again = desk.typing("recall", asked.id, *more)
                told = asked.source, asked.storage_class, asked.restore, not asked.again, asked.ready_at_ns
                pending = Pending(*told, again)
                desk.answer(_asked_value(asked, fees), pending_lines(pending, world.clock.now_ns(), desk.look))
                return PENDING
            found = bring()
        if problem := recorder_of(world).recalled(found.id, thin=found.part != ""):
            desk.warn(escape(problem))
    where = found.id if to is None else str(to / found.key)
    desk.answer({**found._asdict(), "to": where}, _recalled_lines(found, where, desk, home=to is None))
    return 0


def _place(world: World, meter: Meter) -> Place:
    return Place(
        stores=world.stores,
        intakes=world.intakes,
        journal=world.index.journal,
        views=Views(world.stores, world.index.reader, world.settings.conventions, world.clock),
        clock=world.clock,
        host=world.host,
        engine=world.engine,
        pace=pace_of(world.settings.transfer, meter),
        writer=world.index.writer,
    )


def _wished(asking: Asking) -> Wish:
    tier = asking.tier
    if tier not in list(Speed):
        raise ConfigInvalid(f"--tier: {tier!a} is none of {', '.join(Speed)}", code="usage")
    return Wish(Speed(tier), asking.days)


def _teller(desk: Desk, world: World, wish: Wish, fees: list[Back]) -> Tell:
    """Says what a restore costs before it is asked for, where prices are known, and keeps it in ``fees``."""
    prices = dict(world.settings.prices)

    def tell(store: str, storage_class: str, load: Load) -> None:
        if not prices:
            return
        back = told_back(prices, store, storage_class, load, wish.days)
        back = back._replace(ways=tuple(way for way in back.ways if way.speed == wish.speed))
        fees.append(back)
        listed = f" of {back.as_of}" if back.as_of else ""
        price = f" (price {back.price}{listed})" if back.price else ""
        desk.say(f"Asking for {back_text(back, currency_of(prices))}{price}.")

    return tell


def _asked_value(asked: Asked, fees: list[Back]) -> dict[str, object]:
    return {
        "id": asked.id,
        "source": asked.source,
        "storage_class": asked.storage_class,
        "state": asked.restore.state,
        "asked_at_ns": asked.restore.asked_at_ns,
        "speed": asked.restore.speed,
        "ready_at_ns": asked.ready_at_ns,
        "costs": [back.encode() for back in fees],
        "exit_code": PENDING,
    }


def _there(to: Path) -> Path:
    if not to.is_dir():
        raise ConfigInvalid(f"--to: {str(to)!a} is not a directory", code="usage", hint="make it first")
    return to.absolute()


def _directory(path: Path) -> tuple[Store, Intake]:
    """A directory as a store that takes copies in; what we need on the way lies beside it."""
    from lifecycle.stores.open import StoreSpec, open_intake, open_store

    store = open_store(StoreSpec(name="there", url=str(path), state=str(path.parent / f".lifecycle-{path.name}")))
    return store, open_intake(store)


def _recalled_lines(found: Recalled, where: str, desk: Desk, *, home: bool) -> Iterator[str]:
    size = f"{plural(found.files, 'file')}, {format_bytes(found.bytes)}"
    yield f"{escape(where)} is there again: {size}, read from {escape(found.source)} and equal to what was copied."
    if found.part:
        yield desk.look.odd("It holds the weights alone: no training can resume from it.")
    if home:
        yield "The next plan may move it again: hold it for as long as it is needed here."
        yield ""
        yield desk.look.bold("Next")
        yield f"  {desk.typing('hold', found.id, '--reason', 'TEXT')}"


def try_out(desk: Desk, what: str | None, scratch: Path | None) -> int:
    """``lifecycle drill``"""
    with desk.world(write=True) as world, bytes_of("Drilling", desk.as_json) as meter:
        place = _place(world, meter)
        pattern = None if what is None else identity(world, what)
        done = []
        for home, key in newest(place, lambda one: pattern is None or _below(pattern, one) or matches(pattern, one)):
            with TemporaryDirectory(prefix="lifecycle-drill-", dir=scratch and scratch.absolute()) as room:
                inside = Path(room) / "tree"
                inside.mkdir()
                done.append(drill(place, world.settings.conventions, home, key, *_directory(inside)))
    code = 3 if any(one.fault for one in done) else 0
    desk.answer({"drills": [one._asdict() for one in done], "exit_code": code}, _drilled_lines(done, desk))
    return code


def _drilled_lines(done: list[Drilled], desk: Desk) -> Iterator[str]:
    for one in done:
        if one.archived:
            yield f"archive {escape(one.id)}: its copies are in archives, so it was not tried"
        elif one.fault:
            yield desk.look.bad(f"FAILED  {escape(one.id)}: {escape(one.fault)}")
        else:
            only = ", weights only," if one.part else ""
            size = format_bytes(one.bytes)
            yield f"good    {escape(one.id)}: {size} from {escape(one.source)}{only} laid out and opened"
    if not done:
        yield "No copy here answers to that: there is nothing to try."
    else:
        good = sum(not (one.fault or one.archived) for one in done)
        yield f"{plural(len(done), 'drill')}: {good} could be used at once."


def read_again(desk: Desk, what: str | None, older: str | None, budget: str | None) -> int:
    """``lifecycle verify``"""
    with desk.world(write=True) as world, bytes_of("Reading", desk.as_json) as meter:
        wish = _wish(world, what, older, budget)
        index = world.index
        pace = pace_of(world.settings.transfer, meter)
        found = verify_copies(world.stores, index.reader, index.writer, wish, now_ns=world.clock.now_ns(), pace=pace)
    value = {
        "checks": [check._asdict() for check in found.checks],
        "bytes": found.bytes,
        "left": found.left,
        "archived": found.archived,
        "exit_code": found.exit_code,
    }
    desk.answer(value, _verified_lines(found, desk))
    return found.exit_code


def _wish(world: World, what: str | None, older: str | None, budget: str | None) -> Reading:
    try:
        older_s = 0 if older is None else parse_duration(older)
        budget_bytes = None if budget is None else parse_size(budget)
    except ValueError as e:
        raise ConfigInvalid(f"--older or --budget: {e}", code="usage") from e
    pattern = None if what is None else identity(world, what)

    def wanted(manifest: CopyManifest) -> bool:
        home, place = manifest.checkpoint.id, f"{manifest.place}:{manifest.key}"
        return pattern is None or any(_below(pattern, one) or matches(pattern, one) for one in (home, place))

    return Reading(wanted, older_s, budget_bytes)


def _below(above: str, one: str) -> bool:
    return one == above or one.startswith(above if above.endswith(":") else f"{above}/")


def _verified_lines(found: Verified, desk: Desk) -> Iterator[str]:
    for check in found.checks:
        if check.outcome != "whole":
            words = "DAMAGED" if check.outcome == "rotten" else "UNREAD"
            yield desk.look.bad(f"{words}  {escape(f'{check.store}:{check.key}')}: {escape(check.note)}")
    whole = sum(check.outcome == "whole" for check in found.checks)
    yield (f"{plural(len(found.checks), 'copy')} read ({format_bytes(found.bytes)}): {whole} as copied.")
    if found.left:
        yield f"{found.left} more are due and did not fit into the budget: they come first next time."
    if found.archived:
        yield f"{found.archived} more are in archives and cannot be read without a restore."
    if found.exit_code:
        yield "What is damaged counts for nothing from now on: nothing leaves its home because of it."
