"""Writes the log, one line an event, on standard error or at the end of a file; what libraries log is not among it."""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.render.log import Event, Level, act_event, failure_event, level_of, stage_event, write_json, write_text
from lifecycle.render.redact import Secrets

if TYPE_CHECKING:
    from types import TracebackType

    from lifecycle.config.log import Logging
    from lifecycle.ports import Clock, JournalRow
    from lifecycle.ports.ticks import Stage


class Log:
    """The log of one command.

    Args:
        how: form, level and place.
        secrets: what is taken out of every line.
        clock: tells when something happened that does not say so itself.
    """

    def __init__(self, how: Logging, secrets: Secrets, clock: Clock) -> None:
        self._write = {"json": write_json, "text": write_text}.get(how.form)
        self._file, self._least = how.file, Level[how.level.upper()]
        self._secrets, self._clock = secrets, clock
        self._lock, self._handle = Lock(), -1
        self._lost = self._untold = 0
        self.tick: int | None = None
        """The number of the tick at work: it stands in each of its lines."""

    @property
    def lost(self) -> int:
        """How many lines could not be written so far."""
        return self._lost

    def act(self, row: JournalRow) -> None:
        """A row of the journal was written. Raises LifecycleError: ``log_failed``."""
        self._say(act_event(row))

    def stage(self, stage: Stage) -> None:
        """A stage of a tick has ended."""
        self._try(stage_event(stage, self._clock.now_ns()))

    def tell(self, name: str, exit_code: int, facts: Mapping[str, object]) -> None:
        """Something else has happened, as grave as an exit code says."""
        self._try(Event(name, level_of(exit_code), self._clock.now_ns(), facts))

    def ended(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """What is logged has ended, by an error where there is one; the file is closed."""
        if isinstance(error, LifecycleError):
            self._try(failure_event(error, self._clock.now_ns()))
        self.close()

    def close(self) -> None:
        """Let go of the file; the next line opens it again."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
            self._handle = -1

    def refuse_lost(self) -> None:
        """Say so where the log is not whole. Raises LifecycleError: ``log_failed``."""
        if self._lost:
            what = "one line" if self._lost == 1 else f"{self._lost} lines"
            text = f"{what} of the log could not be written; the journal has every act all the same"
            raise LifecycleError(text, code="log_failed", hint="`lifecycle ticks` and the journal tell what was done")

    def _try(self, event: Event) -> None:
        with suppress(LifecycleError):  # it is counted, and told at the end
            self._say(event)

    def _say(self, event: Event) -> None:
        if self._write is None or event.level < self._least:
            return
        with self._lock:
            more = {"tick": self.tick, "lines_lost": self._untold or None}
            line = self._write(event._replace(facts=self._secrets.hide_in(event.facts)), more) + "\n"
            try:
                self._put(line)
            except (OSError, ValueError) as e:  # ValueError: a stream that was closed
                self._lost, self._untold = self._lost + 1, self._untold + 1
                text = f"the log cannot be written, so nothing more is begun: {e}"
                raise LifecycleError(text, code="log_failed", hint="make room, or see to `log:`") from e
            self._untold = 0

    def _put(self, line: str) -> None:
        if self._file is None:
            sys.stderr.write(line)
            sys.stderr.flush()
            return
        if self._handle < 0:
            self._handle = _open(self._file)
        content = line.encode("ascii", "backslashreplace")
        # In one piece, so that lines of two processes stand one behind the other; a part of one is no line at all.
        if os.write(self._handle, content) != len(content):
            with suppress(OSError):  # so that the next one does not go on in the middle of this
                os.write(self._handle, b"\n")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _open(path: str) -> int:
    """The file at its end; a new one is its owner's alone, one that is there keeps its mode."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(path, flags, 0o600)
    if not (stat.S_ISREG(mode := os.fstat(handle).st_mode) or stat.S_ISCHR(mode)):
        os.close(handle)
        raise OSError(errno.EINVAL, "neither a file nor a device")
    return handle


def logging_of(how: Logging, asked: str | None) -> Logging:
    """How the log is kept: what was typed, or said by the environment, goes before the settings.

    Raises:
        ConfigInvalid: there is no such form.
    """
    from lifecycle.config.log import FORMS

    if not asked:
        return how
    if asked not in FORMS:
        raise ConfigInvalid(f"{asked!a} is no form of a log", code="usage", hint=f"one of {', '.join(FORMS)}")
    return how._replace(form=asked)


# -- what others log


class _Deaf(logging.Handler):
    """Takes what third parties log, and says nothing of it.

    Without a handler Python prints warnings of all of them on standard error, and with them addresses that carry
    signatures. What failed for us we say ourselves.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Nothing."""


def silence_others() -> None:
    """See to it that no library writes where our lines go, unless whoever embeds us has set up logging."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_Deaf())
