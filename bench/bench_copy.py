"""What a copy of a checkpoint takes from directory to directory, beside tools that do the same work.

*Proven*: read once and sum, write and make durable, read back and sum. ``cp`` with a sum of both sides does it, by
``sha256sum`` and by ``openssl``, which is faster; ``rclone copy`` with ``rclone check --download``. *Not read back*:
``cp`` and a sum of the source; ``rclone copy``, which compares sums. Ours is measured without reading back by a carrier
that exists here only: no setting leaves it out. ``cp`` alone shows what the proof costs.

Arguments: rounds (5), size in MiB of the checkpoint of 16 shards (1024).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.rounds import Act, Cost, Line, beside, interleaved, show
from bench.trees import room
from lifecycle.core.copies import CopyManifest
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.flows.carry import Carrier
from lifecycle.ports import Intake, Store, Target
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_intake import LocalIntake

MIB = 1 << 20
KEY = "run/step-1"
SUMMED = ("cp and sha256sum", "cp and openssl", "rclone copy and check")
UNREAD = ("cp and sum of source", "rclone copy")


@dataclass(frozen=True, slots=True)
class Unproven(Carrier):
    """Leaves out what makes a copy one that may be relied on."""

    def _read_back(self, manifest: CopyManifest) -> None:
        """Nothing is read."""


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


def carry(kind: type[Carrier], source: Store, place: Store, intake: Intake) -> None:
    """One copy under a new name."""
    seen = source.sight(Target(KEY, Shape.DIR, ()))
    identity = seen.totals.fingerprint
    c = Checkpoint("home", "run", KEY, "step-1", "bench", Shape.DIR, Evidence.PROVEN, fingerprint=identity)
    kind(source, place, intake).carry(uuid.uuid4().hex, c, c, plan="bench", now_ns=time.time_ns())


def local(kind: type[Carrier], source: Path, place: Path) -> None:
    home, there = LocalStore("home", source), LocalStore("there", place)
    carry(kind, home, there, LocalIntake(there))


def shell(command: str) -> None:
    subprocess.run(["/bin/bash", "-ec", command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def sums(where: Path | str, tool: str = "sha256sum") -> str:
    """A command that sums every file there with as many processes as there are cores, in one start each."""
    cores = os.cpu_count() or 1
    each = f"$(( ($(find . -type f | wc -l) + {cores} - 1) / {cores} ))"
    one = f"""sh -c '{tool} "$@" > "$(mktemp -p "$0")"'"""  # a file each: lines in one pipe would tear each other
    found = f'find . -type f -print0 | sort -z | xargs -0 -P {cores} -n {each} {one} "$out"'
    return f'cd {where} && out=$(mktemp -d) && {found} && sort "$out"/* && rm -r "$out"'


def compared(one: Path | str, other: Path | str, tool: str = "sha256sum") -> str:
    """A command that sums both and holds the sums against each other."""
    return f"a=$(mktemp) b=$(mktemp); ({sums(one, tool)}) > $a; ({sums(other, tool)}) > $b; cmp $a $b; rm $a $b"


def clear(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()


def acts_of(source: Path, place: Path) -> dict[str, Act]:
    """Ours and its peers on one checkpoint; the place is empty before each."""
    copy = f"cp -r --preserve=mode,timestamps {source}/run {place} && sync -f {place}"
    here, there = f"{source}/run", f"{place}/run"
    openssl = "openssl dgst -sha256 -r"
    tool = openssl if shutil.which("openssl") else "sha256sum"

    acts: dict[str, Act] = {
        "ours": lambda: local(Carrier, source, place),
        "ours not read back": lambda: local(Unproven, source, place),
        "cp": lambda: shell(copy),
        "cp and sum of source": lambda: shell(f"{copy} && ({sums(here, tool)})"),
        "cp and sha256sum": lambda: shell(f"{copy} && {compared(here, there)}"),
    }
    if tool == openssl:
        acts["cp and openssl"] = lambda: shell(f"{copy} && {compared(here, there, openssl)}")
    if shutil.which("rclone"):
        rclone = f"rclone copy --checksum {here} {there} && sync -f {place}"
        acts["rclone copy"] = lambda: shell(rclone)
        acts["rclone copy and check"] = lambda: shell(f"{rclone} && rclone check --download {here} {there}")
    return acts


def lines_of(title: str, costs: Mapping[str, Sequence[Cost]]) -> list[Line]:
    lines = beside(costs, title, "ours", SUMMED) + beside(costs, title, "ours not read back", UNREAD)
    lines += [line._replace(target=None) for line in beside(costs, title, "ours", ("cp",))]
    peak = max(cost.rss_bytes for cost in costs["ours"])
    return [*lines, Line(f"{title}: peak memory of ours", peak / MIB, 512, "MiB")]


def main(rounds: int, size_mib: int) -> None:
    with room(4 * size_mib * MIB) as where:
        lines = []
        source, place = where / "source", where / "place"
        for title, make in (
            (f"16 shards, {size_mib} MiB", lambda root: large(root, 16, size_mib // 16 * MIB)),
            ("2,000 files of 16 kB", lambda root: small(root, 2000, 16_000)),
        ):
            make(source)
            lines += lines_of(title, interleaved(acts_of(source, place), rounds, lambda: clear(place)))
            shutil.rmtree(source)
        show(f"A copy from directory to directory, in {where}", lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, int(sys.argv[2]) if len(sys.argv) > 2 else 1024)
