"""``advise``: what a run's own saves tell, held against the model, and whether it should save more or less often."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isinf

from lifecycle.cli import quantities
from lifecycle.cli.asked import (
    DEFAULT_RATE,
    AfterOptions,
    FailureOptions,
    Sized,
    SizeOptions,
    failing,
    rate_value,
    sized,
    told_rate,
)
from lifecycle.cli.desk import Desk
from lifecycle.cli.selecting import find
from lifecycle.core.protect import SECOND_NS
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.flows.spreads import spreads
from lifecycle.render.advice import Told, advice_lines
from lifecycle.render.figures import span
from lifecycle.render.waste import Scale
from lifecycle.sizing.advice import RESTARTS_MIN, Advice, Took, Verdict, advise
from lifecycle.sizing.failures import RATES, Rate, given
from lifecycle.sizing.modes import Point
from lifecycle.sizing.observed import INTERVAL_GAPS, Observed, observe, saves_of
from lifecycle.sizing.storage import Save

OWN = "own"
REWRITTEN_S = 3600
"""A save that a scan saw half done ends after that; one that ends so much later, and an interval, is another one."""
WAITS = "whether training waits for its saves: files do not show it, so both ways are answered"


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of ``lifecycle advise``."""

    run: str
    gpus: int | None
    size: SizeOptions
    save: str | None
    mtbf: str | None
    after: AfterOptions
    gpu_hour: str | None

    @property
    def scale(self) -> Scale:
        """What a part of the time comes to, on one GPU where nobody said how many. Raises ConfigInvalid."""
        hour, currency = quantities.price("--gpu-hour", self.gpu_hour) if self.gpu_hour else (None, "")
        return Scale(self.gpus or 1, hour, currency)


def tell_advice(desk: Desk, asked: Asked) -> int:
    """``lifecycle advise``"""
    if asked.gpu_hour and asked.gpus is None:
        raise ConfigInvalid("--gpu-hour needs to know how many: give --gpus", code="usage")
    scale, model = asked.scale, None if not asked.size.named.given else sized(asked.size)
    name, seen = _look(desk, asked.run)
    rate, no_rate = _rate(asked, seen)
    save_s = _save_s(asked, seen)
    advice, why_not = _advice(asked, seen, rate, save_s, no_rate)
    if advice is not None:
        seen = _with_unknown(seen, WAITS)
    told = Told(
        name,
        seen,
        None if model is None else model.told,
        save_s,
        asked.save is not None,
        None if rate is None else rate.mtbf_s(scale.gpus),
        _told_rate(asked, rate),
        _told_after(asked, save_s),
        why_not,
        asked.gpus is not None,
        rate is not None and rate.name == "counted",
    )
    desk.answer(_value(told, model, rate, advice, scale), advice_lines(told, advice, scale, desk.look))
    return 0


def _look(desk: Desk, text: str) -> tuple[str, Observed]:
    """A run's name, and what is seen of it: its whole history in the index, and its files as they stand."""
    with desk.world(write=False, create=False) as world:
        run = find(world, text).run
        if run is None:
            raise ConfigInvalid(f"{text!a} is no run", code="usage", hint="`lifecycle ls` lists runs")
        history = world.index.reader.history(run.store, run.path)
        saves = saves_of([c for c, _ in history])
        here = {c.key for c, present in history if present}
        trouble = ""
        try:
            found = spreads(world.stores[run.store], run.path, saves)
        except LifecycleError as e:
            found, trouble = [], f"its store cannot be looked at now: {e}"
        seen = observe(saves, found, sum(c.key not in here for c in saves), trouble)
        after_s = REWRITTEN_S if seen.interval is None else max(REWRITTEN_S, seen.interval.seconds)
        again = world.index.reader.rewritten(run.store, run.path, round(after_s * SECOND_NS))
    return run.id, _with_unknown(seen, _rewritten(again)) if again else seen


def _rewritten(count: int) -> str:
    were, key = ("save was", "its own key") if count == 1 else ("saves were", "their own keys")
    lost = "the times before are lost, and with them gaps and restarts"
    return f"{count:,} {were} written again at {key} since a scan saw what stood there: {lost}"


def _with_unknown(seen: Observed, text: str) -> Observed:
    return replace(seen, unknown=(*seen.unknown, text))


