"""A plan as people read it: its decisions grouped by run, with the reason worth a line; words, no layout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.plan import Plan
from lifecycle.core.reasons import Mark, why

PROTECTED_BY = {
    "held": "held by somebody",
    "hold_file": "held by a file in the run",
    "pointer": "named by a pointer",
    "leased": "being read",
    "uploading": "being uploaded",
    "kind.protected": "of a kind that no policy names",
    "foreign": "with another owner's files",
    "members_missing": "with members that vanished",
    "duplicate": "another name of the same",
    "future": "dated in the future",
    "floor.newest": "as the newest complete one",
    "floor.full": "as the newest to resume from",
    "floor.incomplete": "as the newest, none being complete",
    "floor.promised": "stays in place of another",
    "floor.live": "as the run is live",
    "unknown.doubtful": "not proven whole",
    "unknown.young": "too new to judge",
    "in_progress": "being written",
    "doomed": "left to its framework to delete",
    "incomplete.kept": "incomplete, with no rule for it",
    "incomplete.young": "incomplete, but young",
    "incomplete.alone": "incomplete, with no later complete",
    "incomplete.part": "incomplete, perhaps a part",
    "incomplete.reached": "incomplete, but shows how far it got",
    "grace": "changed just now",
    "keep.all": "as the policy keeps everything",
    "unmatched": "as no policy applies",
    "unjudged": "that could not be judged",
}
"""What a keeping mark that belongs to no keep rule is called where only a few words fit."""

BY = "by "
"""Stands before a rule, so that nobody takes its numbers for a count."""


class Told(NamedTuple):
    """One decision as a plan's file tells it."""

    id: str
    run: str
    """``store:path`` of its run."""
    name: str
    step: int | None
    kind: str
    layout: str
    bytes: int
    saved_at_ns: int
    status: str
    keep: bool
    marks: tuple[tuple[str, Mark], ...]
    """(policy, mark); policy is empty for what holds for all of them."""

    @property
    def keepers(self) -> list[Mark]:
        """Marks that keep it."""
        return [mark for _, mark in self.marks if mark.keeps]

    @property
    def because(self) -> list[Mark]:
        """The marks that decided: the keeping ones of what stays, all others of what goes."""
        return [mark for _, mark in self.marks if mark.keeps == self.keep]


def tell(line: str) -> Told:
    """Read one decision line of a plan."""
    raw = json.loads(line)
    store = raw["id"].partition(":")[0]
    marks = tuple((m["policy"], Mark(m["keeps"], m["code"], m["rule"], tuple(m["facts"]))) for m in raw["marks"])
    return Told(
        id=raw["id"],
        run=f"{store}:{raw['run']}",
        name=raw["name"],
        step=raw["step"],
        kind=raw["kind"],
        layout=raw["layout"],
        bytes=raw["bytes"],
        saved_at_ns=raw["saved_at_ns"],
        status=raw["status"],
        keep=raw["verdict"] == "keep",
        marks=marks,
    )


@dataclass(slots=True)
class RunReport:
    """What a plan does to one run."""

    id: str
    stays: list[Told] = field(default_factory=list)
    goes: list[Told] = field(default_factory=list)
    moves: list[tuple[str, Told]] = field(default_factory=list)
    """What is copied, changes its class or leaves a place, with words for that: ``copy to warm``, ``leave hot``."""

    @property
    def stays_by(self) -> list[tuple[str, int]]:
        """For each keep rule and protection at work here: its words, and how many it keeps; rules first."""
        counts = Counter(words for told in self.stays for words in {keeper(mark) for mark in told.keepers})
        return sorted(counts.items(), key=lambda pair: (not pair[0].startswith(BY), -pair[1], pair[0]))


def keeper(mark: Mark) -> str:
    """A keeping mark in a few words: the rule as the policy writes it, or what protects."""
    return PROTECTED_BY.get(mark.code) or f"{BY}{mark.rule or mark.code}"


def runs_of(plan: Plan) -> list[RunReport]:
    """Every run of a plan, by id; in each, checkpoints in the order they were saved."""
    found: dict[str, RunReport] = {}
    for line in plan.lines:
        told = tell(line)
        report = found.setdefault(told.run, RunReport(told.run))
        (report.stays if told.keep else report.goes).append(told)
    for report in found.values():
        for group in (report.stays, report.goes):
            group.sort(key=_by_age)
    _add_moves(plan, found.values())
    return [found[identity] for identity in sorted(found)]


def _add_moves(plan: Plan, reports: Iterable[RunReport]) -> None:
    """Tell each run what is copied or leaves a place in it."""
    moving = [a for a in plan.actions if a.keeps]
    standing = {t.id: (r, t) for r in reports for t in r.stays} if moving else {}
    for action in moving:
        if action.checkpoint in standing:
            report, told = standing[action.checkpoint]
            report.moves.append((words_of(action), told._replace(bytes=action.bytes) if action.part else told))


def words_of(action: Action) -> str:
    """What is done with a checkpoint that lives on."""
    place = f"{action.to or action.store}@{action.storage_class}" if action.storage_class else action.to
    if action.verb is Verb.SLIM:
        return f"slim on {action.store}"
    if action.verb is Verb.RECLASS:
        return f"change to {place}"
    if action.to:
        return f"copy {'weights ' if action.part else ''}to {place}"
    return f"leave {action.store}{', only weights stay' if action.part else ''}"


def _by_age(told: Told) -> tuple[int, int, str]:
    return (told.saved_at_ns, told.step or 0, told.id)


def reasons(told: Told) -> list[str]:
    """Every reason for what is done with it, in the order of the policy; the first tells most."""
    return list(dict.fromkeys(why(mark) for mark in told.because))


def plural(count: int, word: str) -> str:
    """``1 run``, ``2 runs``, ``3 copies``."""
    if count == 1:
        return f"{count} {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("y") else f"{count} {word}s"


def tally(counts: Iterable[tuple[str, int]]) -> str:
    """``3 by last: 3; 1 named by a pointer``."""
    return "; ".join(f"{count} {words}" for words, count in counts)
