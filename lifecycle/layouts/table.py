"""The shape of the registry: one row a layout, and the verdict that judging one unit by its row yields."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple

from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole, Shape
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.parts import PLAIN, Roles
from lifecycle.layouts.peek import Peek

STEP_MAX = 2**63 - 1
"""What a step must fit into in the database."""


def row(pattern: str) -> re.Pattern[str]:
    """A pattern over one whole base name; digits are ASCII digits and ``.`` is any character of a name.

    It never matches ``/``, so that it can also be searched in names joined by slashes.
    """
    closed = re.sub(r"\\.|\[[^\]]*\]|\.", lambda m: "[^/]" if m[0] == "." else m[0], pattern)
    return re.compile(closed, re.ASCII | re.DOTALL)


class Named(NamedTuple):
    """What a name alone says."""

    step: int | None = None
    epoch: float | None = None
    metrics: tuple[tuple[str, float], ...] = ()
    saved_at_ns: int = 0
    flags: tuple[str, ...] = ()
    head: str = ""
    """The part of the name that people choose: whose run it is of."""


class Mention(NamedTuple):
    """A checkpoint named by text: in a pointer file, a link, or inside another checkpoint."""

    role: PointerRole
    text: str
    on_dangle: OnDangle = OnDangle.UNKNOWN
    form: str = "text"


Memory = Callable[[Peek, str, int], Sequence[Mention]]
"""(peek, key, size in bytes) of a unit's one file or of its proof -> what that says of other units."""


class Verdict(NamedTuple):
    """What the content of one unit says."""

    evidence: Evidence
    why: str
    proof: str | None = None
    """Path of the proof relative to the directory, or name of the proving file of a group."""
    kind: Kind | None = None
    step: int | None = None
    epoch: float | None = None
    metrics: tuple[tuple[str, float], ...] = ()
    told_by: str = ""
    """The file in the unit that brought the metrics."""
    flags: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    """Other checkpoints of the run that this one names; only the newest one's count."""
    needs: tuple[str, ...] = ()
    """What this one is useless without, as written."""
    roles: Roles = PLAIN

    def but(self, evidence: Evidence, why: str, *flags: str) -> Verdict:
        """The same with another evidence; a proof that proves nothing is no proof."""
        proof = self.proof if evidence is Evidence.PROVEN else None
        return self._replace(evidence=evidence, why=why, proof=proof, flags=(*self.flags, *flags))


def by_groups(match: re.Match[str]) -> Named:
    """Step, epoch and head from the groups of those names, where the pattern has them."""
    groups = match.groupdict()
    step, flags = whole_number(groups.get("step"))
    return Named(step, finite(groups.get("epoch")), flags=flags, head=groups.get("head") or "")


def whole_number(text: str | None) -> tuple[int | None, tuple[str, ...]]:
    """A step from digits; one that no database can hold is told as an odd name and not used."""
    if not text:
        return None, ()
    if len(text) > 4000 or int(text) > STEP_MAX:
        return None, ("name_unusual",)
    return int(text), ()


def finite(text: str | None) -> float | None:
    """A number from text, None where there is none; never NaN or infinite."""
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < float("inf") else None


class Rotation(StrEnum):
    """What a framework does when its own rotation comes to a unit that went before (its source says so)."""

    GUARDED = "guarded"
    """Goes on: it deletes nothing itself, looks before it deletes, or passes over what is gone."""
    CRASHES = "crash"
    """Fails: it holds what it retains in memory or in a list of its own, and expects all of that."""
    RACES = "race"
    """Lists anew at each save, and fails only over what goes between its look and its own deletion."""


@dataclass(frozen=True, slots=True, eq=False)
class Tracker:
    """A file or link beside the units that names one of them.

    ``parse`` turns its text into what it mentions; a link's text is the only thing it mentions. A link
    whose name no tracker matches is still a pointer when it leads to a unit.
    """

    file: re.Pattern[str]
    role: PointerRole
    on_dangle: OnDangle = OnDangle.UNKNOWN
    parse: Callable[[str], Sequence[Mention]] | None = None
    """None: this is a link."""
    own: bool = False
    """Whether it counts only beside units of its own layout: other frameworks use the name, or people do."""


