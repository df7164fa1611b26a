"""What it takes to recognise checkpoints in a listing, beside the walk that made it and the sums of its folders."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench.rounds import Act, Line, interleaved, ratio, show
from bench.trees import deepspeed, lightning, room, trainer
from lifecycle.core.listing import Listing, Totals, total
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.stores.local import LocalStore


def acts(store: LocalStore, listing: Listing, units: int) -> dict[str, Act]:
    def recognise() -> None:
        found = survey("hot", listing, store.read, Conventions())
        assert sum(len(run.checkpoints) for run in found) == units

    def walk() -> int:
        return sum(len(folder.names) for folder in store.walk())

    def add_up() -> list[Totals]:
        return [total([folder], folder.path) for folder in listing.folders.values()]

    return {"survey": recognise, "walk": walk, "sum": add_up}


def main(rounds: int) -> None:
    lines = []
    kinds: dict[str, tuple[Callable[[Path], None], int]] = {
        "Trainer, 10 files a unit": (lambda root: trainer(root, 100, 50, 10), 5000),
        "Trainer, 40 files a unit": (lambda root: trainer(root, 50, 50, 40), 2500),
        "DeepSpeed, 1,000 files a unit": (lambda root: deepspeed(root, 100, 1000), 100),
        "Lightning, one file a unit": (lambda root: lightning(root, 50, 100), 5000),
    }
    for name, (make, units) in kinds.items():
        with room() as place:
            make(place)
            store = LocalStore("hot", place)
            listing = Listing(store.flavour, {folder.path: folder for folder in store.walk()})

            costs = interleaved(acts(store, listing, units), rounds)
        lines.append(Line(f"{name}: survey / walk", ratio(costs, "survey", "walk"), None))
        lines.append(Line(f"{name}: survey / sums", ratio(costs, "survey", "sum"), None))
    show("Survey, cpu, files read included", lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
