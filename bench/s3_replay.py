"""Replays pages of ListObjectsV2 from memory, so that what is measured is the client and nothing else."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

BUCKET = "replayed"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'


def listing(pages: int = 100, keys: int = 1000, shards: int = 40) -> list[bytes]:
    """Pages as AWS writes them: runs of checkpoints of ``shards`` objects each, every save at a time of its own."""
    found = []
    for number in range(pages):
        more = number < pages - 1
        rows = []
        for i in range(number * keys, (number + 1) * keys):
            unit, shard = divmod(i, shards)
            moment = f"2026-0{1 + unit % 9}-{1 + unit % 28:02}T{unit % 24:02}:{unit % 60:02}:{shard % 60:02}.000Z"
            rows.append(
                f"<Contents><Key>pretrain/run-{unit // 100:04}/step-{unit % 100 * 500:08}/"
                f"model-{shard:05}-of-{shards:05}.safetensors</Key><LastModified>{moment}</LastModified><ETag>&quot;{i:032x}-17&quot;</ETag>"
                "<ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>"
                f"<Size>{1_000_000_000 + i}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        token = f"<ContinuationToken>t{number}</ContinuationToken>" if number else ""
        after = f"<NextContinuationToken>t{number + 1}</NextContinuationToken>" if more else ""
        body = (
            f"{_HEAD}<Name>{BUCKET}</Name><Prefix></Prefix>{token}{after}<KeyCount>{keys}</KeyCount>"
            f"<MaxKeys>{keys}</MaxKeys><EncodingType>url</EncodingType>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{''.join(rows)}</ListBucketResult>"
        )
        found.append(body.encode())
    return found


_EMPTY = (
    f"{_HEAD}<KeyCount>0</KeyCount><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated></ListBucketResult>"
).encode()
_NO_UPLOADS = b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"


Query = dict[str, list[str]]


def replayed(pages: list[bytes]) -> Callable[[Query], bytes]:
    """Answers with ``pages`` by their tokens, and that nothing else is there."""

    def answer(query: Query) -> bytes:
        if "uploads" in query:
            return _NO_UPLOADS
        if query.get("prefix", [""])[0] or "start-after" in query:
            return _EMPTY
        return pages[int(re.sub(r"\D", "", query.get("continuation-token", ["t0"])[0]))]

    return answer


@contextlib.contextmanager
def serving(answer: Callable[[Query], bytes]) -> Iterator[str]:
    """A server on this machine that gives ``answer`` to every GET; its URL. An empty answer is an error 500."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = answer(parse_qs(urlsplit(self.path).query, keep_blank_values=True))
            self.send_response(200 if body else 500)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def served(pages: list[bytes]) -> Iterator[str]:
    """The same from a process of its own, so that client and server do not share an interpreter."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    told, tell = context.Pipe(duplex=False)

    def serve() -> None:
        with serving(replayed(pages)) as url:
            tell.send(url)
            threading.Event().wait()

    process = context.Process(target=serve, daemon=True)
    process.start()
    try:
        yield told.recv()
    finally:
        process.terminate()
        process.join()


class Rate(NamedTuple):
    """Keys a second by the clock, and by the processor time that this process used."""

    wall: float
    cpu: float


def _timed(count: Callable[[], int]) -> Rate:
    begun, cpu = time.perf_counter(), time.process_time()
    keys = count()
    return Rate(keys / (time.perf_counter() - begun), keys / (time.process_time() - cpu))


def walk_rate(url: str) -> Rate:
    """One walk by our store."""
    from lifecycle.stores.s3 import S3Store

    store = S3Store("bench", f"s3://{BUCKET}", endpoint_url=url, region="us-east-1", addressing_style="path")
    store.bucket.client.meta.events  # noqa: B018 - the client is made before the clock starts
    return _timed(lambda: sum(len(folder.names) for folder in store.walk()))


def paginator_rate(url: str) -> Rate:
    """The same by boto3's own paginator."""
    import boto3
    from botocore.config import Config

    client = boto3.session.Session().client(
        "s3", endpoint_url=url, region_name="us-east-1", config=Config(s3={"addressing_style": "path"})
    )
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return _timed(lambda: sum(len(page["Contents"]) for page in pages))


def main() -> None:
    """Print both rates, the best of three."""
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "replayed")
    with served(listing()) as url:
        ours = max((walk_rate(url) for _ in range(3)), key=lambda rate: rate.cpu)
    with served(listing(pages=10)) as url:
        theirs = max((paginator_rate(url) for _ in range(2)), key=lambda rate: rate.cpu)
    for name, rate in (("S3Store.walk", ours), ("boto3's paginator", theirs)):
        print(f"{name:18} {rate.wall:9,.0f} keys/s by the clock, {rate.cpu:9,.0f} a second of processor time")
    print(f"{ours.cpu / theirs.cpu:.1f} x")


if __name__ == "__main__":
    main()
