"""``metrics``, and what a tick tells at its end: files for a collector, and pushes to a real pushgateway."""

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as families

import lifecycle
from lifecycle.cli import foreseeing, metering
from lifecycle.cli.pushing import address, push
from lifecycle.config.monitoring import Gateway, MonitoringFile
from lifecycle.errors import LifecycleError
from lifecycle.ports.secret import Reference
from lifecycle.stores import textfile
from tests.cli.harness import DAY_S, Shell, small_tree
from tests.servers import _free_ports

CONFIG = "stores: {{hot: {{url: {home}/ckpt}}}}\ndatabase: sqlite:///state/index.db\ntick: {{apply: auto}}\n{more}"
POLICY = "policy: scratch\nmatch: {runs: ['hot:**']}\nkeep:\n  - last: 2\nlimits: {grace: none, trash: 1d}\n"
PUSHGATEWAY = shutil.which("prometheus-pushgateway")
BCRYPT = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
"""Of the word ``secret``."""


@pytest.fixture
def site(shell: Shell) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/scratch.yaml").write_text(POLICY)
    monitor(shell, "")
    return shell


def monitor(shell: Shell, more: str) -> None:
    (shell.home / "lifecycle.yaml").write_text(CONFIG.format(home=shell.home, more=more))


def values(text: str) -> dict[str, float]:
    """Values by name, of those without labels or of the store."""
    found = [s for family in families(text) for s in family.samples]
    return {s.name: s.value for s in found if set(s.labels) <= {"store"}}


# -- the command


def test_metrics_are_printed_and_nothing_is_looked_at(site: Shell):
    assert site("metrics").code == 4, "there is no index yet"
    assert site("tick").code == 0
    shutil.rmtree(site.home / "ckpt")
    site.clock.now_s += DAY_S
    said = site("metrics")
    assert said.code == 0 and not said.err
    told = values(said.out)
    assert told["lifecycle_measured_timestamp_seconds"] - told["lifecycle_store_scan_timestamp_seconds"] == DAY_S
    assert told["lifecycle_store_trash_checkpoints"] == 5 and told["lifecycle_tick_exit_code"] == 0
    rows = site("metrics", "--json").json["metrics"]
    assert {(row["name"], row["value"]) for row in rows} >= {("lifecycle_store_trash_checkpoints", 5.0)}


