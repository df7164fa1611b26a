"""What is told of the same scans and acts is the same on both kinds of database, to the last byte."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Run
from lifecycle.index.open import Index
from lifecycle.ports import Usage
from tests.index.scenes import HUGE, STORE, S, checkpoint, content, hold, run_of, runs, scan, start

SOME = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
PICTURES = st.lists(runs(homes=("", "home", "other\udcff")), max_size=3, unique_by=lambda run: run.path)

pytestmark = pytest.mark.postgres


def told(index: Index) -> list[object]:
    """Every answer of the reader and the journal."""
    reader, paths = index.reader, list(index.reader.marks(STORE))
    answers: list[object] = [
        reader.serial(), reader.stores(), reader.marks(STORE), list(reader.runs([STORE])),
        reader.copies(["home", "other\udcff"]), list(reader.pointers([STORE])), reader.missing([STORE]), reader.holds(),
        reader.sample(STORE), reader.samples(STORE), reader.watched(STORE), reader.told(STORE), index.journal.rows(),
        *([reader.everything(STORE, path), reader.history(STORE, path), reader.saves(STORE, path)] for path in paths),
    ]  # fmt: skip
    return [content(index), *map(repr, answers)]


@SOME
@given(pictures=st.lists(st.tuples(PICTURES, st.booleans(), HUGE), min_size=1, max_size=3))
def test_the_same_scans_are_told_the_same(
    fresh_sqlite: Callable[[], Index],
    fresh_postgres: Callable[[], Index],
    pictures: list[tuple[list[Run], bool, int]],
):
    one, other = fresh_sqlite(), fresh_postgres()
    for n, (found, complete, size) in enumerate(pictures, 1):
        results = {
            scan(index, found, at_s=n * 100, complete=complete, usage=Usage(size, size, None, 7))
            for index in (one, other)
        }
        assert len(results) == 1
        assert told(one) == told(other)


def test_a_whole_life_is_told_the_same(fresh_sqlite: Callable[[], Index], fresh_postgres: Callable[[], Index]):
    """Renames, losses, returns, acts, holds, and sizes whose sum no float holds."""
    answers = []
    for index in (fresh_sqlite(), fresh_postgres()):
        steps = [scan(index, [run_of("run", *"abc"), run_of("other", "x")], usage=Usage(9, 3, None, None))]
        moved = checkpoint("kept/best", inode=checkpoint("run/a").inode, epoch=-0.0)
        steps.append(scan(index, [run_of("run", "b"), Run(STORE, "kept", (moved,))], at_s=200, seen=["other"]))
        with index.journal.lease("me", 200 * S, S) as fence:
            row = start(index, checkpoint("run/b"), fence)
            index.journal.end(row, "done", "why", 250 * S)
        index.writer.add_hold(hold())
        large = tuple(checkpoint(f"run/{n}", bytes=2**62 + n, epoch=float(n)) for n in range(9))
        large += (checkpoint("run/B"), checkpoint("run/\udcff"), checkpoint("run/é"), checkpoint("run/z"))
        run = replace(run_of("run"), checkpoints=large)
        steps.append(scan(index, [run], at_s=300, usage=Usage(2**63, 1, 2, 3)))
        answers.append((steps, told(index), [s.ours_bytes for s in index.reader.samples(STORE)]))
    assert answers[0] == answers[1]
    assert "-0.0" not in str(answers)
