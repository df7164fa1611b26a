"""The files as people write them: which keys there are, what each holds, and which belong together."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lifecycle.config import fields as f
from lifecycle.config.beside import LeasesFile, MetricFile
from lifecycle.config.classes import Places, check_class
from lifecycle.config.directories import DirectoryFile
from lifecycle.config.lists import Full, OneOrMore, keep_list
from lifecycle.config.log import Logged
from lifecycle.config.monitoring import MonitoringFile
from lifecycle.config.notifying import Notifies
from lifecycle.config.pressure import Pressures, check_orders
from lifecycle.config.pricing import PriceFile
from lifecycle.config.problems import Bad, close_to, nearest, show
from lifecycle.config.serving import HttpFile
from lifecycle.config.ticking import TickFile
from lifecycle.config.transfer import TransferFile
from lifecycle.core.model import Kind, Shape
from lifecycle.core.policy import Pick
from lifecycle.layouts.table import Rotation

DAY_S = 86_400


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = ""  # what an error shows to somebody who wrote something else


class MatchFile(_File):
    """``match:``"""

    example = '{runs: ["hot:pretrain/**"]}'

    runs: Full[f.RunGlob] = []
    stores: Full[f.KnownStore] = []
    layouts: Full[f.KnownLayout] = []
    kinds: Full[f.KindWord] = []
    owners: Full[f.Owner] = []


class FinalFile(_File):
    """``- final: {quiet: 24h}``"""

    example = "{quiet: 24h}"

    quiet: f.Duration = DAY_S


class EveryFile(_File):
    """``- every: {steps: 10000, pick: closest}``"""

    example = "{steps: 10000, pick: closest}"

    steps: f.Interval | None = None
    epochs: f.Interval | None = None
    time: f.Duration | None = None
    pick: f.PickWord = Pick.CLOSEST

    @model_validator(mode="after")
    def _one_unit(self) -> EveryFile:
        if len(self.model_fields_set - {"pick"}) != 1:
            raise Bad("needs exactly one of steps, epochs and time, such as {steps: 10000}")
        return self


class TieFile(_File):
    """One further metric that decides between equals."""

    example = "{metric: eval/acc, mode: max}"

    metric: f.Text
    mode: f.ModeWord


def _tie(value: object) -> object:
    """``newest`` becomes None: it decides for good and is what the core does in the end anyway."""
    if value == "oldest":
        raise Bad("oldest is not supported: what is still equal goes to the newest")
    return None if value == "newest" else value


class RankFile(_File):
    """The best by a metric, without more ado."""

    example = "{metric: eval/loss, mode: min, count: 2}"

    metric: f.Text
    mode: f.ModeWord
    count: f.Count


class BestFile(RankFile):
    """``- best: {metric: eval/loss, mode: min, count: 2}``"""

    ties: Full[Annotated[TieFile | None, BeforeValidator(_tie)]] = []
    missing: f.MissingWord = "keep"

    @model_validator(mode="after")
    def _newest_last(self) -> BestFile:
        if None in self.ties[:-1]:
            raise Bad("ties: newest decides for good, nothing may follow it")
        return self


class AgeFile(_File):
    """``- younger: {than: 24h, of: now}``"""

    example = "{than: 24h, of: now}"

    than: f.Duration
    of: f.AnchorWord


class RuleFile(_File):
    """One item of ``keep:``, exactly one rule."""

    last: f.Count | None = None
    first: f.Count | None = None
    final: FinalFile | None = None
    every: EveryFile | None = None
    best: BestFile | None = None
    hourly: f.Count | None = None
    daily: f.Count | None = None
    weekly: f.Count | None = None
    monthly: f.Count | None = None
    yearly: f.Count | None = None
    steps: Full[f.Step] | None = None
    younger: AgeFile | None = None
    name: f.BaseName | None = None
    tagged: f.Tag | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_rule(cls, value: object) -> object:
        if value == "final":
            return {"final": {}}
        if isinstance(value, str) and value in cls.model_fields:
            raise Bad(f"{value} needs a value: write - {value}: ...")
        if not isinstance(value, dict):
            raise Bad(f"needs a rule such as last: 3, not {show(value)}{close_to(str(value), cls.model_fields)}")
        if len(value) != 1:
            raise Bad("needs exactly one rule: write each with a dash of its own")
        return value


def _keep_word(value: object) -> object:
    if value not in RuleFile.model_fields:
        raise Bad(f"{show(value)} is not a keep rule{nearest(str(value), RuleFile.model_fields)}")
    return value


class _RangeFile(_File):
    """From ``min`` to ``max``, both included; either may be left out."""

    @model_validator(mode="after")
    def _rises(self) -> Self:
        low, high = getattr(self, "min", None), getattr(self, "max", None)
        if low is None and high is None:
            raise Bad("needs min or max or both")
        if low is not None and high is not None and low > high:
            raise Bad("min is more than max: nothing lies between them")
        return self


class StepRangeFile(_RangeFile):
    """``steps: {min: 1000, max: 2000}``"""

    example = "{min: 10000}"

    min: f.Step | None = None
    max: f.Step | None = None


class SizeRangeFile(_RangeFile):
    """``bytes: {min: 10GB, max: 2TB}``"""

    example = "{min: 10GB}"

    min: f.Size | None = None
    max: f.Size | None = None


class PlaceFile(_File):
    """One item of ``place:``"""

    example = "{older: {than: 7d, of: now}, on: [warm]}"

    on: Places
    kept_by: OneOrMore[Annotated[str, BeforeValidator(_keep_word)]] = []
    older: AgeFile | None = None
    younger: AgeFile | None = None
    steps: StepRangeFile | None = None
    bytes: SizeRangeFile | None = None
    kind: OneOrMore[f.KindWord] = []
    owner: OneOrMore[f.Owner] = []
    best: RankFile | None = None
    parts: f.PartWord | None = None
    full: f.NoneWord | None = None
    cost: f.CostWord = "weigh"

    @model_validator(mode="after")
    def _may_agree(self) -> PlaceFile:
        if (older := self.older) and (less := self.younger) and older.of == less.of and older.than >= less.than:
            raise Bad("older and younger never agree: older needs the shorter time of the two")
        if self.full and not self.parts:
            raise Bad("needs parts: weights beside it: it gives up what only a resume needs", at=("full",))
        return self


class IncompleteFile(_File):
    """``incomplete:``"""

    example = "{delete_after: 24h}"

    delete_after: f.Duration
    staging_after: f.Duration | None = None


class EndedFile(_File):
    """``ended:``"""

    example = "{quiet: 7d, delete_after: 1d}"

    delete_after: f.Duration
    runs: Full[f.RunGlob] = []
    quiet: f.Duration | None = None
    step_max: f.Step | None = None
    floor: f.FloorWord = "keep"

    @model_validator(mode="after")
    def _says_when(self) -> EndedFile:
        if not self.runs and self.quiet is None:
            raise Bad("needs runs or quiet: else nothing says which runs have ended")
        return self


class LimitsFile(_File):
    """``limits:``"""

    example = "{deletes_max: 200, trash: 72h}"

    copies_min: f.Copies = 1
    deletes_max: f.LimitCount | None = None
    delete_bytes_max: f.LimitBytes | None = None
    delete_fraction_max: f.LimitFraction | None = None
    run_deletes_max: f.LimitCount | None = None
    grace: f.Grace = 3600
    trash: f.TrashTime = 3 * DAY_S


def _places(value: object) -> object:
    if not isinstance(value, list):
        raise Bad(f"needs a list of places, each with a dash such as - {PlaceFile.example}, not {show(value)}")
    return value


def _reached(items: list[PlaceFile]) -> list[PlaceFile]:
    conditions = PlaceFile.model_fields.keys() - {"on", "parts", "full", "cost"}
    all_taking = (i for i, item in enumerate(items) if not any(getattr(item, name) for name in conditions))
    last = next(all_taking, len(items))
    if items[last + 1 :]:
        text = "nothing comes this far: the item before it has no condition and takes everything; put that one last"
        raise Bad(text, at=(last + 1,))
    return items


class PolicyFile(_File):
    """One policy file."""

    example = "policy: pretrain"

    policy: f.PolicyName
    match: MatchFile = MatchFile()
    group_by: f.Regex | None = None
    timezone: f.Timezone = "UTC"
    keep: Annotated[list[RuleFile], BeforeValidator(keep_list)] | None = None
    place: Annotated[Full[PlaceFile], BeforeValidator(_places), AfterValidator(_reached)] = []
    pressure: Pressures = []
    incomplete: IncompleteFile | None = None
    ended: EndedFile | None = None
    limits: LimitsFile = LimitsFile()
    apply: f.ConsentWord = "auto"
    announce: f.Notice = None

    @model_validator(mode="after")
    def _has_such_rules(self) -> PolicyFile:
        rules = {name for rule in self.keep or () for name in rule.model_fields_set}
        for i, item in enumerate(self.place):
            for j, name in enumerate(item.kept_by):
                if name not in rules:
                    hint = nearest(name, rules) or ": it has no keep rule"
                    raise Bad(f"this policy keeps nothing by {name}{hint}", at=("place", i, "kept_by", j))
        check_orders(self.pressure, None if self.keep is None else rules)
        return self


class StoreFile(DirectoryFile, _File):
    """One store; a bare URL stands for ``{url: ...}``."""

    example = "{url: s3://bucket/prefix}"

    url: f.RootUrl = ""
    endpoint_url: f.EndpointUrl | None = None
    region: f.Text | None = None
    profile: f.Text | None = None
    addressing_style: f.StyleWord = "auto"
    storage_class: f.Text | None = None
    sentinel: f.Relative | None = None
    state: f.Expanded | None = None
    price: PriceFile | None = None
    capacity: f.Size | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_url(cls, value: object) -> object:
        return {"url": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_the_url(self) -> StoreFile:
        alien = [n for n, at in f.ONLY_AT.items() if getattr(self, n) is not None and not self.url.startswith(at)]
        if alien:
            raise Bad(f"only stores at {', '.join(f.ONLY_AT[alien[0]])} have the setting {alien[0]}")
        if self.storage_class is not None:
            check_class(self.storage_class, self.url)
        if self.state is not None:
            relative = self.url.startswith("file://") and not self.state.startswith("/")
            if relative or ".." in self.state.split("/") or not self.state.strip("/.") or "@" in self.state:
                raise Bad("state needs an absolute path of its own, such as /mnt/ckpt/.lifecycle")
        return self


class LayoutFile(_File):
    """One declared layout."""

    example = '{template: "step-{step}", proof: DONE}'

    name: f.Text | None = None
    template: f.Template | None = None
    stem: f.Template | None = None
    shape: f.ShapeWord | None = None
    runs: Full[f.KeyGlob] = []
    proof: f.Relative | None = None
    writing: f.Relative | None = None
    kind: f.KindWord = Kind.FULL
    rotation: f.RotationWord = Rotation.GUARDED

    @model_validator(mode="after")
    def _one_template(self) -> LayoutFile:
        if self.stem is not None and (self.template is not None or self.shape not in (None, Shape.GROUP)):
            raise Bad("stem means files sharing a name: it goes without template and shape")
        if self.stem is None and self.template is None:
            if self.name is None:
                raise Bad('needs a template such as "step-{step}", or a stem')
            f.template(self.name)
        return self

    @property
    def label(self) -> str:
        """What reports call it: its name, or else the template itself."""
        return self.name or self.pattern

    @property
    def pattern(self) -> str:
        """Its template; a name with placeholders stands for one where there is none."""
        return self.stem or self.template or self.name or ""


class SettingsFile(Logged, _File):
    """``lifecycle.yaml``."""

    stores: dict[f.StoreName, StoreFile] = Field(min_length=1)
    database: f.DatabaseUrl = Field(default="sqlite:///lifecycle.db", validate_default=True)
    policies: OneOrMore[f.Expanded] = ["policies"]
    layouts: Full[LayoutFile] = []
    metrics: Full[MetricFile] = []
    ignore: Full[f.KeyGlob] = []
    hold_files: Full[f.BaseName] = []
    leases: LeasesFile | None = None
    resume_keys: Full[f.Text] | None = None
    references: dict[str, object] = {}
    parents: dict[str, object] = {}
    plan_age_max: f.Duration = DAY_S
    transfer: TransferFile = TransferFile()
    tick: TickFile = TickFile()
    notify: Notifies = []
    http: HttpFile | None = None
    monitoring: MonitoringFile = MonitoringFile()
