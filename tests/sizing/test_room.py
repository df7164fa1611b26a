"""What makes room in a cache: laws, whatever is in it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.sizing.room import Entry, Room, make_room

LAW = settings(deadline=None)
"""How busy a machine is says nothing about a law."""
SIZES = st.integers(0, 60)
ENTRIES = st.lists(
    st.builds(
        Entry,
        id=st.uuids().map(str),
        name=st.just("m"),
        bytes=SIZES,
        used_at_ns=st.integers(0, 5),
        in_use=st.sampled_from(["", "", "a process holds it"]),
    ),
    max_size=8,
    unique_by=lambda entry: entry.id,
)
ROOMS = st.builds(
    Room,
    budget_bytes=st.integers(0, 200),
    free_bytes=st.integers(0, 200),
    free_min_bytes=SIZES,
    coming_bytes=SIZES,
    unwritten_bytes=SIZES,
)


def fits(entries: list[Entry], gone: set[Entry], room: Room, wanted_bytes: int) -> bool:
    """Written down anew: what is there, what comes and what is wanted, against the budget and the disk."""
    stays = sum(e.bytes for e in entries if e not in gone)
    free = room.free_bytes + sum(e.bytes for e in gone)
    return (
        stays + room.coming_bytes + wanted_bytes <= room.budget_bytes
        and free - room.unwritten_bytes - wanted_bytes >= room.free_min_bytes
    )


@LAW
@given(ENTRIES, ROOMS, SIZES)
def test_what_is_in_use_never_goes_and_nothing_goes_in_vain(entries: list[Entry], room: Room, wanted: int):
    choice = make_room(entries, room, wanted)
    gone = set(choice.going)
    assert not any(e.in_use for e in gone)
    assert fits(entries, gone, room, wanted) == (choice.short_bytes == 0)
    if fits(entries, set(), room, wanted):
        assert not gone
    elif gone:
        assert not fits(entries, gone - {choice.going[-1]}, room, wanted), "one fewer would have done"


@LAW
@given(ENTRIES, ROOMS, SIZES)
def test_the_least_recently_used_go_first_whatever_the_order_they_come_in(
    entries: list[Entry], room: Room, wanted: int
):
    choice = make_room(entries, room, wanted)
    idle = sorted((e for e in entries if not e.in_use), key=lambda e: (e.used_at_ns, e.id))
    assert list(choice.going) == idle[: len(choice.going)]
    assert make_room(entries[::-1], room, wanted) == choice


@LAW
@given(ENTRIES, ROOMS, SIZES)
def test_what_is_short_is_short_by_that_much(entries: list[Entry], room: Room, wanted: int):
    choice = make_room(entries, room, wanted)
    if choice.short_bytes:
        assert set(choice.going) == {e for e in entries if not e.in_use}
        more = room._replace(
            budget_bytes=room.budget_bytes + choice.short_bytes, free_bytes=room.free_bytes + choice.short_bytes
        )
        assert fits(entries, set(choice.going), more, wanted)
        less = more._replace(budget_bytes=more.budget_bytes - 1, free_bytes=more.free_bytes - 1)
        assert not fits(entries, set(choice.going), less, wanted)


@LAW
@given(ENTRIES, ROOMS, SIZES, st.data())
def test_one_more_in_use_never_takes_another_that_is_newer_in_its_place_without_need(
    entries: list[Entry], room: Room, wanted: int, data: st.DataObject
):
    choice = make_room(entries, room, wanted)
    if not choice.going:
        return
    kept = data.draw(st.sampled_from(choice.going))
    again = make_room([e._replace(in_use="leased") if e == kept else e for e in entries], room, wanted)
    assert kept.id not in {e.id for e in again.going}
