"""Charts say what was handed in, name by name, and nothing in a name becomes a part of the page."""

import json
import sys
from datetime import date, timedelta
from xml.etree import ElementTree

import pytest

from lifecycle.errors import ConfigInvalid
from lifecycle.render.charts import Fill, Spec, Waste, Written, occupancy, svg, waste, written

DAY = date(2026, 12, 1)
ODD = "run\u202e<script>alert(1)</script>"
SVG = "{http://www.w3.org/2000/svg}"


def fills() -> list[Fill]:
    return [
        Fill(DAY + timedelta(days), place, 1e12 * days, 2e12 * days, 3e12 * days)
        for place in ("hot", ODD)
        for days in range(4)
    ]


def charts() -> dict[str, Spec]:
    curve = [Waste("blocking", 600.0 * at, 0.5 / at) for at in range(1, 9)]
    return {
        "occupancy": occupancy(fills(), {"hot": 8 * 10**12}),
        "waste": waste(curve, [Waste("blocking", 3000.0, 0.0625)]),
        "written": written([Written(DAY, "hot", 5e9), Written(DAY, ODD, 1e9)]),
    }


@pytest.mark.parametrize("name", ["occupancy", "waste", "written"])
def test_a_chart_is_drawn_for_both_pages(name: str):
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    drawn = svg(charts()[name])
    root = ElementTree.fromstring(drawn)
    assert root.tag == f"{SVG}svg"
    assert not list(root.iter(f"{SVG}script")), "a name became a script"
    assert "\u202e" not in drawn, "a name turns the text around"
    assert "prefers-color-scheme:dark" in drawn
    assert "".join(root.itertext()).count(charts()[name]["title"]["text"][:20]) == 1


def test_a_specification_is_plain_json_with_its_data():
    for name, spec in charts().items():
        assert json.loads(json.dumps(spec)) == spec, name
        assert spec["data"]["values"], name


def test_units_follow_the_largest_value():
    spec = occupancy(fills(), {"hot": 8 * 10**12})
    values = spec["data"]["values"]
    assert [row["middle"] for row in values if row["place"] == "hot"] == [0, 2, 4, 6]
    assert {row["capacity"] for row in values} == {8, None}
    small = written([Written(DAY, "hot", 5e9)])
    assert small["data"]["values"][0]["bytes"] == 5 and small["encoding"]["y"]["title"] == "GB a day"
    assert occupancy([], {})["data"]["values"] == []


def test_the_best_interval_is_marked():
    values = charts()["waste"]["data"]["values"]
    assert [row["hours"] for row in values if row["best"]] == [pytest.approx(3000 / 3600)]


def test_without_the_package_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ConfigInvalid) as refused:
        svg(charts()["written"])
    assert refused.value.code == "charts_missing" and "[charts]" in refused.value.hint
