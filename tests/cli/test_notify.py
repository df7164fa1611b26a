"""``notify`` as a user meets it, with real receivers on this machine; their addresses are shown to nobody."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lifecycle.cli.desk import Desk, Seams
from lifecycle.cli.notifying import look_ahead
from lifecycle.errors import LifecycleError
from tests.cli.harness import DAY_S, Shell, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden
from tests.cli.test_process import LIFECYCLE
from tests.hooks.receiver import CANARY, Receiver, listening, saying

POLICY = "policy: scratch\nmatch: {runs: ['hot:**']}\nkeep:\n  - last: 2\nlimits: {grace: none, trash: 1d}\n"
HOSTILE = "a<!channel>`b`\n*c*\u202e"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


@pytest.fixture
def site(shell: Shell, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """One receiver that takes what Slack takes; how full a disk is differs from machine to machine."""
    monkeypatch.setattr("lifecycle.flows.tick._fullness", lambda _sample: "; 61.3% of 500 TB used")
    monkeypatch.setattr("lifecycle.hooks.deliver.PAUSES_S", (0.01, 0.01, 0.01))
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/scratch.yaml").write_text(POLICY)
    shell.env["HOOK"] = receiver.url
    notify(shell, "{to: env:HOOK, format: slack}")
    return shell


def notify(shell: Shell, *items: str, more: str = "") -> None:
    told = "".join(f"  - {item}\n" for item in items)
    text = f"stores: {{hot: {{url: {shell.home}/ckpt, capacity: 1TB}}}}\n{more}notify:\n{told}"
    (shell.home / "lifecycle.yaml").write_text(text)


def told(receiver: Receiver) -> list[Any]:
    found = [json.loads(got.body) for got in receiver.got]
    receiver.got.clear()
    return found


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(site: Shell, receiver: Receiver, golden: Golden, width: int | None):
    site.width = width
    site.env["LIFECYCLE_SLACK_URL"] = receiver.url
    notify(site, "{to: env:LIFECYCLE_SLACK_URL, format: slack}", "{to: file:/run/secrets/alerts, format: json}")
    assert site("notify", "test").code == 3
    assert site("notify", "test", "--json").code == 3
    notify(site, "{to: env:LIFECYCLE_SLACK_URL, format: slack}")
    assert site("tick").code == 0
    site.clock.now_s += 3600
    assert site("tick").code == 0
    receiver.answers = [(404, {})]
    save_hf(site.home / "ckpt/pretrain/a", 800, -3600)
    site.clock.now_s += DAY_S
    assert site("tick").code == 3
    golden(GOLD / f"notify-{width or 'piped'}.txt", site.transcript)


def test_a_plan_that_waits_for_a_look(site: Shell, receiver: Receiver):
    save_hf(site.home / "ckpt" / HOSTILE, 1, 3 * DAY_S)
    save_hf(site.home / "ckpt" / HOSTILE, 2, 2 * DAY_S)
    save_hf(site.home / "ckpt" / HOSTILE, 3, 1 * DAY_S)
    notify(site, "{to: env:HOOK, format: json, on: [plan_ready]}")
    made = site("tick", "--json").json
    (notice,) = told(receiver)
    assert notice["event"] == "plan_ready" and notice["facts"]["plan"] == made["plan"]
    assert notice["facts"]["actions"] == 6 and len(notice["lines"]) == 6 and notice["tick"] == 1
    assert notice["commands"] == [f"lifecycle apply {made['file']}"]
    assert any("<!channel>`b`\\x0a*c*\\u202e/checkpoint-1" in line for line in notice["lines"])
    site("tick")
    assert told(receiver) == []
    assert site("apply", made["file"], "--yes").code == 0


def test_a_plan_that_waits_for_a_yes(site: Shell, receiver: Receiver):
    notify(site, "{to: env:HOOK, format: json, on: [plan_ready]}", more="tick: {apply: approve}\n")
    made = site("tick", "--json").json
    (notice,) = told(receiver)
    assert len(made["waiting"]) == notice["facts"]["actions"] > 0
    assert any(made["request"][:12] in command and "approve" in command for command in notice["commands"])
    site("tick")
    assert told(receiver) == [], "the same request is told once"
    assert site("approve", made["request"][:12], "--yes").code == 0
    assert site("tick", "--json").json["waiting"] == []
    assert told(receiver) == []


def test_slack_is_shown_hostile_names_as_names(site: Shell, receiver: Receiver):
    save_hf(site.home / "ckpt" / HOSTILE, 1, 3 * DAY_S)
    site("tick", "--json")
    save_hf(site.home / "ckpt" / HOSTILE, 2, 2 * DAY_S)
    save_hf(site.home / "ckpt" / HOSTILE, 3, 1 * DAY_S)
    site.clock.now_s += DAY_S
    site("tick", "--json")
    text = told(receiver)[-1]["text"]
    assert "a&lt;!channel&gt;\\x60b\\x60\\x0a*c*\\u202e/checkpoint-1" in text and "<!" not in text


def test_a_refusal_and_its_end(site: Shell, receiver: Receiver):
    (site.home / "policies/scratch.yaml").write_text(POLICY.replace("trash: 1d", "trash: 1d, deletes_max: 2"))
    notify(site, "{to: env:HOOK, format: json}")
    assert site("tick").code == 4
    (notice,) = told(receiver)
    assert notice["event"] == "plan_refused" and notice["facts"]["refusals"][0]["code"] == "guard_max_delete"
    (site.home / "policies/scratch.yaml").write_text(POLICY)
    assert site("tick").code == 0
    assert [notice["event"] for notice in told(receiver)] == ["plan_ready", "recovered"]


def test_a_store_that_will_soon_be_full(site: Shell, receiver: Receiver):
    """As `lifecycle forecast --fail-if-full-within` says of the same world."""
    for step in range(1, 30):
        save_hf(site.home / "ckpt/pretrain/c", step, (30 - step) * 3600)
    item = "{to: env:HOOK, format: json, on: [full_soon], full_within: 3d}"
    notify(site, item)
    assert site("tick", "--json").code == 0 and told(receiver) == []
    text = (site.home / "lifecycle.yaml").read_text()
    (site.home / "lifecycle.yaml").write_text(text.replace("1TB", "400kB"))
    site.clock.now_s += 60
    assert site("tick").code == 0
    (notice,) = told(receiver)
    said = site("forecast", "--fail-if-full-within", "3d", "--days", "3", "--json")
    assert said.code == 7 and notice["facts"]["stores"] == ["hot"] and notice["facts"]["chance"] > 0.9
    assert said.json["stores"][0]["full"]["chance_within"] == pytest.approx(notice["facts"]["chance"], abs=0.05)
    site.clock.now_s += 60
    assert site("tick").code == 0 and told(receiver) == []


def test_a_store_of_which_nobody_knows_how_much_it_holds(
    site: Shell, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be forecast")

    monkeypatch.setattr("lifecycle.flows.forecast.forecast", never)
    monkeypatch.setattr("lifecycle.stores.local.LocalStore.usage", lambda _self: None)
    text = (site.home / "lifecycle.yaml").read_text().replace(", capacity: 1TB", "")
    (site.home / "lifecycle.yaml").write_text(text)
    assert site("tick").code == 0


def test_a_forecast_ends_when_somebody_asks_to_stop(site: Shell):
    for step in range(1, 30):
        save_hf(site.home / "ckpt/pretrain/c", step, (30 - step) * 3600)
    assert site("scan").code == 0
    desk = Desk(Seams(clock=site.clock, told=site.told, env=site.env))
    with desk.world(write=False) as world:
        assert look_ahead(desk, world, 3 * DAY_S, lambda: False)
        with pytest.raises(LifecycleError, match="asked to stop"):
            look_ahead(desk, world, 3 * DAY_S, lambda: True)


def test_the_secret_is_in_nothing_that_anybody_reads(site: Shell, receiver: Receiver, tmp_path: Path):
    """Canaries in address, token and key; every way to fail; every output, and every byte that we wrote."""
    (site.home / "secrets").mkdir()
    secret = site.home / "secrets/hook"
    site.env |= {"TOKEN": f"token-{CANARY}", "KEY": f"key-{CANARY}"}
    notify(
        site, f"{{to: file:{secret}, format: json, token: env:TOKEN, sign: env:KEY}}", "{to: env:HOOK, format: slack}"
    )
    addresses = [
        receiver.url,
        f"http://127.0.0.1:1/{CANARY}",
        f"http://hooks.example.org/{CANARY}",
        f"https://user:{CANARY}@a.example/",
        f"ftp://a.example/{CANARY}",
        f"{CANARY}\nX: {CANARY}",
        f"https://169.254.169.254/{CANARY}",
        f"https://a.example/{CANARY} {CANARY}",
        f"https://localhost:{receiver.port}/{CANARY}",
    ]
    for status in (200, 307, 404, 500):
        receiver.answers = [(status, {"Location": f"http://169.254.169.254/{CANARY}"})] * 4
        addresses.append(receiver.url)
    for address in addresses:
        secret.write_text(address)
        site.clock.now_s += DAY_S
        assert site("notify", "test").code in (0, 1, 3)
    for words in (("notify", "test", "--json"), ("tick",), ("tick", "--json")):
        site.clock.now_s += DAY_S
        assert site(*words).code in (0, 1, 3)
    for words in (("ticks",), ("ticks", "--json"), ("doctor",), ("doctor", "--json"), ("plan", "--json")):
        site(*words)
    assert any(CANARY in got.path for got in receiver.got), "it did arrive where it belongs"
    assert CANARY not in "".join(site.pages)
    written = [path for path in site.home.rglob("*") if path.is_file() and path != secret]
    assert len(written) > 10 and not [path for path in written if CANARY.encode() in path.read_bytes()]


WRONG = [
    "notify: https://hooks.slack.com/services/{}",
    "notify: [https://hooks.slack.com/services/{}]",
    "notify: [{{to: https://hooks.slack.com/services/{}, format: slack}}]",
    "notify: [{{to: [https://hooks.slack.com/services/{}], format: slack}}]",
    "notify: [{{to: {{url: {}}}, format: slack}}]",
    "notify: [{{to: 'env:https://a/{}', format: slack}}]",
    "notify: [{{to: 'file:///run/{}', format: slack}}]",
    "notify: [{{to: 'file:run/../{}', format: slack}}]",
    "notify: [{{to: {}, format: slack}}]",
    "notify: [{{to: env:A, format: 'https://a/{}'}}]",
    "notify: [{{to: env:A, format: json, on: ['https://a/{}']}}]",
    "notify: [{{to: env:A, format: json, on: '{}'}}]",
    "notify: [{{to: env:A, format: json, allow_http: '{}'}}]",
    "notify: [{{to: env:A, format: json, token: '{}'}}]",
    "notify: [{{to: env:A, format: json, sign: '{}'}}]",
    "notify: [{{to: env:A, format: json, full_within: 'https://a/{}'}}]",
    "notify: [{{'https://a/{}': slack}}]",
    "notify: {{'https://a/{}': slack}}",
]


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_an_address_in_the_file_is_an_error_that_does_not_show_it(site: Shell, text: str):
    (site.home / "lifecycle.yaml").write_text(f"stores: {{hot: {site.home}/ckpt}}\n{text.format(CANARY)}\n")
    said = site("tick", "--json") if text in WRONG[:2] else site("notify", "test")
    assert said.code == 2 and CANARY not in said.out + said.err
    assert "lifecycle.yaml:2:" in said.out + said.err


def test_nobody_to_be_told(site: Shell):
    (site.home / "lifecycle.yaml").write_text(f"stores: {{hot: {site.home}/ckpt}}\n")
    said = site("notify", "test")
    assert said.code == 2 and "there is no notify" in said.err
    assert "notify" not in site("tick").out


def test_a_signal_ends_a_service_that_tells(site: Shell, outside: dict[str, str]):
    """Somebody who never answers holds up nobody who asked to stop; what was done is written down, told is nothing."""
    notify(site, "{to: env:HOOK, format: json}", more='tick: {schedule: {cron: "* * * * *"}}\n')
    site.clock.now_s -= 40 * 365 * DAY_S  # the last tick was long ago: the service makes up for it at once
    assert site("tick", "--json").code == 0
    (site.home / "ckpt").rename(site.home / "aside")
    came = Event()
    with saying([], came=came) as port:
        env = {**outside, "HOOK": f"http://localhost:{port}/{CANARY}", "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen([*LIFECYCLE, "serve", "--json"], env=env, stdout=subprocess.PIPE, text=True)
        assert came.wait(100), "it tells somebody"
        os.kill(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=100)
    assert process.returncode == 0 and CANARY not in out
    (made,) = [event for event in map(json.loads, out.splitlines()) if event["event"] == "tick"]
    told_last = made["stages"][-1]
    assert (told_last["stage"], told_last["code"]) == ("notify", "webhook_failed")
    assert "asked to stop" in told_last["text"] and made["exit_code"] not in (0, 3), "what failed is not hidden"
    row = site("ticks", "--json").json["ticks"][0]
    assert row["exit_code"] == made["exit_code"] and row["facts"]["told"] == {"env:HOOK": {}}
