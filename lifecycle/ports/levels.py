"""How full a store is, as pages and reports tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lifecycle.ports.index import Sample, StoreRow


class Level(NamedTuple):
    """How full a store is."""

    name: str
    url: str
    row: StoreRow | None
    """None: it was never scanned."""
    samples: Sequence[Sample]
    """Looks at how full it was, oldest first."""
    size_bytes: int | None
    """What the settings say that it holds, else that of its file system."""
    used_bytes: int | None
    """By everybody; where the settings tell the size, by us."""
    mates: tuple[str, ...]
    """Other stores on the same file system."""

    @property
    def sample(self) -> Sample | None:
        """The last look."""
        return self.samples[-1] if self.samples else None

    @property
    def told(self) -> bool:
        """Whether the settings tell how much it holds, so that what is used of it is ours alone, without the trash."""
        return bool(self.size_bytes) and (self.sample is None or self.sample.usage.size_bytes != self.size_bytes)

    @property
    def part(self) -> float | None:
        """The part that is used; None where that is not known."""
        known = self.size_bytes and self.used_bytes is not None
        return (self.used_bytes or 0) / (self.size_bytes or 1) if known else None

    def value(self) -> dict[str, object]:
        """The same for programs."""
        sample = self.sample
        return {
            "name": self.name,
            "url": self.url,
            "checkpoints": self.row.checkpoints if self.row else 0,
            "scans": self.row.scans if self.row else 0,
            "scanned_at_ns": (self.row.scanned_at_ns or None) if self.row else None,
            "size_bytes": self.size_bytes,
            "used_bytes": self.used_bytes,
            "ours_bytes": sample.ours_bytes if sample else None,
            "inodes": sample.usage.inodes if sample else None,
            "inodes_free": sample.usage.inodes_free if sample else None,
            "sampled_at_ns": sample.at_ns if sample else None,
            "same_file_system": list(self.mates),
        }


def used_bytes(sample: Sample) -> int | None:
    """What everybody uses of a file system; None where it does not say."""
    size, free = sample.usage.size_bytes, sample.usage.free_bytes
    return None if size is None or free is None else size - free
