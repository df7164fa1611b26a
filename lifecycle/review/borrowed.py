"""What other tools call retention, in the words of a policy, and a sentence for all that cannot be said in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from lifecycle.core.units import escape, format_seconds

Item = dict[str, object]


class Unclear(ValueError):
    """Something in the foreign settings that cannot be meant."""


class Borrowed(NamedTuple):
    """A foreign retention as the body of a policy file."""

    body: Mapping[str, object]
    """Keys of a policy besides its name and what it matches; without ``keep`` everything stays."""
    notes: tuple[str, ...]
    """What means something else here, or cannot be said; one sentence each."""


FLOOR = "the newest complete checkpoint of each run stays here whatever the rules say"
ROTATES = (
    "{what} deletes by itself while it saves, before this policy is asked: take the limit out there "
    "if the policy is to decide"
)


def keeping(rules: Iterable[Item] | None, notes: Iterable[str]) -> Borrowed:
    """A policy of keep rules, each once; None keeps everything."""
    if rules is None:
        return Borrowed({}, tuple(notes))
    unique: list[Item] = []
    unique += [rule for rule in rules if rule not in unique]
    return Borrowed({"keep": unique or "none"}, tuple(notes))


def whole_number(text: str) -> int | None:
    """The number that a text is; None for anything else, and for what nobody counts to."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


class Options:
    """Settings of a tool by name; each may be asked for as what it should be."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self.given = given

    def count(self, name: str) -> int | None:
        """A whole number; None where it is not set."""
        value = self.given.get(name)
        if value in (None, "None", "none", "null", ""):
            return None
        number = whole_number(str(value))
        if number is None or isinstance(value, bool):
            raise Unclear(f"{name} needs a whole number, not {escape(str(value))}")
        return number

    def flag(self, name: str) -> bool | None:
        """True or false; None where it is not set."""
        value = str(self.given.get(name, "")).lower()
        if value not in ("true", "false", "1", "0", "", "none"):
            raise Unclear(f"{name} needs true or false, not {escape(value)}")
        return {"true": True, "1": True, "false": False, "0": False}.get(value)

    def text(self, name: str) -> str | None:
        """Any text; None where it is not set."""
        value = self.given.get(name)
        return None if value in (None, "None", "none", "null", "") else str(value)


# -- Hugging Face Trainer (TrainingArguments, transformers/trainer_utils.py: rotate_checkpoints)


def trainer(options: Options) -> Borrowed:
    """``save_total_limit`` and what goes with it."""
    limit = options.count("save_total_limit")
    if limit is None or limit <= 0:
        return keeping(None, ["without save_total_limit Trainer keeps everything, and so does a policy without keep"])
    rules: list[Item] = [{"last": limit}]
    notes = [ROTATES.format(what="Trainer with save_total_limit"), FLOOR]
    asked = options.text("metric_for_best_model")
    if options.flag("load_best_model_at_end") or asked is not None:  # with a metric the best is spared in any case
        metric = asked or "loss"
        metric = metric if metric.startswith("eval_") else f"eval_{metric}"
        greater = options.flag("greater_is_better")
        greater = not metric.endswith("loss") if greater is None else greater
        rules.append({"best": {"metric": metric, "mode": "max" if greater else "min", "count": 1}})
        if limit > 1:
            notes.append("Trainer counts the best one among save_total_limit; here it may be one more")
    return keeping(rules, notes)


# -- Lightning (ModelCheckpoint, lightning/pytorch/callbacks/model_checkpoint.py)


def lightning(options: Options) -> Borrowed:
    """``save_top_k``, ``monitor``, ``mode`` and ``save_last``."""
    count, monitor = options.count("save_top_k"), options.text("monitor")
    count = 1 if count is None else count
    last = options.text("save_last")
    mode = options.text("mode") or "min"
    if mode not in ("min", "max"):
        raise Unclear(f"mode is min or max, not {escape(mode)}")
    if count < -1:
        raise Unclear(f"save_top_k is -1, none or a count, not {count}")
    if count == -1:
        return keeping(None, ["save_top_k=-1 keeps everything, and so does a policy without keep"])
    if monitor is None and count > 1:
        raise Unclear("save_top_k over 1 needs monitor: nothing says which are the best")
    rules: list[Item] = []
    if count:
        rules.append({"last": 1} if monitor is None else {"best": {"metric": monitor, "mode": mode, "count": count}})
    if last is not None and last.lower() not in ("false", "0") and {"last": 1} not in rules:
        rules.append({"last": 1})
    notes = [ROTATES.format(what="ModelCheckpoint with save_top_k"), FLOOR]
    if monitor is not None:
        notes.append("what was saved without the metric stays here; say missing: ignore to let it go")
    return keeping(rules, notes)


# -- Orbax (CheckpointManagerOptions and preservation policies)

Call = tuple[str, Mapping[str, object]]
"""One of Orbax's preservation policies as it is written: its name and its arguments."""


def orbax(options: Options, policies: Iterable[Call]) -> Borrowed:
    """``max_to_keep`` and its kin, or preservation policies; both where both are given."""
    rules: list[Item] = []
    notes = [ROTATES.format(what="CheckpointManager"), FLOOR]
    metric = options.text("best_metric")
    most, calls = options.count("max_to_keep"), list(policies)
    if most is None and not calls:  # periods only spare some of what max_to_keep would let go
        return keeping(None, ["without max_to_keep Orbax keeps everything, and so does a policy without keep"])
    if metric is None and options.text("best_fn") is not None:
        raise Unclear("best_fn is code: say best_metric=NAME for the metric that it reads")
    if most is not None:
        rules.append({"last": most} if metric is None else {"best": _best(metric, options.text("best_mode"), most)})
        if metric is None and options.text("best_mode") is not None:
            notes.append("best_fn is code: say best_metric=NAME for the metric that it reads")
    if (period := options.count("keep_period")) is not None:
        rules.append({"every": {"steps": period, "pick": "exact"}})
    if (seconds := options.count("keep_time_interval")) is not None:
        rules.append({"every": {"time": format_seconds(seconds), "pick": "first"}})
        notes.append("a time interval counts from the last kept there, and from a fixed grid here")
    for name, arguments in calls:
        if name == "PreserveAll":
            return keeping(None, ["PreserveAll keeps everything, and so does a policy without keep"])
        found, told = _preserved(name, Options(arguments), metric)
        rules += found
        notes += told
    return keeping(rules, dict.fromkeys(notes))


