"""Several receivers at once, a few tries each, one budget of time; and where secrets are read from."""

import hmac
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from lifecycle.hooks import deliver as deliver_module
from lifecycle.hooks.deliver import SIGNATURE, Hook, deliver
from lifecycle.hooks.secrets import NoSecret, secret_of
from lifecycle.ports.news import Sent
from lifecycle.ports.secret import Reference
from tests.hooks.receiver import CANARY, Receiver, listening, saying

TO = Reference("env", "HOOK")
QUICK = (0.01, 0.01, 0.01)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


def hook(url: str, name: str = "HOOK", **more: Any) -> Hook:
    env = {name: url, "KEY": f"key-{CANARY}", "TOKEN": f"token-{CANARY}"}
    return Hook(Reference("env", name), env=env, **{"pauses_s": QUICK, **more})


def test_an_error_of_theirs_is_tried_again(receiver: Receiver):
    receiver.answers = [(500, {}), (429, {"Retry-After": "0"})]
    assert deliver([(hook(receiver.url), b"{}")]) == [Sent(True, "localhost", 200, 3)]
    assert [got.body for got in receiver.got] == [b"{}"] * 3


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_what_they_refuse_is_not(receiver: Receiver, status: int):
    receiver.answers = [(status, {})]
    assert deliver([(hook(receiver.url), b"{}")]) == [Sent(False, "localhost", status, 1, f"answered {status}")]


def test_a_redirect_is_told_of(receiver: Receiver):
    receiver.answers = [(302, {"Location": f"http://169.254.169.254/{CANARY}"})]
    (sent,) = deliver([(hook(receiver.url), b"{}")])
    assert sent.text == "answered 302: it sends us elsewhere, and redirects are not followed" and sent.tries == 1


def test_after_the_last_try_it_is_given_up(receiver: Receiver):
    receiver.answers = [(503, {})] * 9
    assert deliver([(hook(receiver.url), b"{}")]) == [Sent(False, "localhost", 503, 4, "answered 503")]
    assert len(receiver.got) == 4


def test_who_asks_for_more_time_than_there_is_gets_no_second_try(receiver: Receiver):
    receiver.answers = [(429, {"Retry-After": "3600"})]
    began_s = monotonic()
    assert deliver([(hook(receiver.url), b"{}")]) == [Sent(False, "localhost", 429, 1, "answered 429")]
    assert monotonic() - began_s < 30


def test_nobody_there_is_tried_again():
    (sent,) = deliver([(hook(f"http://127.0.0.1:1/{CANARY}"), b"{}")])
    assert (sent.done, sent.tries, sent.text) == (False, 4, "Connection refused")


def test_a_slow_receiver_holds_up_no_other(receiver: Receiver):
    """Nothing comes from the first one for as long as anybody waits; the second one has everything meanwhile."""
    with saying([]) as port:
        slow = hook(f"http://localhost:{port}/{CANARY}", "SLOW")
        letters = [(slow, b"1"), (slow, b"2"), (hook(receiver.url), b"3"), (hook(receiver.url), b"4")]
        sent = deliver(letters, lambda: len(receiver.got) == 2, budget_s=60)
        assert [got.body for got in receiver.got] == [b"3", b"4"]
        assert not sent[0].done and not sent[1].done and sent[2].done
        assert sent[0].text == "no answer yet, so it may have arrived; asked to stop"


def test_the_budget_ends_all_of_it():
    held = Event()

    def hangs(*_: object, **__: object) -> Sequence[tuple[Any, ...]]:
        held.wait(60)
        return []

    (sent,) = deliver([(hook(f"https://a.example/{CANARY}", resolve=hangs), b"{}")], budget_s=0.1)
    held.set()
    assert sent.text == "no answer yet, so it may have arrived; the 0 s for all receivers are over"


def test_what_was_answered_before_the_budget_was_over_is_told(receiver: Receiver):
    receiver.answers = [(500, {})] * 9
    (sent,) = deliver([(hook(receiver.url, pauses_s=(60.0,)), b"{}")], budget_s=0.5)
    assert sent.text == "answered 500; the 0 s for all receivers are over" and sent.status == 500


def test_who_is_asked_to_stop_waits_for_nobody(receiver: Receiver):
    receiver.answers = [(500, {})] * 9
    began_s = monotonic()
    (sent,) = deliver([(hook(receiver.url, pauses_s=(600.0,)), b"{}")], lambda: bool(receiver.got), budget_s=600)
    assert not sent.done and sent.text.endswith("asked to stop") and monotonic() - began_s < 60


def test_a_fault_of_ours_is_told_without_its_words(receiver: Receiver, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(deliver_module, "post", broken)
    (sent,) = deliver([(hook(receiver.url), b"{}")])
    assert (sent.text, sent.tries) == ("a fault of ours, RuntimeError", 1)


def test_the_body_is_signed_and_the_token_shown(receiver: Receiver):
    one = hook(receiver.url, sign=Reference("env", "KEY"), token=Reference("env", "TOKEN"))
    assert deliver([(one, b'{"a": 1}')])[0].done
    ((_, headers, body),) = receiver.got
    mine = hmac.new(f"key-{CANARY}".encode(), body, sha256).hexdigest()
    assert hmac.compare_digest(headers[SIGNATURE], f"sha256={mine}")
    assert headers["Authorization"] == f"Bearer token-{CANARY}"
    assert CANARY not in repr(one)


def test_without_its_key_nothing_is_sent(receiver: Receiver):
    (sent,) = deliver([(hook(receiver.url, sign=Reference("env", "OTHER")), b"{}")])
    assert sent == Sent(False, text="the variable OTHER is not set") and receiver.got == []


# -- where secrets stand


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({}, "the variable HOOK is not set"),
        ({"HOOK": ""}, "nothing stands in env:HOOK"),
        ({"HOOK": " \n"}, "nothing stands in env:HOOK"),
        ({"HOOK": f"{CANARY}\nX: y"}, "not one line of ASCII"),
        ({"HOOK": f"{CANARY}\u00e9"}, "not one line of ASCII"),
    ],
)
def test_a_variable_that_holds_none(env: dict[str, str], why: str):
    with pytest.raises(NoSecret, match=why) as error:
        secret_of(TO, env)
    assert CANARY not in str(error.value)


def test_a_file_as_kubernetes_mounts_it(tmp_path: Path):
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "hook").write_text(f"https://a.example/{CANARY}\r\n")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "hook").symlink_to("..data/hook")
    assert secret_of(Reference("file", str(tmp_path / "hook")), {}) == f"https://a.example/{CANARY}"


def test_a_file_that_holds_none(tmp_path: Path):
    def why(path: Path) -> str:
        with pytest.raises(NoSecret) as error:
            secret_of(Reference("file", str(path)), {})
        return str(error.value)

    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_text(CANARY * 1000)
    (tmp_path / "bytes").write_bytes(CANARY.encode() + b"\xff")
    assert "No such file" in why(tmp_path / "none")
    assert "not a regular file" in why(tmp_path / "fifo")
    assert "Is a directory" in why(tmp_path) or "not a regular file" in why(tmp_path)
    assert "larger than 8192 bytes" in why(tmp_path / "large")
    assert "not one line of ASCII" in why(tmp_path / "bytes")
    assert "not a path" in why(tmp_path / "a\0b")
