"""Where one stretch of training ends and the next begins."""

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.lineage import lineages
from tests.core.oracle import split
from tests.core.worlds import HOUR, MINUTE, any_runs, checkpoint

HOURS = 400


def found(*saves: tuple[int | None, float]) -> list[list[int | None]]:
    """Steps of each stretch, for saves of (step, hours after the start)."""
    made = [checkpoint(f"r/s{n}", step, int((HOURS - at) * HOUR)) for n, (step, at) in enumerate(saves)]
    return [[c.step for c in stretch] for stretch in lineages(made).stretches]


def test_nothing_has_no_lineage():
    assert lineages([]).stretches == []


def test_rising():
    assert found((1, 0), (2, 1), (10, 2)) == [[1, 2, 10]]


def test_restarted_into_the_same_directory():
    assert found((1000, 0), (5, 200), (10, 201)) == [[1000], [5, 10]]


def test_rewound_and_past_the_old_peak():
    assert found((100, 0), (200, 5), (300, 10), (250, 20), (350, 25)) == [[100, 200, 300], [250, 350]]


def test_within_an_hour_it_is_only_a_slow_save():
    assert found((200, 0), (100, 0.9), (300, 5)) == [[100, 200, 300]]
    assert found((200, 0), (100, 1.0), (300, 5)) == [[100, 200, 300]]
    assert found((200, 0), (100, 1.1), (300, 5)) == [[200], [100, 300]]


def test_a_higher_one_in_between_hides_no_older_peak():
    assert found((200, 0), (300, 1.9), (100, 2)) == [[200, 300], [100]]


def test_steps_and_not_names_or_text_order():
    assert found((9000, 0), (10000, 1)) == [[9000, 10000]]


def test_without_a_step_it_stands_where_its_time_puts_it():
    assert found((None, 0), (100, 5), (None, 6), (200, 10)) == [[None, 100, None, 200]]
    assert found((900, 0), (None, 5), (100, 10), (None, 11), (200, 20)) == [[900, None], [100, None, 200]]


def test_where_no_time_tells_those_without_a_step_stand_apart():
    assert found((200, 0), (None, 0), (100, 0)) == [[None], [100, 200]]


def test_epochs_only_where_no_step_is_known():
    made = [checkpoint(f"r/s{n}", None, n * 10 * HOUR, epoch=float(n)) for n in (1, 2, 3)]
    assert [[c.epoch for c in s] for s in lineages(made).stretches] == [[3.0], [2.0], [1.0]]
    made.append(checkpoint("r/s4", 7, 40 * HOUR))
    assert len(lineages(made).stretches) == 1


def test_same_second():
    made = [checkpoint(f"r/s{n}", n, 10 * HOUR) for n in (1, 2, 3)]
    assert lineages(made).same_time
    assert not lineages(made[:2]).same_time  # two say little
    assert not lineages([checkpoint(f"r/s{n}", None) for n in (1, 2, 3)]).same_time  # nothing else to go by
    assert not lineages([*made, checkpoint("r/s4", 4, 9 * HOUR)]).same_time


def test_conflict_is_told():
    assert lineages([checkpoint("r/a", 2, 9 * HOUR), checkpoint("r/b", 1, 2 * HOUR)]).conflict
    assert not lineages([checkpoint("r/a", 2, 30 * MINUTE), checkpoint("r/b", 1, 1 * MINUTE)]).conflict


@given(any_runs(most=14), st.randoms(use_true_random=False))
def test_as_the_second_planner_splits(run, random):
    shuffled = list(run.checkpoints)
    random.shuffle(shuffled)
    stretches = [[c.id for c in stretch] for stretch in lineages(shuffled).stretches]
    assert stretches == [[c.id for c in stretch] for stretch in split(list(run.checkpoints))]
    assert sorted(i for stretch in stretches for i in stretch) == sorted(c.id for c in run.checkpoints)
