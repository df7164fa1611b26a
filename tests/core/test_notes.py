"""Holds beside the data: read back as they were written, and holding everything where they cannot be read."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Hold
from lifecycle.core.notes import note_name, read_hold, write_hold
from tests.core.worlds import NOW, checkpoint

NAMES = st.text(st.characters(codec=None) | st.sampled_from("\udc80\udcff/:"), max_size=12)
TIMES = st.integers(0, 2**63)


@given(st.builds(Hold, st.just("h1"), NAMES.map("hot:".__add__), NAMES, NAMES, TIMES, st.none() | TIMES, TIMES))
def test_what_was_written_is_read(hold: Hold):
    assert read_hold("hot", note_name("h1"), write_hold(hold)) == hold


def test_a_note_means_the_store_it_lies_in():
    written = write_hold(Hold("h1", "old:a/r", "ann", "paper", 0))
    found = read_hold("new", note_name("h1"), written)
    assert found is not None
    assert found.target == "new:a/r"


def test_other_files_are_no_holds():
    assert read_hold("hot", "other.json", b"{}") is None


GOOD = json.loads(write_hold(Hold("h1", "hot:a/r", "ann", "paper", 0, NOW, 3)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"[" * 100_000,
        json.dumps({**GOOD, "id": "another"}).encode(),
        json.dumps({**GOOD, "target": "no colon"}).encode(),
        json.dumps({**GOOD, "until_ns": "tomorrow"}).encode(),
        json.dumps({**GOOD, "until_ns": 0}).replace(": 0", ": 1e999").encode(),
        json.dumps({**GOOD, "inode": []}).encode(),
        json.dumps({k: v for k, v in GOOD.items() if k != "until_ns"}).encode(),
    ],
)
def test_a_note_that_cannot_be_read_holds_the_store(content: bytes):
    found = read_hold("hot", note_name("h1"), content)
    assert found is not None
    assert found.until_ns is None
    assert found.covers(checkpoint("any/where"))
    assert not found.covers(replace(checkpoint("any/where"), store="cold"))
