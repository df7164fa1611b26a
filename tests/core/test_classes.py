"""Laws of storage classes: whoever wants a copy readable wins, and the proof says nothing of a copy's class."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.classes import WARMEST_FIRST, agreed, archives, obstacle, parted
from lifecycle.core.listing import ARCHIVES, Flavour, Folder, Listing
from lifecycle.sizing.waits import WAITS, Speed
from tests.core.worlds import checkpoint

stores = st.sampled_from(["hot", "warm", "cold"])
names = st.sampled_from(["", *WARMEST_FIRST])
places = st.builds(lambda store, name: f"{store}@{name}" if name else store, stores, names)
several = st.lists(places, max_size=6)


@given(several)
def test_each_store_comes_once_and_nothing_is_made_up(wanted: list[str]):
    found = agreed(wanted)
    assert len({parted(place)[0] for place in found}) == len(found)
    assert set(found) <= set(wanted)
    assert {parted(place)[0] for place in found} == {parted(place)[0] for place in wanted}
    assert agreed(found) == found


@given(several, st.randoms())
def test_the_order_of_policies_means_nothing(wanted: list[str], random):
    mixed = list(wanted)
    random.shuffle(mixed)
    assert set(agreed(mixed)) == set(agreed(wanted))


@given(several, places)
def test_another_wish_never_makes_a_place_colder(wanted: list[str], more: str):
    closed = {parted(place)[0] for place in agreed(wanted) if parted(place)[1] in ARCHIVES}
    after = {parted(place)[0] for place in agreed([*wanted, more]) if parted(place)[1] in ARCHIVES}
    assert after <= closed | ({parted(more)[0]} - {parted(place)[0] for place in wanted})


def test_who_wins():
    assert agreed(["w@GLACIER", "w"]) == ("w",)
    assert agreed(["w", "w@GLACIER_IR"]) == ("w@GLACIER_IR",)
    assert agreed(["w@DEEP_ARCHIVE", "w@GLACIER", "h"]) == ("w@GLACIER", "h")
    assert agreed(["w@STANDARD_IA", "w@STANDARD"]) == ("w@STANDARD",)
    assert agreed(["w@STRANGE", "w@STANDARD_IA"]) == ("w@STANDARD_IA",)


def test_only_archives_are_archives():
    assert archives(["w@GLACIER", "c@DEEP_ARCHIVE"])
    assert not archives(["w@GLACIER", "h"]) and not archives(["w@GLACIER_IR"])


@pytest.mark.parametrize(
    ("now", "wanted", "told"),
    [
        ("STANDARD", "GLACIER", ""),
        ("GLACIER+STANDARD", "GLACIER", ""),
        ("GLACIER", "DEEP_ARCHIVE", "storage_archived"),
        ("GLACIER+STANDARD", "STANDARD", "storage_archived"),
    ],
)
def test_from_where_a_class_can_be_changed(now: str, wanted: str, told: str):
    copy = replace(checkpoint("r/step-1", 1, 0), store="warm", home="hot", storage_class=now)
    assert (obstacle(copy, wanted) or ("",))[0] == told
    assert (obstacle(replace(copy, home=""), wanted) or ("",))[0] == "class_of_original"


def test_every_archive_says_how_long_coming_back_takes():
    assert set(WAITS) == ARCHIVES & set(WARMEST_FIRST)
    assert Speed.EXPEDITED not in WAITS["DEEP_ARCHIVE"]
    for waits in WAITS.values():
        ordered = [waits[speed].most_s for speed in Speed if speed in waits]
        assert ordered == sorted(ordered)


A, PROOF = "GLACIER", "r/s/DONE"


@pytest.mark.parametrize(
    ("classes", "proof", "told"),
    [
        ({}, PROOF, "STANDARD"),
        ({"a": A, "b": A}, PROOF, A),
        ({"a": A, "b": A, "DONE": A}, PROOF, A),
        ({"a": A}, PROOF, "GLACIER+STANDARD"),
        ({"DONE": A}, PROOF, "STANDARD"),
        ({"a": A, "b": A}, None, "GLACIER+STANDARD"),
        ({"a": A, "b": A, "DONE": "X"}, None, "GLACIER+X"),
        ({"a": A, "b": A}, "r/elsewhere", "GLACIER+STANDARD"),
    ],
)
def test_a_class_is_that_of_all_but_the_proof(classes: dict[str, str], proof: str | None, told: str):
    count = 3
    folder = Folder("r/s", ["DONE", "a", "b"], [1] * count, [1] * count, ["e"] * count, classes=classes)
    listing = Listing(Flavour.OBJECT, {"r/s": folder})
    assert listing.storage_class(listing.folders_of("r/s", ()), proof) == told
    assert Listing(Flavour.POSIX, {"r/s": folder}).storage_class([folder], proof) == ""


def test_a_proof_that_is_all_there_is_tells_for_itself():
    folder = Folder("r", ["one", "two"], [1, 1], [1, 1], ["e", "e"], classes={"one": A})
    listing = Listing(Flavour.OBJECT, {"r": folder})
    assert listing.storage_class(listing.folders_of("r/one", ("r/one",)), "r/one") == A
    assert listing.storage_class(listing.folders_of("r/two", ("r/two",)), "r/two") == "STANDARD"
    assert listing.storage_class([], None) == ""
