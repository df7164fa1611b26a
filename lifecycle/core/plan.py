"""A plan: what is to be done and why, bound to what it was made from, canonical and named by its content."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.exposure import is_durable
from lifecycle.core.gauge import Gauge
from lifecycle.core.lint import Census, over_limits
from lifecycle.core.model import Checkpoint, Finding, Shape
from lifecycle.core.moves import Against, unopposed
from lifecycle.core.places import WHOLE, anchored, standing
from lifecycle.core.policy import Policy
from lifecycle.core.reasons import Fact, Mark
from lifecycle.core.steps import LEAVING, steps_of
from lifecycle.errors import StalePlan

FORMAT = "checkpoint-lifecycle plan 1"

_text = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class StoreBasis(NamedTuple):
    """Which store, as of which scan."""

    name: str
    url: str
    identity: str
    scan: int


class Anchor(NamedTuple):
    """A checkpoint that must still be there, unchanged, when another one goes."""

    id: str
    shape: Shape
    members: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan was made from; apply compares it with what is."""

    engine: str
    made_at_ns: int
    serial: int
    """The index's serial number."""
    settings: str
    """Digest of the configuration."""
    stores: tuple[StoreBasis, ...]
    policies: tuple[tuple[str, str], ...]
    """(name, digest) of every policy."""


@dataclass(frozen=True)
class Plan:
    """An immutable plan. ``lines`` are the decisions, one canonical JSON object each, in order of id."""

    basis: Basis
    actions: tuple[Action, ...]
    anchors: tuple[Anchor, ...]
    findings: tuple[Finding, ...]
    totals: Mapping[str, int]
    lines: Sequence[str] = field(repr=False)
    bill: str = ""
    """What it costs, as canonical JSON of sizing/bill.py; empty where no store has a price."""
    pressure: tuple[Gauge, ...] = ()

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Findings that forbid applying it at all."""
        return tuple(f for f in self.findings if f.severity == "refusal")

    @property
    def unjudged(self) -> tuple[Finding, ...]:
        """Groups that could not be judged; the rest of the plan stands."""
        return tuple(f for f in self.findings if f.severity == "error")

    def document(self) -> Iterator[str]:
        """The canonical text, in pieces, without the closing id."""
        yield '{"format":' + _encode(FORMAT) + ',\n"basis":' + _encode(asdict(self.basis))
        if self.bill:
            yield ',\n"bill":' + self.bill
        yield ',\n"totals":' + _encode(dict(self.totals))
        yield from _rows("findings", (_encode(f._asdict()) for f in self.findings))
        yield from _rows("actions", map(_action_line, self.actions))
        yield from _rows("anchors", (_encode(a._asdict()) for a in self.anchors))
        if self.pressure:
            yield from _rows("pressure", (_encode(g._asdict()) for g in self.pressure))
        yield from _rows("decisions", self.lines)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the document, in hex: the plan's name."""
        digest = sha256()
        for piece in self.document():
            digest.update(piece.encode("ascii"))
        return digest.hexdigest()

    def text(self) -> Iterator[str]:
        """The whole file, in pieces; it ends with the id of everything before it."""
        yield from self.document()
        yield f',\n"id":"{self.id}"}}\n'


_ROWS_AT_ONCE = 1000
"""Rows of a plan that are put together at a time: half a gigabyte of them in one piece would be held twice."""


def _rows(name: str, rows: Iterable[str]) -> Iterator[str]:
    """One array of the document, in pieces."""
    yield f',\n"{name}":['
    rest, between = iter(rows), "\n"
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        yield between + ",\n".join(some)
        between = ",\n"
    yield "]" if between == "\n" else "\n]"


