"""What the calculators are asked about, from options that they share: a size, a storage, how often training fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lifecycle.cli import quantities
from lifecycle.cli.modelling import Named, model_of
from lifecycle.core.units import escape, format_bytes
from lifecycle.errors import ConfigInvalid
from lifecycle.render.figures import span
from lifecycle.sizing import endurance, failures, modes, setups, storage
from lifecycle.sizing.failures import Rate
from lifecycle.sizing.modes import Assumed, Failing, Stall
from lifecycle.sizing.storage import Save, Storage

Told = list[tuple[str, str]]
"""A word, and what was given or assumed about it."""


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """How large a checkpoint is."""

    named: Named
    setup: str
    size: str | None


class Sized(NamedTuple):
    """A checkpoint's size, and how it was come by."""

    bytes: int
    weights_bytes: int | None
    told: str

    def value(self) -> dict[str, object]:
        """For programs."""
        return {"bytes": self.bytes, "weights_bytes": self.weights_bytes, "from": self.told}


def sized(options: SizeOptions) -> Sized:
    """The size that was asked about. Raises ConfigInvalid."""
    if options.named.given + (options.size is not None) != 1:
        raise ConfigInvalid(
            "say how large a checkpoint is, in one way: --model, --config, --safetensors, --params or --size",
            code="usage",
            hint="--model 70b, or --size 980GB if you know what one takes",
        )
    if options.size is not None:
        found = quantities.size("--size", options.size)
        return Sized(found, None, f"{format_bytes(found)}, as you say")
    model, setup = model_of(options.named, "--model 70b"), setups.find(options.setup)
    roles = setup.bytes_for(model.params, model.tensors)
    each = roles.total / model.params
    told = f"{format_bytes(roles.total)}: {model.params:,} parameters at {each:.4g} bytes ({setup.name}: {setup.words})"
    file = options.named.config or options.named.safetensors
    counted = () if file is None else (f"{model.name}, {model.how}",)
    return Sized(roles.total, roles.weights or roles.master, "; ".join((told, *map(escape, counted), *model.notes)))


@dataclass(frozen=True, slots=True)
class FailureOptions:
    """How often training is interrupted."""

    mtbf: str | None
    restarts: Path | None
    interruptions: int | None
    gpu_hours: float | None


DEFAULT_RATE = "llama3"
GPU_HOURS_MAX = 1e15


def failing(options: FailureOptions, gpus: int) -> Rate:
    """The rate that was asked about. Raises ConfigInvalid."""
    counted = options.interruptions is not None or options.gpu_hours is not None
    if (options.mtbf is not None) + (options.restarts is not None) + counted > 1:
        raise ConfigInvalid("--mtbf, --restarts and --failures are three ways to say one thing", code="usage")
    if options.restarts is not None:
        return _logged(options.restarts, gpus)
    if counted:
        if options.interruptions is None or options.gpu_hours is None:
            raise ConfigInvalid(
                "a count needs both --failures and --allocated",
                code="usage",
                hint="--failures 12 --allocated 300000: the GPU-hours that were allocated while you counted",
            )
        allocated = quantities.number("--allocated", options.gpu_hours, GPU_HOURS_MAX)
        return failures.from_count(allocated, options.interruptions)
    text = options.mtbf or DEFAULT_RATE
    if text[:1].isdecimal():
        return failures.given(quantities.seconds("--mtbf", text), gpus)
    return failures.find_rate(text)


def _logged(path: Path, gpus: int) -> Rate:
    from lifecycle.config.load import read_bytes

    file = escape(str(path))
    text = read_bytes(path).decode("utf-8", "surrogateescape")
    return failures.from_restarts(text.splitlines(), gpus, file)


def told_rate(rate: Rate, gpus: int, *, chosen: bool) -> str:
    """A rate in a sentence: how often, who says so, how sure, how it was scaled."""
    lead = "no interruption seen: taken as every" if rate.high_gpu_hours == float("inf") else "one every"
    text = f"{lead} {span(rate.mtbf_s(gpus))} on {gpus:,} GPUs: {rate.name if rate.as_of else ''} ({rate.source})"
    text = text.replace(":  (", " (")
    parts = [text, rate.note]
    if (bounds := rate.bounds_s(gpus)) is not None and rate.high_gpu_hours != float("inf"):
        parts.append(f"95 % sure: {span(bounds[0])} to {span(bounds[1])}")
    if rate.as_of and rate.gpus != gpus:
        parts.append(failures.SCALED)
    if not chosen:
        every = sorted((each.mtbf_s(gpus), each.name) for each in failures.RATES.values())
        ends = " to ".join(f"{span(s)} ({name})" for s, name in (every[0], every[-1]))
        parts.append(f"assumed: published rates reach from {ends}, and your own log is better than any")
    return "; ".join(filter(None, parts))