def test_a_file_is_there_as_a_whole_and_for_everybody_to_read(site: Shell):
    site("tick")
    before = os.umask(0o077)
    try:
        said = site("metrics", "--textfile", "out.prom")
    finally:
        os.umask(before)
    file = site.home / "out.prom"
    assert said.out == f"Written to {file}.\n" and said.code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert file.read_text() == site("metrics").out
    assert not list(site.home.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--textfile", "x.txt"), "does not end in .prom"),
        (("--push", "ftp://x"), "is not a web address"),
        (("--push", "http://u:p@x"), "carries credentials"),
        (("--push", "http://x/metrics"), "leave /metrics out"),
        (("--push", "http://x:y"), "cannot be read"),
        (("--push", "http://x/?a=b"), "carries options"),
        (("--push", "http://far.example", "--token-file", "/t"), "in the clear"),
        (("--push", "http://x", "--job", "a/b"), "no name of a job"),
        (("--token-file", "/t"), "goes with --push only"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(site: Shell, words: tuple[str, ...], says: str):
    said = site("metrics", *words)
    assert said.code == 2 and says in said.err


def test_the_format_is_utf_8_whatever_the_terminal_speaks(site: Shell):
    site("tick")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(Path(lifecycle.__file__).parents[1])}
    (site.home / "ckpt/pretrain/b").rename(site.home / "ckpt/pretrain/\u03c0")
    now_s = time.time()
    (site.home / "ckpt/pretrain/\u03c0/log").write_text("")
    site.clock.now_s = int(now_s)
    site("scan")
    words = [sys.executable, "-m", "lifecycle", "metrics"]
    done = subprocess.run(words, env=env, capture_output=True, cwd=site.home, check=False)
    assert done.returncode == 0 and 'run="pretrain/\u03c0"'.encode() in done.stdout, done.stderr


def test_the_settings_on_the_page_are_those_that_are_read(site: Shell):
    page = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    monitor(site, shown)
    said = site("policy", "check")
    assert said.code == 0, said.err
    assert set(yaml.safe_load(shown)["monitoring"]) == set(MonitoringFile.model_fields)


# -- writing the file


def test_what_stood_there_stays_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.prom"
    textfile.write(str(path), b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(LifecycleError, match="No space left") as caught:
            textfile.write(str(path), b"new")
    assert caught.value.code == "textfile_failed"
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["x.prom"]
    with pytest.raises(LifecycleError, match="No such file"):
        textfile.write(str(tmp_path / "no" / "x.prom"), b"new")


def test_a_link_is_replaced_and_what_it_leads_to_is_not_touched(tmp_path: Path):
    (tmp_path / "precious").write_bytes(b"p")
    (tmp_path / "x.prom").symlink_to("precious")
    (tmp_path / f".x.prom.{os.getpid()}.tmp").symlink_to("precious")
    textfile.write(str(tmp_path / "x.prom"), b"new")
    assert (tmp_path / "precious").read_bytes() == b"p"
    assert not (tmp_path / "x.prom").is_symlink() and (tmp_path / "x.prom").read_bytes() == b"new"


def test_a_directory_in_its_place_is_left_alone(tmp_path: Path):
    (tmp_path / "x.prom").mkdir()
    with pytest.raises(LifecycleError):
        textfile.write(str(tmp_path / "x.prom"), b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["x.prom"]


# -- a tick


def stage(said: Any) -> dict[str, Any]:
    (found,) = [one for one in said["stages"] if one["stage"] == "metrics"]
    return dict(found)


def test_a_tick_tells_of_itself_when_it_ends(site: Shell):
    monitor(site, "monitoring: {textfile: '${DIR}/t.prom'}\n")
    site.env["DIR"] = str(site.home)
    said = site("tick", "--json").json
    assert stage(said) == {
        "stage": "metrics",
        "subject": "",
        "outcome": "done",
        "code": "",
        "text": f"written to {site.home}/t.prom; a forecast is kept",
        "counts": {},
        "exit_code": 0,
    }
    told = (site.home / "t.prom").read_text()
    assert values(told)["lifecycle_tick_running"] == 0
    assert values(told)["lifecycle_tick_ended_timestamp_seconds"] == site.clock.now_s
    assert 'lifecycle_tick_actions{outcome="done"} 5.0' in told


def test_the_first_tick_of_a_day_keeps_a_forecast(site: Shell, monkeypatch: pytest.MonkeyPatch):
    monitor(site, f"monitoring: {{textfile: {site.home}/t.prom}}\n")
    said = []
    for _ in range(3):
        said.append(stage(site("tick", "--json").json)["text"].partition("; ")[2])
        site.clock.now_s += 12 * 3600
    assert said == ["a forecast is kept", "", "a forecast is kept"]
    assert 'lifecycle_store_forecast_timestamp_seconds{store="hot"} 2.' in (site.home / "t.prom").read_text()
    site.clock.now_s += 86_400

    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(foreseeing, "foresee", broken)
    made = stage(site("tick", "--json").json)
    assert made["text"].endswith("; no forecast is kept, a fault of ours: RuntimeError") and made["outcome"] == "done"


def test_a_tick_of_which_nobody_can_be_told_is_as_good(site: Shell, monkeypatch: pytest.MonkeyPatch):
    monitor(site, f"monitoring: {{textfile: {site.home}/no/t.prom, pushgateway: 'http://127.0.0.1:9'}}\n")
    said = site("tick", "--json").json
    assert (said["exit_code"], stage(said)["outcome"], stage(said)["code"]) == (0, "skipped", "textfile_failed")
    assert "Connection refused" in stage(said)["text"] and "No such file" in stage(said)["text"]

    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(metering, "measured", broken)
    said = site("tick", "--json").json
    assert (said["exit_code"], stage(said)["code"]) == (0, "internal")
    assert stage(said)["text"] == "not told everywhere, a fault of ours: RuntimeError"


def test_one_that_fails_does_not_keep_the_other(site: Shell):
    monitor(site, f"monitoring: {{textfile: {site.home}/t.prom, pushgateway: 'http://127.0.0.1:9'}}\n")
    said = site("tick", "--json").json
    assert stage(said)["code"] == "push_failed" and stage(said)["text"].endswith(f"; written to {site.home}/t.prom")
    assert (site.home / "t.prom").exists()


def test_settings_of_monitoring_make_no_plan_stale(site: Shell):
    file = site("plan", "--json").json["file"]
    monitor(site, f"monitoring: {{textfile: {site.home}/t.prom}}\n")
    assert site("apply", file, "--yes", "--json").code == 0


# -- pushing


@contextmanager
def gateway(*options: str) -> Iterator[str]:
    """A pushgateway of its own."""
    assert PUSHGATEWAY is not None
    (port,) = _free_ports(1)
    url = f"127.0.0.1:{port}"
    log = subprocess.DEVNULL
    command = [PUSHGATEWAY, f"--web.listen-address={url}", "--persistence.file=", *options]  # Debian's keeps them
    with subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < deadline
                    time.sleep(0.02)
            yield f"http://{url}"
        finally:
            process.terminate()


needs_gateway = pytest.mark.skipif(PUSHGATEWAY is None, reason="prometheus-pushgateway is not installed")


def read(url: str, **headers: str) -> str:
    with urlopen(Request(url, headers=headers), timeout=10) as answer:
        return str(answer.read().decode())


@needs_gateway
def test_a_pushgateway_takes_them_and_a_later_push_replaces_the_group(site: Shell):
    with gateway() as url:
        monitor(site, f"monitoring: {{pushgateway: '{url}', job: nightly, grouping: {{cluster: a/100}}}}\n")
        said = site("tick", "--json").json
        assert stage(said)["text"] == f"pushed to {url}; a forecast is kept" and said["exit_code"] == 0
        held = read(f"{url}/metrics")
        where = 'cluster="a/100",instance="",job="nightly"'
        assert f'lifecycle_store_trash_checkpoints{{{where},store="hot"}} 5' in held
        assert f"push_time_seconds{{{where}}}" in held
        site.clock.now_s += 2 * DAY_S
        for _ in range(2):
            assert site("metrics", "--push", url, "--job", "nightly").out == f"Pushed to {url}.\n"
        groups = json.loads(read(f"{url}/api/v1/metrics"))["data"]
        labels = sorted((g["labels"] for g in groups), key=len)
        assert labels == [{"job": "nightly"}, {"cluster": "a/100", "job": "nightly"}]


@needs_gateway
def test_a_hostile_name_of_a_run_is_taken_too(site: Shell):
    run = os.fsencode(site.home) + b'/ckpt/pretrain/a"} 1\n# \xff\\'
    os.rename(site.home / "ckpt/pretrain/b", run)
    os.utime(run, (site.clock.now_s, site.clock.now_s))
    (Path(os.fsdecode(run)) / "log").write_text("")
    os.utime(Path(os.fsdecode(run)) / "log", (site.clock.now_s, site.clock.now_s))
    with gateway() as url:
        monitor(site, f"monitoring: {{pushgateway: '{url}'}}\n")
        assert stage(site("tick", "--json").json)["code"] == ""
        assert 'run="pretrain/a\\"} 1\\\\x0a# \\\\xff\\\\"' in read(f"{url}/metrics")


@needs_gateway
def test_credentials_come_by_reference_and_are_shown_nowhere(site: Shell, tmp_path: Path):
    (tmp_path / "web.yaml").write_text(f"basic_auth_users: {{ann: '{BCRYPT}'}}\n")
    (tmp_path / "token").write_text("secret\n")
    with gateway(f"--web.config.file={tmp_path}/web.yaml") as url:
        monitor(site, f"monitoring: {{pushgateway: '{url}'}}\n")
        said = stage(site("tick", "--json").json)
        assert said["code"] == "push_failed" and "401" in said["text"] and "is the token right?" in said["text"]
        for token in (f"file:{tmp_path}/token", "env:PUSH_TOKEN"):
            monitor(site, f"monitoring: {{pushgateway: '{url}', user: ann, token: '{token}'}}\n")
            site.env["PUSH_TOKEN"] = "secret"
            assert stage(site("tick", "--json").json)["code"] == ""
        site.env["PUSH_TOKEN"] = "wrong-canary"
        said = stage(site("tick", "--json").json)
        assert said["code"] == "push_failed"
        site.env["PUSH_TOKEN"] = "canary\r\nX-Evil: 1"
        assert stage(site("tick", "--json").json)["code"] == "secret_missing"
        del site.env["PUSH_TOKEN"]
        assert "the variable PUSH_TOKEN is not set" in stage(site("tick", "--json").json)["text"]
        assert "canary" not in site.transcript and "secret" not in site("ticks", "--json").out.replace(
            "secret_missing", ""
        )


class Listener(BaseHTTPRequestHandler):
    """Takes down what it is sent, and answers as it is told to."""

    heard: list[tuple[str, str, str | None]]
    answers: tuple[int, dict[str, str]] = (200, {})

    def do_PUT(self) -> None:
        self.heard.append((self.command, self.path, self.headers.get("Authorization")))
        code, headers = self.answers
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_PUT()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def listener(code: int = 200, **headers: str) -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    heard: list[tuple[str, str, str | None]] = []
    kind = type("One", (Listener,), {"heard": heard, "answers": (code, headers)})
    server = HTTPServer(("127.0.0.1", 0), kind)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()


def test_a_token_alone_is_a_bearers(tmp_path: Path):
    with listener() as (url, heard):
        push(Gateway(url, token=Reference("env", "T")), b"", {"T": "abc"})
    assert heard == [("PUT", "/metrics/job/lifecycle", "Bearer abc")]


def test_a_redirect_is_not_followed_for_the_token_is_meant_for_one_host():
    with listener() as (other, heard), listener(307, Location=other) as (url, first):
        with pytest.raises(LifecycleError, match="307"):
            push(Gateway(url, token=Reference("env", "T")), b"", {"T": "abc"})
        assert len(first) == 1 and heard == []


def test_the_group_is_named_as_a_pushgateway_reads_it():
    made = Gateway("http://x/base", "a.b", (("cluster", "a b%"), ("path", "a/b")))
    assert address(made) == "http://x/base/metrics/job/a.b/cluster/a%20b%25/path@base64/YS9i"


def test_a_file_that_is_no_secret_is_told_of(tmp_path: Path):
    for file in (tmp_path / "none", tmp_path):
        with pytest.raises(LifecycleError) as caught:
            push(Gateway("http://127.0.0.1:9", token=Reference("file", str(file))), b"", {})
        assert caught.value.code == "secret_missing"