class Begun(Enum):
    """What an empty directory with a layout's name is."""

    NEVER = "never"
    """Nothing: the framework renames into place, or anything may have such a name."""
    BESIDE = "beside"
    """A save that has just begun, where a unit of the same layout stands beside it."""
    ALONE = "alone"
    """A save that has just begun: nobody else uses such names."""


@dataclass(frozen=True, slots=True, eq=False)
class DirLayout:
    """A layout whose unit is a directory with all below it.

    The first row whose name, place and evidence hold claims the directory; only when none does are the
    traces tried, and after them the bare name of an empty directory. Patterns are those of ``Inside``.
    """

    name: str
    unit: re.Pattern[str]
    """Over the whole base name; named groups ``step``, ``epoch`` and ``head`` are read."""
    evidence: tuple[str, ...]
    """Content of which any one shows that the directory is this layout's."""
    traces: tuple[str, ...] = ()
    """Content that shows it only if nothing else explains it: a save that has begun or was cut short."""
    along: tuple[str, ...] = ()
    """Content that must be there as well, each of it, where the evidence alone is too common."""
    unlike: tuple[str, ...] = ()
    """Content that shows that it is another layout's, whatever else is there."""
    beside: tuple[str, ...] = ()
    """What must stand in the parent directory, any one of it."""
    where: re.Pattern[str] | None = None
    """Over the key of the parent directory."""
    begun: Begun = Begun.NEVER
    needs: tuple[str, ...] = ()
    """Each must be there, and none of its files empty."""
    proof: str | None = None
    """The file that is written last."""
    writing: tuple[str, ...] = ()
    """Content whose presence says that it is still being written."""
    kind: Kind = Kind.FULL
    fleeting: re.Pattern[str] | None = None
    """Names that the framework uses while it is writing; groups as in ``unit``."""
    named: Callable[[re.Match[str]], Named] = by_groups
    refine: Callable[[Inside, Verdict], Verdict] | None = None
    """What a table cannot say; it gets what the table said."""
    trackers: tuple[Tracker, ...] = ()
    pinned: re.Pattern[str] | None = None
    """Names of units that the framework itself means to keep for ever."""
    pin: str | None = None
    """Name of the file in a unit with which the framework says so."""
    members: tuple[str, ...] = ()
    """What a unit must have if another unit of the run has it: a composite that lost one is no smaller unit."""
    unranked: bool = False
    """Whether the proof says nothing of the ranks: then a proven one that alone lacks some is doubtful, too."""
    peers: bool = False
    """Only another unit with the same ``ranks`` tells whether one has them all."""
    ranks: str | None = None
    """Files or directories, one a rank: a unit that alone lacks some of them is doubtful."""
    portions: bool = False
    """Whether they hold one state between them, and no copies: then several units that lack some are doubtful, too,
    unless their bytes show a smaller world."""
    memory: Memory | None = None
    """Asked of the newest unit of a run only, for it costs reads."""
    rotation: Rotation = Rotation.GUARDED

    @property
    def any_name(self) -> bool:
        """Whether the name says nothing: only the content tells."""
        return self.unit.fullmatch("\0") is not None


class Batch(NamedTuple):
    """Files of one directory that make up one unit."""

    stem: str
    sizes: dict[str, int]
    """Size in bytes by name."""
    matches: tuple[re.Match[str], ...]
    folder: str
    """Key of the directory."""
    text: str
    """All names in the directory, joined."""
    peek: Peek
    dirs: tuple[str, ...] = ()
    """Names of the directories in the same one."""
    due: tuple[str, ...] = ()
    """Directories in which a file of it should be, where its files are spread over some."""


