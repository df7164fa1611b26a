"""Makes a plan out of what the index knows; touches nothing but the index's read side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from lifecycle.core.evaluate import Judgement, evaluate
from lifecycle.core.lint import ending_holds
from lifecycle.core.model import Finding, Hold, OnDangle, Pointer, PointerRole, Run
from lifecycle.core.places import assemble
from lifecycle.core.plan import Basis, Draft, Plan, StoreBasis
from lifecycle.core.policy import Rules
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around, by_target, pointing
from lifecycle.core.select import clusters, glob
from lifecycle.flows.fills import Lying, read_fills, tell_gauges
from lifecycle.flows.money import Ledger, Prices
from lifecycle.flows.read_only import spare
from lifecycle.layouts.conduct import rotating
from lifecycle.layouts.lineages import abroad, declared
from lifecycle.layouts.slim import refusal
from lifecycle.ports import Reader
from lifecycle.sizing.exposed import Exposed, look_over


def surroundings(reader: Reader, rules: Rules, stores: Sequence[str], holds: Sequence[Hold], now_ns: int) -> Around:
    """What a judgement needs besides the group."""
    outside = [
        Pointer(target.partition(":")[0], "", name, _role(name, stores), target, target, "reference")
        for name, target in rules.references
    ]
    inside = list(reader.pointers(stores))
    if any("external_reference" in p.flags for p in inside):
        urls = {name: row.url for name, row in reader.stores().items() if name in stores}
        inside = [pointer for one in inside for pointer in abroad(one, urls)]
    if rules.parents:
        runs = ((store, path) for store in stores for path in reader.marks(store))
        inside += declared(rules.parents, runs, {pattern: glob(pattern) for pattern, _ in rules.parents})
    pointers = by_target([*inside, *outside])
    conduct = partial(rotating, declared=rules.rotations)
    return Around(now_ns, tuple(holds), pointers, rules.lease_ttl_s, rules.nodes, refusal, conduct)


def slimming(reader: Reader, stores: Sequence[str]) -> frozenset[str]:
    """Stores that can make thin what stands there: by renames, with the times of what stays kept. No bucket can."""
    rows = reader.stores()
    return frozenset(name for name in stores if name in rows and rows[name].url.startswith(("file:", "memory:")))


def _role(name: str, stores: Sequence[str]) -> PointerRole:
    """What a reference is: one that bears a checkpoint's own id says that this one is useless without the other."""
    return PointerRole.NEED if name.partition(":")[0] in stores and ":" in name else PointerRole.REFERENCE


def runs_of(reader: Reader, stores: Iterable[str]) -> Iterator[Run]:
    """Runs as they are judged: each checkpoint once, with its copies, wherever it stands."""
    names = tuple(stores)
    return assemble(reader.runs(names), reader.copies(names))


def run_of(reader: Reader, store: str, path: str) -> Run | None:
    """One run as it is judged; None where neither it nor a copy of it is known."""
    run, copies = reader.run(store, path), reader.copies((store,)).get((store, path), [])
    return next(assemble(() if run is None else (run,), {(store, path): copies} if copies else {}), None)


def exposed_now(reader: Reader, rules: Rules, stores: Iterable[str], now_ns: int) -> Exposed:
    """What is lost if a node dies, for stores that die with one; asked anew each time, for it ages."""
    if not rules.node_local:
        return Exposed()
    return look_over(runs_of(reader, stores), rules.policies, dict(rules.node_local), now_ns)


