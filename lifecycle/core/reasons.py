"""The closed set of reasons: every mark that a decision can carry, with its words for people.

A mark is a code with its facts; the words are made when somebody reads them. ``CODES`` is the whole set; the
page in docs/ is generated from it and tested against it.
"""

from __future__ import annotations

from typing import NamedTuple

from lifecycle.core.units import escape, format_age, format_time

Fact = int | float | str


class Mark(NamedTuple):
    """One reason: whether it keeps, its code, the rule it speaks for, and the facts its sentence needs."""

    keeps: bool
    code: str
    rule: str = ""
    """The rule as the policy writes it, or empty for what no rule can change."""
    facts: tuple[Fact, ...] = ()


class Words(NamedTuple):
    """How a code reads: a sentence, and what would have kept it. ``{0:age}`` and ``{0:time}`` format a fact."""

    why: str
    instead: str = ""


CODES: dict[str, Words] = {
    # keep rules
    "last.kept": Words("number {0} of the newest {1}"),
    "last.beyond": Words("number {0} from the newest; {1} are kept", "last: {0}"),
    "last.held": Words("held, so it takes no place in last {0}"),
    "first.kept": Words("number {0} of first {1}"),
    "first.beyond": Words("number {0}, beyond first {1}", "first: {0}"),
    "final.kept": Words("the last one of a run that has been quiet for {0:age}"),
    "final.running": Words("the run was written to {0:age} ago, so none is final yet"),
    "final.not_last": Words("{0} is the run's last", "a hold"),
    "every.kept": Words("stands for {0} {1}"),
    "every.other": Words("nearest to {0} {1} is {2}, which stands for it"),
    "every.first": Words("first at or after {0} {1} is {2}, which stands for it"),
    "every.inexact": Words("{0} is not a multiple of {1}", "pick: closest"),
    "every.unknown": Words("its {0} is not known, and a missing fact keeps"),
    "best.kept": Words("number {0} of best {1} by {2}: {3:g}"),
    "best.beyond": Words("best {1} by {2} ends at {3:g}, this is {4:g}", "best count: {0}"),
    "best.not_finite": Words("{0} is {1}, which is never best"),
    "best.missing": Words("{0} is not known here, and a missing metric keeps"),
    "best.ignored": Words("{0} is not known here, and the rule says missing: ignore", "missing: keep"),
    "steps.kept": Words("step {0} is listed"),
    "steps.other": Words("step {0} is not listed", "steps: [{0}]"),
    "steps.unknown": Words("its step is not known, and a missing fact keeps"),
    "younger.kept": Words("{0:age} old, younger than {1:age} of {2}"),
    "younger.older": Words("{0:age} old, not younger than {1:age} of {2}", "younger: {{than: over {0:age}}}"),
    "bucket.kept": Words("the newest of {0}, bucket {1} of {2}"),
    "bucket.not_newest": Words("{1} is the newest of {0}, kept or counted there"),
    "bucket.beyond": Words("{0} is bucket {1}, beyond {2}", "{3}: {1}"),
    "name.kept": Words("its name matches {0}"),
    "name.other": Words("its name does not match {0}"),
    "tagged.kept": Words("tagged {0}"),
    "tagged.other": Words("not tagged {0}", "that tag"),
    "keep.all": Words("the policy has no keep list, so it keeps everything"),
    "keep.none": Words("the policy says keep: none", "a keep rule or a hold"),
    "unmatched": Words("no policy applies to it"),
    # protections
    "held": Words("held by {0}: {1} (until {2})"),
    "hold_file": Words("the run is held by a file named {0}"),
    "pointer": Words("{0} points at it ({1})"),
    "leased": Words("a lease file beside it is {0:age} old: somebody is reading it"),
    "uploading": Words("an upload to it is open since {0:time}"),
    "kind.protected": Words("kind {0} goes only where a policy names that kind"),
    "foreign": Words("it holds files of another owner than the run"),
    "members_missing": Words("some of its members have vanished: an alarm, not rubbish"),
    "duplicate": Words("another name leads to the same file or directory, so it is no second copy"),
    "future": Words("it is dated {0:age} in the future, so its age means nothing"),
    "read_only": Words("it stands on {0}, which can only be read"),
    # the floor
    "floor.newest": Words("the newest complete one of its lineage always stays"),
    "floor.full": Words("the newest one that can resume training always stays"),
    "floor.incomplete": Words("nothing in this run is complete, so its newest stays"),
    "floor.promised": Words("what another one goes for has to stay"),
    "floor.live": Words("the run is live, so at least two stay"),
    "rotates.crash": Words("without it {0} would crash at its next rotation, so it stays while its run is at work"),
    "rotates.race": Words("its run is at work, and {0} may be about to rotate: it crashes over what goes meanwhile"),
    "exposed": Words("it is on a node only, and nothing later of its run is durable"),
    # what is not complete
    "unknown.doubtful": Words("neither proven whole nor rubbish: {0}"),
    "unknown.young": Words("whole, but quiet for only {0:age} of {1:age}"),
    "in_progress": Words("still being written: {0}"),
    "doomed": Words("its framework is deleting it: {0}"),
    "incomplete.kept": Words("incomplete ({0}), and the policy has no incomplete rule"),
    "incomplete.young": Words("incomplete ({0}) for {1:age}, deleted after {2:age}"),
    "incomplete.alone": Words("incomplete ({0}), but no later one here is complete"),
    "incomplete.exposed": Words("incomplete ({0}), and what is later and complete is on a node only"),
    "incomplete.part": Words("incomplete ({0}), but {1} has the same name on another store: it may be a part of it"),
    "incomplete.reached": Words("incomplete ({0}), but nothing else shows that the run got past step {1}"),
    "incomplete.expired": Words(
        "incomplete ({0}) for {1:age}, longer than {2:age}", "incomplete: {{delete_after: over {1:age}}}"
    ),
    "grace": Words("changed {0:age} ago, and nothing younger than {1:age} is touched"),
    # ends of runs
    "ended.expired": Words("the run is over: quiet for {0:age}", "a hold, or ended: {{delete_after: over {0:age}}}"),
    # stores that are too full
    "pressure.released": Words(
        "{1} on {0} would be {2:.1f} % used; this is number {4} of {5} that go to bring that to {3:g} %", "a hold"
    ),
    "pressure.yields": Words("it kept this one, and yields to pressure on {0}", "pressure: {{order: ...}} without {1}"),
    "pressure.spared": Words("{1} on {0} comes down to {2:g} % without this one (instead go: {3})"),
    "pressure.waiting": Words("it would go, oldest first, if {1} on {0} were over {2:g} % used"),
    # facts that are missing
    "unjudged": Words("not judged: {0}"),
}


class _Fact:
    """A fact that formats itself for people: ``age`` in nanoseconds, ``time`` as UTC, text escaped."""

    def __init__(self, value: Fact) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        value = self.value
        if isinstance(value, str):
            return escape(value)
        if spec == "age":
            return format_age(int(value))
        if spec == "time":
            return format_time(int(value))
        return format(value, spec)


def why(mark: Mark) -> str:
    """The mark's sentence, without the rule it belongs to."""
    return CODES[mark.code].why.format(*map(_Fact, mark.facts))


def instead(mark: Mark) -> str:
    """What would have kept it, or empty."""
    return CODES[mark.code].instead.format(*map(_Fact, mark.facts))
