"""A change of policies for programs: one JSON object, every checkpoint that meets another fate in it."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.core.reasons import why
from lifecycle.render import change_words as words
from lifecycle.review.change import Change, Fate, Share, Verdict, share, shares
from lifecycle.review.difference import Difference


def change_value(found: Difference) -> dict[str, object]:
    """The whole answer."""
    checkpoints, size = found.lost
    return {
        "different": not found.empty,
        "headline": words.headline(found),
        "lost": {"checkpoints": checkpoints, "bytes": size, "given_up_bytes": list(found.given_up)},
        "index": {
            "source": found.source,
            "names_hidden": found.hashed,
            "runs": found.runs,
            "checkpoints": len(found.new.lines),
            "judged_at_ns": found.now_ns,
            "stores": [{**one._asdict(), "stale": one in found.stale} for one in found.looked],
        },
        "totals": {"old": dict(found.old.totals), "new": dict(found.new.totals)},
        "refused": [{"side": side, "text": text} for side, text in words.refusals(found)],
        "summary": {fate.value: _share(share(found.of(fate)), found) for fate in Fate},
        "by_run": _by(found, "run"),
        "by_owner": _by(found, "owner"),
        "by_rule": _by(found, "rule"),
        "changes": [_change(change) for change in found.changes],
        "terms": [term._asdict() for term in found.terms],
        "runs": [{**cover._asdict(), "covered": cover.covered, "uncovered": cover.uncovered} for cover in found.covers],
        "costs": _costs(found),
        "full": {
            "days": found.days,
            "unknown": found.undated,
            "stores": [date._asdict() for date in found.dates],
        },
        "findings": [f._asdict() for f in found.findings],
    }


def _share(part: Share, found: Difference) -> dict[str, object]:
    return {**part._asdict(), "currency": found.currency}


def _by(found: Difference, what: str) -> dict[str, list[dict[str, object]]]:
    """Shares of each fate, the largest first."""

    def key(change: Change) -> str:
        match what:
            case "run":
                return change.run
            case "owner":
                return "" if change.owner is None else str(change.owner)
            case _:
                return words.kept_by(change.new if change.fate is Fate.STAYS else change.old)

    return {
        fate.value: [{"name": name, **_share(part, found)} for name, part in shares(mine, key)]
        for fate in Fate
        if (mine := found.of(fate))
    }


def _change(change: Change) -> dict[str, object]:
    return {
        "id": change.id,
        "run": change.run,
        "name": change.name,
        "step": change.step,
        "bytes": change.bytes,
        "saved_at_ns": change.saved_at_ns,
        "owner": change.owner,
        "month_micro": change.month_micro,
        "fate": change.fate.value,
        "old": _verdict(change.old),
        "new": _verdict(change.new),
    }


def _verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "keep": verdict.keep,
        "kept_by": [{"policy": policy, "rule": rule} for policy, rule in verdict.keepers],
        "why": [
            {"policy": policy, "code": mark.code, "rule": mark.rule, "text": why(mark)}
            for policy, mark in verdict.because
        ],
        "doings": [doing._asdict() for doing in verdict.doings],
    }


def _costs(found: Difference) -> dict[str, object] | None:
    if found.bills is None:
        return None
    sides: Sequence[tuple[str, int]] = [
        (side, sum(line.after for line in bill.priced)) for side, bill in zip(("old", "new"), found.bills, strict=True)
    ]
    return {
        "currency": found.currency,
        "month_micro": dict(sides),
        "unpriced": sorted(set(found.bills[1].unpriced)),
    }