def _action_line(a: Action) -> str:
    """One action as canonical JSON, written by hand as decisions are."""
    return (
        f'{{"bytes":{a.bytes},"copies":{_texts(a.copies)},"files":{a.files},"fingerprint":{_text(a.fingerprint)},"floor":{_texts(a.floor)},'
        f'"home":{_text(a.home)},"inode":{a.inode},"key":{_text(a.key)},"members":{_texts(a.members)},{_part_text(a)}"policies":{_texts(a.policies)},'
        f'"proof":{_NULL if a.proof is None else _text(a.proof)},"run":{_text(a.run)},"shape":{_text(a.shape)},'
        f'{_class_text(a)}"store":{_text(a.store)},"to":{_text(a.to)},'
        f'"trash_s":{_NULL if a.trash_s is None else a.trash_s},"verb":{_text(a.verb)}}}'
    )


def _part_text(a: Action) -> str:
    return f'"part":{_text(a.part)},' if a.part else ""


def _class_text(a: Action) -> str:
    return f'"storage_class":{_text(a.storage_class)},' if a.storage_class else ""


def _texts(texts: tuple[str, ...]) -> str:
    return f"[{','.join(map(_text, texts))}]"


def decision_line(decision: Decision) -> str:
    """One decision as canonical JSON: what it is, its verdict, and its marks both ways.

    Written by hand, keys in order, because half a million of them are: ``load`` reads it as any JSON.
    """
    c = decision.checkpoint
    marks = ",".join([_mark(policy, mark) for policy, mark in decision.marks])
    return (
        f'{{"bytes":{c.bytes},"id":{_text(c.id)},"kind":{_text(c.kind)},"layout":{_text(c.layout)},'
        f'"marks":[{marks}],"name":{_text(c.name)},{_move_text(decision)}"run":{_text(c.run)},"saved_at_ns":{c.saved_at_ns},'
        f'"status":{_text(decision.status)},"step":{_NULL if c.step is None else c.step},'
        f'{_thin_text(decision)}"verdict":{_KEEP if decision.keep else _EXPIRE}}}'
    )


_KEEP, _EXPIRE, _NULL = '"keep"', '"expire"', "null"


def _mark(policy: str, mark: Mark) -> str:
    keeps, code, rule, facts = mark
    if not facts:
        return _mark_text(policy, keeps, code, rule, "")
    return _mark_text(policy, keeps, code, rule, ",".join(map(_fact, facts)))


def _mark_text(policy: str, keeps: bool, code: str, rule: str, facts: str) -> str:
    return f'{{"code":"{code}","facts":[{facts}],{_speaker(policy, keeps, rule)}'


@lru_cache(maxsize=1024)
def _speaker(policy: str, keeps: bool, rule: str) -> str:
    """The part of a mark that is the same for thousands of checkpoints."""
    return f'"keeps":{_encode(keeps)},"policy":{_text(policy)},"rule":{_text(rule)}}}'


def _fact(fact: Fact) -> str:
    if isinstance(fact, str):
        return _text(fact)
    if isinstance(fact, float) and fact - fact != 0:
        return _text(str(fact))  # JSON has neither NaN nor infinities
    return repr(fact)


def _move_text(decision: Decision) -> str:
    """Where it stands and where it is wanted, of what has copies or a place of its own."""
    c = decision.checkpoint
    if c.here and not (c.elsewhere or decision.places):
        return ""
    stores = tuple(copy.store for copy in standing(c))
    pinned = _encode(decision.pinned)
    return f'"on":{_texts(stores)},"pinned":{pinned},"places":{_texts(decision.places)},'


def _thin_text(decision: Decision) -> str:
    return f'"thin":{_texts(decision.thin)},' if decision.thin else ""


_TOTALS = {True: ("kept_checkpoints", "kept_bytes"), False: ("expired_checkpoints", "expired_bytes")}


