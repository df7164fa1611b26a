"""Charts that commands draw: what they show is what the command said."""

import json
from pathlib import Path

import pytest

from tests.cli.harness import Shell

INTERVAL = ("interval", "--model", "70b", "--storage", "nfs", "--gpus", "1024", "--mtbf", "llama3", "--async", "20s")
FORECAST = ("forecast", "--days", "10", "--run", "size=400GB,every=2h,for=4d,store=hot", "--capacity", "hot=10TB")


@pytest.fixture
def here(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(shell.home)
    return shell


def rows(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(path.read_text())["data"]["values"]
    return found


def test_waste_has_its_curve_and_the_best(here: Shell):
    said = here(*INTERVAL, "--chart", "waste.json", "--json")
    best = {mode["name"]: mode["best"] for mode in said.json["modes"]}
    drawn = {row["mode"]: row for row in rows(here.home / "waste.json") if row["best"]}
    assert drawn.keys() == best.keys() == {"blocking", "asynchronous"}
    for name, point in best.items():
        assert drawn[name]["hours"] == pytest.approx(point["every_s"] / 3600)
        assert drawn[name]["waste"] == pytest.approx(100 * point["waste"])


def test_a_forecast_has_its_nights_and_its_room(here: Shell):
    said = here(*FORECAST, "--chart", "fill.json", "--chart-written", "written.json", "--json").json
    fill = rows(here.home / "fill.json")
    assert len(fill) == 11 and {row["capacity"] for row in fill} == {10}
    (tier,) = said["tiers"]
    assert [row["middle"] for row in fill] == pytest.approx([peak / 10**12 for peak in tier["peak"]])
    assert all(row["low"] <= row["middle"] <= row["high"] for row in fill)  # type: ignore[operator]  # numbers
    written = rows(here.home / "written.json")
    assert sum(row["bytes"] for row in written) == pytest.approx(sum(tier["saved"]) / 10**12)  # type: ignore[misc]  # as above


def test_what_draws_is_asked_for_svg(here: Shell):
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    assert here(*FORECAST, "--chart", "fill.svg").code == 0
    assert (here.home / "fill.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("name", "said"), [("fill.png", "*.svg or *.json"), ("no/fill.json", "cannot be written")])
def test_a_file_that_cannot_be_drawn(here: Shell, name: str, said: str):
    answer = here(*FORECAST, "--chart", name)
    assert answer.code == 2 and said in answer.err
