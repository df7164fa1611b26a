"""Where the command line starts: ``lifecycle`` and ``python -m lifecycle``."""

from __future__ import annotations

import sys

from lifecycle.cli.entry import run


def main() -> int:
    """Run the command line; the exit code."""
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
