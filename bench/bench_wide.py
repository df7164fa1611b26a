"""What a scan of one very wide run holds in memory: 10,000 checkpoints of 2,000 shards are 20 million files."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from bench.rounds import Line, show, spent
from bench.trees import FIRST_S, HOUR_S, room
from lifecycle.cli.entry import relax
from lifecycle.core.listing import Folder, Stamp
from lifecycle.flows.scan import scan
from lifecycle.index.open import open_index
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.local import LocalStore

UNITS, SHARDS = 1_000, 2_000
NS = 1_000_000_000
DAY_NS = 86_400 * NS


class Wide(LocalStore):
    """Shows a run that is nowhere: every directory is made anew as a walk comes to it, as from a disk."""

    def __init__(self, root: Path, units: int, shards: int) -> None:
        super().__init__("hot", root)
        self.units, self.shards = units, shards

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        assert not start
        steps = range(1, self.units + 1)
        yield Folder("", dirs=["wide"])
        yield Folder("wide", dirs=[f"global_step{n}" for n in steps])
        for n in steps:
            at_ns = (FIRST_S + n * HOUR_S) * NS
            ranks = ((i // 2, "optim" if i % 2 else "model") for i in range(self.shards))
            names = [f"zero_pp_rank_{rank}_mp_rank_00_{kind}_states.pt" for rank, kind in ranks]
            yield Folder(
                f"wide/global_step{n}",
                names,
                [500_000_000 + i for i in range(self.shards)],
                [at_ns + i for i in range(self.shards)],
                [n * self.shards + i + 1_000_000 for i in range(self.shards)],
                stamp=Stamp(1, n + 2, at_ns, at_ns),
            )


def to_index(root: Path, units: int) -> None:
    with open_index(str(root / f"{units}.db"), create=True) as index:
        now_ns = (FIRST_S + (units + 1) * HOUR_S) * NS + DAY_NS
        report = scan(Wide(root, units, SHARDS), index.reader, index.writer, Conventions(), now_ns=now_ns)
        assert report.complete and report.checkpoints == units


def main(units: int) -> None:
    relax()
    with room() as place:
        few = spent(lambda: to_index(place, units // 10))
        many = spent(lambda: to_index(place, units))
    files = (units - units // 10) * SHARDS
    show(
        f"Scan of one run of {units:,} checkpoints of {SHARDS:,} shards",
        [
            Line("peak memory", many.rss_bytes / 2**20, None, "MiB"),
            Line("memory a file more", (many.rss_bytes - few.rss_bytes) / files, 32, "bytes"),
            Line("processor time a file more", (many.cpu_s - few.cpu_s) / files * 1e6, None, "us"),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else UNITS)
