"""How often what was let go was wanted again, by the rules that let it go, and what would have kept it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import blake2b
from statistics import median
from typing import NamedTuple

from lifecycle.core.reasons import CODES, Fact, Mark, instead

TEXT_MAX = 200
"""Characters of a rule and of a fact that are kept; what is longer is cut, and closed with a digest of all of it."""

CAUSES_MAX = 32
"""Causes that are kept of one release: no policy has as many rules."""

PRESSURE = "pressure.released"

NEEDED: dict[str, int] = {
    "last.beyond": 0,
    "first.beyond": 0,
    "best.beyond": 0,
    "younger.older": 0,
    "bucket.beyond": 1,
    "incomplete.expired": 1,
    "ended.expired": 0,
}
"""Of marks with a number: which of their facts says how far the rule would have had to reach."""


class How(StrEnum):
    """The ways in which something is let go."""

    DROPPED = "dropped"
    MOVED = "moved"
    """It left a store, and stands on another one."""
    SLIMMED = "slimmed"
    """Only its weights were kept."""


class Sign(StrEnum):
    """How it came to be known that something was wanted again."""

    MISSED = "missed"
    """A person or a job script said that it failed to resume from it."""
    POINTER = "pointer"
    """A scan found a file of a run that names it."""
    UNDO = "undo"
    RECALL = "recall"


class Way(StrEnum):
    """What could be done about it at that time."""

    BACK = "back"
    """It came back, all of it."""
    BACK_THIN = "back_thin"
    """Its weights came back, and no more."""
    UNDO = "undo"
    RECALL = "recall"
    ARCHIVE = "archive"
    """A copy lies in an archive and has to be asked for."""
    RECALL_THIN = "recall_thin"
    """Its weights can be recalled, and no more."""
    NONE = "none"
    UNKNOWN = "unknown"
    """Nobody has looked."""


class Cause(NamedTuple):
    """A rule that did not keep it: the policy, the rule as the policy wrote it then, and the mark's code and facts."""

    policy: str
    rule: str
    code: str = ""
    facts: tuple[Fact, ...] = ()


class Release(NamedTuple):
    """One checkpoint that one plan let go, on however many stores."""

    plan: str
    id: str
    """``store:key``, by its home."""
    at_ns: int
    how: How
    bytes: int
    policies: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    """Empty where they were not written down, as by engines before this was."""
    undone_at_ns: int = 0
    """When the journal says that it was brought back out of the trash; 0: it does not."""
    gone_at_ns: int = 0
    """When the last of it was freed; 0: some of it lies in a trash, or stands elsewhere."""

    @property
    def key(self) -> tuple[str, str]:
        """What it is told from other releases by."""
        return self.plan, self.id

    @property
    def policy(self) -> str:
        """The policies that let it go, in one text."""
        return ", ".join(self.policies)

    @property
    def rule(self) -> str:
        """All rules that let it go, in one text; of a full store pressure alone, to which the others yielded."""
        rules = [cause.rule for cause in self.causes if cause.code == PRESSURE] or [c.rule for c in self.causes]
        return "; ".join(dict.fromkeys(filter(None, rules)))


class Wanted(NamedTuple):
    """Something that was let go was wanted again."""

    sign: Sign
    at_ns: int
    release: Release
    way: Way = Way.UNKNOWN
    by: str = ""
    host: str = ""
    reason: str = ""


# -- as text


def cut(text: str, most: int = TEXT_MAX) -> str:
    """A text of bounded length; two different ones never give the same."""
    if len(text) < most:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[: most - len(digest) - 1]}~{digest}"


def causes_text(causes: Iterable[Cause]) -> str:
    """Causes as they are written down, bounded."""
    rows = [
        (cut(c.policy), cut(c.rule), c.code, [cut(fact) if isinstance(fact, str) else fact for fact in c.facts])
        for c, _ in zip(causes, range(CAUSES_MAX), strict=False)
    ]
    return json.dumps(rows, separators=(",", ":")) if rows else ""


def read_causes(text: str) -> tuple[Cause, ...]:
    """The inverse of ``causes_text``; empty where it is none."""
    try:
        rows = json.loads(text) if text else []
        return tuple(Cause(policy, rule, code, tuple(facts)) for policy, rule, code, facts in rows)
    except (ValueError, TypeError):
        return ()


# -- the tally


class Line(NamedTuple):
    """What became of all that one set of rules let go. Each release counts once, however often it was wanted."""

    policy: str
    rule: str
    released: int = 0
    released_bytes: int = 0
    wanted_bytes: int = 0
    undone: int = 0
    recalled: int = 0
    missed: int = 0
    pointed: int = 0
    """These four by what told of it first."""
    back: int = 0
    back_thin: int = 0
    lost: int = 0
    """Nothing was left to bring back when it was wanted."""
    left: int = 0
    """It could have come back, as far as is known, and has not."""
    usual_age_ns: int | None = None
    """Median of the times until it was first wanted; None where nothing was."""

    @property
    def wanted(self) -> int:
        """How many were wanted again."""
        return self.undone + self.recalled + self.missed + self.pointed

    @property
    def wanted_part(self) -> float | None:
        """The part of what was let go that was wanted again."""
        return self.wanted / self.released if self.released else None


class Remedy(NamedTuple):
    """What a rule would have had to say for some of what was wanted again to stay that night."""

    policy: str
    rule: str
    wanted: int
    """How many this rule let go that were wanted again."""
    instead: str
    """The rule that would have kept ``kept`` of them."""
    kept: int
    others: int
    """How many it would have kept besides that nobody has wanted."""
    others_bytes: int


