"""What was let go and wanted again, on both kinds of database: it comes back as it was, once, and outlives much."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.errors import LifecycleError
from lifecycle.index.backup import back_up, put_back
from lifecycle.index.open import Index, on_server, open_index
from lifecycle.review.regret import Cause, How, Release, Sign, Wanted, Way
from tests.index.scenes import NAMES, WORDS, S

SOME = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
MOMENTS = st.integers(0, 2**62)
CAUSES = st.builds(Cause, WORDS, WORDS, st.just("last.beyond"), st.tuples(MOMENTS, WORDS))
RELEASES = st.builds(
    Release,
    plan=WORDS,
    id=NAMES.map(lambda name: f"hot:{name}"),
    at_ns=MOMENTS,
    how=st.sampled_from(How),
    bytes=MOMENTS,
    policies=st.lists(WORDS, max_size=2).map(tuple),
    causes=st.lists(CAUSES, max_size=2).map(tuple),
    undone_at_ns=st.just(0),  # these two the journal tells, for as long as there is one
    gone_at_ns=st.just(0),
)
WANTS = st.builds(Wanted, st.sampled_from(Sign), MOMENTS, RELEASES, st.sampled_from(Way), WORDS, WORDS, WORDS)
GONE = Release("plan", "hot:r/a", S, How.DROPPED, 9, ("p",), (Cause("p", "last: 1", "last.beyond", (2, 1)),))


@SOME
@given(data=st.data())
def test_whatever_is_written_down_comes_back_once_a_sign_and_release(fresh: Callable[[], Index], data: st.DataObject):
    index = fresh()
    wants = data.draw(st.lists(WANTS, max_size=4))
    serial = index.reader.serial()
    kept: dict[tuple[object, Sign], Wanted] = {}
    for want in wants:
        key = want.release.key, want.sign
        assert index.writer.add_wanted(want) is (key not in kept), "a job that tries again says it once"
        kept.setdefault(key, want)
    found = index.reader.wanted()
    assert sorted(map(repr, found)) == sorted(map(repr, kept.values()))
    assert [want.at_ns for want in found] == sorted(want.at_ns for want in found)
    for want in wants:
        assert {w.release.id for w in index.reader.wanted(want.release.id)} == {want.release.id}
    assert index.reader.wanted("hot:of/no/such") == [] and index.reader.serial() == serial, "no plan rests on it"


def test_a_backup_has_it(url: str, tmp_path: Path):
    if on_server(url):
        pytest.skip("tests/index/test_server.py brings back every table of a server")
    want = Wanted(Sign.MISSED, 2 * S, GONE, Way.NONE, "ann", "box", "why")
    with open_index(url, create=True) as index:
        index.writer.add_wanted(want)
    back_up(url, tmp_path / "copy")
    put_back(url, tmp_path / "copy", stamp="now", now_ns=9 * S, replace=True)
    with open_index(url, create=False) as index:
        assert index.reader.wanted() == [want]
        assert not index.writer.add_wanted(want), "it is known there"


def test_an_index_that_is_read_only_says_so(url: str):
    open_index(url, create=True).close()
    with open_index(url, create=False, readonly=True) as index, pytest.raises(LifecycleError):
        index.writer.add_wanted(Wanted(Sign.UNDO, S, GONE, Way.BACK))
