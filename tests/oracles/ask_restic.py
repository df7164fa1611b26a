"""Asks ``restic forget --dry-run --json`` about a real repository with snapshots of set times, one host a history.

Each snapshot is written under the clock of its own zone, since restic judges it by that. Questions come as JSON on
standard input; every policy is asked once and answers for all histories.
"""

import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

UTC = timezone.utc  # noqa: UP017  # as the other two
OPTION = {"within-month": "--keep-within"}
UNIT = {"within": "h", "within-month": "m", "within-daily": "d"}


def restic(home, *words, zone="UTC"):
    """What one restic command prints; it must succeed."""
    env = os.environ | {"RESTIC_PASSWORD": "x", "TZ": zone, "RESTIC_CACHE_DIR": f"{home}/cache"}
    command = ["restic", "-r", f"{home}/repository", "-q", *words]
    return subprocess.run(command, env=env, cwd=home, stdout=subprocess.PIPE, check=True).stdout


def written_by(question, i):
    """The zone whose clock a snapshot is written by, and what that clock shows.

    Whole hours have zones of their own, in which no hour comes twice: so the night the clocks go back can be told.
    """
    at = datetime.fromtimestamp(question["times_s"][i], UTC)
    east = question["east"][i] if question["east"] else None
    if east is None:
        offset = at.astimezone(ZoneInfo(question["zone"])).utcoffset() or timedelta()
        east = int(offset.total_seconds()) // 60
    zone = question["zone"] if east % 60 else f"Etc/GMT{-east // 60:+d}"
    return zone, (at + timedelta(minutes=east)).strftime("%Y-%m-%d %H:%M:%S")


def main():
    """Answer all questions of standard input: histories, and policies that are asked of each."""
    asked = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(f"{home}/source")
        restic(home, "init")
        for number, question in enumerate(asked["histories"]):
            for i in range(len(question["times_s"])):
                zone, clock = written_by(question, i)
                tags = ["--tag", question["tags"][i]] if question["tags"][i] else []
                # The path tells which one it is; grouping is by host alone.
                os.makedirs(f"{home}/source/{i}", exist_ok=True)
                restic(home, "backup", "--host", f"h{number}", "--time", clock, *tags, f"source/{i}", zone=zone)
        answers = []
        for policy in asked["policies"]:
            words = []
            for word, count in policy:
                option = OPTION.get(word, f"--keep-{word}")
                words += [option, f"{count}{UNIT.get(word, '')}"]
            found = {}
            for group in json.loads(restic(home, "forget", "--dry-run", "--json", "--group-by", "host", *words)):
                letters = {int(s["paths"][0].rpartition("/")[2]): "k" for s in group["keep"] or ()}
                letters |= {int(s["paths"][0].rpartition("/")[2]): "." for s in group["remove"] or ()}
                found[int(group["host"][1:])] = "".join(letters[i] for i in range(len(letters)))
            answers.append([found[n] for n in range(len(asked["histories"]))])
        version = restic(home, "version").decode().split()[:2]
    json.dump({"version": " ".join(version), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
