"""``policy check``: every error in policies with its place, and what is hardly meant on the runs that there are."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lifecycle.cli.desk import CONFIG, Desk
from lifecycle.config.policies import load_policies
from lifecycle.config.problems import InvalidFiles
from lifecycle.config.where import Whereabouts
from lifecycle.core.model import Hold
from lifecycle.core.policy import Policy
from lifecycle.core.units import escape
from lifecycle.errors import LifecycleError, Place
from lifecycle.render.report import plural
from lifecycle.render.table import Look, wrap
from lifecycle.review.lint import static
from lifecycle.review.remarks import WARNING, Remark

STRICT = 1


class _Seen(NamedTuple):
    """What the lint says, and of what."""

    remarks: list[Remark]
    runs: int = 0
    unseen: str = ""
    """Why no index was asked; empty where one was."""


def check_policies(desk: Desk, files: list[Path], *, strict: bool) -> int:
    """``lifecycle policy check``: files alone, or the whole configuration with its policies."""
    try:
        policies = load_policies(files) if files else desk.settings.policies
        seen = _lint(desk, policies, files, strict=strict)
    except InvalidFiles as e:
        return _tell_errors(desk, e)
    where = Whereabouts(policies)
    order = {policy.name: n for n, policy in enumerate(policies)}
    placed = [(where(r.policy, r.at) if r.policy else Place(r.subject), r) for r in seen.remarks]
    placed.sort(key=lambda pair: (order.get(pair[1].policy, len(order)), pair[0].line, pair[0].column, pair[1][2:]))
    told = [(str(place), r) for place, r in placed]
    warnings = sum(r.severity == WARNING for _, r in told)
    code = STRICT if strict and warnings else 0
    value = {
        "problems": [],
        "policies": [{"name": p.name, "source": p.source, "digest": p.digest} for p in policies],
        "remarks": [
            {
                "place": place,
                "policy": r.policy,
                "code": r.code,
                "severity": r.severity,
                "message": r.text,
                "hint": r.hint,
            }
            for place, r in told
        ],
        "runs": None if seen.unseen else seen.runs,
        "not_compared": seen.unseen,
        "exit_code": code,
    }
    desk.answer(value, _lines(policies, told, seen, desk.look))
    return code


def _tell_errors(desk: Desk, error: InvalidFiles) -> int:
    problems = [p._replace(text=desk.seams.secrets.hide(p.text)) for p in error.problems]
    found = [{"place": str(p.place), "message": p.text, "code": p.code} for p in problems]
    lines = [f"{p.place}: {escape(p.text)}" for p in problems]
    desk.answer({"problems": found, "exit_code": error.exit_code}, [*lines, "", plural(len(found), "error")])
    return error.exit_code


def _lint(desk: Desk, policies: Sequence[Policy], files: Sequence[Path], *, strict: bool) -> _Seen:
    """What is to be said of them. Raises InvalidFiles: they do not fit the site."""
    named = desk.config is not None or desk.root is not None
    if files and not named and not CONFIG.exists():
        return _unseen(policies, "there is no lifecycle.yaml here, and none was named")
    if files:
        desk = replace(desk, policies=tuple(files))
        try:
            policies = desk.settings.policies
        except InvalidFiles as e:
            theirs = {Path(policy.source.rpartition(":")[0]).resolve() for policy in policies}
            if named or strict or any(Path(problem.place.file).resolve() in theirs for problem in e.problems):
                raise
            return _unseen(policies, desk.seams.secrets.hide(str(e).partition("\n")[0]))
    try:
        return _compared(desk, policies)
    except LifecycleError as e:
        # Policies are written and reviewed on machines that have no index: there the errors are what counts.
        if strict and e.code != "index_missing":
            raise
        return _unseen(policies, desk.seams.secrets.hide(str(e).partition("\n")[0]))


def _unseen(policies: Sequence[Policy], why: str) -> _Seen:
    return _Seen(static({policy.name: policy for policy in policies}), unseen=why)


def _compared(desk: Desk, policies: Sequence[Policy]) -> _Seen:
    from lifecycle.flows.linting import look_over

    with desk.world(write=False, create=False) as world:
        reader, rules = world.index.reader, replace(world.rules, policies=tuple(policies))
        stores = tuple(world.stores)
        if not any(row.checkpoints for row in reader.stores().values()):
            return _unseen(policies, "the index knows none yet")
        found = look_over(reader, rules, stores, users_of(reader.holds()), world.clock.now_ns())
        return _Seen(found.remarks, found.runs)


def users_of(holds: Sequence[Hold]) -> dict[str, int]:
    """User ids of those who hold something, where this machine knows them."""
    found = {}
    for name in {hold.owner for hold in holds}:
        try:
            found[name] = pwd.getpwnam(name).pw_uid
        except (KeyError, ValueError):
            continue
    return found


def _lines(policies: Sequence[Policy], told: Sequence[tuple[str, Remark]], seen: _Seen, look: Look) -> Iterator[str]:
    """Each policy, what is to be said of it and of the rest, and how many that was."""
    for policy in policies:
        yield f"ok  {escape(policy.name)}  ({escape(policy.source)})"
    yield ""
    for place, remark in told:
        paint = look.odd if remark.severity == WARNING else look.dim
        text = f"{remark.severity}: {remark.text} [{remark.code}]"
        yield from (paint(line) for line in wrap(text, look, indent=2, first=f"{place}: "))
        if remark.hint:
            yield from wrap(remark.hint, look, indent=8, first="  hint: ")
    if told:
        yield ""
    usable = "All of them can be used" if len(policies) != 1 else "It can be used"
    warnings = sum(remark.severity == WARNING for _, remark in told)
    counts = f"; {plural(warnings, 'warning')}, {plural(len(told) - warnings, 'note')}" if told else ""
    yield f"{usable}{counts}."
    if seen.unseen:
        yield f"Not compared with any runs: {escape(seen.unseen)}."
    else:
        yield f"Compared with {plural(seen.runs, 'run')} of the index; no store was asked."
