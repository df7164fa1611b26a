"""The log: one line for each write of a journal row, whatever fails, in both forms and on both kinds of index."""

import json
import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lifecycle.cli.log import Log, silence_others
from lifecycle.config.log import FORMS, LEVELS, Logging
from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Shape
from lifecycle.errors import LifecycleError, StoreError
from lifecycle.index.journal import IndexJournal, Outcome
from lifecycle.ports import JournalRow
from lifecycle.ports.ticks import Stage
from lifecycle.render.log import Event, act_event, failure_event, stage_event, write_json, write_text
from lifecycle.render.redact import Secrets
from lifecycle.stores.posix_trash import LocalTrash
from tests.cli.harness import DAY_S, Said, Shell, StillClock, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden
from tests.witness import Seen, seen, watch

PAGE = (Path(__file__).parents[2] / "docs/logs.md").read_text()
POLICY = """policy: scratch
match: {runs: ['hot:**']}
keep: [{last: 2}]
place: [{kept_by: last, on: [hot, warm]}]
limits: {grace: none, trash: 1d}
"""
CONFIG = """stores: {{hot: {{url: {home}/ckpt}}, warm: {{url: {home}/warm}}}}
database: {database}
tick: {{apply: auto, purge: auto}}
"""


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    if getattr(request, "param", "sqlite") == "postgres":
        return str(request.getfixturevalue("server_url"))
    return tmp_path / "state" / "index.db"


@pytest.fixture
def site(shell: Shell, database: Path | str) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    (shell.home / "policies/p.yaml").write_text(POLICY)
    shell.env["INDEX"] = f"sqlite:///{database}" if isinstance(database, Path) else database
    (shell.home / "lifecycle.yaml").write_text(CONFIG.format(home=shell.home, database="${INDEX}"))
    assert shell("scan").code == 0
    watch(database)
    return shell


def lines(said: Said, form: str = "json") -> list[dict[str, Any]]:
    """The events of a log; nothing else stands on standard error."""
    return [json.loads(line) if form == "json" else parsed(line) for line in said.err.splitlines()]


def parsed(line: str) -> dict[str, Any]:
    """A line of text as it says it can be read: words, or JSON."""
    found: dict[str, Any] = {}
    while line:
        name, _, line = line.partition("=")
        if line[:1] in ('"', "[", "{"):
            found[name], end = json.JSONDecoder().raw_decode(line)
            line = line[end:].removeprefix(" ")
            continue
        word, _, line = line.partition(" ")
        number = re.fullmatch(r"-?\d+(\.\d+)?", word) and name not in ("id", "store", "run", "plan")
        found[name] = json.loads(word) if number or word in ("true", "false") else word
    return found


def acts(found: list[dict[str, Any]]) -> Seen:
    return Counter((e["act"], e["outcome"], e.get("reason", "")) for e in found if e["event"] == "act")