class Draft:
    """Builds a plan from judgements as they come, so that half a million decisions need not be held as objects."""

    def __init__(
        self,
        policies: Sequence[Policy],
        stores: frozenset[str],
        node_local: frozenset[str] = frozenset(),
        slimming: frozenset[str] = frozenset(),
        telling: bool = True,
    ) -> None:
        self.stores, self.node_local, self.slimming, self.telling = stores, node_local, slimming, telling
        """``telling`` False leaves out the line of each decision: a forecast drafts a plan a night and reads none."""
        self.policies = {p.name: p for p in policies}
        self.lines: list[tuple[str, str]] = []
        self.actions: list[tuple[tuple[str, str, int, int, str, int, str, str], Action]] = []
        self.anchors: dict[str, Anchor] = {}
        self.findings: set[Finding] = set()
        self.totals: Counter[str] = Counter()
        self.covered: dict[str, Counter[str]] = {name: Counter() for name in self.policies}
        self.run_deletes: dict[str, Counter[str]] = {name: Counter() for name in self.policies}
        self.census = Census()

    def add(self, judgement: Judgement, against: Against = unopposed) -> None:
        """Take in a cluster's decisions; ``against`` is asked of each move, and one that it objects to is not made."""
        self.findings.update(judgement.findings)
        self.census.add(judgement)
        known = {d.checkpoint.id: d.checkpoint for d in judgement.decisions}
        for decision in judgement.decisions:
            c = decision.checkpoint
            self.lines += [(c.id, decision_line(decision))] if self.telling else []
            count, size = _TOTALS[decision.keep]
            self.totals[count] += 1
            self.totals[size] += c.bytes
            for name in decision.policies:
                covered = self.covered[name]
                covered["checkpoints"] += 1
                covered["bytes"] += c.bytes
            if not decision.keep:
                self._expire(decision, known)
            elif decision.places:
                self._move(decision, known, against)

    def _expire(self, decision: Decision, known: Mapping[str, Checkpoint]) -> None:
        """Every copy goes; what is broken at home goes alone, for its copies may be whole."""
        c = decision.checkpoint
        floor = self._anchor(decision, known)
        for copy in standing(c) if not c.here or c.evidence in WHOLE else [c]:
            if copy.store in self.stores:
                self._retire(copy, c, decision, floor=floor)
        self._charge(decision, c.bytes)

    def _anchor(self, decision: Decision, known: Mapping[str, Checkpoint]) -> tuple[str, ...]:
        """What must stand when it goes, by the copies to rely on."""
        anchors = [anchored(known[identity], self.node_local) for identity in decision.floor]
        for f in anchors:
            self.anchors.setdefault(f.id, Anchor(f.id, f.shape, f.members, f.fingerprint))
        return tuple(sorted(anchor.id for anchor in anchors))

    def _charge(self, decision: Decision, size_bytes: int) -> None:
        """Count what is given up against the limits of the policies that cover it."""
        c = decision.checkpoint
        for name in decision.policies:
            self.covered[name].update(deletes=1, delete_bytes=size_bytes)
            self.run_deletes[name][f"{c.store}:{c.run}"] += 1

    def _move(self, decision: Decision, known: Mapping[str, Checkpoint], against: Against) -> None:
        """Copies to where it is wanted and is not; then it leaves where it is not wanted, if enough copies stand."""
        c = decision.checkpoint
        fewest = max([self.policies[name].limits.copies_min for name in decision.policies], default=1)
        found = steps_of(decision, self.stores, fewest, against, slimming=self.slimming, node_local=self.node_local)
        self.findings.update(found.findings)
        if withheld := sum(finding.code == "does_not_pay" for finding in found.findings):
            self.totals["withheld_moves"] += withheld
        floor = self._anchor(decision, known) if any(step.part and not step.to for step in found.steps) else ()
        for step in found.steps:
            if step.given_up:
                self.totals["given_up_bytes"] += step.given_up
                self._charge(decision, step.given_up)
            self.totals[step.counter] += step.bytes
            self._put(c, step.turn, step.action(self._trash_s(decision), decision.policies, floor))

    def _retire(self, copy: Checkpoint, c: Checkpoint, decision: Decision, *, floor: tuple[str, ...]) -> None:
        trash_s = self._trash_s(decision)
        self._put(c, LEAVING, Action.upon(copy, trash_s=trash_s, policies=decision.policies, floor=floor))

    def _trash_s(self, decision: Decision) -> int | None:
        times = [self.policies[name].limits.trash_s for name in decision.policies]
        return max((t for t in times if t is not None), default=None)

    def _put(self, c: Checkpoint, turn: int, action: Action) -> None:
        """Actions of a run come together, and of one checkpoint its copies before it leaves a place.

        What a node could lose comes before all others, the newest first: that is how far its run has come.
        """
        if action.verb is Verb.RETIRE:
            self.totals["trashed_bytes"] += action.bytes
        order = (c.store, c.run, c.saved_at_ns, c.step or 0)
        if action.to and action.to not in self.node_local and not is_durable(c, self.node_local):
            order = ("", "", -c.saved_at_ns, -(c.step or 0))
        self.actions.append(((*order, c.key, turn, action.store, action.to), action))

    def finish(self, basis: Basis, findings: Iterable[Finding] = (), bill: str = "") -> Plan:
        """Judge the limits on the whole, and close the plan."""
        self.findings.update(findings)
        self.findings.update(self.census.findings(self.policies.values()))
        for name, policy in self.policies.items():
            self.findings.update(over_limits(name, policy.limits, self.covered[name], self.run_deletes[name]))
        self.totals["actions"] = len(self.actions)
        self.actions.sort(key=lambda pair: pair[0])
        self.lines.sort()
        return Plan(
            basis=basis,
            actions=tuple(action for _, action in self.actions),
            anchors=tuple(self.anchors[identity] for identity in sorted(self.anchors)),
            findings=tuple(sorted(self.findings)),
            totals=dict(sorted(self.totals.items())),
            lines=[line for _, line in self.lines],
            bill=bill,
        )


