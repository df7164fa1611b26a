"""The moving line: on a terminal it tells bytes, rate and time left; elsewhere it is silent."""

import io
import sys

import pytest

from lifecycle.cli.progress import Meter, bytes_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_meter_never_has_moved_more_than_all():
    seen: list[tuple[int, int]] = []
    meter = Meter(lambda moved, total: seen.append((moved, total)))
    meter.due(100)
    meter.moved(30)
    meter.spared(50)
    meter.moved(30)
    meter.left(7)
    assert seen == [(0, 100), (30, 100), (30, 50), (60, 60), (60, 67)]


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", screen)
    with bytes_of("Copying", quiet=False) as meter:
        meter.due(4_000_000)
        meter.moved(1_000_000)
    assert "Copying" in screen.getvalue() and "1.0/4.0 MB" in screen.getvalue()


@pytest.mark.parametrize(("screen", "quiet"), [(io.StringIO(), False), (Terminal(), True)])
def test_where_nobody_looks_nothing_is_said(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, quiet: bool):
    monkeypatch.setattr(sys, "stderr", screen)
    with bytes_of("Copying", quiet=quiet) as meter:
        meter.due(10)
        meter.moved(10)
    assert screen.getvalue() == ""
