"""``policy test``: written cases, judged by the core as it judges a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lifecycle.cli.desk import Desk
from lifecycle.config.cases import CasesRead
from lifecycle.config.policies import load_policies
from lifecycle.config.problems import InvalidFiles, Problem, gather, nearest
from lifecycle.core.policy import Policy
from lifecycle.core.protect import Around
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid
from lifecycle.layouts.conduct import rotating
from lifecycle.layouts.slim import refusal
from lifecycle.render.cases import Told, case_lines, case_value, junit
from lifecycle.review.cases import judge

FAILED = 1
TESTS = "tests"
"""Below a directory of policies: files of cases. Nothing reads policies there, so no case is ever taken for one."""


def run_cases(desk: Desk, places: Sequence[Path], report: Path | None) -> int:
    """``lifecycle policy test``"""
    problems: list[Problem] = []
    told: list[Told] = []
    unspoken: list[str] = []
    directories = list(places) or _configured(desk)
    for directory in directories:
        policies = load_policies([directory])
        files = _files(directory)
        spoken: set[str] = set()
        for file in files:
            with gather(problems):
                told += _judged(CasesRead(file), policies, problems, spoken)
        unspoken += [policy.name for policy in policies if files and policy.name not in spoken]
    if problems:
        raise InvalidFiles(problems)
    if not told:
        where = " or ".join(escape(str(directory / TESTS)) for directory in directories)
        hint = "see docs/reviewing.md, and policies/tests of the source for examples"
        raise ConfigInvalid(f"there is no file of cases in {where}", code="no_cases", hint=hint)
    code = FAILED if any(one.failures for one in told) else 0
    if report is not None:
        _write(report, told)
    value = {"cases": [case_value(one) for one in told], "without_cases": unspoken, "exit_code": code}
    desk.answer(value, case_lines(told, unspoken, desk.look))
    return code


def _configured(desk: Desk) -> list[Path]:
    """The directories that the site's policies came from; ``policies`` where no site is named."""
    if desk.config is None and not Path("lifecycle.yaml").exists():
        return [Path("policies")]
    return sorted({Path(policy.source.rpartition(":")[0]).parent for policy in desk.settings.policies})


def _files(directory: Path) -> list[Path]:
    try:
        inside = sorted((directory / TESTS).iterdir())
    except FileNotFoundError:
        return []
    except OSError as e:
        raise ConfigInvalid(f"{escape(str(directory / TESTS))} cannot be read: {e.strerror}", code="unreadable") from e
    return [path for path in inside if path.suffix in (".yaml", ".yml") and path.name[0] != "."]


def _judged(read: CasesRead, policies: Sequence[Policy], problems: list[Problem], spoken: set[str]) -> list[Told]:
    names = [policy.name for policy in policies]
    for i, name in enumerate(read.policies):
        if name not in names:
            text = f"there is no policy {name} in the directory above{nearest(name, names)}"
            problems.append(Problem(read.document.place(("policy", i)), text))
            return []
    around = Around(0, thinning=refusal, rotating=rotating)
    found = []
    for case in read.cases:
        verdict = judge(case, policies, around)
        spoken.update(name for d in verdict.decisions for name in d.policies)
        problems += [Problem(read.document.place(f.at), f.text) for f in verdict.unknown]
        failures = tuple((read.document.place(f.at), f) for f in verdict.failures)
        found.append(Told(read.document.file, verdict, failures))
    return found


def _write(path: Path, told: Sequence[Told]) -> None:
    try:
        path.write_text("\n".join(junit(told)) + "\n", encoding="utf-8")
    except OSError as e:
        raise ConfigInvalid(f"the report cannot be written: {e}", code="unwritable") from e
