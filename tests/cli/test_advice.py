"""Advice as a user meets it: a run of known failures of which little still stands, mistakes, too few facts."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from lifecycle.errors import StoreError
from lifecycle.ports import Store
from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf
from tests.cli.test_corridor import GOLD, Golden

ROOT = ("--root", "ckpt")
RUN = "here:pretrain/a"
TOOK_S = 420
HEADER_BYTES = 128


def large(path: Path, at: float) -> None:
    """As large as 70 billion parameters with Adam, without taking a block, and written within minutes."""
    end = 140 * 10**9 - 8 - HEADER_BYTES
    header = json.dumps({"w": {"dtype": "U8", "shape": [end], "data_offsets": [0, end]}}).encode().ljust(HEADER_BYTES)
    (path / "model.safetensors").write_bytes(HEADER_BYTES.to_bytes(8, "little") + header)
    for name, size, before in (
        ("model.safetensors", 140, TOOK_S),
        ("config.json", 0, TOOK_S),
        ("optimizer.pt", 840, 0),
    ):
        if size:
            os.truncate(path / name, size * 10**9)
        os.utime(path / name, (at - before, at - before))
    for name in ("scheduler.pt", "rng_state.pth", "training_args.bin", "trainer_state.json"):
        os.utime(path / name, (at, at))


def train(shell: Shell, *, hours: int = 144, keep: int = 3, each_h: int = 12) -> None:
    """A training that saves every 50 min, fails every 16 h or so, and is scanned and thinned out twice a day."""
    chance = random.Random(1)
    at, step, scanned = float(NOW_S - hours * 3600), 0, NOW_S - hours * 3600
    stands: list[Path] = []
    while at < NOW_S - 1000:
        due, fails = 3000 * chance.uniform(0.99, 1.01), chance.expovariate(1.5 / DAY_S)
        if fails < due:
            at += fails + 600
            continue
        at, step = at + due, step + 500
        stands.append(save_hf(shell.home / "ckpt/pretrain/a", step, NOW_S - at))
        large(stands[-1], at)
        if at > scanned + each_h * 3600:
            scanned = int(at)
            shell("scan", *ROOT)
            for path in stands[:-keep]:
                shutil.rmtree(path)
            del stands[:-keep]
    shell("scan", *ROOT)
    shell.pages.clear()


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_a_run_is_held_against_the_model(shell: Shell, golden: Golden, width: int | None):
    train(shell)
    shell.width = width
    shell("advise", RUN, "--gpus", "1024", "--model", "70b", "--gpu-hour", "2.50USD", *ROOT)
    shell("advise", "ckpt/pretrain/a", "--save", "20m", "--mtbf", "40h", *ROOT)
    shell("advise", RUN, "--gpus", "1024", "--mtbf", "llama3", "--async", "2s", *ROOT)
    golden(GOLD / f"advice-{width or 'piped'}.txt", shell.transcript)
    before = sorted(shell.home.rglob("*"))
    told = shell("advise", RUN, "--gpus", "1024", "--gpu-hour", "2.50USD", "--json", *ROOT).json
    assert (told["saves"] > 50, told["saves_gone"] > 40) == (True, True)
    assert told["interval"]["seconds"] == pytest.approx(3000, rel=0.01)
    assert told["writing"]["median_s"] == TOOK_S
    assert told["failures"]["mtbf_low_s"] < DAY_S / 1.5 < told["failures"]["mtbf_high_s"]
    assert told["modes"][0]["best"]["money_a_day"] > 0
    assert sorted(shell.home.rglob("*")) == before


def test_nothing_is_recommended_on_too_few_facts(shell: Shell, golden: Golden):
    for i in range(3):
        large(save_hf(shell.home / "ckpt/few", 100 + 100 * i, DAY_S - 3600 * i), NOW_S - DAY_S + 3600 * i)
    for i in range(12):
        save_hf(shell.home / "ckpt/plain", 100 + 100 * i, DAY_S - 3600 * i)
    shell("scan", *ROOT)
    shell.pages.clear()
    shell.width = 80
    shell("advise", "few", "--gpus", "8", *ROOT)
    shell("advise", "plain", "--gpus", "8", *ROOT)
    shell("advise", "plain", "--save", "5m", *ROOT)
    shell("advise", "plain", "--save", "5m", "--mtbf", "own", *ROOT)
    shell("advise", "few", "--save", "5m", "--mtbf", "own", *ROOT)
    golden(GOLD / "advice-few.txt", shell.transcript)
    for words in (("few", "--gpus", "8"), ("plain", "--gpus", "8"), ("plain", "--save", "5m")):
        told = shell("advise", *words, "--json", *ROOT).json
        assert (told["verdict"], told["modes"]) == ("none", [])
        assert told["why_not"]


def test_a_save_that_is_written_again_at_its_own_key_is_told(shell: Shell):
    """Only where it is so, and in words: what ``advise`` cannot see it does not make up."""
    lost = "written again at"
    for i in range(8):
        large(save_hf(shell.home / "ckpt/kept", 100 * i, 0), NOW_S - 20 * 3600 + 3600 * i)
    large(save_hf(shell.home / "ckpt/kept", 900, 0), NOW_S - 12 * 3600)
    shell.clock.now_s = NOW_S - 11 * 3600
    shell("scan", *ROOT)
    before = shell("advise", "kept", "--save", "5m", "--mtbf", "40h", "--json", *ROOT).json
    assert not any(lost in text for text in before["unknown"])
    assert [text for text in before["unknown"] if "waits for its saves" in text], "advice is given, so it is said"
    shutil.rmtree(shell.home / "ckpt/kept/checkpoint-900")
    large(save_hf(shell.home / "ckpt/kept", 900, 0), NOW_S - 3600)
    shell.clock.now_s = NOW_S
    shell("scan", *ROOT)
    told = shell("advise", "kept", "--save", "5m", "--mtbf", "40h", *ROOT)
    assert "1 save was written again at its own key" in " ".join(told.out.split())
    assert not any("waits" in text for text in shell("advise", "kept", "--json", *ROOT).json["unknown"])


def test_mistakes_are_told(shell: Shell):
    save_hf(shell.home / "ckpt/a", 100, DAY_S)
    shell("scan", *ROOT)
    for words, said in (
        (("nothing",), "nothing"),
        (("a/..",), "no run"),
        (("a", "--gpu-hour", "2USD"), "--gpus"),
        (("a", "--mtbf", "llama3"), "--gpus"),
        (("a", "--gpus", "8", "--mtbf", "lama3"), "llama3"),
        (("a", "--save", "5"), "--save"),
    ):
        told = shell("advise", *words, *ROOT)
        assert (told.code in (1, 2), told.out) == (True, ""), words
        assert said in told.err


def test_a_store_that_cannot_be_looked_at_is_told(shell: Shell):
    train(shell, hours=48)

    def wrap(store: Store) -> Store:
        def walk(*_: object) -> object:
            raise StoreError("the mount has gone")

        store.walk = walk  # type: ignore[method-assign,assignment]  # broken on purpose
        return store

    shell.wrap = wrap
    told = shell("advise", RUN, "--mtbf", "40h", "--json", *ROOT).json
    assert (told["verdict"], told["writing"]) == ("none", None)
    assert any("the mount has gone" in text for text in told["unknown"])
