"""Announced, asked, answered: ``upcoming``, ``approvals``, ``approve`` and ``reject`` as they are met with."""

import os
import re

import pytest

from tests.cli.harness import DAY_S, Shell, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden

POLICY = "policy: scratch\nmatch: {runs: ['hot:**']}\nkeep:\n  - last: 2\nlimits: {grace: none, trash: 1d}\n"
ASKS = "apply: approve\nannounce: 3d\n"
NIGHTLY = "apply: auto, schedule: {cron: '30 2 * * *'}"
A = "hot:pretrain/a/checkpoint-{}"


@pytest.fixture
def site(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A store with a run that has five checkpoints too many."""
    monkeypatch.setattr("lifecycle.flows.tick._fullness", lambda _sample: "; 61.3% of 500 TB used")
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    told(shell, ASKS, NIGHTLY)
    return shell


def told(shell: Shell, asks: str, tick: str = "apply: auto", stores: str = "") -> None:
    """What the policy and the site ask for."""
    (shell.home / "policies/scratch.yaml").write_text(POLICY + asks)
    text = f"stores: {{hot: {{url: {shell.home}/ckpt}}{stores}}}\ntick: {{{tick}}}\n"
    (shell.home / "lifecycle.yaml").write_text(text)


def later(shell: Shell, days: float) -> None:
    shell.clock.now_s += int(days * DAY_S)


def left(shell: Shell) -> list[int]:
    return sorted(int(path.name.split("-")[1]) for path in (shell.home / "ckpt/pretrain/a").glob("checkpoint-*"))


def asked(shell: Shell) -> str:
    (request,) = [one["id"] for one in shell("approvals", "--json").json["requests"] if one["asked"]]
    assert isinstance(request, str)
    shell.pages.pop()
    return request


def waits(shell: Shell, *words: str) -> dict[str, list[str]]:
    return {one["id"]: one["waits"] for one in shell("upcoming", *words, "--json").json["coming"]}


def test_the_whole_way(site: Shell, golden: Golden):
    site.width = 80
    site("scan")
    assert site("approvals").out == "Nobody was asked for anything.\n"
    site("upcoming")
    site("tick")
    site("approvals")
    request = asked(site)[:12]
    assert site("approve", request).code == 2, "nobody is there to ask"
    site("approve", request, "--yes", "--by", "carol")
    site("approvals")
    site("hold", A.format(100), "--reason", "figure 2", "--until", "14d")
    site("upcoming")
    later(site, 1)
    site("tick")
    site("upcoming", "--within", "1d")
    later(site, 2)
    site("tick")
    assert left(site) == [100, 600, 700]
    site("upcoming")
    site("ticks")
    transcript = re.sub(r"\bh[0-9a-f]{8}\b", "<hold>", site.transcript)
    golden(GOLD / "consent-80.txt", transcript)


def test_for_programs_that_read_lines(site: Shell, golden: Golden):
    for words in (("scan",), ("upcoming",), ("tick",), ("upcoming",), ("approvals",)):
        site(*words)
    golden(GOLD / "consent-piped.txt", site.transcript)


def test_a_no_takes_a_yes_back(site: Shell, golden: Golden):
    told(site, "apply: approve\n")
    site.width = 80
    site("tick")
    request = asked(site)[:12]
    site("approve", request, "--yes")
    site("reject", request, "--by", "bob")
    site("tick")
    site("upcoming")
    site("approvals")
    assert left(site) == [100, 200, 300, 400, 500, 600, 700]
    golden(GOLD / "consent-rejected-80.txt", site.transcript)


def test_what_it_waits_for_in_a_word(site: Shell):
    """Every state, for programs."""
    site("scan")
    first = A.format(100)
    assert waits(site)[first] == ["awaiting_approval", "unannounced"]
    site("tick")
    assert waits(site)[first] == ["awaiting_approval", "announced"]
    site("approve", asked(site), "--yes")
    assert waits(site)[first] == ["announced"]
    told(site, "")
    assert waits(site)[first] == ["next_tick"]
    told(site, "", "apply: never")
    assert waits(site)[first] == ["dry"]
    told(site, ASKS, "apply: never")
    assert waits(site)[first] == ["dry", "announced"], "by hand the date counts, and a yes it is by itself"
    told(site, "", "apply: approve")
    assert waits(site)[first] == ["next_tick"], "that yes counts for this as well"
    site("reject", site("approvals", "--json").json["requests"][0]["id"])
    assert waits(site)[first] == ["awaiting_approval"]


def test_when_it_goes(site: Shell):
    site("scan")
    said = site("upcoming", "--json").json
    now_s, (one, *_) = site.clock.now_s, said["coming"]
    tick_s = said["next_tick_ns"] // 10**9
    assert 0 < tick_s - now_s < DAY_S and said["applies"]
    assert one["at_ns"] // 10**9 == tick_s + 3 * DAY_S == now_s + one["in_s"]
    assert one["stop"] == f"lifecycle hold {one['checkpoint']} --reason TEXT" and one["policies"] == ["scratch"]
    assert one["due_at_ns"] == one["at_ns"] and one["what"] == "drop"
    site("tick")
    (one, *_) = site("upcoming", "--json").json["coming"]
    assert one["due_at_ns"] // 10**9 == now_s + 3 * DAY_S, "the date that was announced"
    assert one["at_ns"] // 10**9 == tick_s + 3 * DAY_S, "the tick after that"
    told(site, "")
    assert [c["at_ns"] for c in site("upcoming", "--json").json["coming"]] == [None] * 5, "who knows when"


def test_only_what_was_asked_for(site: Shell):
    save_hf(site.home / "ckpt/other", 1, 9 * DAY_S)
    for step in (2, 3, 4):
        save_hf(site.home / "ckpt/other", step, (9 - step) * DAY_S)
    for path in (site.home / "ckpt/other").rglob("*"):
        os.chown(path, 12345, -1)
    os.chown(site.home / "ckpt/other", 12345, -1)
    site("scan")
    every = waits(site)
    assert len(every) == 7
    mine = waits(site, "--owner", "me")
    assert mine.keys() == {A.format(n) for n in range(100, 600, 100)}
    assert waits(site, "--owner", "12345").keys() == {f"hot:other/checkpoint-{n}" for n in (1, 2)}
    assert waits(site, "--run", "hot:other") == waits(site, "--run", "oth*") == waits(site, "--owner", "12345")
    assert waits(site, "--within", "2d") == {} and waits(site, "--within", "5d") == every
    said = site("upcoming", "--run", "none")
    assert "Nothing of this is going to go. 7 more were not asked for." in said.out


@pytest.mark.parametrize(
    ("words", "told_of"),
    [
        (("--owner", "nobody-of-this-name"), "this machine knows no user"),
        (("--within", "7"), "has no unit"),
    ],
)
def test_slips_of_the_pen(site: Shell, words: tuple[str, ...], told_of: str):
    said = site("upcoming", *words, "--json")
    assert said.code == 2 and told_of in said.json["error"]["message"]


def test_requests_are_named_by_their_beginning(site: Shell):
    told(site, ASKS, "apply: auto, approved_for: 1d")
    site("tick")
    for words in (("approve", "abc", "--yes"), ("reject", "zzzzzzzz")):
        said = site(*words, "--json")
        assert said.code == 1 and said.json["error"]["code"] == "no_such_request"
    said = site("approve", asked(site)[:4], "--yes", "--json").json
    assert (said["by"], said["typed_by"], said["word"], said["actions"]) == ("ann", "ann@box", "approved", 5)
    (request,) = site("approvals", "--json").json["requests"]
    assert request["state"] == "approved" and len(request["actions"]) == 5
    assert [answer["typed_by"] for answer in request["answers"]] == ["ann@box"]
    later(site, 1)
    (request,) = site("approvals", "--json").json["requests"]
    assert request["state"] == "expired"


def test_what_another_request_took_the_place_of_can_still_be_said_yes_to(site: Shell):
    told(site, "apply: approve\n")
    site("tick")
    first = asked(site)
    save_hf(site.home / "ckpt/pretrain/a", 800, 600)
    site("tick")
    assert asked(site) != first
    assert [r["state"] for r in site("approvals", "--json").json["requests"]] == ["waiting", "replaced"]
    said = site("approve", first, "--yes")
    assert "did not ask for just this any more" in said.err and said.code == 0
    site("tick")
    assert left(site) == [600, 700, 800]


def test_a_tick_tells_programs_what_waits(site: Shell):
    said = site("tick", "--json").json
    assert said["exit_code"] == 0 and said["request"] == asked(site)
    assert {one["id"]: (one["code"], one["approval"], one["date"]) for one in said["waiting"]} == {
        A.format(n): ("awaiting_approval", True, True) for n in range(100, 600, 100)
    }
    assert said["stages"][3]["counts"] == {"waits": 5}


def test_a_plan_over_its_limits_goes_nowhere(site: Shell):
    (site.home / "policies/scratch.yaml").write_text(POLICY.replace("trash: 1d", "trash: 1d, deletes_max: 2") + ASKS)
    assert site("tick").code == 4
    site.width = 80
    said = site("upcoming")
    assert "the plan is over its limits" in said.out and "guard_max_delete" in said.out and "not by itself" in said.out
    assert waits(site)[A.format(100)] == ["refused"]
    assert site("approvals").out == "Nobody was asked for anything.\n"


def test_by_hand_dates_are_kept_unless_somebody_says_not_to(site: Shell):
    plan = site("plan", "--json").json["plan"]
    said = site("apply", plan, "--yes", "--json").json
    assert said["counts"]["waits"] == 5 and said["exit_code"] == 0 and len(said["dated"]) == 5, "not even announced"
    site("tick")
    plan = site("plan", "--json").json["plan"]
    shown = site("apply", plan, "--yes").out
    assert "5 not due" in shown and "Left where it is: 5 (47.1 kB) wait for their dates" in shown
    assert len(left(site)) == 7
    later(site, 3)
    plan = site("plan", "--json").json["plan"]
    assert site("apply", plan, "--yes", "--json").json["counts"]["done"] == 5, "nobody else has to say yes"
    assert left(site) == [600, 700]
    save_hf(site.home / "ckpt/pretrain/a", 800, 600)
    plan = site("plan", "--json").json["plan"]
    assert site("apply", plan, "--yes", "--unannounced", "--json").json["counts"]["done"] == 1
    assert left(site) == [700, 800]


@pytest.mark.postgres
def test_from_another_machine_that_sees_the_index_and_not_the_data(site: Shell, server_url: str):
    """The cluster ticks; somebody else's laptop has the same settings, and no such mount."""
    site.env["INDEX"] = server_url
    config = site.home / "lifecycle.yaml"
    config.write_text("database: ${INDEX}\n" + config.read_text())
    assert site("tick").code == 0
    (site.home / "ckpt").rename(site.home / "elsewhere")
    assert waits(site) == {A.format(n): ["awaiting_approval", "announced"] for n in range(100, 600, 100)}
    assert site("approve", asked(site), "--yes").code == 0
    held = site("hold", A.format(100), "--reason", "figure 2")
    assert held.code == 3 and "in the index only" in held.err
    assert A.format(100) not in waits(site)
    (site.home / "elsewhere").rename(site.home / "ckpt")
    later(site, 3)
    assert site("tick").code == 0
    assert left(site) == [100, 600, 700]
