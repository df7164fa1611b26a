"""Rows that another version wrote, or will read: where metrics come from is noted behind them in one column."""

import json
from dataclasses import replace

from lifecycle.core.model import Checkpoint
from lifecycle.index.rows import checkpoint_row, read_checkpoint
from tests.core.worlds import checkpoint

AT = 7
"""The column of the metrics."""
MINE = checkpoint("r/step-1", 1, metrics=(("acc", 0.5), ("loss", float("nan"))), metrics_from=("name", "a\udcff.csv"))


def back(c: Checkpoint, text: str | None) -> Checkpoint:
    row = list(checkpoint_row(c))
    row[AT] = text
    return read_checkpoint(c.store, c.run, row)


def test_where_metrics_come_from_is_read_back():
    one = replace(MINE, metrics_from=("h.csv", "h.csv"))
    for c in (MINE, one, replace(MINE, metrics_from=()), replace(MINE, metrics=(), metrics_from=())):
        assert repr(back(c, checkpoint_row(c)[AT])) == repr(c)


def test_an_engine_that_does_not_know_of_it_reads_the_metrics_as_before():
    found, _ = json.JSONDecoder().raw_decode(checkpoint_row(MINE)[AT])  # all that it ever did
    assert repr(found) == repr([["acc", 0.5], ["loss", float("nan")]])


def test_what_it_wrote_has_no_sources():
    assert back(MINE, '[["acc",0.5]]') == replace(MINE, metrics=(("acc", 0.5),), metrics_from=())
