"""What people type of what if: runs that nobody has started, runs that end, other intervals and capacities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

from lifecycle.cli.selecting import moment
from lifecycle.core.model import Checkpoint, Evidence, Kind, Shape
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import parse_duration, parse_size
from lifecycle.errors import ConfigInvalid
from lifecycle.sizing import models, setups
from lifecycle.sizing.habits import Habit

FILE_BYTES = 5 * 10**9
"""A file holds about as much where nobody says how many there are: the default of a shard of Hugging Face."""
_KEYS = ("model", "size", "setup", "every", "for", "from", "gpus", "store", "path", "steps", "count")
_T = TypeVar("_T")


class Supposed(NamedTuple):
    """Runs that were asked for, and what was taken for granted about them."""

    habits: tuple[Habit, ...]
    assumptions: tuple[str, ...]


def pairs(option: str, words: Sequence[str]) -> list[tuple[str, str]]:
    """``NAME=VALUE`` of each; a name may hold ``=``. Raises ConfigInvalid."""
    found = []
    for word in words:
        name, equals, value = word.rpartition("=")
        if not (name and equals and value):
            raise ConfigInvalid(f"{option}: {word!a} needs the form NAME=VALUE", code="usage")
        found.append((name, value))
    return found


def meant(option: str, read: Callable[[str], _T], text: str) -> _T:
    """What ``text`` means. Raises ConfigInvalid."""
    try:
        return read(text)
    except ValueError as e:
        raise ConfigInvalid(f"{option}: {e}", code="usage") from e


def suppose(specs: Sequence[str], stores: Sequence[str], now_ns: int) -> Supposed:
    """The runs of ``--run``, each as ``model=70b,every=1h,for=30d,gpus=1024,store=hot,path=a/b``.

    Raises:
        ConfigInvalid: one cannot be meant.
    """
    habits: list[Habit] = []
    told: list[str] = []
    for spec in specs:
        given = _given(spec)
        store = given.get("store", stores[0] if stores else "hot")
        if stores and store not in stores:
            hint = f"stores here: {', '.join(sorted(stores))}"
            raise ConfigInvalid(f"--run: there is no store {store!a}", code="usage", hint=hint)
        count = _count("count", given.get("count", "1"))
        path = given.get("path", f"new/{given.get('model', 'run')}").strip("/")
        known = {h.template.run for h in habits}
        for number in range(1, count + 1):
            mine = path if count == 1 else f"{path}-{number}"
            if mine in known:
                raise ConfigInvalid(f"--run: {mine} is there twice: give one of them another path=", code="usage")
            habits.append(_habit(given, store, mine, now_ns))
        told += _told(given, store, path, habits[-1])
    return Supposed(tuple(habits), tuple(told))


def _given(spec: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in spec.split(","):
        key, equals, value = word.partition("=")
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {close[0]}=?" if close else f"known: {', '.join(_KEYS)}"
            raise ConfigInvalid(f"--run: {key!a} is nothing that a run has", code="usage", hint=hint)
        if not (equals and value):
            raise ConfigInvalid(f"--run: {key} needs a value: {key}=...", code="usage")
        if key in found:
            raise ConfigInvalid(f"--run: {key} is there twice", code="usage")
        found[key] = value
    if "every" not in found:
        raise ConfigInvalid("--run: every=AGE is missing: how often it saves", code="usage", hint="every=1h")
    if ("model" in found) == ("size" in found):
        raise ConfigInvalid(
            "--run: needs one of model=NAME and size=SIZE", code="usage", hint="model=70b or size=980GB"
        )
    return found


def _habit(given: Mapping[str, str], store: str, path: str, now_ns: int) -> Habit:
    every_s = meant("--run: every", parse_duration, given["every"])
    start_ns = moment(given["from"], now_ns) if "from" in given else now_ns
    end_ns = start_ns + meant("--run: for", parse_duration, given["for"]) * SECOND_NS if "for" in given else None
    parts = _parts(given)
    size = sum(parts.values())
    files = _count("gpus", given["gpus"]) + 1 if "gpus" in given else -(-size // FILE_BYTES)
    steps = _count("steps", given["steps"]) if "steps" in given else every_s
    template = Checkpoint(
        store=store,
        run=path,
        key=f"{path}/step-0",
        name="step-0",
        layout="forecast",
        shape=Shape.DIR,
        evidence=Evidence.PROVEN,
        kind=Kind.FULL,
        step=0,
        saved_at_ns=start_ns,
        changed_at_ns=start_ns,
        bytes=size,
        files=files,
        parts=tuple(parts.items()),
    )
    return Habit(
        template,
        interval_ns=every_s * SECOND_NS,
        next_ns=start_ns + every_s * SECOND_NS,
        end_ns=end_ns,
        bytes=size,
        files=files,
        steps=steps,
        added=True,
    )


def _parts(given: Mapping[str, str]) -> dict[str, int]:
    """Bytes by role as layouts name them; of a size alone nobody knows what could be left out."""
    if "size" in given:
        if "setup" in given:
            raise ConfigInvalid("--run: setup= goes with model=", code="usage")
        return {"mixed": meant("--run: size", parse_size, given["size"])}
    roles = setups.find(given.get("setup", setups.DEFAULT)).bytes_for(models.find(given["model"]).params)
    spare = roles.master + roles.moments
    return {"optimizer": spare, "weights": roles.total - spare}


def _told(given: Mapping[str, str], store: str, path: str, h: Habit) -> list[str]:
    name = f"{store}:{path}"
    found = []
    if "model" in given:
        setup = given.get("setup", setups.DEFAULT)
        found.append(
            f"{name} saves {h.bytes:,} bytes: {given['model']} by set-up {setup} (`lifecycle size` tells how)."
        )
    files = "one for each GPU and one of metadata" if "gpus" in given else "one for each 5 GB"
    found.append(f"{name} saves {h.files:,} files a checkpoint: {files}.")
    if "steps" not in given:
        found.append(f"{name} makes a step a second, so {h.steps:,} from save to save (steps=N says otherwise).")
    if "for" not in given:
        found.append(f"{name} does not end (for=30d says otherwise).")
    return found


def _count(key: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text[:12]) <= 10_000_000 or len(text) > 8:
        raise ConfigInvalid(f"--run: {key} needs a whole number from 1 to 10,000,000, not {text!a}", code="usage")
    return int(text)
