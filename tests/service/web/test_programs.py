"""The JSON API: the same values as the commands' own, in pages that together are all of it."""

from typing import Any

import pytest

from lifecycle.service.web.kept import Kept
from tests.service.web.place import HOSTILE, Place


def get(place: Place, path: str, **words: Any) -> Any:
    answer = place.client().get(f"/api/v1/{path}", params=words)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert answer.content.isascii()
    return answer.json()


def test_runs_and_their_checkpoints_are_those_of_ls(place: Place):
    assert get(place, "runs")["runs"] == place.told("ls")["runs"]
    for run in ("hot:pretrain/a", "warm:other"):
        assert get(place, "checkpoints", run=run)["checkpoints"] == place.told("ls", run)["checkpoints"]


def test_a_story_is_that_of_explain(place: Place):
    for key in ("hot:pretrain/a/checkpoint-200", "hot:pretrain/a/checkpoint-400", f"hot:{HOSTILE[0]}/checkpoint-10"):
        assert get(place, "explain", id=key) == place.told("explain", key)


def test_what_is_upcoming_is_a_plan(place: Place):
    mine, plan = get(place, "upcoming"), place.told("plan", "--no-scan")
    for name in ("actions", "totals", "findings", "pressure", "exit_code"):
        assert mine[name] == plan[name]
    assert mine["file"] is None and not mine["applied_by_ticks"] and mine["next_tick_ns"] > mine["made_at_ns"]
    found = get(place, "findings")["findings"]
    now = {(f.pop("subject"), f["code"]): f for f in found if f.pop("source") == "now"}
    assert now == {(f.pop("subject"), f["code"]): f for f in plan["findings"]}
    worst = [f["severity"] for f in found]
    assert worst == sorted(worst, key=("refusal", "error", "warning", "note").index)


def test_the_forecast_is_that_of_forecast(place: Place):
    mine = get(place, "forecast")
    told = place.told("forecast")
    assert {**mine, "exit_code": 0} == {**told, "stale": False}


def test_ticks_are_those_of_ticks(place: Place):
    told = place.told("ticks")["ticks"]
    assert get(place, "ticks") == {"ticks": told, "next_before": None}
    assert get(place, "ticks", limit=1) == {"ticks": told[:1], "next_before": 2}
    assert get(place, "ticks", limit=1, before=2)["ticks"] == told[1:]
    assert get(place, "tick", n=1) == told[1]


def test_stores_tell_how_full_they_are(place: Place):
    hot, warm = get(place, "stores")["stores"]
    assert hot["name"] == "hot" and hot["checkpoints"] == len(HOSTILE) + 4 and hot["scans"] == 2
    assert 0 < hot["used_bytes"] < hot["size_bytes"] and hot["same_file_system"] == ["warm"]
    assert warm["size_bytes"] == 10**9 and warm["used_bytes"] == warm["ours_bytes"] > 0, "as the settings say"


def test_pages_together_are_all_of_it(place: Place):
    every, offset = [], 0
    while offset is not None:
        part = get(place, "runs", limit=5, offset=offset)
        assert part["total"] == len(HOSTILE) + 2 and part["limit"] == 5
        every += part["runs"]
        offset = part["next_offset"]
    assert every == get(place, "runs")["runs"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("nothing", 404, "no_such_page"),
        ("checkpoints", 400, "usage"),
        ("checkpoints?run=none:x", 404, "unknown_target"),
        ("checkpoints?run=hot:x", 404, "unknown_target"),
        ("explain?id=hot:../../etc/passwd", 404, "unknown_target"),
        ("explain?id=/etc/passwd", 400, "usage"),
        ("tick?n=77", 404, "unknown_target"),
        ("ticks?limit=1e3", 400, "usage"),
    ],
)
def test_mistakes_are_told_as_the_commands_tell_them(place: Place, path: str, status: int, code: str):
    answer = place.client().get(f"/api/v1/{path}")
    assert answer.status_code == status and set(answer.json()["error"]) == {"code", "message", "hint", "exit_code"}
    assert answer.json()["error"]["code"] == code


def test_what_takes_long_is_asked_for_again(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Kept, "get", lambda _self, _key: None)
    client = place.client()
    for path in ("runs", "upcoming", "findings", "forecast"):
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 503 and answer.headers["retry-after"] == "5"
        assert answer.json()["error"]["code"] == "being_made"
    for path in ("", "runs", "upcoming", "findings"):
        assert "being worked out" in client.get(f"/{path}").text
