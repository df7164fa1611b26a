"""Where the command line starts: ``lifecycle`` and ``python -m lifecycle``."""

from __future__ import annotations

import sys

from lifecycle.cli.quick import answered


def main() -> int:
    """Run the command line; the exit code."""
    words = sys.argv[1:]
    if answered(words):
        return 0
    from lifecycle.cli.entry import run  # noqa: PLC0415  # the parser takes longest to import

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
