"""Shows what a run's saves tell beside the model, what to change, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf
from typing import NamedTuple

from lifecycle.core.units import escape, format_bytes
from lifecycle.render.figures import amount, percent, rate, span
from lifecycle.render.table import Column, Look, table, wrap
from lifecycle.render.waste import Scale, how
from lifecycle.sizing.advice import Advice, Verdict
from lifecycle.sizing.modes import Mode
from lifecycle.sizing.observed import Observed, Size
from lifecycle.sizing.restarts import Restarts


class Told(NamedTuple):
    """All but the advice itself."""

    run: str
    seen: Observed
    model: str | None
    """What a checkpoint of the model takes, in words; None: nobody said which model."""
    save_s: float | None
    save_given: bool
    mtbf_s: float | None
    rate: str
    """How often it is interrupted, who says so."""
    after: list[tuple[str, str]]
    why_not: str
    """Why there is no advice."""
    sized: bool
    """The number of GPUs was said."""
    own: bool
    """The rate is the run's own."""


def advice_lines(told: Told, advice: Advice | None, scale: Scale, look: Look) -> Iterator[str]:
    """The answer for people."""
    seen = told.seen
    gone = f", {seen.gone:,} of them gone" if seen.gone else ""
    yield from wrap(f"{escape(told.run)}: {seen.saves:,} {seen.kind} saves seen{gone}", look, indent=2)
    yield ""
    yield from table((Column(""), Column("measured"), Column("by the model")), _rows(told, advice), look)
    yield ""
    if advice is None:
        yield from wrap(f"No advice: {told.why_not}.", look, indent=2)
    else:
        for sentence in _sentences(told, advice, scale):
            yield from wrap(sentence, look, indent=2)
    yield ""
    yield look.bold("How sure")
    for word, text in _sure(told, advice):
        yield from wrap(text, look, indent=14, first=f"  {word.ljust(10)}  ")


def _rows(told: Told, advice: Advice | None) -> Iterator[tuple[str, str, str]]:
    seen, mode = told.seen, None if advice is None else advice.answer.modes[0]
    each, writing = seen.interval, seen.writing
    size = "unknown" if seen.size is None else format_bytes(seen.size.median_bytes)
    yield "checkpoint", size, "-" if told.model is None else told.model.partition(":")[0]
    yield (
        "interval",
        "unknown" if each is None else span(each.seconds),
        "-" if mode is None else span(mode.best.every_s),
    )
    yield "save takes", _save(told), "-"
    yield "written at", "unknown" if writing is None else f"at most {rate(writing.write_bps)}", "-"
    own, modelled = _mtbf(seen.restarts), "-"
    if told.mtbf_s is not None and not told.own:
        modelled = span(told.mtbf_s)
    yield "interrupted every", own, modelled


def _save(told: Told) -> str:
    if told.save_s is None:
        return "unknown"
    return f"{span(told.save_s)} (given)" if told.save_given else f"at least {span(told.save_s)}"


def _mtbf(found: Restarts | None) -> str:
    if found is None:
        return "unknown"
    if not found.count:
        return f"more than {span(found.rate(1).mtbf_s(1))}"
    bounds = found.rate(1).bounds_s(1) or (0.0, 0.0)
    return f"{span(found.watched_s / found.count)} ({span(bounds[0])} to {span(bounds[1])})"


def _sentences(told: Told, advice: Advice, scale: Scale) -> Iterator[str]:
    blocking, behind = advice.answer.modes
    least = "" if told.save_given else "at least "
    part = blocking.saving.stall_s / advice.every_s
    yield (
        f"It saves every {span(advice.every_s)}, and a save takes {least}{span(blocking.saving.stall_s)}: "
        f"{least}{percent(part)} of the time, if training waits for it."
    )
    wastes = f"every {span(advice.every_s)} cannot be: {blocking.why_not}"
    if blocking.now is not None:
        wastes = f"every {span(advice.every_s)} wastes {percent(blocking.now.waste)}"
    yield (
        f"Interrupted every {span(blocking.saving.mtbf_s)}, it wastes least when it saves every "
        f"{span(blocking.best.every_s)}: {percent(blocking.best.waste)}; {wastes}. Between "
        f"{span(blocking.flat.from_s)} and {span(blocking.flat.to_s)} it is at most 5 % more than the least."
    )
    yield _verdict(told, advice, blocking) + _gain(told, advice, blocking, scale)
    yield (
        f"If it saves asynchronously and stalls {span(behind.saving.stall_s)}: best every {span(behind.best.every_s)}, "
        f"which wastes {percent(behind.best.waste)}."
    )


