"""Shows a plan: per run what stays, what goes and why; then the summary and what to type next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lifecycle.core.action import Verb
from lifecycle.core.classes import parted
from lifecycle.core.model import Finding
from lifecycle.core.plan import Plan
from lifecycle.core.units import escape, format_age, format_bytes, format_seconds
from lifecycle.render.report import RunReport, Told, plural, reasons, tally
from lifecycle.render.table import Column, Fit, Look, cells, table, wrap
from lifecycle.sizing.exposed import sum_up
from lifecycle.sizing.waits import WAITS, Speed

FINDINGS_MAX = 12
"""As many findings of one kind are shown before the rest is counted."""

_SEE = " (-v lists them)"
_TITLES = {"refusal": "refused", "error": "error", "warning": "warning", "note": "note"}


JUDGING = frozenset({"plan", "explain", "apply"})


@dataclass(frozen=True, slots=True)
class Typing:
    """How the reader calls us: the program's name, and the options that lead to the same site again."""

    program: str = "lifecycle"
    options: str = ""
    rules: str = ""
    """Options that choose the policies: only what judges takes them."""

    def __call__(self, *words: str) -> str:
        """A command line to type."""
        rules = self.rules if words[0] in JUDGING else ""
        return " ".join(part for part in (self.program, words[0], *map(quote, words[1:]), self.options, rules) if part)


def quote(text: str) -> str:
    """A word for a POSIX shell, safe to show; a name that needs escapes cannot be typed anyway."""
    return escape(shlex.quote(text))


def plan_lines(plan: Plan, runs: Sequence[RunReport], look: Look, *, everything: bool) -> Iterator[str]:
    """The body of a plan: a block for each run in which something is done, then what was noticed."""
    now_ns = plan.basis.made_at_ns
    quiet = [run for run in runs if not (run.goes or run.moves)]
    for run in runs:
        if run.goes or run.moves or everything:
            yield from _run(run, now_ns, look, everything=everything)
            yield ""
    if quiet and not everything:
        count = sum(len(run.stays) for run in quiet)
        kept = format_bytes(sum(told.bytes for run in quiet for told in run.stays))
        who = plural(len(quiet), "run") if len(quiet) == len(runs) else plural(len(quiet), "more run")
        keep = "keeps" if len(quiet) == 1 else "keep"
        text = f"{who} {keep} everything: {plural(count, 'checkpoint')}, {kept} (-v lists them)"
        yield from wrap(text, look)
        yield ""
    yield from finding_lines(plan.findings, look, everything=everything)


def _run(run: RunReport, now_ns: int, look: Look, *, everything: bool) -> Iterator[str]:
    yield look.bold(escape(run.id))
    stays = f"{plural(len(run.stays), 'checkpoint')}, {_size(run.stays)}"
    if run.stays and not everything:
        yield from wrap(
            f"{len(run.stays)} ({_size(run.stays)}): {tally(run.stays_by)}", look, indent=8, first="  keep  "
        )
    elif not run.stays:
        yield look.bad("  keep  nothing")
    else:
        yield f"  keep  {stays}"
        yield from _rows(run.stays, now_ns, look)
    if run.goes:
        yield look.bad(f"  drop  {len(run.goes)} ({_size(run.goes)})")
        yield from _rows(run.goes, now_ns, look)
    else:
        yield "  drop  nothing"
    for words in dict.fromkeys(words for words, _ in run.moves):
        group = [told for said, told in run.moves if said == words]
        yield look.bold(f"  {escape(words)}: {len(group)} ({_size(group)})")
        if everything or not words.startswith("leave"):
            yield from _rows(group, now_ns, look)


def _size(group: Sequence[Told]) -> str:
    return format_bytes(sum(told.bytes for told in group))


def _rows(group: Sequence[Told], now_ns: int, look: Look) -> Iterator[str]:
    columns = [Column("", fit=Fit.MIDDLE), Column("", right=True), Column("", right=True), Column("", right=True)]
    rows = [
        (
            _name(told, look),
            "" if told.step is None or str(told.step) in told.name else f"step {told.step}",
            format_bytes(told.bytes),
            f"{format_age(now_ns - told.saved_at_ns)} old",
        )
        for told in group
    ]
    for line, told in zip(table(columns, rows, look, indent=8, titles=False), group, strict=True):
        if look.width is None:
            yield f"{line}  {'; '.join(reasons(told))}"
            continue
        reason = next(iter(reasons(told)), "")
        if cells(line) + 2 + cells(reason) <= look.width:
            yield f"{line}  {reason}"
        else:
            yield line
            yield from wrap(reason, look, indent=12, first=" " * 12)


def _name(told: Told, look: Look) -> str:
    """The id where a program reads it; on a screen only what follows the run, which stands above it."""
    if look.width is None:
        return escape(told.id)
    below = told.run if told.run.endswith(":") else told.run + "/"
    return escape(told.id.removeprefix(below))


def finding_lines(findings: Sequence[Finding], look: Look, *, everything: bool) -> Iterator[str]:
    """What was noticed, the worst first; notes only where everything is asked for."""
    paint = {"refusal": look.bad, "error": look.bad, "warning": look.odd, "note": look.dim}
    for severity, title in _TITLES.items():
        mine = [f for f in findings if f.severity == severity]
        if not mine or (severity == "note" and not everything):
            continue
        told = [(f.subject, 0, f) for f in mine] if everything else _alike(mine)
        for subject, more, f in told if everything else told[:FINDINGS_MAX]:
            also = f" and {more} more" if more else ""
            text = f"{escape(subject.removesuffix(':'))}{also}: {escape(f.text)} [{f.code}]"
            lines = wrap(text, look, indent=2, first=f"{title}: ")
            yield from (paint[severity](line) for line in lines)
        if not everything and len(told) > FINDINGS_MAX:
            yield paint[severity](f"{title}: ... and {len(told) - FINDINGS_MAX} more (-v lists them)")
    if any(f.severity != "note" or everything for f in findings):
        yield ""