@dataclass(frozen=True, slots=True, eq=False)
class FileLayout:
    """A layout whose unit is a file, or a group of files with a common stem, in one directory."""

    name: str
    member: re.Pattern[str]
    """Over the whole base name; the group ``stem`` names the unit, without one the whole name does."""
    judge: Callable[[Batch], Verdict]
    shape: Shape = Shape.FILE
    credible: Callable[[str, str], bool] | None = None
    """(joined names, folder key): whether files here may be claimed at all; names alone mislead."""
    named: Callable[[re.Match[str]], Named] = by_groups
    run_of: Callable[[str], str] | None = None
    """From the folder's key to the run's, where a name with a slash made a sub-directory."""
    trackers: tuple[Tracker, ...] = ()
    lasting: re.Pattern[str] | None = None
    """Names of full copies that a framework resumes from by name: they point at themselves."""
    stem_of: Callable[[re.Match[str]], str] | None = None
    """Name of a member's unit where no one piece of the member's name is."""
    members: tuple[re.Pattern[str], ...] = ()
    """As of a directory, over whole base names."""
    ranks: re.Pattern[str] | None = None
    """What in a member's name tells its rank: a group that alone lacks some of them is doubtful."""
    portions: bool = False
    """As of a directory."""
    memory: Memory | None = None
    """As of a directory."""
    rotation: Rotation = Rotation.GUARDED
    any_name: bool = False
    """Whether the stem says nothing: only the endings and the content tell."""
    spread: re.Pattern[str] | None = None
    """Over names of directories, one a rank: a unit's files stand there, all under the name that ``member`` is over."""


def stem(layout: FileLayout, match: re.Match[str]) -> str:
    """Base name of the unit to which a file belongs."""
    if layout.shape is not Shape.GROUP:
        return match.string
    return layout.stem_of(match) if layout.stem_of else match["stem"]


def suits(layout: DirLayout, inside: Inside) -> bool:
    """Whether all that the row asks for besides its evidence is there."""
    return (
        all(map(inside.has, layout.along)) and not any(map(inside.has, layout.unlike)) and stands_beside(layout, inside)
    )


def stands_beside(layout: DirLayout, inside: Inside) -> bool:
    """Whether the parent directory holds what the row asks for there."""
    if not layout.beside:
        return True
    around = inside.around()
    return any(map(around.has, layout.beside))


def judge(layout: DirLayout, inside: Inside) -> Verdict:
    """What the table and then the row's own eye say of one directory."""
    verdict = by_table(layout, inside)
    if layout.refine is not None and verdict.evidence is not Evidence.WRITING:
        verdict = layout.refine(inside, verdict)
    return verdict


def by_table(layout: DirLayout, inside: Inside) -> Verdict:
    """Markers first, then what must be there, then the proof."""
    marker = next((w for w in layout.writing if inside.has(w)), None)
    if marker is not None:
        return Verdict(Evidence.WRITING, f"the marker {plain(marker)} says that it is being written")
    absent = next((n for n in layout.needs if not inside.has(n)), None)
    if absent is not None:
        return Verdict(Evidence.PARTIAL, f"{plain(absent)} is missing")
    hollow = next((n for n in layout.needs if inside.empty(n)), None)
    if hollow is not None:
        return Verdict(Evidence.PARTIAL, f"{plain(hollow)} is empty", flags=("empty_shard",))
    if layout.proof is None:
        return Verdict(Evidence.WHOLE, "all that belongs to it is there; the layout writes no proof")
    size = inside.size(layout.proof)
    if size is None:
        return Verdict(Evidence.PARTIAL, f"{layout.proof}, written last, is missing")
    if not size:
        return Verdict(Evidence.PARTIAL, f"{layout.proof}, written last, is empty")
    return Verdict(Evidence.PROVEN, f"{layout.proof}, written last, is there", layout.proof)


def plain(pattern: str) -> str:
    """A pattern as people may read it."""
    return pattern.replace("\\d+", "N").replace("\\", "").replace("[^/]*", "*")
