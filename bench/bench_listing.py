"""Keys a second of a listing replayed from memory, beside ``s5cmd ls`` where it is installed, and boto3's paginator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.rounds import Line, interleaved, ratio, show
from bench.s3_replay import BUCKET, listing, served

PAGES, KEYS, SLOW = 200, 1000, 10
"""The paginator gets a tenth of the pages, and counts ten times."""


def ours(url: str) -> None:
    from lifecycle.stores.s3 import S3Store

    store = S3Store("bench", f"s3://{BUCKET}", endpoint_url=url, region="us-east-1", addressing_style="path")
    assert sum(len(folder.names) for folder in store.walk()) == PAGES * KEYS


def paginator(url: str) -> None:
    import boto3
    from botocore.config import Config

    client = boto3.session.Session().client(
        "s3", endpoint_url=url, region_name="us-east-1", config=Config(s3={"addressing_style": "path"})
    )
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    assert sum(len(page["Contents"]) for page in pages) == PAGES * KEYS // SLOW


def s5cmd(program: str, url: str) -> None:
    call = [program, "--endpoint-url", url, "ls", f"s3://{BUCKET}/*"]
    subprocess.run(call, stdout=subprocess.DEVNULL, check=True)


def main(rounds: int) -> None:
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "replayed")
    os.environ.setdefault("AWS_REGION", "us-east-1")
    import boto3  # noqa: F401  # both sides have it imported when the clock starts

    import lifecycle.stores.s3  # noqa: F401

    beside = Path(sys.executable).with_name("s5cmd")
    program = shutil.which("s5cmd") or (str(beside) if beside.exists() else None)
    with served(listing(PAGES)) as url, served(listing(PAGES // SLOW)) as less:
        acts = {"ours": lambda: ours(url), "paginator": lambda: paginator(less)}
        if program:
            acts["s5cmd"] = lambda: s5cmd(program, url)
        costs = interleaved(acts, rounds)
    fastest = min(cost.cpu_s for cost in costs["ours"])
    lines = [
        Line("keys a second of one core (best round)", PAGES * KEYS / fastest, 100_000, "keys/s", least=True),
        Line("boto3's paginator / ours, cpu a key", SLOW / ratio(costs, "ours", "paginator"), None),
    ]
    if program:
        lines += [
            Line("s5cmd ls / ours, cpu", 1 / ratio(costs, "ours", "s5cmd"), 2, least=True),
            Line("s5cmd ls / ours, wall", 1 / ratio(costs, "ours", "s5cmd", "wall_s"), None),
        ]
    show(f"Listing of {PAGES * KEYS:,} keys replayed from memory" + ("" if program else " (no s5cmd here)"), lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
