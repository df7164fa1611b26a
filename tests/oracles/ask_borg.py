"""Asks ``borg prune --dry-run --list``; runs in the Python that borg is installed for and knows nothing of ours.

A real repository is made with archives of set times, all in one process, because borg takes half a second to start.
Nothing of borg is replaced but the clock that ``--keep-within`` reads. Questions come as JSON on standard input.
"""

import importlib
import json
import logging
import os
import sys
import tempfile
import time
from datetime import datetime, timezone

UTC = timezone.utc  # noqa: UP017  # this file also runs in Pythons older than ours
OPTION = {"last": "--keep-last", "within": "--keep-within"}


class Heard(logging.Handler):
    """Keeps the lines that borg lists."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def run(*words):
    """One borg command; it must succeed."""
    archiver = importlib.import_module("borg.archiver").Archiver(lock_wait=5)
    code = archiver.run(archiver.parse_args(list(words)))
    assert code == 0, words


def prune(repository, number, question, policy, misc):
    """Which archives of one history borg would keep, one letter each."""
    os.environ["TZ"] = question["zone"]
    time.tzset()

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(question["now_s"], tz)

    misc.datetime = Clock
    words = []
    for word, count in policy:
        words += [OPTION.get(word, f"--keep-{word}"), f"{count}H" if word == "within" else str(count)]
    logger, heard = logging.getLogger("borg.output.list"), Heard()
    logger.addHandler(heard)
    try:
        run("prune", "--dry-run", "--list", "-a", f"h{number}-*", *words, repository)
    finally:
        logger.removeHandler(heard)
    found = {}
    for line in heard.lines:
        verdict, _, name = line.partition(f" h{number}-")
        found[int(name.split()[0])] = "k" if verdict.startswith("Keeping") else "."
    return "".join(found[i] for i in range(len(question["times_s"])))


def main():
    """Answer all questions of standard input: each a history with its policies."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["BORG_BASE_DIR"] = home
        os.environ["TZ"] = "UTC"
        time.tzset()
        misc = importlib.import_module("borg.helpers.misc")
        repository, source = f"{home}/repository", f"{home}/source"
        os.mkdir(source)
        run("init", "-e", "none", repository)
        answers = []
        for number, question in enumerate(json.load(sys.stdin)):
            os.environ["TZ"] = "UTC"
            time.tzset()
            for i, at in enumerate(question["times_s"]):
                stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
                run("create", "--timestamp", stamp, f"{repository}::h{number}-{i}", source)
            answers.append([prune(repository, number, question, policy, misc) for policy in question["policies"]])
    json.dump({"version": "borg " + importlib.import_module("borg").__version__, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
