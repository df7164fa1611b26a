"""How what was let go comes back: out of a trash, from a copy, out of an archive, thin, or not at all."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lifecycle.core.listing import Flavour
from lifecycle.errors import StoreError
from lifecycle.flows.regret import releases_of
from lifecycle.flows.undo import free_due
from lifecycle.flows.way_back import WayBack, stands, way_back
from lifecycle.layouts.conventions import Conventions
from lifecycle.ports import Trashed
from lifecycle.review.regret import How, Release, Way
from lifecycle.stores.memory import MemoryStore
from tests.flows.place import HOUR, NOW, TIERED, Place, place
from tests.flows.test_classes import GLACIER, desk
from tests.flows.test_thin import MOVE, SLIM, policy, save


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.stores["warm"] = MemoryStore("warm", Flavour.OBJECT)
    for step, days in ((1, 30), (2, 1)):
        made.save("hot", "r", step, days * 24 * HOUR)
    made.policy = TIERED
    yield made
    made.index.close()


def released(made: Place) -> Release:
    """The one thing that a plan of now lets go."""
    assert made.apply(made.plan()).exit_code == 0
    [release] = releases_of(made.index.journal.rows())
    return release


def emptied(made: Place) -> None:
    free_due(made.site.trashes, made.index.journal, (), NOW + 2 * HOUR)
    made.scan("hot")


def way(made: Place, release: Release, **more: Callable[[], list[Trashed]]) -> WayBack:
    trashes = {name: trash.trash for name, trash in made.site.trashes.items()}
    return way_back(release, {**trashes, **more}, desk(made))


def test_out_of_the_trash_first_then_from_a_copy_then_nothing(both: Place):
    release = released(both)
    assert way(both, release) == WayBack(Way.UNDO, "hot:r/step-1", NOW + HOUR)
    assert not stands(both.stores, release, both.index.journal.rows())
    emptied(both)
    assert way(both, release) == WayBack(Way.RECALL, "warm:r/step-1")
    both.stores["warm"].kept_copies.clear()
    assert way(both, release) == WayBack(Way.NONE)


def test_what_is_saved_again_stands(both: Place):
    release = released(both)
    both.save("hot", "r", 1, HOUR)
    rows = both.index.journal.rows()
    assert stands(both.stores, release, rows)
    assert not stands({}, release, rows), "who cannot be asked is taken for gone: a person is told more, not less"
    assert not stands(both.stores, release, [])


def test_out_of_an_archive_it_has_to_be_asked_for(both: Place):
    both.policy = GLACIER
    release = released(both)
    emptied(both)
    found = way(both, release)
    assert (found.way, found.source) == (Way.ARCHIVE, "warm:r/step-1")


def test_a_trash_that_does_not_answer_leaves_it_open(both: Place):
    def silent() -> list[Trashed]:
        raise StoreError("it is not mounted", code="source_unavailable")

    release = released(both)
    both.stores["warm"].kept_copies.clear()
    found = way(both, release, hot=silent)
    assert (found.way, "it is not mounted" in found.doubt) == (Way.UNKNOWN, True)


@pytest.fixture
def heavy(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.conventions = Conventions()
    for step, days in ((1, 30), (3, 3)):
        save(made, step, days)
    yield made
    made.index.close()


def test_of_what_was_moved_thin_only_the_weights_come_back(heavy: Place):
    heavy.policy = policy(MOVE)
    release = released(heavy)
    assert release.how is How.SLIMMED and release.rule == "place: warm (weights)"
    emptied(heavy)
    assert way(heavy, release) == WayBack(Way.RECALL_THIN, "warm:r/checkpoint-1")


def test_what_was_made_thin_where_it_stands_is_told_so(heavy: Place):
    heavy.policy = policy(SLIM)
    release = released(heavy)
    assert release.how is How.SLIMMED and way(heavy, release).way is Way.UNDO
    assert not stands(heavy.stores, release, heavy.index.journal.rows()), "not all of it"
    emptied(heavy)
    assert way(heavy, release) == WayBack(Way.NONE), "its weights stand, and no training can resume from them"
