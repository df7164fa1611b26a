"""Intervals and storages as a user asks about them: the calculator's figures from one command, an own log, mistakes."""

import csv
import io
from pathlib import Path

import pytest

from lifecycle.sizing.failures import RATES
from lifecycle.sizing.modes import ASSUMED
from lifecycle.sizing.named import NAMED
from lifecycle.sizing.storage import STORAGES
from tests.cli.harness import Shell
from tests.cli.test_corridor import GOLD, Golden
from tests.cli.test_size import save, tensors

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
    shell("fit", "--model", "70b", "--gpus", "256", "--every", "10m", "--write", "10GB/s", "--node-write", "4GB/s")
    tensors(Path("a.safetensors"), w=("BF16", [1024, 4096], 8_388_608), b=("BF16", [1024], 2048))
    shell("interval", "--safetensors", "a.safetensors", "--gpus", "8", "--write", "1GB/s", "--node-write", "2GB/s")
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


def test_a_model_is_named_in_every_way_that_size_knows(shell: Shell):
    """The same file, the same count: what `size` says is what `interval` and `fit` reckon with."""
    file = save(Path("qwen/config.json"), {**NAMED["qwen3-30b-a3b"], "architectures": ["Qwen3MoeForCausalLM"]})
    held = tensors(Path("a.safetensors"), w=("BF16", [1024, 4096], 8_388_608))
    for words in (("llama-3-8b",), ("--config", file), ("--safetensors", held), ("--params", "8b")):
        total = shell("size", *words, "--json").json["total_bytes"]
        named = ("--model", *words) if len(words) == 1 else words
        to = ("--gpus", "8", "--storage", "nfs", "--json")
        assert {shell(name, *named, *to).json["checkpoint"]["bytes"] for name in ("interval", "fit")} == {total}
    for wrong in ("--config absent.json", "--params llama", f"--config {file} --size 1GB"):
        said = shell("fit", "--gpus", "8", *wrong.split())
        assert (said.code, said.out) == (2, "")


def test_shapes_of_a_file_size_what_depends_on_them(shell: Shell):
    """A bare count is refused by an optimizer whose state depends on shapes; a header is not."""
    held = tensors(Path("a.safetensors"), w=("BF16", [1024, 4096], 8_388_608))
    to = ("--gpus", "8", "--storage", "nfs", "--setup", "bf16-mixed-adafactor", "--json")
    assert shell("interval", "--params", "4194304", *to).code == 2
    said = shell("interval", "--safetensors", held, *to).json["checkpoint"]
    assert said["bytes"] == 1024 * 4096 * 6 + 4 * (1024 + 4096)
    assert "as the header of a.safetensors says" in said["from"]


def test_disks_of_the_nodes_that_are_ones_own(shell: Shell):
    words = ("fit", "--size", "980GB", "--gpus", "1024", "--write", "10GB/s", "--node-write", "4GB/s", "--every", "5m")
    [each] = shell(*words, "--json").json["storages"]
    assert (each["stall_s"], each["durable_s"]) == pytest.approx((980 / 512, 980 / 512 + 98))
    assert (each["node_write_bytes_per_s"], each["read_bytes_per_s"]) == (4e9, 4e9)
    assert not each["meets_rule"] and each["needed_bytes_per_s"] == pytest.approx(980e9 / (30 - 980 / 512))
    [slow] = shell(*words, "--gpus", "8", "--json").json["storages"]
    assert slow["needed_bytes_per_s"] is None
    assert "nodes' disks too slow" in shell(*words, "--gpus", "8").out
    assert shell("fit", "--size", "1GB", "--gpus", "8", "--node-write", "4GB/s").code == 2


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
