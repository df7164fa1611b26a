"""`python -m tests.soak 0-999`: many seeds, each told of only if it fails."""

import sys

from tests.soak.cluster import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
