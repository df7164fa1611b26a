"""Files of cases as people write them: a history in a few words, a moment, and what is expected of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lifecycle.config import fields as f
from lifecycle.config.check import check
from lifecycle.config.lists import Full, OneOrMore
from lifecycle.config.load import Document, Loc, read_file
from lifecycle.config.pressure import Percent
from lifecycle.config.problems import Bad, InvalidFiles, Problem, show
from lifecycle.core.model import Evidence, Kind, PointerRole, Status
from lifecycle.core.protect import SECOND_NS
from lifecycle.review.cases import Case, Wish
from lifecycle.review.imagined import BYTES, History, Saved, Series

NOW = "2026-01-31T12:00:00Z"
"""When a case plays that does not say so."""
NEWEST_S = 3 * 86_400
"""Age of a newest save of which nothing is said: its run is at rest, whatever its pace."""
SAVES_MAX = 10_000

EVIDENCE = {
    Status.COMPLETE: Evidence.PROVEN,
    Status.SETTLED: Evidence.WHOLE,
    Status.INCOMPLETE: Evidence.PARTIAL,
    Status.IN_PROGRESS: Evidence.WRITING,
    Status.DOOMED: Evidence.DOOMED,
    Status.UNKNOWN: Evidence.DOUBTFUL,
}


def _moment(value: object) -> int:
    text = f.text(value)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Bad(f"{show(text)} is not a date: write 2026-01-31 or 2026-01-31T06:00Z") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * SECOND_NS


def _run(value: object) -> str:
    run = f.plain_text(value)
    store, colon, path = run.partition(":")
    if not colon or not path or "*" in run:
        raise Bad(f"{show(run)} is no run: write store:path, such as hot:pretrain/a")
    f.store_name(store)
    f.relative(path)
    return run


def _which(value: object) -> str:
    """A step or a name."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Bad(f"needs a step or a name, not {show(value)}")
    return str(value) if isinstance(value, int) else f.plain_text(value)


def _number(value: object) -> float:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Bad(f"needs a number, nan, inf or -inf, not {show(value)}")
    return float(value)


