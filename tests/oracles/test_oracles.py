"""What other engines keep of the same histories: equal to ours, or different by one of the documented decisions."""

import json
import re
from pathlib import Path

import pytest

from lifecycle.core.policy import Best, Every, Last, Pick, Unit
from tests.cli.harness import Shell, save_hf
from tests.oracles import ours
from tests.oracles.__main__ import DATA, read
from tests.oracles.histories import Case, History
from tests.oracles.ours import DIFFERENCES, Account, account, places, verdict

PAGE = (Path(__file__).parent.parent.parent / "docs/oracles.md").read_text()
PEERS = sorted(DIFFERENCES)
FEWEST = {"orbax": 500, "borg": 200, "restic": 300}


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest) -> tuple[str, str, list[Case], list[Account]]:
    version, cases = read(request.param)
    return request.param, version, cases, [account(request.param, version, case) for case in cases]


def test_every_recorded_answer_comes_out_of_our_rules_and_the_documented_differences(
    peer: tuple[str, str, list[Case], list[Account]],
):
    name, _, cases, accounts = peer
    wrong = [f"{case.policy} of {case.history}: {a.wrong}" for case, a in zip(cases, accounts, strict=True) if a.wrong]
    assert wrong == []
    assert len(cases) >= FEWEST[name]


def test_each_documented_difference_really_occurs_and_no_other(peer: tuple[str, str, list[Case], list[Account]]):
    name, _, _, accounts = peer
    alone = {next(iter(a.differences)) for a in accounts if len(a.differences) == 1 and not a.equal}
    assert {word for a in accounts for word in a.differences} == DIFFERENCES[name]
    assert alone | {"unjudged", "halfway"} >= DIFFERENCES[name], "each decides some case by itself"


def test_the_page_says_how_many_are_equal_and_names_every_difference(
    peer: tuple[str, str, list[Case], list[Account]],
):
    name, version, cases, accounts = peer
    equal = sum(a.equal for a in accounts)
    day = json.loads((DATA / f"{name}.json").read_text())["recorded"]
    assert f"| {version} | {day} | {len(cases)} | {equal} |" in PAGE
    section = PAGE.partition(f"## {name.capitalize()}\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE)) == DIFFERENCES[name]


def test_a_rule_that_were_wrong_would_be_found(monkeypatch: pytest.MonkeyPatch):
    """The oracle can fail: where our rules are bent a little, answers are no longer accounted for."""
    version, cases = read("orbax")
    real = ours.rules
    bends = {
        "latest": lambda rule: Last(rule.count + 1) if isinstance(rule, Last) else rule,
        "steps": lambda rule: Every(Unit.STEPS, rule.interval, Pick.CLOSEST) if isinstance(rule, Every) else rule,
        "best": lambda rule: Best(rule.metric, "max", rule.count, (), rule.missing) if isinstance(rule, Best) else rule,
    }
    for word, bend in bends.items():
        monkeypatch.setattr(ours, "rules", lambda part, bend=bend: [bend(rule) for rule in real(part)])
        asked = [case for case in cases if len(case.policy) == 1 and case.policy[0][0] == word]
        assert any(account("orbax", version, case).wrong for case in asked), word


def test_protections_only_ever_add_to_what_rules_keep():
    _, cases = read("orbax")
    floor = 0
    for case in cases[::3]:
        judged = verdict(case.history, [rule for part in case.policy for rule in ours.rules(part)])
        assert judged.ruled <= judged.kept
        for d in judged.decisions:
            place = int(d.checkpoint.name)
            if place in judged.kept - judged.ruled:
                codes = {m.code for _, m in d.marks if m.keeps}
                assert codes & {"floor.newest", "floor.full", "floor.live", "floor.promised", "future"}, codes
                floor += "floor.newest" in codes and place not in places(case.kept)
    assert floor > 10, "Orbax lets the newest go where only the best are kept; ours stays"


def test_end_to_end_the_command_keeps_what_the_peer_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Real directories, a policy in YAML, ``lifecycle plan``: the answer of the recorded Orbax, and the newest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["lifecycle"])
    version, cases = read("orbax")
    usable = [case for case in cases if as_yaml(case) and rises(case.history) and len(case.history.steps) > 5]
    usable = [case for case in usable if account("orbax", version, case).equal and "." in case.kept]
    several = [case for case in usable if len(case.policy) > 1][:1]
    for n, case in enumerate([*several, usable[0]]):
        root = tmp_path / f"{n}"
        shell, times = Shell(tmp_path), case.history.times_s
        for step, at in zip(case.history.steps, times, strict=True):
            save_hf(root / "run", step, times[-1] - at + 2 * 86_400)
        policy = tmp_path / f"{n}.yaml"
        policy.write_text(as_yaml(case))
        said = shell("plan", "--root", str(root), "--policy", str(policy), "--json")
        assert said.code == 0, said
        gone = {int(action["checkpoint"].rpartition("-")[2]) for action in said.json["actions"]}
        kept = {case.history.steps[i] for i in places(case.kept)}
        assert set(case.history.steps) - gone == kept | {case.history.steps[-1]}
        assert gone


def rises(history: History) -> bool:
    return all(a < b for a, b in zip(history.times_s, history.times_s[1:], strict=False))


def as_yaml(case: Case) -> str:
    """A policy file with the same meaning, for parts that a file can say in one line; else empty."""
    lines = []
    for part in case.policy:
        match part:
            case ["latest", n]:
                lines.append(f"last: {n}")
            case ["steps", n, True, None]:
                lines.append(f"every: {{steps: {n}, pick: exact}}")
            case ["closest", n, None]:
                lines += [f"every: {{steps: {n}, pick: closest}}", "last: 1"]
            case ["custom", steps]:
                lines.append(f"steps: {steps}")
            case _:
                return ""
    keep = "".join(f"  - {line}\n" for line in lines)
    return f"policy: peer\nkeep:\n{keep}limits: {{grace: none}}\n"