class Tally(NamedTuple):
    """All lines, those first of which the most was wanted; their sum; and what would have helped."""

    lines: tuple[Line, ...]
    total: Line
    remedies: tuple[Remedy, ...]


class _Case(NamedTuple):
    release: Release
    wants: tuple[Wanted, ...]
    """Oldest first."""


def tally(releases: Iterable[Release], wants: Iterable[Wanted], since_ns: int = 0) -> Tally:
    """Count what was let go since a moment, and what of it was wanted again.

    Args:
        releases: each once.
        wants: in any order; one whose release is not among ``releases`` tells of it itself, for a journal may be lost.
        since_ns: older releases are left out, whenever they were wanted.
    """
    known = {release.key: release for release in releases}
    found: dict[tuple[str, str], list[Wanted]] = {}
    for want in wants:
        found.setdefault(known.setdefault(want.release.key, want.release).key, []).append(want)
    cases = [
        _Case(release, tuple(sorted(_told(release, found.get(key, ())), key=_first)))
        for key, release in known.items()
        if release.at_ns >= since_ns
    ]
    groups: dict[tuple[str, str], list[_Case]] = {}
    for case in cases:
        groups.setdefault((case.release.policy, case.release.rule), []).append(case)
    lines = [_line(policy, rule, some) for (policy, rule), some in groups.items()]
    lines.sort(key=lambda line: (-line.wanted, -line.released, line.policy, line.rule))
    return Tally(tuple(lines), _line("", "", cases), tuple(_remedies(cases)))


def _first(want: Wanted) -> tuple[int, int]:
    return want.at_ns, list(Sign).index(want.sign)


def _told(release: Release, wants: Sequence[Wanted]) -> Iterator[Wanted]:
    """With the undo that the journal knows of, where nobody could write it down."""
    yield from wants
    if release.undone_at_ns and all(want.sign is not Sign.UNDO for want in wants):
        yield Wanted(Sign.UNDO, release.undone_at_ns, release, Way.BACK)


def _line(policy: str, rule: str, cases: Sequence[_Case]) -> Line:
    wanted = [case for case in cases if case.wants]
    signs = [case.wants[0].sign for case in wanted]
    ends = [_end(case) for case in wanted]
    times = [max(0, case.wants[0].at_ns - case.release.at_ns) for case in wanted]
    return Line(
        policy,
        rule,
        released=len(cases),
        released_bytes=sum(case.release.bytes for case in cases),
        wanted_bytes=sum(case.release.bytes for case in wanted),
        undone=signs.count(Sign.UNDO),
        recalled=signs.count(Sign.RECALL),
        missed=signs.count(Sign.MISSED),
        pointed=signs.count(Sign.POINTER),
        back=ends.count(Way.BACK),
        back_thin=ends.count(Way.BACK_THIN),
        lost=ends.count(Way.NONE),
        left=ends.count(Way.UNKNOWN),
        usual_age_ns=int(median(times)) if times else None,
    )


def _end(case: _Case) -> Way:
    """BACK or BACK_THIN, NONE where nothing was left to bring back when it was first asked for, else UNKNOWN."""
    ways = {want.way for want in case.wants}
    for way in (Way.BACK, Way.BACK_THIN):
        if way in ways:
            return way
    gone_ns = case.release.gone_at_ns
    unseen = any(want.way is Way.UNKNOWN and gone_ns and gone_ns <= want.at_ns for want in case.wants)
    return Way.NONE if Way.NONE in ways or unseen else Way.UNKNOWN


def _remedies(cases: Sequence[_Case]) -> Iterator[Remedy]:
    """For each rule with a number: where half of what was wanted would have stayed, and where all of it."""
    reaches: dict[tuple[str, str, str], list[tuple[float, Cause, _Case]]] = {}
    for case in cases:
        for spoken, cause in {(c.policy, c.rule, c.code): c for c in case.release.causes}.items():
            if (reach := _reach(cause)) is not None:
                reaches.setdefault(spoken, []).append((reach, cause, case))
    found = []
    for (policy, rule, _), all_of_it in reaches.items():
        wanted = sorted((row for row in all_of_it if row[2].wants), key=lambda row: row[0])
        for place in sorted({(len(wanted) + 1) // 2, len(wanted)} - {0}):
            reach, cause, _ = wanted[place - 1]
            kept = sum(row[0] <= reach for row in wanted)
            others = [row[2].release.bytes for row in all_of_it if row[0] <= reach and not row[2].wants]
            words = instead(Mark(False, cause.code, cause.rule, cause.facts))
            found.append(Remedy(policy, rule, len(wanted), words, kept, len(others), sum(others)))
    unique = dict.fromkeys(found)  # where half of them already need all of it
    yield from sorted(unique, key=lambda one: (-one.wanted, one.policy, one.rule, one.kept))


def _reach(cause: Cause) -> float | None:
    place = NEEDED.get(cause.code)
    if place is None or cause.code not in CODES or place >= len(cause.facts):
        return None
    fact = cause.facts[place]
    return None if isinstance(fact, str) else fact


def first_lines(found: Tally, most: int) -> tuple[Line, ...]:
    """The first lines of a tally, and where there are more the sum of those, without policy and rule, as the last."""
    named = [line for line in found.lines if line.policy or line.rule]
    lines = tuple(named[:most])
    rest = [*named[most:], *(line for line in found.lines if not (line.policy or line.rule))]
    if not rest:
        return lines
    counts = {name: sum(getattr(line, name) for line in rest) for name in Line._fields[2:-1]}
    return (*lines, Line("", "", **counts))
