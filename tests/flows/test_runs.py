"""How members are handed to threads: every one once, in runs that are short, and more small ones where they wait."""

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.copies import Member
from lifecycle.core.listing import Flavour
from lifecycle.flows.carry import RUN_BYTES, RUN_MAX, SMALL_AT_ONCE_MAX, SMALL_EACH, Carrier, runs
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake

SIZES = st.lists(st.integers(0, 2 * RUN_BYTES) | st.integers(0, 20), max_size=300)


@given(SIZES, st.integers(1, 64))
def test_each_member_is_in_one_run(sizes: list[int], at_once: int):
    members = [Member(str(n), size, 0) for n, size in enumerate(sizes)]
    found = list(runs(members, at_once))
    assert [member for run in found for member in run] == members
    for run in found:
        assert 1 <= len(run) <= RUN_MAX
        assert len(run) == 1 or sum(member.size_bytes for member in run) <= RUN_BYTES
    assert len(found) >= min(len(members), at_once)


def at_once(source: Flavour, place: Flavour, files: int) -> int:
    stores = MemoryStore("a", flavour=source), MemoryStore("b", flavour=place)
    return Carrier(*stores, MemoryIntake(stores[1]), at_once=files)._small_at_once


def test_more_small_ones_go_at_once_to_and_from_buckets():
    for pair in (Flavour.OBJECT, Flavour.POSIX), (Flavour.POSIX, Flavour.OBJECT):
        assert at_once(*pair, 1) == SMALL_EACH and at_once(*pair, 20) == SMALL_AT_ONCE_MAX
        assert at_once(*pair, 64) == 64
    assert at_once(Flavour.POSIX, Flavour.POSIX, 4) == 4
