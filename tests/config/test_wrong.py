"""What a wrong file is answered with, word for word; `REWRITE=1 pytest tests/config/test_wrong.py` rewrites it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.config.compile import load_settings
from lifecycle.config.load import parse
from lifecycle.config.policies import compile_policy
from lifecycle.errors import ConfigInvalid

HERE = Path(__file__).parent
ENV = {"EMPTY": "", "SECRET_URL": "s3://k:secret@b/x"}


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which roots are too broad depends on whose home is where."""
    monkeypatch.setenv("HOME", "/root")


def cases(file: str) -> list[tuple[str, str]]:
    blocks = (HERE / file).read_text().split("#### input\n")[1:]
    return [(text, answer) for text, _, answer in (block.partition("#### error\n") for block in blocks)]


URLS = {"hot": "/mnt/ckpt", "warm": "s3://bucket/ckpt", "spread": "roots:file:///mnt/n1+file:///mnt/n2"}


def rewrite(file: str, answer: Callable[[str], str]) -> None:
    blocks = [f"#### input\n{text}#### error\n{answer(text)}\n" for text, _ in cases(file)]
    (HERE / file).write_text("".join(blocks))


def policy_answer(text: str) -> str:
    try:
        policy = compile_policy(parse(text.encode(), "p.yaml"), URLS.keys(), urls=URLS)
    except ConfigInvalid as error:
        assert error.exit_code == 2
        return str(error)
    return f"ACCEPTED {policy}"


def settings_answer(text: str, base: Path) -> str:
    (base / "policies").mkdir(exist_ok=True)
    (base / "policies" / "a.yaml").write_text("policy: a\n")
    (base / "lifecycle.yaml").write_text(text)
    before = Path.cwd()
    os.chdir(base)
    try:
        settings = load_settings(Path("lifecycle.yaml"), ENV)
    except ConfigInvalid as error:
        return f"{error.code} {error}"
    finally:
        os.chdir(before)
    return f"ACCEPTED {settings}"


@pytest.mark.parametrize(("text", "answer"), cases("wrong_policies.txt"))
def test_a_wrong_policy_is_told_where_and_what(text: str, answer: str):
    assert policy_answer(text) + "\n" == answer


@pytest.mark.parametrize(("text", "answer"), cases("wrong_settings.txt"))
def test_wrong_settings_are_told_where_and_what(text: str, answer: str, tmp_path: Path):
    assert settings_answer(text, tmp_path) + "\n" == answer


def test_the_tables_accept_nothing_and_tell_no_secret():
    answers = [answer for file in ("wrong_policies.txt", "wrong_settings.txt") for _, answer in cases(file)]
    assert len(answers) > 200
    assert [a for a in answers if a.startswith("ACCEPTED") or "secret" in a or "sec/ret" in a] == []
    assert [a for a in answers if ".yaml" not in a and "/nowhere" not in a and "nowhere:" not in a] == []


def test_rewriting_was_asked_for(tmp_path: Path):
    if not os.environ.get("REWRITE"):
        pytest.skip("set REWRITE=1 to rewrite the answers")
    rewrite("wrong_policies.txt", policy_answer)
    rewrite("wrong_settings.txt", lambda text: settings_answer(text, tmp_path))


@pytest.mark.parametrize(
    ("url", "name", "why"),
    [
        ("gs://b/c", "ARCHIVE", ""),
        ("gcs://b/c", "NEARLINE", ""),
        ("gs://b/c", "GLACIER", "no storage class that a copy can be brought to"),
        ("gs://b/c", "COLDLIN", "did you mean COLDLINE"),
        ("s3://b/c", "NEARLINE", "no storage class that a copy can be brought to"),
        ("s3://b/c", "STANDARD", ""),
        ("az://b/c", "Cool", "which sets a tier under no condition"),
        ("abfs://b@a.dfs.core.windows.net/c", "Archive", "which sets a tier under no condition"),
    ],
)
def test_each_cloud_has_classes_of_its_own(url: str, name: str, why: str):
    text = f"policy: p\nplace:\n  - {{on: [cold@{name}]}}\n".encode()
    with contextlib.ExitStack() as stack:
        if why:
            stack.enter_context(pytest.raises(ConfigInvalid, match=why))
        policy = compile_policy(parse(text, "p.yaml"), {"cold"}, urls={"cold": url})
        assert policy.place[0].on == (f"cold@{name}",)
