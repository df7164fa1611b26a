"""What a proven copy of a checkpoint takes from directory to directory, beside tools that do the same work.

The same work is: read once and sum, write and make durable, read back and sum. ``cp`` with ``sha256sum`` of both sides
does it in three commands; ``rclone copy`` with ``rclone check --download`` where it is installed. ``cp`` alone is
shown for what the proof costs. Without the read back, ours sums the source and ``cp`` does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.rounds import Act, Line, interleaved, ratio, show
from bench.trees import room
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.flows.carry import Carrier
from lifecycle.ports import Target
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_intake import LocalIntake

MIB = 1 << 20
KEY = "run/step-1"


def large(root: Path, shards: int, shard_bytes: int) -> None:
    """One checkpoint of a few large shards."""
    unit = root / KEY
    unit.mkdir(parents=True)
    for n in range(shards):
        block = os.urandom(MIB)
        with (unit / f"shard-{n:04}.bin").open("wb") as file:
            for _ in range(shard_bytes // MIB):
                file.write(block)


def small(root: Path, count: int, size_bytes: int) -> None:
    """One checkpoint of many small files."""
    unit = root / KEY
    unit.mkdir(parents=True)
    for n in range(count):
        (unit / f"part-{n:05}.bin").write_bytes(os.urandom(size_bytes))


def carry(source: Path, place: Path) -> None:
    home, there = LocalStore("home", source), LocalStore("there", place)
    seen = home.sight(Target(KEY, Shape.DIR, ()))
    identity = seen.totals.fingerprint
    c = Checkpoint("home", "run", KEY, "step-1", "bench", Shape.DIR, Evidence.PROVEN, fingerprint=identity)
    Carrier(home, there, LocalIntake(there)).carry("bench", c, c, plan="bench", now_ns=time.time_ns())


def shell(command: str) -> None:
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(title: str, source: Path, rounds: int) -> list[Line]:
    """Ours and its peers on one checkpoint."""
    place = source.parent / "place"
    copy = f"cp -r --preserve=mode,timestamps {source}/run {place} && sync -f {place}"
    sums = "find . -type f -print0 | sort -z | xargs -0 -P 2 -n 16 sha256sum | sort"
    both = (
        f"(cd {source}/run && {sums}) > {place}/a && (cd {place}/run && {sums}) > {place}/b && cmp {place}/a {place}/b"
    )

    def afresh(act: Act) -> Act:
        def whole() -> None:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            act()

        return whole

    acts = {
        "ours": afresh(lambda: carry(source, place)),
        "cp": afresh(lambda: shell(copy)),
        "proven": afresh(lambda: shell(f"{copy} && {both}")),
    }
    if shutil.which("rclone"):
        command = f"rclone copy {source}/run {place}/run && rclone check --download {source}/run {place}/run"
        acts["rclone"] = afresh(lambda: shell(command))
    costs = interleaved(acts, rounds)
    lines = [Line(f"{title}: ours / cp and sha256sum of both, clock", ratio(costs, "ours", "proven", "wall_s"), 1.0)]
    lines.append(Line(f"{title}: the same, cpu", ratio(costs, "ours", "proven"), None))
    if "rclone" in acts:
        what = f"{title}: ours / rclone copy and check, clock"
        lines.append(Line(what, ratio(costs, "ours", "rclone", "wall_s"), 1.0))
    lines.append(Line(f"{title}: ours / cp alone, clock", ratio(costs, "ours", "cp", "wall_s"), None))
    peak = max(cost.rss_bytes for cost in costs["ours"])
    lines.append(Line(f"{title}: peak memory of ours", peak / MIB, 512, "MiB"))
    return lines


def main(rounds: int) -> None:
    with room() as where:
        lines = []
        for title, make in (
            ("16 shards, 1 GiB", lambda root: large(root, 16, 64 * MIB)),
            ("2,000 files of 16 kB", lambda root: small(root, 2000, 16_000)),
        ):
            source = where / title.partition(" ")[0].replace(",", "")
            make(source)
            lines += compare(title, source, rounds)
    show("A proven copy from directory to directory, in tmpfs", lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