def _one_or_many(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _places(value: object) -> object:
    if value == []:
        raise Bad("the list is empty: write none for what stays where it stands")
    return [] if value == "none" else _one_or_many(value)


Moment = Annotated[int, BeforeValidator(_moment)]
RunId = Annotated[str, BeforeValidator(_run)]
Which = Annotated[str, BeforeValidator(_which)]
Number = Annotated[float, BeforeValidator(_number)]
StatusWord = Annotated[Status, BeforeValidator(f._choice(Status))]
RoleWord = Annotated[PointerRole, BeforeValidator(f._choice(PointerRole))]
StoreWord = Annotated[str, BeforeValidator(f.store_name)]
Goals = Annotated[list[f.Text], BeforeValidator(_places)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = ""


class SavesFile(_File):
    """``saves: {every: 1000, to: 60000, gap: 1h}``"""

    example: ClassVar[str] = "{every: 1000, to: 60000, gap: 1h}"

    every: f.Interval
    to: f.Step
    gap: f.Duration
    run: RunId | None = None
    first: f.Step | None = None
    newest: f.Duration = NEWEST_S
    steps_per_epoch: f.Interval | None = None
    bytes: f.Size = BYTES
    kind: f.KindWord = Kind.FULL
    metrics: dict[str, Annotated[list[Number], BeforeValidator(_one_or_many), Field(min_length=1)]] = {}
    copies: OneOrMore[StoreWord] = []

    @model_validator(mode="after")
    def _has_saves(self) -> SavesFile:
        first = self.every if self.first is None else self.first
        if self.to < first:
            raise Bad("ends before its first save", at=("to",))
        count = (self.to - first) // self.every + 1
        if count > SAVES_MAX:
            raise Bad(f"are {count} saves, more than {SAVES_MAX}", at=("to",))
        for name, values in self.metrics.items():
            if len(values) > count:
                raise Bad(f"has {len(values)} values for {count} saves", at=("metrics", name))
        return self


class CheckpointFile(_File):
    """``- {step: 55000, held: the paper reports it}``"""

    example: ClassVar[str] = "{step: 500, age: 2h, status: incomplete}"

    step: f.Step | None = None
    age: f.Duration | None = None
    run: RunId | None = None
    name: f.BaseName | None = None
    epoch: Number | None = None
    bytes: f.Size | None = None
    kind: f.KindWord | None = None
    status: StatusWord | None = None
    owner: f.Owner | None = None
    metrics: dict[str, Number] = {}
    tags: dict[str, f.Text] = {}
    copies: OneOrMore[StoreWord] | None = None
    held: f.Text | None = None
    pointer: RoleWord | None = None

    @model_validator(mode="after")
    def _is_somebody(self) -> CheckpointFile:
        if self.step is None and (self.age is None or self.name is None):
            raise Bad("needs a step of saves, a step with an age, or a name with an age")
        return self


Expected = Annotated[list[Which], BeforeValidator(_one_or_many), Field(min_length=1)]


class CaseFile(_File):
    """One item of ``cases:``"""

    example: ClassVar[str] = (
        "{case: the newest stay, saves: {every: 1000, to: 9000, gap: 1h}, keep: [8000, 9000], drop: rest}"
    )

    case: f.Text
    now: Moment = _moment(NOW)
    run: RunId | None = None
    layout: f.KnownLayout = "generic"
    saves: Annotated[list[SavesFile], BeforeValidator(_one_or_many)] = []
    checkpoints: Full[CheckpointFile] = []
    full: dict[StoreWord, Percent] = {}
    keep: Expected = []
    drop: Expected = []
    why: dict[str, OneOrMore[f.Text]] = {}
    moves: dict[str, Goals] = {}
    refused: bool | None = None

    @model_validator(mode="after")
    def _can_fail(self) -> CaseFile:
        if not (self.saves or self.checkpoints):
            raise Bad("has no history: write something like saves: {every: 1000, to: 60000, gap: 1h}")
        if not (self.keep or self.drop or self.why or self.moves or self.refused is not None):
            raise Bad("expects nothing, so it cannot fail: write keep, drop, why, moves or refused", at=("case",))
        if both := {*self.keep} & {*self.drop}:
            raise Bad(f"{show(min(both))} is to stay and to go", at=("drop",))
        return self


class CasesFile(_File):
    """A file of cases."""

    example: ClassVar[str] = "cases: [{case: ...}]"

    policy: OneOrMore[f.PolicyName] = []
    run: RunId | None = None
    cases: Annotated[Full[CaseFile], Field(min_length=1)]

    @model_validator(mode="after")
    def _each_has_a_run(self) -> CasesFile:
        for i, case in enumerate(self.cases):
            for key in ("saves", "checkpoints"):
                for item in getattr(case, key):
                    if item.run is None and case.run is None and self.run is None:
                        raise Bad("nothing says which run that is: write run: hot:pretrain/a", at=("cases", i, "case"))
        return self


class CasesRead:
    """One file of cases: what it means, and where each part of it stands.

    Args:
        path: the file.

    Raises:
        ConfigInvalid: with all that is wrong in it.
    """

    def __init__(self, path: Path) -> None:
        self.document: Document = read_file(path)
        problems: list[Problem] = []
        file = check(CasesFile, self.document, problems)
        if file is None:
            raise InvalidFiles(problems)
        self.policies = tuple(file.policy)
        self.cases = [_case(file, case, ("cases", i), self.document, problems) for i, case in enumerate(file.cases)]
        if problems:
            raise InvalidFiles(problems)


def _case(file: CasesFile, case: CaseFile, at: Loc, document: Document, problems: list[Problem]) -> Case:
    run = case.run or file.run or ""
    series = tuple(_series(saves, run) for saves in case.saves)
    steps = {(s.run, step) for s in series for step in range(s.first, s.last + 1, s.every)}
    for i, c in enumerate(case.checkpoints):
        mine = (c.run or run, c.step)
        if c.age is None and mine not in steps:
            text = "is none of saves, so it needs an age, such as age: 2h"
            problems.append(Problem(document.place((*at, "checkpoints", i)), text))
        steps.add(mine)  # type: ignore[arg-type]  # what has no step is none of saves either
    return Case(
        name=case.case,
        at=at,
        now_ns=case.now,
        history=History(case.layout, series, tuple(_saved(c, run) for c in case.checkpoints)),
        policies=tuple(file.policy),
        wishes=tuple(_wishes(case, at)),
        full_bp=tuple(case.full.items()),
        refused=case.refused,
    )


def _series(file: SavesFile, run: str) -> Series:
    return Series(
        run=file.run or run,
        first=file.every if file.first is None else file.first,
        every=file.every,
        last=file.to,
        gap_ns=file.gap * SECOND_NS,
        newest_ns=file.newest * SECOND_NS,
        steps_per_epoch=file.steps_per_epoch,
        bytes=file.bytes,
        kind=file.kind,
        metrics=tuple((name, tuple(values)) for name, values in file.metrics.items()),
        copies=tuple(file.copies),
    )


def _saved(file: CheckpointFile, run: str) -> Saved:
    given = {name: getattr(file, name) for name in ("step", "name", "epoch", "bytes", "kind", "owner")}
    changes = {name: value for name, value in given.items() if value is not None}
    if file.status is not None:
        changes["evidence"] = EVIDENCE[file.status]
    if file.tags:
        changes["tags"] = tuple(file.tags.items())
    return Saved(
        run=file.run or run,
        step=file.step,
        age_ns=None if file.age is None else file.age * SECOND_NS,
        changes=tuple(changes.items()),
        metrics=tuple(file.metrics.items()),
        copies=None if file.copies is None else tuple(file.copies),
        held=file.held or "",
        pointer=file.pointer,
    )


def _wishes(case: CaseFile, at: Loc) -> Iterator[Wish]:
    for key, keep in (("keep", True), ("drop", False)):
        for i, what in enumerate(getattr(case, key)):
            yield Wish((*at, key, i), what, keep=keep)
    for what, because in case.why.items():
        yield Wish((*at, "why", what), what, because=tuple(because))
    for what, on in case.moves.items():
        yield Wish((*at, "moves", what), what, on=tuple(on))
