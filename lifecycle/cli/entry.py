"""Runs one command line from words to exit code: every failure becomes one line, a hint and a number."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import cast

import typer

from lifecycle.cli.advice_app import advise
from lifecycle.cli.app import app
from lifecycle.cli.backup_app import backup as backup  # noqa: PLC0414 - registers itself
from lifecycle.cli.cache_app import cache_app
from lifecycle.cli.check_app import policy_check as policy_check  # noqa: PLC0414 - registers itself
from lifecycle.cli.consent_app import upcoming as upcoming  # noqa: PLC0414 - registers itself
from lifecycle.cli.desk import Seams, flush
from lifecycle.cli.diff_app import policy_diff as policy_diff  # noqa: PLC0414 - registers itself
from lifecycle.cli.doctor_app import doctor as doctor  # noqa: PLC0414 - registers itself
from lifecycle.cli.export_app import export as export  # noqa: PLC0414 - registers itself
from lifecycle.cli.forecast_app import forecast as forecast  # noqa: PLC0414 - registers itself
from lifecycle.cli.log import silence_others
from lifecycle.cli.metrics_app import metrics as metrics  # noqa: PLC0414 - registers itself
from lifecycle.cli.missed_app import missed as missed  # noqa: PLC0414 - registers itself
from lifecycle.cli.notify_app import notify_app
from lifecycle.cli.report_app import report as report  # noqa: PLC0414 - registers itself
from lifecycle.cli.saving_app import fit, interval
from lifecycle.cli.simulate_app import policy_simulate as policy_simulate  # noqa: PLC0414 - registers itself
from lifecycle.cli.size_app import size as size  # noqa: PLC0414 - registers itself
from lifecycle.cli.tick_app import tick as tick  # noqa: PLC0414 - registers itself
from lifecycle.cli.translate_app import policy_import as policy_import  # noqa: PLC0414 - registers itself
from lifecycle.errors import LifecycleError
from lifecycle.render.redact import Secrets

USAGE = 2
app.add_typer(cache_app, name="cache")
app.add_typer(notify_app, name="notify")
app.command()(interval)
app.command()(fit)
app.command()(advise)
_ClickError = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""What every mistake on a command line is; Typer names only its own kinds of it."""


def run(words: Sequence[str], seams: Seams | None = None) -> int:
    """Run ``lifecycle`` with ``words``; the exit code.

    Args:
        words: the command line after the program's name.
        seams: what tests put in place of the clock, the stores and the environment.
    """
    relax()
    seams = seams or Seams()
    asked = list(words[: words.index("--")] if "--" in words else words)
    failed = _Failure("--json" in asked, seams.secrets)
    silence_others()
    seams.secrets.learn_env(seams.env)
    try:
        code = app(args=list(words), prog_name="lifecycle", standalone_mode=False, obj=seams)
        flush()
        return code if isinstance(code, int) else 0
    except LifecycleError as e:
        return failed(str(e), e.code, e.hint, e.exit_code)
    except BrokenPipeError:
        return _quiet_pipe()
    except KeyboardInterrupt:
        return failed("interrupted", "interrupted", "", 128 + signal.SIGINT)
    except typer.Abort:
        return failed("not confirmed: nothing was done", "not_confirmed", "", 1)
    except typer.Exit as e:
        return e.exit_code
    except _ClickError as e:
        return failed(*_usage(e), USAGE)
    except Exception as e:  # the last line of defence: whatever it is, it is told in one line
        if os.environ.get("LIFECYCLE_DEBUG") == "1":
            sys.excepthook = partial(_show_trace, seams.secrets)
            raise
        hint = "this is a fault of ours; with LIFECYCLE_DEBUG=1 it shows where"
        return failed(f"{type(e).__name__}: {e}", "internal", hint, 1)


def _show_trace(secrets: Secrets, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback quotes whatever a library put into its errors."""
    sys.stderr.write(secrets.hide("".join(traceback.format_exception(kind, error, trace))))


def relax() -> None:
    """Let the collector of cycles look seldom: scans and plans are millions of values that live on, and trees."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)


def _usage(error: BaseException) -> tuple[str, str, str]:
    said: Callable[[], str] = getattr(error, "format_message", lambda: str(error))
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "lifecycle"
    return said().rstrip("."), "usage", f"{path} --help"


class _Failure:
    """Tells of a failure in the form that was asked for."""

    def __init__(self, as_json: bool, secrets: Secrets) -> None:
        self.as_json, self.secrets = as_json, secrets

    def __call__(self, message: str, code: str, hint: str, exit_code: int) -> int:
        message, hint = self.secrets.hide(message), self.secrets.hide(hint)
        try:
            if self.as_json and code not in {
                "output_failed",
                "log_failed",
            }:  # half an answer and an error are no JSON together
                told = {"code": code, "message": message, "hint": hint, "exit_code": exit_code}
                print(json.dumps({"error": told}, ensure_ascii=True))
                sys.stdout.flush()
            else:
                from lifecycle.core.units import escape

                head, *more = message.split("\n")
                print(f"lifecycle: error: {escape(head)}", file=sys.stderr)
                for line in more:
                    print(f"  {escape(line)}", file=sys.stderr)
                if hint:
                    print(f"hint: {escape(hint)}", file=sys.stderr)
        except BrokenPipeError:
            _quiet_pipe()
        except OSError:  # a full disk: there is nowhere to say so but the exit code
            return exit_code
        return exit_code


def _quiet_pipe() -> int:
    """The reader has gone (``| head``): nothing more to say, and nothing to complain about at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return 128 + signal.SIGPIPE
