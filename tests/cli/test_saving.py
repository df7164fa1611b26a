"""Intervals and storages as a user asks about them: the calculator's figures from one command, an own log, mistakes."""

import csv
import io
from pathlib import Path

import pytest

from lifecycle.sizing.failures import RATES
from lifecycle.sizing.modes import ASSUMED
from lifecycle.sizing.storage import STORAGES
from tests.cli.harness import Shell
from tests.cli.test_corridor import GOLD, Golden

ROOT = Path(__file__).parent.parent.parent
SEED = ("interval", "--model", "70b", "--storage", "nfs", "--gpus", "1024", "--mtbf", "llama3", "--every", "1h")
LAB = (*SEED, "--restart", "10m", "--reload", "save", "--async", "20s", "--assume", "lab")
LOG = "2026-01-01T00:00:00Z\n2026-01-02T07:00:00Z\n2026-01-03T11:30:00Z\n2026-01-06T00:00:00Z\n2026-01-08 end\n"


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_figures_of_a_checkpoint_calculator(shell: Shell, golden: Golden, width: int | None):
    shell.width = width
    shell(*LAB, "--gpu-hour", "2.50USD")
    shell("interval", "--size", "400GB", "--write", "3GB/s", "--gpus", "1024", "--mtbf", "rsc-1-1024", "--memory", "1s")
    shell("interval", "--model", "70b", "--storage", "nfs", "--gpus", "16384", "--every", "5m")
    (shell.home / "restarts.txt").write_text(LOG)
    shell("interval", "--size", "980GB", "--save", "2m", "--gpus", "512", "--restarts", "restarts.txt")
    shell("fit", "--model", "70b", "--gpus", "1024")
    shell("fit", "--size", "400GB", "--gpus", "64", "--every", "30m", "--write", "2.5GB/s", "--redundancy", "8+2",
          "--raw", "100TB", "--dwpd", "3", "--failures", "0", "--allocated", "90000")  # fmt: skip
    golden(GOLD / f"saving-{width or 'piped'}.txt", shell.transcript)


@pytest.mark.parametrize(
    "words",
    [
        ("--gpus", "8"),
        ("--gpus", "8", "--model", "70b", "--size", "1TB", "--storage", "nfs"),
        ("--gpus", "8", "--model", "70b"),
        ("--gpus", "8", "--model", "70b", "--storage", "nsf"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--save", "8m"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--mtbf", "llama"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--mtbf", "40"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--mtbf", "40h", "--failures", "2"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--failures", "2"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--restarts", "none.txt"),
        ("--gpus", "8", "--model", "70b", "--write", "2GB"),
        ("--gpus", "8", "--model", "70b", "--write", "2G/s"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--async", "0.0s"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--gpu-hour", "$2.50"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--memory", "1s", "--from-memory", "100%"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--assume", "labs"),
        ("--gpus", "8", "--model", "70b", "--storage", "nfs", "--failures", "2", "--allocated", "inf"),
        ("--gpus", "0", "--model", "70b", "--storage", "nfs"),
    ],
    ids=" ".join,
)
def test_mistakes_are_told_with_a_way_out(shell: Shell, words: tuple[str, ...]):
    said = shell("interval", *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("lifecycle: error: ") or "Usage" in said.err


def test_two_answers_at_once_are_refused(shell: Shell):
    assert shell(*SEED, "--csv", "--json").code == 2


def test_mistakes_about_storages(shell: Shell):
    for words in (
        ("--read", "2GB/s"),
        ("--redundancy", "9"),
        ("--rule", "0%"),
        ("--readers", "1") * 5,
        ("--dwpd", "nan"),
        ("--waf", "nan"),
    ):
        assert shell("fit", "--model", "70b", "--gpus", "8", *words).code == 2, words


def test_programs_read_the_same_figures(shell: Shell):
    said = shell(*LAB, "--gpu-hour", "2.50USD", "--json").json
    blocking, behind = said["modes"]
    assert blocking["now"]["waste"] == pytest.approx(0.15233, abs=5e-6)
    assert behind["now"]["waste"] == pytest.approx(0.02178, abs=5e-6)
    assert blocking["best"]["every_s"] == pytest.approx(13_213.558, abs=0.001)
    assert blocking["best"]["waste"] == pytest.approx(0.0802843, abs=5e-7)
    assert blocking["now"]["gpu_hours_a_day"] == pytest.approx(0.15233 * 24 * 1024, abs=0.2)
    assert blocking["now"]["money_a_day"] == pytest.approx(blocking["now"]["gpu_hours_a_day"] * 2.5)
    assert (said["counted_by"], said["save"]) == ("first order", {"stall_s": 490, "durable_s": 490})
    assert shell(*SEED, "--json").json["modes"][1]["now"]["waste"] == pytest.approx(0.02175, abs=5e-6)


def test_fit_as_programs_read_it(shell: Shell):
    said = shell("fit", "--model", "70b", "--gpus", "1024", "--mtbf", "llama3", "--dwpd", "3", "--json").json
    by_name = {each["name"]: each for each in said["storages"]}
    assert said["bytes_a_day"] == pytest.approx(23.52e12)
    assert {name: each["meets_rule"] for name, each in by_name.items()} == {
        "nfs": False, "object": True, "pfs": True, "nvme": True,
    }  # fmt: skip
    assert by_name["nfs"]["needed_bytes_per_s"] == pytest.approx(2.722e9, abs=1e6)
    assert by_name["nfs"]["least_raw_bytes"] == pytest.approx(15.68e12)
    assert by_name["pfs"]["loads"][0] == {"readers": 1, "seconds": pytest.approx(5.6)}
    assert by_name["nfs"]["waste"]["blocking"] == pytest.approx(0.15233, abs=5e-6)
    assert shell("fit", "--size", "1TB", "--gpus", "8", "--json").json["storages"][0]["loads"] == []


def test_the_curve_is_a_table(shell: Shell):
    rows = list(csv.DictReader(io.StringIO(shell(*LAB, "--csv").out)))
    assert list(rows[0]) == ["mode", "interval_s", "waste_first_order", "waste_complete"]
    blocking = [
        (float(row["interval_s"]), float(row["waste_first_order"])) for row in rows if row["mode"] == "blocking"
    ]
    assert min(blocking, key=lambda point: point[1])[0] == pytest.approx(13_214, rel=0.06)
    assert len(blocking) > 60
    assert all(float(row["interval_s"]) >= 490 for row in rows)


def test_the_page_tells_of_every_preset():
    page = (ROOT / "docs/intervals.md").read_text()
    names = (*RATES, *STORAGES, *ASSUMED)
    assert [name for name in names if f"| `{name}`" not in page] == []
    for name, rate in RATES.items():
        assert f"| `{name}`" in page and f"{rate.gpu_hours:,.0f} |" in page, name
        assert f"{rate.mtbf_s(1024) / 3600:.3g} h |" in page, name