def rate_value(rate: Rate, gpus: int) -> dict[str, object]:
    """A rate for programs."""
    bounds = rate.bounds_s(gpus)
    return {
        "name": rate.name,
        "mtbf_s": rate.mtbf_s(gpus),
        "gpu_hours_an_interruption": rate.gpu_hours,
        "measured_at_gpus": rate.gpus or None,
        "mtbf_low_s": bounds[0] if bounds else None,
        "mtbf_high_s": bounds[1] if bounds and bounds[1] != float("inf") else None,
        "as_of": rate.as_of,
        "source": rate.source,
        "note": rate.note,
    }


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Where checkpoints go: presets by name, and figures of one's own."""

    names: tuple[str, ...]
    write: str | None
    read: str | None
    redundancy: str | None
    node_write: str | None = None

    def chosen(self) -> list[Storage]:
        """What was named, then one's own. Raises ConfigInvalid."""
        scheme = endurance.redundancy(self.redundancy) if self.redundancy else None
        found = [storage.find_storage(name) for name in dict.fromkeys(self.names)]
        if scheme is not None:
            found = [each._replace(redundancy=scheme, source=f"{each.source}; {scheme.name}: yours") for each in found]
        if self.write is not None:
            write_bps = quantities.rate("--write", self.write)
            a_node = 0.0 if self.node_write is None else quantities.rate("--node-write", self.node_write)
            read_bps = (a_node or write_bps) if self.read is None else quantities.rate("--read", self.read)
            found.append(storage.own(write_bps, read_bps, scheme or endurance.redundancy("none"), a_node))
        elif self.read is not None:
            raise ConfigInvalid("--read says how fast your own storage is read: give --write too", code="usage")
        elif self.node_write is not None:
            hint = "--node-write 4GB/s --write 10GB/s: to the disks of each node, then uploaded by all of them together"
            raise ConfigInvalid("--node-write: how fast is it uploaded? give --write too", code="usage", hint=hint)
        return found


@dataclass(frozen=True, slots=True)
class AfterOptions:
    """What an interruption and an asynchronous save take."""

    restart: str | None
    reload: str
    stall: str | None
    assume: str

    def assumed(self) -> Assumed:
        """The set of assumptions. Raises ConfigInvalid."""
        return modes.find_assumed(self.assume)

    def failing(self, mtbf_s: float, save: Save) -> Failing:
        """How often and what follows, for one storage. Raises ConfigInvalid."""
        restart_s = self.assumed().restart_s if self.restart is None else _or_none("--restart", self.restart)
        reload_s = save.durable_s if self.reload == "save" else _or_none("--reload", self.reload)
        return Failing(mtbf_s, restart_s, reload_s)

    def stall_s(self, save: Save) -> float:
        """Of an asynchronous save; assumed, it is no longer than a blocking one. Raises ConfigInvalid."""
        if self.stall is not None:
            return quantities.seconds("--async", self.stall)
        return min(self.assumed().stall_s, save.stall_s)

    def told(self, failing: Failing, save: Save) -> Told:
        """All of it, in words."""
        restart = f"{span(failing.restart_s)} ({'assumed' if self.restart is None else 'given'})"
        reload = f"{span(failing.reload_s)} ({'as long as a save, assumed' if self.reload == 'save' else 'given'})"
        return [
            ("restart", f"{restart}, then reload {reload}"),
            ("stall", self.told_stall(self.stall_s(save))),
            ("counted", f"{self.assumed().name}: {self.assumed().title}"),
        ]

    def told_stall(self, stall_s: float) -> str:
        """Of asynchronous saves, with what others measured where it is assumed."""
        if self.stall is not None:
            return f"{span(stall_s)} for an asynchronous save (given)"
        measured = ", ".join(f"{each.name} {span(each.stall_s)}" for each in modes.STALLS)
        return f"{span(stall_s)} for an asynchronous save (assumed; others measured: {measured})"


def _or_none(option: str, text: str) -> float:
    return 0.0 if text == "none" else quantities.seconds(option, text)


def stall_values() -> list[Mapping[str, object]]:
    """Measured stalls, for programs."""
    return [_stall(each) for each in modes.STALLS]


def _stall(stall: Stall) -> Mapping[str, object]:
    return {"name": stall.name, "stall_s": stall.stall_s, "source": stall.source}


def storage_value(each: Storage) -> dict[str, object]:
    """A storage for programs."""
    return {
        "name": each.name,
        "title": each.title,
        "write_bytes_per_s": each.write_bps,
        "read_bytes_per_s": each.read_bps,
        "node_write_bytes_per_s": each.a_node or None,
        "redundancy": each.redundancy.name,
        "raw_per_usable": each.redundancy.factor,
        "source": each.source,
    }