def _rate(asked: Asked, seen: Observed) -> tuple[Rate | None, str]:
    """How often it fails, or why nobody knows."""
    gpus = asked.gpus or 1
    own = seen.restarts
    if asked.mtbf == OWN or (asked.mtbf is None and own is not None and own.count >= RESTARTS_MIN):
        if own is None:
            return None, "its saves do not tell how often it is interrupted"
        if not own.count:
            return None, f"no restart was seen in {span(own.watched_s)}, so nobody knows how often one comes"
        return own.rate(gpus), ""
    if asked.mtbf is not None and asked.mtbf[:1].isdecimal():
        return given(quantities.seconds("--mtbf", asked.mtbf), gpus), ""
    if asked.gpus is None:
        if asked.mtbf is not None:
            raise ConfigInvalid("--mtbf NAME is a rate for each GPU: give --gpus too", code="usage")
        return None, "how often it is interrupted is not known: give --gpus for a published rate, or --mtbf"
    rate = failing(FailureOptions(asked.mtbf, None, None, None), gpus)
    return (_anything(rate) if asked.mtbf is None else rate), ""


def _anything(rate: Rate) -> Rate:
    """A rate that nobody chose is as sure as published rates agree."""
    each = [known.gpu_hours for known in RATES.values()]
    return rate._replace(low_gpu_hours=min(each), high_gpu_hours=max(each))


def _save_s(asked: Asked, seen: Observed) -> float | None:
    if asked.save is not None:
        return quantities.seconds("--save", asked.save)
    if seen.writing is None or seen.size is None:
        return None
    return seen.writing.save_s(seen.size.median_bytes)


def _advice(
    asked: Asked, seen: Observed, rate: Rate | None, save_s: float | None, no_rate: str
) -> tuple[Advice | None, str]:
    """What is best, or why nothing is recommended."""
    each = seen.interval
    if each is None or each.gaps < INTERVAL_GAPS:
        return None, "its saves are too few to tell how often it saves"
    if save_s is None:
        return None, "how long a save takes is not known: give --save"
    if rate is None:
        return None, no_rate
    gpus, took = asked.gpus or 1, Save(save_s, save_s)
    after = asked.after.failing(rate.mtbf_s(gpus), took)
    least = Took(save_s, asked.after.stall_s(took), at_least=asked.save is None)
    return advise(each.seconds, least, rate, gpus, after, asked.after.assumed()), ""


def _told_rate(asked: Asked, rate: Rate | None) -> str:
    if rate is None:
        return ""
    if rate.name == "counted":
        return f"{rate.source}; {rate.note}".removesuffix("; ")
    if rate.name == "given":
        return rate.source
    if asked.mtbf is not None:
        return told_rate(rate, asked.gpus or 1, chosen=True)
    ends = " to ".join(span(edge) for edge in rate.bounds_s(asked.gpus or 1) or ())
    return f"{DEFAULT_RATE}, assumed: {rate.source}; published rates reach from {ends}"


def _told_after(asked: Asked, save_s: float | None) -> list[tuple[str, str]]:
    if save_s is None:
        return []
    took = Save(save_s, save_s)
    return asked.after.told(asked.after.failing(1.0, took), took)


# -- for programs


def _value(
    told: Told, model: Sized | None, rate: Rate | None, advice: Advice | None, scale: Scale
) -> dict[str, object]:
    seen = told.seen
    return {
        "run": told.run,
        "kind": seen.kind,
        "saves": seen.saves,
        "saves_gone": seen.gone,
        "size": seen.size and seen.size._asdict(),
        "interval": seen.interval and seen.interval._asdict(),
        "writing": seen.writing and seen.writing._asdict(),
        "restarts": seen.restarts and {**asdict(seen.restarts), "count": seen.restarts.count},
        "unknown": list(seen.unknown),
        "model": model and model.value(),
        "save_s": told.save_s,
        "failures": rate and rate_value(rate, scale.gpus),
        "verdict": Verdict.NONE if advice is None else advice.verdict,
        "why_not": told.why_not or None,
        "counted_by": None if advice is None else advice.answer.counting.value,
        "modes": []
        if advice is None
        else [
            {
                "name": mode.name,
                "now": _point(mode.now, scale),
                "best": _point(mode.best, scale),
                "flat": mode.flat._asdict(),
            }
            for mode in advice.answer.modes
        ],
        "best_from_s": advice and advice.likely and advice.likely.from_s,
        "best_to_s": None
        if advice is None or advice.likely is None or isinf(advice.likely.to_s)
        else advice.likely.to_s,
    }


def _point(point: Point | None, scale: Scale) -> dict[str, object] | None:
    if point is None:
        return None
    lost, money = scale.gpu_hours_a_day(point.waste), scale.money_a_day(point.waste)
    return {**point._asdict(), "gpu_hours_a_day": lost, "money_a_day": money}
