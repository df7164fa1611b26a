"""Secrets planted wherever people put them are in nothing that we tell or write, whether commands succeed or fail.

To watch one more output, add a line to OUTPUTS; to plant at one more place, one to ENV, URLS or FILES.
"""

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from lifecycle.cli.desk import Desk, Seams
from lifecycle.cli.metering import measured
from lifecycle.config.compile import Settings
from lifecycle.errors import LifecycleError
from lifecycle.render.exposition import exposition
from lifecycle.render.redact import HIDDEN, NAMED, Secrets
from lifecycle.stores.local import LocalStore
from tests.cli.harness import DAY_S, Said, Shell, small_tree

ACCOUNT_KEY = "Q0FOQVJZYXp1cmVrZXk" + "A" * 60 + "CANARYkey/+=="
PG_PASSWORD = "p/CANARYpg+1@x:y%z"
SIGNATURE = "CANARYsas%2Fabc%3D"

ENV = {
    "AWS_ACCESS_KEY_ID": "AKIACANARYKEYID00000",
    "AWS_SECRET_ACCESS_KEY": "wJalr/CANARYsecret+bPxRfiCYEXAMPLEKEY000",
    "AWS_SESSION_TOKEN": "FwoGZXIvYXdzE/CANARYsession+token==",
    "AZURE_STORAGE_KEY": ACCOUNT_KEY,
    "AZURE_STORAGE_SAS_TOKEN": f"sv=2024-01-01&sp=rl&sig={SIGNATURE}",
    "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=http;AccountName=acc;"
    f"AccountKey={ACCOUNT_KEY};BlobEndpoint=http://WHERE/acc",
    "AZURE_CLIENT_SECRET": "CANARYclient~secret.0",
    "HF_TOKEN": "hf_CANARYtoken",
    "PGPASSWORD": "CANARYpgpassword",
    "PW": PG_PASSWORD,
    "PWQ": quote(PG_PASSWORD, safe=""),
}
"""Variables, as clients and settings read them."""

NEEDLES = ("CANARY", "Q0FOQVJZYXp1cmVrZXk", "Signature=", "SharedKey ")
"""No secret is without one of these, and neither is what is derived from one to be sent."""

URLS = {
    "keys in an address": "s3://AKIACANARY:CANARYuser/info@bucket/x",
    "a key in an address": "s3://CANARYkey@bucket/x",
    "a signed address": "s3://bucket/x?X-Amz-Credential=AKIACANARY&X-Amz-Signature=CANARYsig",
    "a SAS": f"abfs://c@acc.dfs.core.windows.net/x?sig={SIGNATURE}",
    "a password for sftp": "sftp://ann:CANARYsftp@box/x",
    "an odd one": "sftp://ann:CANARY/sf:tp@box/x",
    "Google's": "gs://CANARYtoken@bucket/x",
}
"""Stores that carry what does not belong there; every command refuses them."""

FILES = {
    "endpoint with a password": "stores: {s: {url: 's3://b/x', endpoint_url: 'https://u:CANARYep@host'}}\n",
    "endpoint with a token": "stores: {s: {url: 's3://b/x', endpoint_url: 'https://host/?token=CANARYep'}}\n",
    "a database's password": "stores: {s: IN/ckpt}\ndatabase: 'postgresql://u:CANARYdb@h/d'\n",
    "the same as an option": "stores: {s: IN/ckpt}\ndatabase: 'postgresql://u@h/d?password=CANARYdb'\n",
    "another database": "stores: {s: IN/ckpt}\ndatabase: 'oracle://u:CANARYdb@h/d'\n",
    "an unknown key": "stores: {s: IN/ckpt}\naws_secret_access_key: CANARYkey\n",
    "a number's place": "stores: {s: IN/ckpt}\nplan_age_max: 'password=CANARYkey'\n",
    "no YAML": "stores: {s: 's3://k:CANARY@b\n",
    "a tab": "stores:\n\ts: s3://k:CANARYtab@b/x\n",
}
"""Settings that are wrong and have a secret in them."""

