"""Sections of a report about whole stores: how full they are and will be, and what the policies save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_age, format_bytes, format_minute
from lifecycle.ports.account import Account, Saving
from lifecycle.ports.levels import Level, used_bytes
from lifecycle.render import charts
from lifecycle.render.document import Chart, Column, Room, Section, Table, Unit
from lifecycle.render.forecast import full_text
from lifecycle.render.plan import Typing
from lifecycle.sizing.bill import money
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.outlook import Shelf

PAST_NS = 30 * DAY_NS
"""So far back samples of how full a store was are drawn."""
OLD_NS = DAY_NS
"""A scan older than this is told of: what was saved since is not in the report."""
SOON_DAYS = 30


def stores(account: Account, typing: Typing) -> Section | None:
    """How full each store is, and when it will be."""
    if not account.whole:
        return None
    shelves = account.forecast.shelves
    days = round((account.forecast.ticks[-1] - account.forecast.ticks[0]) / DAY_NS)
    told = [f"{' and '.join(shelf.stores)}: {full_text(shelf, account.forecast.ticks)}." for shelf in shelves]
    said = (
        f"When a store is full is found by replaying the policies over the saves to come, for {days} days; a range of "
        f"dates is right in 80 of 100 cases. `{typing('forecast')}` tells what was taken for granted."
    )
    unsized = [name for shelf in shelves if shelf.size is None for name in shelf.stores]
    ours = [level.name for level in account.levels if level.told]
    notes = list(account.notes)
    if unsized:
        notes.append(f"Nobody says how much {' and '.join(unsized)} holds: give it a `capacity:` to have that.")
    if ours:
        notes.append(
            f"Used of {' and '.join(ours)} is what our checkpoints use, without the trash; the drawing counts it."
        )
    chart = _chart(account)
    return Section(
        "stores",
        "Stores",
        (*told, *scans(account, typing), *notes, said),
        (chart,) if chart else (),
        (_fill_table(account), _tier_table(account)),
    )


def scans(account: Account, typing: Typing) -> Iterator[str]:
    """What is not known for want of a scan, or of a fresh one."""
    for level in account.levels:
        if level.row is None or not level.row.scanned_at_ns:
            yield f"{level.name} was never scanned: nothing is known of it (`{typing('scan')}`)."
        elif (age_ns := account.now_ns - level.row.scanned_at_ns) > OLD_NS:
            at = format_minute(level.row.scanned_at_ns)
            yield f"{level.name} was last scanned {format_age(age_ns)} ago, at {at}."


def _fill_table(account: Account) -> Table:
    columns = (
        Column("store", "Store"),
        Column("checkpoints", "Checkpoints", Unit.COUNT),
        Column("checkpoint_bytes", "Their size", Unit.BYTES),
        Column("used_bytes", "Used", Unit.BYTES),
        Column("size_bytes", "Holds", Unit.BYTES),
        Column("used_part", "Full", Unit.PART),
        Column("when_full", "When it is full", room=Room.SPARE),
        Column("scanned_at_ns", "Last scan", Unit.TIME_NS, Room.SPARE),
    )
    shelves = {store: shelf for shelf in account.forecast.shelves for store in shelf.stores}
    rows = []
    for level in account.levels:
        mine = [stand for stand in account.stands if stand.tier[0] == level.name]
        shelf = shelves[level.name]
        rows.append(
            (
                level.name,
                sum(stand.checkpoints for stand in mine),
                sum(stand.bytes for stand in mine),
                level.used_bytes,
                level.size_bytes,
                level.part,
                full_text(shelf, account.forecast.ticks),
                (level.row.scanned_at_ns or None) if level.row else None,
            )
        )
    return Table("stores", "Fill", columns, tuple(rows), "No store is configured.")


def _tier_table(account: Account) -> Table:
    found, ticks = account.forecast.tiers, account.forecast.ticks
    soon = min(range(len(ticks)), key=lambda row: abs(ticks[row] - ticks[0] - SOON_DAYS * DAY_NS))
    columns = (
        Column("store", "Store"),
        Column("storage_class", "Class"),
        Column("checkpoints", "Checkpoints", Unit.COUNT),
        Column("checkpoint_bytes", "Now", Unit.BYTES),
        Column("trash_bytes", "Trash tonight", Unit.BYTES, Room.SPARE),
        Column("soon_bytes", f"In {SOON_DAYS} days", Unit.BYTES),
        Column("end_bytes", f"In {round((ticks[-1] - ticks[0]) / DAY_NS)} days", Unit.BYTES),
    )
    stands = {stand.tier: stand for stand in account.stands}
    rows = []
    for tier in sorted(stands.keys() | found.keys()):
        stand, column = stands.get(tier), found.get(tier)
        if stand is None and not (column and any(column.used(row) for row in range(len(ticks)))):
            continue
        ahead = (column.trash[0], column.used(soon), column.used(-1)) if column else (None, None, None)
        rows.append(
            (
                tier[0],
                tier[1],
                stand.checkpoints if stand else 0,
                stand.bytes if stand else 0,
                *(None if size is None else round(size) for size in ahead),
            )
        )
    title = "By storage class, with what is expected after the plans of those nights, trash included"
    return Table("tiers", title, columns, tuple(rows), "Nothing stands anywhere, and nothing is expected to.")


# -- the chart


def _chart(account: Account) -> Chart | None:
    levels = {level.name: level for level in account.levels}
    fills, sizes = [], {}
    for shelf in account.forecast.shelves:
        if not shelf.size or not shelf.bands:
            continue
        name = " and ".join(shelf.stores)
        sizes[name] = shelf.size
        past = _past(account, shelf, levels[shelf.stores[0]])
        fills += [charts.Fill(day, name, size, size, size) for day, size in past]
        days = [_day(at_ns) for at_ns in account.forecast.ticks]
        fills += [
            charts.Fill(day, name, band.low, band.median, band.high)
            for day, band in zip(days, shelf.bands, strict=False)
        ]
    if not fills:
        return None
    told = "; ".join(
        f"{name}: {format_bytes(mine[0])} at first, {format_bytes(mine[-1])} at the end, of {format_bytes(sizes[name])}"
        for name in sizes
        if (mine := [fill.middle_bytes for fill in fills if fill.place == name])
    )
    return Chart("occupancy", "What each store held and will hold", charts.occupancy(fills, sizes), f"{told}.")


def _past(account: Account, shelf: Shelf, level: Level) -> Sequence[tuple[date, int]]:
    """The last look of each day before today."""
    by_day: dict[date, int] = {}
    for sample in level.samples:
        # A size that was only declared says nothing of what others use: what is ours is the past then.
        size = sample.ours_bytes if shelf.declared else used_bytes(sample)
        if size is not None and account.now_ns - PAST_NS <= sample.at_ns <= account.now_ns:
            by_day[_day(sample.at_ns)] = size
    by_day.pop(_day(account.now_ns), None)
    return sorted(by_day.items())


def _day(at_ns: int) -> date:
    return datetime.fromtimestamp(at_ns / SECOND_NS, UTC).date()


# -- what is saved


def savings(account: Account, typing: Typing) -> Section | None:
    """What stands against keep-everything."""
    if not account.whole:
        return None
    columns = (
        Column("store", "Store"),
        Column("now_bytes", "Now", Unit.BYTES),
        Column("everything_bytes", "Keep-everything", Unit.BYTES),
        Column("saved_bytes", "Saved", Unit.BYTES),
        Column("removed_checkpoints", "Removed", Unit.COUNT),
        Column("now_month_micro", "A month now", Unit.MONEY, Room.SPARE),
        Column("everything_month_micro", "A month, all kept", Unit.MONEY, Room.SPARE),
        Column("saved_month_micro", "Saved a month", Unit.MONEY),
    )
    rows = tuple(
        (
            one.store,
            one.now_bytes,
            one.everything_bytes,
            one.everything_bytes - one.now_bytes,
            one.removed,
            one.now_month,
            one.everything_month,
            saved_month(one),
        )
        for one in account.savings
    )
    return Section(
        "savings",
        "Savings against keep-everything",
        tuple(_saved_sentences(account, typing)),
        tables=(Table("savings", "By store", columns, rows, "No store is configured."),),
    )


def saved_month(one: Saving) -> int | None:
    """What a month costs less; None where not all of it has a price."""
    known = one.now_month is not None and one.everything_month is not None
    return (one.everything_month or 0) - (one.now_month or 0) if known else None


def saved_text(account: Account) -> str:
    """What all stores together save, in a sentence."""
    saved = sum(one.everything_bytes - one.now_bytes for one in account.savings)
    everything = sum(one.everything_bytes for one in account.savings)
    if not any(one.removed for one in account.savings):
        return "Nothing was removed so far, so nothing is saved yet."
    by = f"{format_bytes(abs(saved))} {'less' if saved >= 0 else 'more'}"
    text = f"Had nothing ever gone or moved, it would be {format_bytes(everything)}: what stands is {by}."
    months = [month for one in account.savings if (month := saved_month(one)) is not None]
    if not months:
        return text
    spared = sum(months)
    costs = f"{money(abs(spared), account.currency)} {'less' if spared >= 0 else 'more'}"
    where = "" if len(months) == len(account.savings) else ", where stores have a price"
    return f"{text} A month costs {costs}{where}."


def _saved_sentences(account: Account, typing: Typing) -> Iterator[str]:
    yield saved_text(account)
    since = account.deeds.first_ns
    yield "Keep-everything is a supposition: all that stands where it was saved, and all that our acts took from there."
    begun = f" The first act was at {format_minute(since)}." if since is not None else ""
    yield (
        "Copies that we made are in what stands now, and so is the trash, which still uses space. What frameworks or "
        f"people removed themselves is in neither.{begun}"
    )
    unpriced = [one.store for one in account.savings if saved_month(one) is None]
    if unpriced:
        yield f"Not all of {', '.join(unpriced)} has a price, so money is not told of it (`price:` of a store)."
    else:
        yield "Amounts are what a month of storage costs at today's prices, without requests, reading and egress."
    found, end = account.forecast, round((account.forecast.ticks[-1] - account.forecast.ticks[0]) / DAY_NS)
    yield (
        f"Ahead: in {end} days {format_bytes(found.kept)} are expected, trash included; were nothing deleted from now "
        f"on, {format_bytes(found.everything)} (`{typing('forecast')}`)."
    )
