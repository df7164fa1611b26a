"""The pages with their index on a server; where that is not there, they say so and no secret."""

from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf
from tests.service.web.place import Place

pytestmark = pytest.mark.postgres


def placed(home: Path, database: str) -> Place:
    place = Place(home, Shell(home))
    save_hf(home / "ckpt/a", 1, DAY_S, now_s=NOW_S)
    (home / "policies").mkdir()
    (home / "policies/all.yaml").write_text("policy: all\n")
    place.config.write_text(f"stores: {{hot: {{url: {home}/ckpt}}}}\ndatabase: {database}\n")
    return place


def test_all_of_it_is_read_from_a_server(tmp_path: Path, server_url: str):
    place = placed(tmp_path, "${INDEX}")
    place.shell.env["INDEX"] = server_url
    assert place.shell("tick", "-c", str(place.config)).code == 0
    client = place.client()
    for path in (
        "",
        "runs",
        "run?id=hot:a",
        "checkpoint?id=hot:a/checkpoint-1",
        "upcoming",
        "ticks",
        "findings",
        "metrics",
    ):
        assert client.get(f"/{path}").status_code == 200, path
    assert client.get("/readyz").text == "ok\n"
    assert client.get("/api/v1/runs").json()["runs"] == place.told("ls")["runs"]


def test_a_server_that_is_not_there_is_told_of_without_the_password(tmp_path: Path):
    place = placed(tmp_path, f"postgresql://ada:${{PW}}@/life?host={tmp_path}/none")
    place.shell.env["PW"] = "canary"
    client = place.client()
    for path in ("", "runs", "run?id=hot:a", "api/v1/stores", "metrics"):
        answer = client.get(f"/{path}")
        assert answer.status_code == 503 and "index_unreachable" in answer.text and "canary" not in answer.text
    assert client.get("/readyz").text == "index_unreachable\n"