GLOBS = ("match: {runs: ['s3://k:CANARYglob@b/**']}", "keep: [{last: 'token=CANARYlast'}]", "secret_key: CANARYkey")
COMMANDS = (("plan",), ("--log", "json", "tick", "--json"), ("doctor",), ("policy", "check"))

Outputs = dict[str, Callable[[Shell, list[Said]], Iterator[tuple[str, bytes]]]]


def told(_shell: Shell, said: list[Said]) -> Iterator[tuple[str, bytes]]:
    """Standard output and error."""
    for n, one in enumerate(said):
        yield f"output {n}", (one.out + one.err).encode()


def written(shell: Shell, _said: list[Said]) -> Iterator[tuple[str, bytes]]:
    """Every file of ours: index with its log, plans, copies of the index, what lies beside the data; and every name."""
    for place, dirs, names in os.walk(shell.home):
        if "in" in dirs:
            dirs.remove("in")  # what people wrote, with the secrets in it
        for name in names:
            path = Path(place, name)
            yield str(path), os.fsencode(path) + path.read_bytes()


def measured_text(shell: Shell, _said: list[Said]) -> Iterator[tuple[str, bytes]]:
    """Metrics, wherever there is an installation to measure."""
    seams = Seams(clock=shell.clock, env=shell.env)
    with (
        suppress(LifecycleError),
        Desk(seams, shell.home / "in/lifecycle.yaml").world(write=False, create=False) as world,
    ):
        yield "metrics", exposition(measured(world))


OUTPUTS: Outputs = {"told": told, "written": written, "metrics": measured_text}


def search(shell: Shell, said: list[Said]) -> list[str]:
    """Where a secret is."""
    return [
        f"{needle} in {where}: {content[max(0, at - 150) : at + 60]!r}"
        for output in OUTPUTS.values()
        for where, content in output(shell, said)
        for needle in NEEDLES
        if (at := content.find(needle.encode())) >= 0
    ]