def _verdict(told: Told, advice: Advice, mode: Mode) -> str:
    best, chance = span(mode.best.every_s), ""
    if advice.likely is not None:
        by = "What was counted allows" if told.own else "Published rates allow"
        chance = f" {by} a best of {_likely(advice)}{' (95 % sure)' if told.own else ''}."
    match advice.verdict:
        case Verdict.LEAVE:
            proviso = "" if told.save_given else ", if saves take no longer than their files tell"
            return f"Leave it{proviso}: nothing is gained by another interval.{chance}"
        case Verdict.UNSURE:
            doubt = "how often it is interrupted is not known well enough"
            if advice.every_s > mode.best.every_s and not told.save_given:
                doubt = "a save may take longer than its files tell, and then a longer interval is right"
            return f"Perhaps every {best} is better, but {doubt}.{chance}"
        case _:
            way = "less" if advice.verdict is Verdict.LONGER else "more"
            return f"Save {way} often: every {best}.{chance}"


def _likely(advice: Advice) -> str:
    likely = advice.likely
    if likely is None or isinf(likely.to_s):
        return "" if likely is None else f"{span(likely.from_s)} or more"
    return f"{span(likely.from_s)} to {span(likely.to_s)}"


def _gain(told: Told, advice: Advice, mode: Mode, scale: Scale) -> str:
    if mode.now is None or not told.sized or advice.verdict in {Verdict.LEAVE, Verdict.UNSURE}:
        return ""
    part = mode.now.waste - mode.best.waste
    money = scale.money_a_day(part)
    cost = "" if money is None else f", {amount(money, scale.currency)}"
    return f" That wins {scale.gpu_hours_a_day(part):,.0f} GPU-hours{cost} a day."


def _sure(told: Told, advice: Advice | None) -> Iterator[tuple[str, str]]:
    seen = told.seen
    if seen.size is not None:
        yield "checkpoint", f"the median of the saves; {_growth(seen.size)}"
    if told.model is not None:
        yield "model", told.model
    if (each := seen.interval) is not None:
        yield (
            "interval",
            f"median of {each.gaps:,}; half of them lie between {span(each.low_s)} and {span(each.high_s)}",
        )
    if told.save_given:
        yield "save", "as you say"
    elif (writing := seen.writing) is not None:
        yield (
            "save",
            f"a lower bound: a file shows when it was finished, not when it was begun. From first to last file "
            f"{span(writing.median_s)} (median of {writing.saves:,}; nine of ten within {span(writing.most_s)}), taken "
            "as written one after another; saves of many ranks take longer: give --save from your log",
        )
    if (found := seen.restarts) is not None:
        yield "restarts", _restarts(found)
    if told.rate:
        yield "failures", told.rate
    if advice is not None:
        yield from told.after
        yield "waste", how(advice.answer)
    for text in seen.unknown:
        yield "unknown", text


def _growth(size: Size) -> str:
    told = []
    for change, each in ((size.a_day_bytes, "a day"), (size.an_epoch_bytes, "an epoch")):
        if change:
            told.append(f"it {'grows' if change > 0 else 'shrinks'} by {format_bytes(abs(change))} {each}")
    if told:
        return ", ".join(told)
    return "it does not grow" if size.a_day_bytes is not None else "too few to tell whether it grows"


def _restarts(found: Restarts) -> str:
    kinds = f"{found.rewinds:,} rewinds, {found.pauses:,} pauses, {found.late:,} late saves"
    blind = f"; nothing is known of {span(found.blind_s)} more, whose saves were not seen" if found.blind_s else ""
    return (
        f"{kinds} in {span(found.watched_s)}{blind}. A save may be late for other reasons, and a restart that costs "
        f"less than {span(found.least_s)} is not seen"
    )
