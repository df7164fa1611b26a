"""Names that no screen can show, the whole way and in every store: seen, typed back as shown, held, dropped, undone."""

import json
import os
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from lifecycle.core.units import escape
from tests.cli.harness import DAY_S, NOW_S, Said, Shell
from tests.clouds import AZURE_KEY, Gcs, Strict
from tests.servers import Server

NAMES = (
    "plain", "a\nb", "tab\tx", "\x1b[31mred", "x\u202egnp.exe", "e\u0301", "it's \"q\" $(x) `y`", "-rf", "st*r?[z]",
    "b\\x0a", "\\", "100%2Fx", "ha#sh", "dot.", " lead", "trail ", "日本", "n" * 255, "\u00ad",
)  # fmt: skip
BYTES = ("bad\udcff", "\udc9b", "ctl\x01\x7f")
"""Names of files that may be no text; object stores have text."""
FEW = ("plain", "a\nb", "x\u202egnp.exe", "st*r?[z]", "b\\x0a", "100%2Fx", "\x9b")
"""Where each request costs."""
SLASHES = ("a//b", "/first", "x/./y", "x/../y", "last/")
"""Names that only a flat store can have."""
POLICY = """\
policy: one
keep: [{last: 1}]
limits: {deletes_max: 1000, delete_fraction_max: 1.0}
"""
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2066-\u2069\udc80-\udcff]")


class Yard(NamedTuple):
    """One store of some kind, with a hand behind its back."""

    settings: str
    put: Callable[[str, bytes], None]
    lying: Callable[[], set[str]]
    names: tuple[str, ...]
    least: int
    """How many of them it takes; some servers refuse some names, or keep them under others."""
    refused: re.Pattern[str] = re.compile("(?!)")
    """Names that its interface cannot say: they are seen, and whatever would act on them is refused."""


@pytest.fixture
def directory(tmp_path: Path) -> Yard:
    root = tmp_path / "ckpt"

    def put(key: str, content: bytes) -> None:
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (NOW_S - DAY_S, NOW_S - DAY_S))

    def keys() -> set[str]:
        files = (p for p in root.rglob("*") if p.is_file())
        return {p.relative_to(root).as_posix() for p in files if ".lifecycle" not in p.parts}

    return Yard(f"{{url: {root}}}", put, keys, (*NAMES, *BYTES), len(NAMES))


@pytest.fixture
def s3(seaweed: Server) -> Yard:
    bucket, prefix = seaweed.new_bucket(), "p/"

    def put(key: str, content: bytes) -> None:
        seaweed.client.put_object(Bucket=bucket, Key=prefix + key, Body=content)

    def keys() -> set[str]:
        pages = seaweed.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = {item["Key"].removeprefix(prefix) for page in pages for item in page.get("Contents", ())}
        return {key for key in found if not key.startswith(".lifecycle/")}

    return Yard(f'{{url: "s3://{bucket}/p", endpoint_url: "{seaweed.endpoint_url}"}}', put, keys, (*FEW, *SLASHES), 6)


@pytest.fixture
def gcs(fake_gcs: Gcs, strict_gcs: Strict) -> Yard:
    prefix = f"{uuid.uuid4().hex[:12]}/"

    def put(key: str, content: bytes) -> None:
        name = quote(prefix + key, safe="")
        path = f"/upload/storage/v1/b/{fake_gcs.bucket}/o?uploadType=media&name={name}"
        fake_gcs.ask("POST", path, body=content, headers={"Content-Type": "application/octet-stream"})

    def keys() -> set[str]:
        listed = fake_gcs.ask("GET", f"/storage/v1/b/{fake_gcs.bucket}/o?prefix={prefix}").json()
        found = {item["name"].removeprefix(prefix) for item in listed.get("items", ())}
        return {key for key in found if not key.startswith(".lifecycle/")}

    url = f"gs://{fake_gcs.bucket}/{prefix.rstrip('/')}"
    return Yard(f'{{url: "{url}", endpoint_url: "{strict_gcs.url}"}}', put, keys, (*FEW, *SLASHES), 10)


@pytest.fixture
def azure(azurite: str) -> Yard:
    from azure.storage.blob import BlobServiceClient

    service: Any = BlobServiceClient(azurite, AZURE_KEY)
    name = f"c-{uuid.uuid4().hex[:16]}"
    container = service.create_container(name)

    def keys() -> set[str]:
        return {blob.name for blob in container.list_blobs() if not blob.name.startswith(".lifecycle/")}

    settings = f'{{url: "abfs://{name}@devstoreaccount1.dfs.core.windows.net", endpoint_url: "{azurite}"}}'
    return Yard(settings, container.upload_blob, keys, (*FEW, *SLASHES), 6, re.compile(r".*(\\|/\.\.?/).*"))


