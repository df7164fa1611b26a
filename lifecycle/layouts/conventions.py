"""What a site tells us about its own trees: declared layouts, ignored places, hold and lease files."""

from __future__ import annotations

from dataclasses import dataclass, field

from lifecycle.core.model import Kind, Shape
from lifecycle.layouts.table import Rotation


@dataclass(frozen=True, slots=True)
class MetricSource:
    """A file of the run with one JSON object a line: ``step`` names the key that says which checkpoint."""

    file: str
    """Path relative to the run's directory."""
    step: str = "step"


@dataclass(frozen=True, slots=True)
class Declared:
    """A layout that a site declares in its configuration.

    The template is matched against the whole base name. ``{step}`` takes digits, ``{epoch}`` a number,
    ``{time}`` an ISO 8601 basic or extended time, any other ``{word}`` takes text without ``/``.
    """

    name: str
    template: str
    shape: Shape | None = None
    """None: whatever is found under that name, a directory or a file. GROUP: files sharing the stem."""
    runs: tuple[str, ...] = ()
    """Globs over the run's path (``**`` crosses ``/``); empty: everywhere."""
    proof: str | None = None
    """File inside the directory (or suffix of a group's file) that is written last."""
    writing: str | None = None
    """File inside the directory whose presence says that it is still being written."""
    kind: Kind = Kind.FULL
    rotation: Rotation = Rotation.GUARDED
    """What its trainer does when its own deletion comes to one that ours has taken."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """Everything a survey needs besides the listing."""

    declared: tuple[Declared, ...] = ()
    ignore: tuple[str, ...] = ()
    """Globs over keys, also tried below every run: nothing there is claimed; what looks like a unit is told."""
    hold_files: frozenset[str] = frozenset()
    """A file of this name in a run's directory, or in one of its parents, holds the run."""
    lease_suffix: str | None = None
    """``X`` + this suffix beside ``X`` says that somebody is reading ``X``."""
    resume_keys: tuple[str, ...] = ("ckpt_path", "resume_from_checkpoint")
    """Keys in hparams.json, config.json and the like of a run that name what it was resumed from."""
    metric_sources: tuple[MetricSource, ...] = field(default_factory=tuple)