def _best(metric: str, mode: str | None, count: int) -> Item:
    if mode not in (None, "min", "max"):
        raise Unclear(f"best_mode is min or max, not {escape(mode)}")
    return {"metric": metric, "mode": mode or "max", "count": count}


def _preserved(name: str, of: Options, metric: str | None) -> tuple[list[Item], list[str]]:
    """One preservation policy."""
    match name:
        case "LatestN":
            return _counted(_needed(of, name, "n"), lambda n: {"last": n})
        case "LatestDuration":
            seconds = _needed(of, name, "duration")
            return [{"younger": {"than": format_seconds(seconds), "of": "now"}}], []
        case "EveryNSteps" | "EveryNStepsClosest":
            steps = _needed(of, name, "interval_steps")
            told = [] if of.text("max_to_keep") is None else [f"milestones of {name} cannot be limited here"]
            if name == "EveryNStepsClosest":
                return [{"every": {"steps": steps, "pick": "closest"}}, {"last": 1}], told
            exact = of.flag("exact_interval") is not False
            if not exact:
                told.append("the first save at or after each multiple stays here, not each so far from the one before")
            return [{"every": {"steps": steps, "pick": "exact" if exact else "first"}}], told
        case "EveryNSeconds":
            seconds = _needed(of, name, "interval_secs")
            told = ["a time interval counts from the last kept there, and from a fixed grid here"]
            return [{"every": {"time": format_seconds(seconds), "pick": "first"}}], told
        case "BestN":
            if metric is None:
                raise Unclear("BestN reads its metric by code: say best_metric=NAME")
            best = _best(metric, "min" if of.flag("reverse") else "max", _needed(of, name, "n"))
            if of.flag("keep_checkpoints_without_metrics") is False:
                best["missing"] = "ignore"
            return [{"best": best}], []
        case "CustomSteps":
            given = of.given.get("steps")
            if not isinstance(given, (list, tuple)) or not all(isinstance(step, int) for step in given):
                raise Unclear("CustomSteps needs a list of steps")
            return ([{"steps": list(given)}], []) if given else ([], [])
        case _:
            raise Unclear(f"{escape(name)} is no preservation policy that has a word here")


def _needed(of: Options, name: str, argument: str) -> int:
    value = of.count(argument)
    if value is None:
        raise Unclear(f"{name} needs {argument}")
    return value


def _counted(count: int, rule: Callable[[int], Item]) -> tuple[list[Item], list[str]]:
    """A rule that keeps so many; none for zero, which is no count here."""
    return ([rule(count)] if count > 0 else []), []


# -- restic and what speaks like it (restic forget)

PERIODS = ("hourly", "daily", "weekly", "monthly", "yearly")
LENGTHS_S = {"y": 365 * 86_400, "m": 30 * 86_400, "d": 86_400, "h": 3600}


def restic(flags: Iterable[tuple[str, str]]) -> Borrowed:
    """``--keep-last``, ``--keep-daily``, ``--keep-within`` and so on, as (name, value)."""
    rules: list[Item] = []
    notes = [FLOOR]
    everything = False
    for flag, value in flags:
        word = flag.removeprefix("--keep-")
        if word in ("last", *PERIODS):
            count = whole_number("-1" if value == "unlimited" else value)
            if count is None or count < -1:
                raise Unclear(f"{flag} needs a count, not {escape(value)}")
            everything |= count == -1 and word == "last"
            if count == -1 and word != "last":
                notes.append(f"{flag} without end cannot be said: 9999 stands for it")
            rules += [{word: 9999 if count == -1 else count}] if count else []
        elif word == "within":
            seconds, rough = _length(flag, value)
            rules.append({"younger": {"than": format_seconds(seconds), "of": "newest"}})
            if rough:
                notes.append(f"{flag} {escape(value)}: a month is 30 days here and a year 365")
        elif word == "tag":
            if "," in value:
                raise Unclear(f"{flag} {escape(value)}: several tags that must all be there cannot be said")
            rules.append({"tagged": value})
            notes.append("tags are those of objects, or user.tag.* attributes of files")
        else:
            raise Unclear(f"{escape(flag)} has no word here")
    if everything or not rules:
        return keeping(None, ["nothing is forgotten, and a policy without keep keeps everything"])
    return keeping(rules, notes)


def _length(flag: str, text: str) -> tuple[int, bool]:
    """Seconds of a length such as ``1y2m3d4h``, and whether a month or a year is in it."""
    seconds, digits, rough = 0, "", False
    for letter in text:
        if letter.isascii() and letter.isdigit():
            digits += letter
        elif letter in LENGTHS_S and digits:
            seconds, digits, rough = seconds + int(digits) * LENGTHS_S[letter], "", rough or letter in "ym"
        else:
            raise Unclear(f"{flag} needs a length such as 1y2m3d4h, not {escape(text)}")
    if digits or not seconds:
        raise Unclear(f"{flag} needs a length such as 1y2m3d4h, not {escape(text)}")
    return seconds, rough