def fail(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, error: Exception, *, after: bool) -> None:
    """The second call fails, before it has done anything or after it has done all."""
    real, calls = getattr(owner, name), [0]

    def once(self: Any, *args: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2 and not after:
            raise error
        value = real(self, *args, **more)
        if calls[0] == 2:
            raise error
        return value

    monkeypatch.setattr(owner, name, once)


IO, GONE = StoreError("no answer in time", code="io_error"), LifecycleError("disk I/O error", code="index_failed")
FAULTS: dict[str, tuple[type, str, Exception, bool] | None] = {
    "none": None,
    "retire, before": (LocalTrash, "retire", IO, False),
    "retire, after": (LocalTrash, "retire", IO, True),
    "start, before": (IndexJournal, "start", GONE, False),
    "start, after": (IndexJournal, "start", GONE, True),
    "end, before": (IndexJournal, "end", GONE, False),
    "end, after": (IndexJournal, "end", GONE, True),
    "purge, before": (LocalTrash, "purge", IO, False),
    "restore, after": (LocalTrash, "restore", IO, True),
}


SERVED = ("none", "start, after")
"""Above the database the code is the same: two of them show that it is."""

BOTH = [
    *(pytest.param(fault, "sqlite") for fault in FAULTS),
    *(pytest.param(fault, "postgres", marks=pytest.mark.postgres) for fault in SERVED),
]


@pytest.mark.parametrize(("fault", "database"), BOTH, indirect=["database"])
def test_there_is_one_event_for_each_write_of_a_row(
    site: Shell, database: Path | str, fault: str, monkeypatch: pytest.MonkeyPatch
):
    """Copies, retires, an undo, a purge and what recovery closes, with a fault somewhere among them."""
    form = "text" if fault in ("none", "end, after") else "json"
    site.env["LIFECYCLE_LOG"] = form
    told: Seen = Counter()
    stages = 0
    with monkeypatch.context() as patch:
        if what := FAULTS[fault]:
            fail(patch, what[0], what[1], what[2], after=what[3])
        for words in (("tick",), ("undo", "hot:pretrain/a/checkpoint-100"), ("tick",)):
            said = site(*words)
            told += acts(found := lines(said, form))
            stages += sum(event["event"] == "stage" for event in found)
            site.clock.now_s += 2 * DAY_S
    assert stages >= 14, "each stage of each tick"
    told += acts(lines(site("tick"), form))
    assert told == seen(database)
    assert {outcome for _, outcome, _ in told} >= {"started", "done", "purged"}
    assert told.total() > 12


def test_as_it_is_shown(shell: Shell, golden: Golden, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.flows.tick._fullness", lambda _sample: "; 61.3% of 500 TB used")
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    small_tree(shell.home / "ckpt")
    (shell.home / "p.yaml").write_text("policy: p\nkeep: [{last: 6}]\nlimits: {grace: none}\n")
    config = "stores: {hot: HOME/ckpt}\npolicies: p.yaml\ntick: {apply: auto}\nlog: {format: text}\n"
    (shell.home / "lifecycle.yaml").write_text(config.replace("HOME", str(shell.home)))
    shell.env["LIFECYCLE_LOG"] = ""
    assert shell("tick", "--json").code == 0
    found = re.sub(r"(trash_id=)[0-9a-f]{24}", r"\1<name>", shell.transcript.partition("}\ntime=")[2])
    golden(GOLD / "log.txt", f"$ lifecycle tick --json\ntime={found}")


def test_what_stands_in_a_line(site: Shell):
    site.env["LIFECYCLE_LOG"] = "json"
    found = lines(site("tick", "--json"))
    assert [e["event"] for e in found if e["event"] != "act"] == ["tick_begun", *["stage"] * 8, "tick_ended"]
    assert {e["tick"] for e in found} == {1} and {e["level"] for e in found} == {"info"}
    assert all(re.fullmatch(r"2040-01-01T\d\d:\d\d:\d\d\.\d{6}Z", e["time"]) for e in found)
    begun, done = [e for e in found if e.get("id") == "hot:pretrain/a/checkpoint-100"]
    assert (begun["outcome"], done["outcome"]) == ("started", "done") and begun["act"] == done["act"]
    assert done["verb"] == "retire" and done["rule"] == ["scratch"] and done["run"] == "pretrain/a"
    assert done["bytes"] > 9000 and done["duration_s"] == 0 and "duration_s" not in begun
    copied = next(e for e in found if e.get("verb") == "copy" and e["outcome"] == "done")
    assert copied["to"] == "warm" and len(copied["copy_id"]) > 10 and "trash_id" not in copied
    assert {e["plan"] for e in found if "plan" in e} == {found[-1]["plan"]}


ROW = JournalRow(
    id=7,
    plan="p" * 8,
    trash_id="t",
    action=Action(Verb.RETIRE, "hot", "r\n", "r\n/a", Shape.DIR, (), None, "print", 1, 5, 1, 60, ("p",)),
    started_at_ns=2 * 10**9,
    ended_at_ns=5 * 10**9,
    outcome="failed",
    note='x\ntime=2030-01-01T00:00:00Z level=info event=act act=8 outcome=done "quoted" \x1b[31m \udcff \u202e',
    fence=1,
    host="box",
    engine="1",
)


@pytest.mark.parametrize("write", [write_json, write_text])
def test_no_name_can_forge_a_line(write: Callable[[Event, dict[str, object]], str]):
    line = write(act_event(ROW), {"tick": 3, "lines_lost": None})
    assert line.isascii() and line.isprintable(), "no newline, no escape, nothing that turns the line"
    found = json.loads(line) if write is write_json else parsed(line)
    assert found["act"] == 7 and found["level"] == "warning" and found["duration_s"] == 3 and found["tick"] == 3
    assert "act=8" in found["reason"] and "lines_lost" not in found
    if write is write_json:
        assert found["reason"] == ROW.note and found["run"] == "r\n", "exactly as it is"


def test_only_one_module_writes_the_journal():
    """So whoever hears of rows there hears of all of them."""
    package = Path(__file__).parents[2] / "lifecycle"
    writing = re.compile(r"\b(insert|update|delete|add)\((connection, )?journal\b")
    assert [p.name for p in package.rglob("*.py") if writing.search(p.read_text())] == ["journal.py"]


def test_a_file_of_its_own(site: Shell):
    """Appended to, its owner's alone, at the level that is wished; its path starts at the settings."""
    config = site.home / "lifecycle.yaml"
    plain = config.read_text()
    config.write_text(plain + "log: {file: log.json}\n")
    assert site("tick").err == "" == site("tick").err
    path = site.home / "log.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert {e["tick"] for e in found} == {1, 2}
    path.chmod(0o640)
    config.write_text(plain + "log: {file: log.json, level: warning}\n")
    site("tick")
    assert site("undo", "hot:nothing").code == 1
    *_, last = more = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(more) == len(found) + 1 and (last["event"], last["code"]) == ("failed", "not_in_trash")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "who has set a mode has meant it"
    (site.home / "log.json").rename(site.home / "log.1")
    (site.home / "log.json").symlink_to("/etc/hostname")
    assert site("undo", "hot:nothing").code == 1
    assert Path("/etc/hostname").stat().st_size < 300


def test_where_the_log_cannot_be_written_nothing_more_is_begun(site: Shell, database: Path | str):
    """A full disk under the log (V5 is not at stake: the journal has the row), and a log that comes back."""
    before = sorted(p.name for p in (site.home / "ckpt/pretrain/a").iterdir())
    (site.home / "lifecycle.yaml").open("a").write("log: {file: /dev/full}\n")
    said = site("tick")
    assert said.code == 1 and "could not be written" in said.err
    assert sorted(p.name for p in (site.home / "ckpt/pretrain/a").iterdir()) == before
    assert seen(database).total() == 1, "one row, whose act was not begun"
    site.env["LIFECYCLE_LOG"] = "none"
    assert site("tick").code == 0 and len(list((site.home / "ckpt/pretrain/a").iterdir())) == 2
    assert (1, "failed", "never begun") in seen(database)


def test_how_many_lines_were_lost_is_told_by_the_next_one(site: Shell, monkeypatch: pytest.MonkeyPatch):
    site.env["LIFECYCLE_LOG"] = "json"
    put, calls = Log._put, [0]

    def sometimes(self: Log, line: str) -> None:
        calls[0] += 1
        if calls[0] in (3, 4):  # lines of stages
            raise OSError(28, "No space left")
        put(self, line)

    monkeypatch.setattr(Log, "_put", sometimes)
    said = site("tick")
    told = [json.loads(line) for line in said.err.splitlines() if line[0] == "{"]
    assert [e["lines_lost"] for e in told if "lines_lost" in e] == [2]
    assert said.code == 1 and "2 lines of the log could not be written" in said.err


def test_a_file_is_never_half_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = Log(Logging("json", "info", str(tmp_path / "log")), Secrets(), StillClock())
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    with pytest.raises(LifecycleError, match="cannot be written"):
        log.act(ROW)
    monkeypatch.setattr(os, "write", real)
    log.act(ROW)
    log.close()
    first, second = (tmp_path / "log").read_text().splitlines()
    assert len(first) == 10 and json.loads(second)["lines_lost"] == 1


@pytest.mark.parametrize(
    ("words", "env", "why"),
    [(("--log", "xml"), {}, "no form"), ((), {"LIFECYCLE_LOG": "yes"}, "no form")],
)
def test_what_is_no_form_is_refused(site: Shell, words: tuple[str, ...], env: dict[str, str], why: str):
    site.env |= env
    said = site(*words, "tick")
    assert said.code == 2 and why in said.err and "json, text, none" in said.err


def test_what_is_typed_goes_before_the_rest(site: Shell):
    site.env["LIFECYCLE_LOG"] = "none"
    assert lines(site("--log", "json", "tick"))[0]["event"] == "tick_begun"
    save_hf(site.home / "ckpt" / "pretrain" / "c", 1, DAY_S)
    assert site("tick").err == ""


def test_libraries_say_nothing_by_themselves(capsys: pytest.CaptureFixture[str]):
    """Python shows warnings of anybody who has no handler, and urllib3's carry whole addresses."""
    root = logging.getLogger()
    kept, root.handlers = root.handlers, []
    try:
        silence_others()
        silence_others()
        assert len(root.handlers) == 1
        for name in ("urllib3.connectionpool", "botocore.auth", "azure.core", "sqlalchemy.engine", "google.auth"):
            logging.getLogger(name).warning("GET /x?sig=canary")
    finally:
        root.handlers = kept
    assert capsys.readouterr() == ("", "")


def test_every_event_and_fact_is_on_the_page():
    started = ROW._replace(outcome="started", ended_at_ns=None)
    events = [
        act_event(started),
        act_event(ROW),
        stage_event(Stage("scan", "hot", 3, "x", "y"), 0),
        failure_event(LifecycleError("x", hint="y"), 0),
    ]
    words = {name for event in events for name in (event.name, *event.facts)} | {*FORMS, *LEVELS}
    words |= {"copy_id", "tick_begun", "tick_ended", "lines_lost", "LIFECYCLE_LOG", "log_failed", *Outcome}
    assert {word for word in words if f"`{word}`" not in PAGE} == set()
