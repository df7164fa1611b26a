"""``python -m tests.truth FILE.json``: asks our functions every case of a file and tells which answers are wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.truth.topics import TOPICS
from tests.truth.verdict import cases, wrong


def main() -> int:
    """0 when all are right, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("file", type=Path, help="true values, as in tests/data/sizing/truth.json")
    found = cases(parser.parse_args().file)
    failed = [(case["id"], why) for case in found if (why := wrong(case))]
    for name, why in failed:
        print(f"{name}: {why}")
    unknown = {case["topic"] for case in found} - TOPICS
    if unknown:
        print(f"topics that nobody here knows: {', '.join(sorted(unknown))}")
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
