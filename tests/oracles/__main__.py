"""Asks the real peers: ``record`` writes tests/data/oracles again, ``fuzz N`` asks about new histories from seed N on.

    python -m tests.oracles record [orbax|restic|borg ...]
    python -m tests.oracles fuzz 1000 [orbax|restic|borg ...]

Orbax is looked for in build/oracles (``make oracles`` puts it there), restic and borg on the path. A peer that is not
there is named, and the exit code is 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.oracles import histories as draw
from tests.oracles.histories import Case, History, Policy, pack, unpack
from tests.oracles.ours import account

HERE = Path(__file__).parent
DATA = HERE.parent / "data" / "oracles"
ORBAX = HERE.parent.parent / "build" / "oracles" / "bin" / "python"
TRAININGS, BORG_HISTORIES, RESTIC_HISTORIES, RESTIC_POLICIES = 300, 16, 12, 30


def ask(python: str, script: str, questions: Any) -> Any:
    """What a peer answers, in a Python of its own."""
    done = subprocess.run(
        [python, str(HERE / script)], input=json.dumps(questions), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def question(history: History, **more: Any) -> dict[str, Any]:
    """A history in plain numbers."""
    loss = [x if x is None or x - x == 0 else str(x) for x in history.loss or [None] * len(history.steps)]
    return {
        "zone": history.zone, "now_s": history.now_s, "steps": history.steps, "times_s": history.times_s,
        "loss": loss, "tags": history.tags or [""] * len(history.steps), "east": history.offsets_min, **more,
    }  # fmt: skip


def orbax(first: int, count: int) -> tuple[str, list[Case]]:
    """Trainings, each with some policies."""
    asked: list[tuple[History, Policy]] = []
    for seed in range(first, first + count):
        history = draw.training(seed)
        asked += [(history, draw.training_policy(10 * seed + n, history)) for n in range(2)]
    finite = [[i for i, x in enumerate(history.loss) if x is None or x - x == 0] for history, _ in asked]
    questions = [question(history, policy=policy) for history, policy in asked]
    questions += [question(h.only(f), policy=p) for (h, p), f in zip(asked, finite, strict=True)]
    told = ask(str(ORBAX), "ask_orbax.py", questions)
    cases = []
    for n, (history, policy) in enumerate(asked):
        odd = len(finite[n]) < len(history.steps)
        without = told["answers"][len(asked) + n] or "-"  # none is left: no letters, and yet an answer
        cases.append(Case(history, policy, told["answers"][n], without if odd else ""))
    return told["version"], cases


def borg(first: int, count: int) -> tuple[str, list[Case]]:
    """Backups, each with policies of its own."""
    asked = [
        (draw.backups(seed), [draw.backup_policy(100 * seed + n, "borg") for n in range(16)])
        for seed in range(first, first + count)
    ]
    told = ask("/usr/bin/python3", "ask_borg.py", [question(history, policies=policies) for history, policies in asked])
    cases = [
        Case(history, policy, kept)
        for (history, policies), answers in zip(asked, told["answers"], strict=True)
        for policy, kept in zip(policies, answers, strict=True)
    ]
    return told["version"], cases


def restic(first: int, count: int) -> tuple[str, list[Case]]:
    """Backups, some of them by clocks of two zones; every policy is asked of each."""
    some = max(count // 6, 1)
    found = [draw.backups(seed) for seed in range(first, first + count - some)]
    found += [draw.travelled(seed) for seed in range(first, first + some)]
    policies = [draw.backup_policy(100 * first + n, "restic") for n in range(RESTIC_POLICIES)]
    told = ask(sys.executable, "ask_restic.py", {"histories": [question(h) for h in found], "policies": policies})
    cases = [
        Case(history, policy, kept)
        for policy, answers in zip(policies, told["answers"], strict=True)
        for history, kept in zip(found, answers, strict=True)
    ]
    return told["version"], cases


PEERS: dict[str, tuple[Callable[[int, int], tuple[str, list[Case]]], int]] = {
    "orbax": (orbax, TRAININGS),
    "restic": (restic, RESTIC_HISTORIES),
    "borg": (borg, BORG_HISTORIES),
}


def write(peer: str, version: str, cases: list[Case]) -> None:
    """Record the answers: each history once, then its cases by number."""
    known: dict[str, int] = {}
    rows = []
    for case in cases:
        number = known.setdefault(json.dumps(pack(case.history), separators=(",", ":")), len(known))
        rows.append([number, case.policy, case.kept, *([case.finite] if case.finite else [])])
    head = {"peer": version, "recorded": datetime.now(UTC).strftime("%Y-%m-%d")}
    lines = [json.dumps(head)[:-1], ', "histories": [', ",\n".join(known), '], "cases": [']
    lines += [",\n".join(json.dumps(row, separators=(",", ":")) for row in rows), "]}"]
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{peer}.json").write_text("\n".join(lines) + "\n")


def read(peer: str) -> tuple[str, list[Case]]:
    """What was recorded: the peer with its version, and the cases."""
    data = json.loads((DATA / f"{peer}.json").read_text())
    known = [unpack(packed) for packed in data["histories"]]
    cases = [Case(known[number], policy, *answers) for number, policy, *answers in data["cases"]]
    return data["peer"], cases


def is_here(peer: str) -> bool:
    """Whether a peer can be asked."""
    return ORBAX.exists() if peer == "orbax" else shutil.which(peer) is not None


def main(words: list[str]) -> int:
    """Record or fuzz; the number of cases that are not accounted for decides the exit code."""
    fuzzing = words[0] == "fuzz"
    first = int(words[1]) if fuzzing else 0
    peers = words[2 if fuzzing else 1 :] or list(PEERS)
    bad = 0
    for peer in peers:
        if not is_here(peer):
            print(f"{peer}: not here, not asked")
            bad += 1
            continue
        asked, count = PEERS[peer]
        version, cases = asked(first, count // 2 if fuzzing and peer != "orbax" else count)
        wrong = [(case, why) for case in cases if (why := account(peer, version, case).wrong)]
        for case, why in wrong[:5]:
            print(f"{peer}: {json.dumps(case.policy)} of {json.dumps(pack(case.history))}: {why}")
        print(f"{version}: {len(cases)} cases, {len(wrong)} not accounted for")
        bad += bool(wrong)
        if not fuzzing:
            write(peer, version, cases)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