def propose(  # noqa: PLR0913  # everything that a plan is made from, by name
    reader: Reader,
    rules: Rules,
    stores: Sequence[str],
    *,
    holds: Sequence[Hold],
    now_ns: int,
    engine: str,
    findings: Iterable[Finding] = (),
    prices: Prices | None = None,
    lying: Lying = {},  # noqa: B006  # only read
) -> Plan:
    """Judge every run of ``stores`` and draft the plan.

    Args:
        reader: the index.
        rules: policies and outside references.
        stores: names of the stores to judge.
        holds: every hold known, from the index and from beside the data.
        now_ns: the moment ages are measured from.
        engine: version of this program.
        findings: what the scan noticed.
        prices: of stores, those that have one.
        lying: tells what is in the trash of each store; where it does not, nothing goes because a store is too full.
    """
    serial = reader.serial()
    around = surroundings(reader, rules, stores, holds, now_ns)
    told = {f.subject for f in findings}
    fills = read_fills(reader, rules.policies, stores, lying, now_ns)
    relief = Relief(rules.policies, frozenset(stores), fills.known, fills.volumes)
    draft, ledger, hit = _drafted(reader, rules, stores, around, relief.look, prices)
    if relief.settle([action for _, action in draft.actions]):
        draft, ledger, hit = _drafted(reader, rules, stores, around, relief.relieve, prices)
    rows = reader.stores()
    basis = Basis(
        engine=engine,
        made_at_ns=now_ns,
        serial=serial,
        settings=rules.digest,
        stores=tuple(
            StoreBasis(name, rows[name].url, rows[name].identity, rows[name].scans)
            for name in sorted(stores)
            if name in rows
        ),
        policies=tuple(sorted((p.name, p.digest) for p in rules.policies)),
    )
    risked = exposed_now(reader, rules, stores, now_ns)
    draft.totals.update(risked.totals(now_ns))
    extra = [*findings, *fills.findings, *risked.findings, *tell_gauges(relief.gauges)]
    extra += [*_dangling(around, hit), *ending_holds(holds, now_ns)]
    extra += [
        Finding(f"{store}:{key}", "index_missing", "note", "the index knew it; nobody of ours removed it")
        for store, key, _ in reader.missing(stores)
        if f"{store}:{key}" not in told
    ]
    return replace(draft.finish(basis, extra, ledger.bill()), pressure=tuple(relief.gauges))


def relieved(
    reader: Reader, rules: Rules, stores: Sequence[str], around: Around, lying: Lying, prices: Prices | None = None
) -> Relief:
    """What goes because stores are too full, settled as for a plan; everything is judged for it only if one may be."""
    fills = read_fills(reader, rules.policies, stores, lying, around.now_ns)
    relief = Relief(rules.policies, frozenset(stores), fills.known, fills.volumes)
    if relief.watches:
        draft, _, _ = _drafted(reader, rules, stores, around, relief.look, prices)
        relief.settle([action for _, action in draft.actions])
    return relief


def _drafted(
    reader: Reader,
    rules: Rules,
    stores: Sequence[str],
    around: Around,
    heed: Callable[[Judgement], Judgement],
    prices: Prices | None,
) -> tuple[Draft, Ledger, set[int]]:
    """A draft of all judgements as ``heed`` leaves them, what it costs, and the pointers that hit (by ``id``)."""
    draft = Draft(rules.policies, frozenset(stores), rules.nodes, slimming(reader, stores))
    ledger = Ledger(prices or {}, rules.policies, around.now_ns)
    hit: set[int] = set()
    for runs, policies in clusters(runs_of(reader, stores), rules.policies):
        judgement = heed(spare(evaluate(runs, policies, around), rules.read_only))
        before = len(draft.actions)
        draft.add(judgement, ledger.against(judgement))
        if prices:
            ledger.note(judgement, [action for _, action in draft.actions[before:]])
        hit.update(id(p) for run in runs for c in run.checkpoints for p in pointing(c, around))
    return draft, ledger, hit


_EFFECT = {
    OnDangle.CRASH: "; its framework crashes on that",
    OnDangle.RESTART: "; its framework starts again from step 0 on that",
    OnDangle.IGNORED: "; its framework passes over that",
    OnDangle.UNKNOWN: "",
}


def _dangling(around: Around, hit: set[int]) -> list[Finding]:
    """Pointers that name something which is no checkpoint here."""
    every = {id(p): p for found in around.pointers.values() for p in found}
    return [
        Finding(
            f"{p.store}:{p.key}",
            "dangling_pointer",
            "warning",
            f"it names {p.text!a}, which is no checkpoint here{_EFFECT[p.on_dangle]}",
        )
        for key, p in every.items()
        if key not in hit and not p.flags
    ]