def load(text: str) -> Plan:
    """Read a plan file and check that nobody has touched it since it was written.

    Raises:
        StalePlan: it is no plan, of another format, or its content is not what its id says.
    """
    try:
        raw: dict[str, Any] = json.loads(text)
        plan = _plan(raw)
        same = plan.id == raw["id"] and _is_text(text, plan.text())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise StalePlan(f"this is not a whole plan file ({type(e).__name__})", code="plan_unreadable") from None
    if not same:
        raise StalePlan("the plan was changed after it was written", code="plan_edited")
    return plan


def _is_text(text: str, pieces: Iterable[str]) -> bool:
    at = 0
    for piece in pieces:
        if not text.startswith(piece, at):
            return False
        at += len(piece)
    return at == len(text)


def _plan(raw: dict[str, Any]) -> Plan:
    if raw["format"] != FORMAT:
        raise ValueError(raw["format"])
    b = raw["basis"]
    basis = Basis(
        **{
            **b,
            "stores": tuple(StoreBasis(*s) for s in b["stores"]),
            "policies": tuple((name, digest) for name, digest in b["policies"]),
        }
    )
    actions = tuple(
        Action(
            **{
                **a,
                "verb": Verb(a["verb"]),
                "shape": Shape(a["shape"]),
                "members": tuple(a["members"]),
                "policies": tuple(a["policies"]),
                "floor": tuple(a["floor"]),
                "copies": tuple(a["copies"]),
            }
        )
        for a in raw["actions"]
    )
    anchors = tuple(Anchor(a["id"], Shape(a["shape"]), tuple(a["members"]), a["fingerprint"]) for a in raw["anchors"])
    findings = tuple(Finding(**f) for f in raw["findings"])
    bill = _encode(raw["bill"]) if "bill" in raw else ""
    gauges = tuple(Gauge.read(g) for g in raw.get("pressure", ()))
    return Plan(basis, actions, anchors, findings, raw["totals"], [_encode(d) for d in raw["decisions"]], bill, gauges)