@pytest.fixture(
    params=[
        "directory",
        "s3",
        pytest.param("gcs", marks=pytest.mark.gcs),
        pytest.param("azure", marks=pytest.mark.azurite),
    ]
)
def yard(request: pytest.FixtureRequest) -> Yard:
    found: Yard = request.getfixturevalue(request.param)
    return found


def save(yard: Yard, run: str) -> None:
    """Two checkpoints of the Trainer's."""
    for step in (100, 200):
        state = json.dumps({"global_step": step}).encode()
        for name, content in (("model.safetensors", b"w"), ("trainer_state.json", state)):
            yard.put(f"{run}/checkpoint-{step}/{name}", content)


def safely(said: Said) -> Said:
    assert not UNSAFE.search(said.out + said.err), "a name reaches the screen as it is"
    return said


@pytest.mark.timeout(400)
def test_a_name_is_seen_typed_back_held_dropped_and_undone(shell: Shell, yard: Yard):
    (shell.home / "lifecycle.yaml").write_text(f"stores:\n  hot: {yard.settings}\npolicies: [policies]\n")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/one.yaml").write_text(POLICY)
    for run in yard.names:
        with suppress(Exception):  # a server may refuse a name, or keep it under another one
            save(yard, run)
    stored = yard.lying()
    end = "/checkpoint-200/trainer_state.json"
    runs = sorted(key.removesuffix(end) for key in stored if key.endswith(end))
    assert len({*runs} & {*yard.names}) >= yard.least, {*yard.names} - {*runs}
    assert safely(shell("scan")).code == 0

    listed = safely(shell("ls"))
    first = {line.split("  ")[0].strip() for line in listed.out.splitlines()}
    assert first >= {escape(f"hot:{run}").strip() for run in runs}
    assert {run["id"] for run in shell("ls", "--json").json["runs"]} == {f"hot:{run}" for run in runs}
    for run in runs:
        one = f"hot:{run}/checkpoint-100"
        inside = shell("ls", escape(f"hot:{run}"), "--json").json["checkpoints"]
        assert [c["id"] for c in inside] == [one, f"hot:{run}/checkpoint-200"], run

    for run in runs[:3]:
        one = f"hot:{run}/checkpoint-100"
        for typed in (one, escape(one)):
            assert shell("explain", typed, "--json").json["id"] == one
        assert escape(one) in safely(shell("explain", escape(one))).out
    held, *others = runs[1:]
    assert safely(shell("hold", escape(f"hot:{held}/checkpoint-100"), "--reason", "for the paper")).code == 0
    safely(shell("plan"))
    plan = shell("plan", "--json").json
    assert {a["checkpoint"] for a in plan["actions"]} == {f"hot:{run}/checkpoint-100" for run in (runs[0], *others)}
    done = safely(shell("apply", plan["file"], "--yes"))
    refused = {run for run in others if yard.refused.fullmatch(run)}
    assert done.code == (3 if refused else 0), done.out
    left = {run for run in runs if f"{run}/checkpoint-100/trainer_state.json" in yard.lying()}
    assert left == {held, *refused}
    assert all(f"{run}/checkpoint-200/trainer_state.json" in yard.lying() for run in runs)
    safely(shell("ls", "--trash"))
    gone = [run for run in runs if run not in left]
    for run in (gone[1], gone[-1]):
        back = shell("undo", escape(f"hot:{run}/checkpoint-100"), "--json").json
        assert back["restored"] == [f"hot:{run}/checkpoint-100"]
    assert safely(shell("undo", plan["plan"][:12])).code == 0
    assert yard.lying() == stored


def test_what_may_be_two_names_is_asked_back(shell: Shell, directory: Yard):
    (shell.home / "lifecycle.yaml").write_text(f"stores:\n  hot: {directory.settings}\npolicies: [policies]\n")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/one.yaml").write_text(POLICY)
    for run in ("a\nb", "a\\x0ab", "\x9b", "\udc9b"):
        save(directory, run)
    assert shell("scan").code == 0
    for typed in (r"a\x0ab", r"\x9b"):
        said = shell("explain", f"hot:{typed}/checkpoint-100")
        assert said.code == 2 and "may be two names" in said.err and "as two" in said.err
    for run, typed in (("a\nb", "a\nb"), ("a\\x0ab", r"a\\x0ab"), ("\x9b", "\x9b"), ("\udc9b", "\udc9b")):
        one = f"hot:{run}/checkpoint-100"
        assert shell("explain", f"hot:{typed}/checkpoint-100", "--json").json["id"] == one
