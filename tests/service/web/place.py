"""A site whose names are as hostile as names can be, scanned once for all tests of the pages: none of them writes."""

import asyncio
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from lifecycle.cli.desk import Desk, Seams
from lifecycle.cli.webbing import Fresh
from lifecycle.service.web.app import Site, make_app
from lifecycle.service.web.gate import Gate
from lifecycle.service.web.views import Views
from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf

TOKEN = "a-token-that-nobody-would-guess"
HOSTILE = (
    '"><script>alert(1)<',
    "javascript:alert(2)",
    "'onmouseover='alert(3)",
    "{{ 7*7 }}{% raw %}",
    "\u202etxt.exe",
    "two\nlines\r\n<b>",
    os.fsdecode(b"\xff\xfe-bytes"),
    "&lt;script&gt;",
    "%22%3E%3Cscript%3E",
    "a b+c&d=e#f?g\\n",
)
CONFIG = """stores: {{hot: {{url: {home}/ckpt}}, warm: {{url: {home}/warm, capacity: 1GB}}}}
tick: {{schedule: {{cron: "30 2 * * *", timezone: Europe/Berlin}}}}
"""
POLICY = """policy: scratch
match: {runs: ['hot:**']}
keep:
  - last: 2
place: [{kept_by: last, on: [hot]}]
limits: {grace: none, trash: 1d}
"""


class Client:
    """Asks an app without a socket, all on one loop; cookies are kept as browsers keep them."""

    runner = asyncio.Runner()

    def __init__(self, app: Any, host: str) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{host}")
        self.headers = self._client.headers

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self._client.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def head(self, path: str) -> httpx.Response:
        return self.request("HEAD", path)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)


@dataclass
class Place:
    """The site, and what makes clients of it."""

    home: Path
    shell: Shell
    failures: list[str] = field(default_factory=list)
    shared: list[Views] = field(default_factory=list)
    """What is dear is made once for all tests that change nothing of it."""

    @property
    def config(self) -> Path:
        return self.home / "lifecycle.yaml"

    def desk(self) -> Desk:
        seams = Seams(clock=self.shell.clock, told=self.shell.told, env=self.shell.env)
        return Desk(seams, self.config)

    def views(self) -> Views:
        return Views(self.desk(), Fresh(lambda: self.desk().settings))

    def _shared(self) -> Views:
        if not self.shared:
            self.shared.append(self.views())
        return self.shared[0]

    def client(self, token: str = "", *, host: str = "localhost", views: Views | None = None, **options: Any) -> Client:
        gate = Gate(token, self.shell.clock.now_ns)
        site = Site(views=views or self._shared(), gate=gate, failed=self.failures.append, **options)
        return Client(make_app(site), host)

    def told(self, *words: str) -> Any:
        """What a command answers in JSON."""
        return self.shell(*words, "--json", "-c", str(self.config)).json


def build(home: Path, now_s: int = NOW_S) -> Place:
    """Runs with hostile names, a metric and a hold of the same kind, two ticks."""
    shell = Shell(home)
    shell.clock.now_s = now_s
    for i, name in enumerate(HOSTILE):
        save_hf(home / "ckpt" / name, 10 + i, i * DAY_S + 7200, now_s=now_s)
    for step in (100, 200, 300, 400):
        save_hf(home / "ckpt" / "pretrain/a", step, (500 - step) / 100 * DAY_S, loss=1.5, now_s=now_s)
    path = home / "ckpt/pretrain/a/checkpoint-400/trainer_state.json"
    state = json.loads(path.read_text())
    state["log_history"] = [{"eval_<script>alert(4)</script>": 1.0, "step": 400, "epoch": 1.0}]
    path.write_text(json.dumps(state))
    save_hf(home / "warm" / "other", 7, 2 * DAY_S, now_s=now_s)
    (home / "policies").mkdir()
    (home / "policies/scratch.yaml").write_text(POLICY)
    place = Place(home, shell)
    place.config.write_text(CONFIG.format(home=home))
    config = ("-c", str(place.config))
    hold = ("hold", "hot:pretrain/a/checkpoint-100", "--owner", "<i>ann", "--reason", "<img src=x onerror=alert(5)>")
    assert shell("tick", *config).code == 0
    assert shell(*hold, *config).code == 0
    shell.clock.now_s += 60
    assert shell("tick", *config).code == 0
    return place