class Echo(BaseHTTPRequestHandler):
    """A server that refuses everybody, and tells in its answer all that it was sent, as proxies in trouble do."""

    status = 403
    asked: ClassVar[list[str]] = []

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode("latin-1")
        everything = f"{self.command} {self.path}\n{self.headers}\n{body}"
        self.asked.append(everything)
        escaped = everything.replace("&", "&amp;").replace("<", "&lt;")
        content = f"<?xml version='1.0'?><Error><Code>{self.word}</Code><Message>{escaped}</Message></Error>".encode()
        self.send_response(self.status, f"Denied {ENV['AWS_SECRET_ACCESS_KEY']}")
        self.send_header("Content-Type", "application/xml")
        self.send_header("x-ms-error-code", "AuthenticationFailed")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    word = "SignatureDoesNotMatch"
    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815 - as the base class looks for them

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Echo.asked.clear()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def planted(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Every variable is set; faults of ours are told in a line, as people see them."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "PG", "STORAGE_"))]:
        monkeypatch.delenv(name)
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
        shell.env[name] = value
    for name, value in {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("LIFECYCLE_DEBUG")
    small_tree(shell.home / "ckpt")
    (shell.home / "in/policies").mkdir(parents=True)
    (shell.home / "in/policies/p.yaml").write_text(
        "policy: p\nmatch: {runs: ['s:**']}\nkeep: [{last: 2}]\nlimits: {grace: none, trash: 1d}\n"
    )
    return shell


def settle(shell: Shell, text: str, *, policy: str = "") -> None:
    (shell.home / "in/lifecycle.yaml").write_text(text.replace("IN/", f"{shell.home}/"))
    if policy:
        (shell.home / "in/policies/q.yaml").write_text(f"policy: q\n{policy}\n")


def drive(shell: Shell, *commands: tuple[str, ...]) -> list[Said]:
    config = ("-c", str(shell.home / "in/lifecycle.yaml"))
    return [shell(*words, *config) for words in commands]


@pytest.mark.parametrize("where", URLS)
def test_an_address_with_a_secret_is_refused_and_not_repeated(planted: Shell, where: str):
    settle(planted, f"stores: {{s: {{url: '{URLS[where]}'}}}}\n")
    said = drive(planted, *COMMANDS)
    assert all(one.code for one in said) and search(planted, said) == []


@pytest.mark.parametrize("what", FILES)
def test_settings_that_are_wrong_are_not_quoted_with_the_secret(planted: Shell, what: str):
    settle(planted, FILES[what])
    said = drive(planted, *COMMANDS)
    assert all(one.code for one in said) and search(planted, said) == []


@pytest.mark.parametrize("policy", GLOBS)
def test_nor_are_policies(planted: Shell, policy: str):
    settle(planted, "stores: {s: IN/ckpt}\n", policy=policy)
    said = drive(planted, *COMMANDS)
    assert [one.code for one in said] == [2, 2, 1, 2]
    assert search(planted, said) == []


STORES = {
    "s3": "{url: 's3://bucket/x', endpoint_url: 'http://WHERE', addressing_style: path}",
    "s3, nobody there": "{url: 's3://bucket/x', endpoint_url: 'http://127.0.0.1:1', addressing_style: path}",
    "s3, no such host": "{url: 's3://bucket/x', endpoint_url: 'http://nosuch.invalid', addressing_style: path}",
    "gs": "{url: 'gs://bucket/x', endpoint_url: 'http://WHERE'}",
    "azure by key": "{url: 'abfs://c@acc.WHERE/x', endpoint_url: 'http://WHERE/acc'}",
    "azure by connection string": "{url: 'az://c/x'}",
}


@pytest.mark.parametrize("kind", STORES)
def test_a_store_that_refuses_and_repeats_what_it_was_sent(
    planted: Shell, echo: str, kind: str, monkeypatch: pytest.MonkeyPatch
):
    """Wrong host, no such name, a refused login: on the screen, in the log, in the record of ticks."""
    monkeypatch.setattr("time.sleep", lambda _s: None)  # between tries
    text = ENV["AZURE_STORAGE_CONNECTION_STRING"].replace("WHERE", echo)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    settle(
        planted,
        f"stores: {{s: {STORES[kind].replace('acc.WHERE', 'acc.dfs.core.windows.net')}}}\n".replace("WHERE", echo),
    )
    said = drive(planted, ("scan",), ("doctor",), ("--log", "json", "tick"), ("ticks", "--json"))
    assert [bool(one.code) for one in said] == [True, True, True, False], said
    assert search(planted, said) == []
    if kind in ("s3", "azure by key", "azure by connection string"):
        assert any("CANARY" in one or "Signature" in one or "SharedKey" in one for one in Echo.asked), "it was sent"


DATABASES = {
    "nobody there": "postgresql://ann:${PWQ}@127.0.0.1:1/life",
    "no such host": "postgresql://ann:${PWQ}@nosuch.invalid/life",
    "as an option": "postgresql://ann@127.0.0.1:1/life?password=${PWQ}",
    "not encoded": "postgresql://ann:${PW}@127.0.0.1:1/life",
    "odd port": "postgresql://ann:${PWQ}@127.0.0.1:99999/life",
}


@pytest.mark.postgres
@pytest.mark.parametrize("what", DATABASES)
def test_a_database_that_does_not_answer(planted: Shell, what: str):
    settle(planted, f"stores: {{s: IN/ckpt}}\ndatabase: '{DATABASES[what]}'\n")
    backup = ("index", "backup", str(planted.home / "copy"))
    said = drive(planted, *COMMANDS[:3], ("db", "upgrade"), backup, ("index", "restored"))
    assert all(one.code for one in said) and search(planted, said) == []


@pytest.mark.postgres
def test_a_server_that_refuses_the_login(planted: Shell, server_url: str):
    """A role that is not there, by a URL that carries a password."""
    url = re.sub(r"//[^@/]*@", "//nobody:${PWQ}@", server_url)
    settle(planted, f"stores: {{s: IN/ckpt}}\ndatabase: '{url}'\n")
    said = drive(planted, *COMMANDS[:3])
    assert all(one.code for one in said) and search(planted, said) == []


WHOLE = (
    ("plan", "--json"), ("tick", "--json"), ("hold", "s:pretrain/b", "-r", "mine"), ("holds", "--json"),
    ("explain", "s:pretrain/a/checkpoint-700"), ("ls", "--json"), ("ls", "--trash"), ("doctor", "--json"),
    ("--log", "json", "undo", "s:pretrain/a/checkpoint-100"), ("forecast", "--json"), ("--log", "text", "tick"),
    ("ticks", "--json"), ("index", "rebuild"), ("purge", "--yes"), ("db", "upgrade"),
)  # fmt: skip
"""A life in which all goes well."""


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_nothing_that_goes_well_has_a_secret(planted: Shell, kind: str, request: pytest.FixtureRequest):
    log = "log: {format: json, file: events.log}\n"
    database, url = "sqlite:///../state/index.db", ""
    if kind == "postgres":
        url = request.getfixturevalue("server_url")
        database = re.sub(r"//([^@/:]*)(:[^@/]*)?@", r"//\1:${PWQ}@", url)
    settle(planted, f"stores: {{s: IN/ckpt}}\ndatabase: '{database}'\ntick: {{apply: auto}}\n{log}")
    backup = ("index", "backup", str(planted.home / "copy"))
    said = []
    for words in (*WHOLE, backup):
        said += drive(planted, words)
        planted.clock.now_s += DAY_S
    assert [one.code for one in said] == [0] * len(said), [one for one in said if one.code]
    assert (planted.home / "copy").exists() and search(planted, said) == []
    assert [len(text) > 1000 for _, text in measured_text(planted, said)] == [True], (
        "metrics are among what is searched"
    )
    assert "CANARY" not in (planted.home / "in/events.log").read_text()
    if kind == "postgres":
        import psycopg

        with psycopg.connect(url, client_encoding="utf8") as server:
            for (table,) in server.execute(b"SELECT table_name FROM information_schema.tables"
                                           b" WHERE table_schema = current_schema()").fetchall():  # fmt: skip
                rows = server.execute(f"SELECT * FROM {table}".encode()).fetchall()
                assert "CANARY" not in repr(rows), table


PAGES = ("", "runs", "upcoming", "ticks", "findings", "tick?n=1", "healthz", "readyz", "metrics")
ANSWERS = ("stores", "runs", "upcoming", "findings", "ticks", "forecast")
PLACES = {
    "all is well": "stores: {s: IN/ckpt}",
    "a store refuses": f"stores: {{s: IN/ckpt, t: {STORES['s3']}}}",
    "no database": f"stores: {{s: IN/ckpt}}\ndatabase: '{DATABASES['nobody there']}'",
    "an address with keys": "stores: {s: 's3://AKIACANARY:CANARYuser/info@bucket/x'}",
}


@pytest.mark.postgres
@pytest.mark.parametrize("what", PLACES)
def test_pages_show_none(planted: Shell, echo: str, what: str, monkeypatch: pytest.MonkeyPatch):
    site = pytest.importorskip("tests.service.web.place", reason="needs the extra web")
    monkeypatch.setattr("time.sleep", lambda _s: None)  # between tries
    settle(planted, f"{PLACES['all is well']}\n")
    drive(planted, ("tick",))
    client = site.Place(planted.home / "in", planted).client()
    settle(planted, PLACES[what].replace("WHERE", echo) + "\n")
    drive(planted, ("tick",))
    for path in (*PAGES, *(f"api/v1/{word}" for word in ANSWERS)):
        answer = client.get(f"/{path}")
        told = answer.text + repr(answer.headers)
        assert [needle for needle in NEEDLES if needle in told] == [], path
        assert answer.status_code == 200 or what != "all is well", (path, answer.text)


def test_a_fault_of_ours_that_quotes_everything(planted: Shell, monkeypatch: pytest.MonkeyPatch):
    """An error that nobody foresaw, from a library: in one line, in a traceback, and while the service is at work."""
    everything = " ".join(
        f"{name}={value!r} https://u:{value}@h/?sig={value}" for name, value in ENV.items() if name in NAMED
    )

    def burst(*_args: object, **_more: object) -> None:
        raise RuntimeError(f"odd answer to {everything} Authorization: Bearer CANARYbearer")

    monkeypatch.setattr(LocalStore, "walk", burst)
    settle(planted, "stores: {s: IN/ckpt}\ndatabase: 'sqlite:///../state/index.db'\n")
    said = drive(planted, *COMMANDS, ("plan", "--json"))
    assert said[0].code == 1 and "fault of ours" in said[0].err
    assert search(planted, said) == []
    monkeypatch.setenv("LIFECYCLE_DEBUG", "1")
    hook = sys.excepthook
    try:
        with pytest.raises(RuntimeError) as caught:
            drive(planted, ("scan",))
        shown: list[str] = []
        monkeypatch.setattr(sys.stderr, "write", shown.append)
        sys.excepthook(caught.type, caught.value, caught.tb)
    finally:
        sys.excepthook = hook
        monkeypatch.undo()
    text = "".join(shown)
    assert "Traceback" in text and "in burst" in text and HIDDEN in text
    assert not [needle for needle in NEEDLES[:2] if needle in text]


# -- taking them out


SHAPES = [
    ("postgresql://ann:CANARY@h/d", "postgresql://ann:***@h/d"),
    ("see https://u:CAN/ARY@host/x and https://host/y", "see https://u:***@host/x and https://host/y"),
    ("GET /x?sv=1&sig=CANARY%2F&se=2", "GET /x?sv=1&sig=***&se=2"),
    ("{'X-Amz-Signature': 'CANARY', 'a': 1}", "{'X-Amz-Signature': '***', 'a': 1}"),
    ('{"access_token": "CANARY"}', '{"access_token": "***"}'),
    ("Authorization: Bearer CANARYCANARY", "Authorization: Bearer ***"),
    ("AccountName=a;AccountKey=CANARY==;X=1", "AccountName=a;AccountKey=***;X=1"),
    ("host=h password=CANARY user=u", "host=h password=*** user=u"),
    ("k -----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY----- e", "k *** e"),
]


@pytest.mark.parametrize(("text", "expected"), SHAPES)
def test_secrets_are_known_by_their_shape(text: str, expected: str):
    assert Secrets().hide(text) == expected
    assert Secrets().hide(expected) == expected, "once is enough"


HARMLESS = (
    "s3://bucket/run:1/step@100", "hot:pretrain/a/checkpoint-100", "file:///mnt/a:b@c", "tokens=7 and 3 tokens",
    "the index postgresql://ann@h/d cannot be reached", "secrets: see docs", "no password was asked for",
    "12:30 basic training", '{"id": "hot:a/token-5", "bytes": 5}', "best by eval/loss: 0.1",
)  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none_stays(text: str):
    assert Secrets().hide(text) == text


@pytest.mark.parametrize("name", sorted(NAMED))
def test_secrets_are_known_by_their_value(name: str):
    secrets = Secrets()
    for value in ("CANARY/+= %x", "CANARY'\"\\y", "sv=1&sig=CANARY%2Fxyz"):
        secrets.learn_env({name: value, "OTHER": "not one"})
        spelt = (value, quote(value), quote(value, safe=""), repr(value), json.dumps(value))
        for text in spelt:
            assert "CANARY" not in secrets.hide(f"odd {text} end, not one") and "not one" in secrets.hide(
                text + "not one"
            )
    assert "CANARY" not in repr(secrets)


def test_only_sentences_of_an_event_are_looked_through():
    """A run may be called whatever it likes, and JSON stays JSON."""
    facts = {"id": "hot:token=50257/step-1", "text": 'not "token=CANARY" here', "act": 1, "rule": ["sig=1"]}
    assert Secrets().hide_in(facts) == facts | {"text": 'not "token=***" here'}


def test_a_short_one_is_not_looked_for():
    secrets = Secrets()
    secrets.learn_env({"PGPASSWORD": "a"})
    secrets.learn_url("postgresql://u:abc@h/d?password=abc")
    assert secrets.hide("a bad abc") == "a bad abc"


def test_settings_do_not_show_the_database(planted: Shell):
    assert "database" not in repr(Settings((), "CANARY", (), None))  # type: ignore[arg-type]  # only for its looks
