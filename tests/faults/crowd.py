"""Many real processes at once that cost little: everything is imported once, then each command gets a fork of it.

`python -m tests.faults.crowd COUNT WORDS...` lets COUNT processes run `lifecycle WORDS` at the same moment, and prints
one JSON object a line for each: how it ended, and what it answered.
"""

import json
import os
import sys
from io import StringIO


def main() -> None:
    import lifecycle.cli.caching
    import lifecycle.stores.cache_dir
    import lifecycle.stores.s3  # noqa: F401 - what the commands will import
    from lifecycle.cli.entry import run

    count, words = int(sys.argv[1]), sys.argv[2:]
    gate, open_gate = os.pipe()
    answers = []
    for n in range(count):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(open_gate)
            sys.stdout = StringIO()
            os.read(gate, 1)  # until the gate is closed
            code = run([word.replace("%n", str(n)) for word in words])
            os.write(writing, json.dumps({"code": code, "out": sys.stdout.getvalue()}).encode() + b"\n")
            os._exit(0)
        os.close(writing)
        answers.append(reading)
    os.close(open_gate)
    for reading in answers:
        with open(reading) as answer:
            print(answer.read(), end="", flush=True)


if __name__ == "__main__":
    main()