def _alike(findings: Sequence[Finding]) -> list[tuple[str, int, Finding]]:
    """Findings that say the same of different things come once: the first subject, how many more, the finding."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for f in findings:
        found.setdefault((f.code, f.text), []).append(f)
    return [(group[0].subject, len(group) - 1, group[0]) for group in found.values()]


def summary_lines(plan: Plan, runs: Sequence[RunReport], look: Look) -> Iterator[str]:
    """The plan in a few numbers."""
    losing = sum(1 for run in runs if run.goes)
    totals = Counter(plan.totals)
    yield look.bold("Summary")
    lose = f"{losing} of them {'loses' if losing == 1 else 'lose'} something" if losing else "none loses anything"
    if totals["given_up_bytes"] and not losing:
        lose = "none loses a checkpoint"
    rows = [
        ("runs", f"{len(runs)}, {lose}"),
        ("keep", f"{plural(totals['kept_checkpoints'], 'checkpoint')}, {format_bytes(totals['kept_bytes'])}"),
        ("drop", _dropped(plan, totals)),
        ("rules", ", ".join(f"policy {escape(name)}" for name, _ in plan.basis.policies) or "none: everything stays"),
    ]
    copied = Counter(a.to for a in plan.actions if a.to)
    left = Counter(a.store for a in plan.actions if a.copies and a.verb not in (Verb.SLIM, Verb.RECLASS))
    if copied:
        where = ", ".join(f"{count} to {escape(store)}" for store, count in sorted(copied.items()))
        rows.append(("copy", f"{where}, {format_bytes(totals['copied_bytes'])}"))
    rows += _class_rows(plan)
    if left:
        where = ", ".join(f"{count} from {escape(store)}" for store, count in sorted(left.items()))
        rows.append(("leave", f"{where}, {format_bytes(totals['released_bytes'])}, each once its copies are proven"))
    slims = Counter(a.store for a in plan.actions if a.verb is Verb.SLIM)
    if slims:
        where = ", ".join(f"{count} on {escape(store)}" for store, count in sorted(slims.items()))
        rows.append(("slim", f"{where}, {format_bytes(totals['slimmed_bytes'])}: only their weights stay there"))
    if totals["given_up_bytes"]:
        size = format_bytes(totals["given_up_bytes"])
        rows.append(("give up", f"{size} that a resume needs stand nowhere then: the policy says full: none"))
    counts = Counter(f.severity for f in plan.findings)
    noticed = [
        f"{plural(counts[severity], word)}{more}"
        for severity, word, more in (("error", "error", ""), ("warning", "warning", ""), ("note", "note", _SEE))
        if counts[severity]
    ]
    if exposed := sum_up(totals):
        rows.append(("exposed", exposed))
    if noticed:
        rows.append(("noticed", ", ".join(noticed)))
    if plan.refusals:
        rows.append(("refused", "this plan is over its limits and cannot be applied"))
    yield from table([Column(""), Column("")], rows, Look(None, look.colour), indent=2, titles=False)


def _class_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """What is brought to a storage class, and how long coming back from it takes."""
    found = Counter(f"{a.to or a.store}@{a.storage_class}" for a in plan.actions if a.storage_class)
    moved = [a for a in plan.actions if a.storage_class and not a.to]
    if moved:
        where = Counter(f"{a.store}@{a.storage_class}" for a in moved)
        told = ", ".join(f"{count} to {escape(place)}" for place, count in sorted(where.items()))
        yield "class", f"{told}, {format_bytes(sum(a.bytes for a in moved))}"
    for place in sorted(found):
        waits = WAITS.get(parted(place)[1], {})
        if waits:
            usual, slow = waits[Speed.STANDARD].words, waits[Speed.BULK].words
            yield "archive", f"{escape(place)} comes back in {usual}; bulk: {slow}"


def _dropped(plan: Plan, totals: Counter[str]) -> str:
    count, size = totals["expired_checkpoints"], totals["expired_bytes"]
    if not count:
        return "nothing"
    text = f"{plural(count, 'checkpoint')}, {format_bytes(size)}"
    times = {a.trash_s for a in plan.actions if not a.keeps}
    kept = sorted(t for t in times if t is not None)
    if not kept:
        return f"{text}: deleted at once, with no way back"
    text += f": into the trash, {format_seconds(kept[0])} to undo"
    return text + (f"; {format_bytes(size - totals['trashed_bytes'])} deleted at once" if None in times else "")


def next_lines(plan: Plan, runs: Sequence[RunReport], name: str, typing: Typing, look: Look) -> Iterator[str]:
    """What to type next, with names that are really there."""
    some = next((told for run in runs for told in (*run.goes, *(moved for _, moved in run.moves))), None)
    rows = []
    if some is None:
        some = next((told for run in runs for told in run.stays), None)
        if some is not None:
            rows = [("why it stays", typing("explain", some.id))]
    else:
        rows = [
            ("why it moves" if some.keep else "why it goes", typing("explain", some.id)),
            (
                "keep it where it is" if some.keep else "keep it all the same",
                typing("hold", some.id, "--reason", "TEXT"),
            ),
        ]
        if not plan.refusals:
            rows.append(("carry this plan out", typing("apply", name)))
    if rows:
        yield look.bold("Next")
        for title, line in rows:
            yield look.dim(f"  # {title}")
            yield f"  {line}"
