"""``metrics:`` and ``leases:`` in lifecycle.yaml: files that others write beside checkpoints and that we read."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from lifecycle.config import fields as f


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MetricFile(_File):
    """One file of metrics in a run's directory."""

    example: ClassVar[str] = "{file: history.jsonl}"

    file: f.Relative
    step: f.Text = "step"


class LeasesFile(_File):
    """``leases:``"""

    example: ClassVar[str] = "{suffix: .lease, ttl: 30m}"

    suffix: f.BaseName
    ttl: f.Duration = 1800
