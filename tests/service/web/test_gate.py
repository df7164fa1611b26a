"""The token and the sessions: what is let in, for how long, and what a cookie tells."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.errors import ConfigInvalid
from lifecycle.ports.secret import Reference
from lifecycle.service.web.gate import SESSION_S, Gate, read_token
from tests.cli.harness import StillClock

TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=80)


@given(token=TOKENS, other=st.text())
def test_only_the_token_itself_is_known(token: str, other: str):
    gate = Gate(token, StillClock().now_ns)
    assert gate.locked and gate.knows(token)
    assert gate.knows(other) is (other == token)


def test_where_there_is_no_token_nothing_passes_for_one():
    gate = Gate("", StillClock().now_ns)
    assert not gate.locked and not gate.knows("")


@given(token=TOKENS)
def test_a_session_ends_and_tells_nothing_of_the_token(token: str):
    clock = StillClock()
    gate = Gate(token, clock.now_ns)
    session = gate.open()
    assert gate.admits(session) and token not in session
    clock.now_s += SESSION_S - 1
    assert gate.admits(session)
    clock.now_s += 1
    assert not gate.admits(session)


@given(text=st.text() | st.from_regex(r"[0-9]{1,30}\.[0-9a-f]{0,128}", fullmatch=True))
def test_what_we_did_not_make_is_no_session(text: str):
    gate = Gate("x" * 16, StillClock().now_ns)
    assert not gate.admits(text)
    until, _, mark = gate.open().partition(".")
    assert not gate.admits(f"{int(until) + 1}.{mark}"), "a later end has another mark"


def test_a_session_of_another_process_is_none_of_ours():
    clock = StillClock()
    assert not Gate("x" * 16, clock.now_ns).admits(Gate("x" * 16, clock.now_ns).open())


def test_where_a_token_is_found(tmp_path: Path):
    (tmp_path / "secret").write_text("t" * 20 + "\n")
    (tmp_path / "link").symlink_to("secret")  # as Kubernetes shows a secret
    assert read_token(None, {}) == ""
    assert read_token(Reference("env", "T"), {"T": "t" * 16}) == "t" * 16
    assert read_token(Reference("file", f"{tmp_path}/link"), {}) == "t" * 20


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("", "no_token"),
        ("none", "no_token"),
        ("empty", "no_token"),
        ("short", "weak_token"),
        ("long", "weak_token"),
        ("blank", "weak_token"),
        ("bytes", "no_token"),
        (".", "no_token"),
    ],
)
def test_what_is_no_token_is_refused_and_not_shown(tmp_path: Path, file: str, code: str):
    wrong = {"empty": b"\n", "short": b"q" * 15, "long": b"q" * 5000, "blank": b"q q" * 9, "bytes": b"\xff" * 20}
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigInvalid) as e:
        read_token(Reference("file", str(tmp_path / file)) if file else Reference("env", "T"), {})
    assert e.value.code == code and "qq" not in str(e.value)
