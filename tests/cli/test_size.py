"""``lifecycle size``: transcripts, files of every kind, and what a program reads."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lifecycle.sizing.named import NAMED
from tests.cli.harness import Shell

GOLD = Path(__file__).parent / "golden"
Golden = Callable[[Path, str], None]


def save(path: Path, config: dict[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return str(path)


def tensors(path: Path, **found: tuple[str, list[int], int]) -> str:
    """A safetensors file of which only the header is there: nothing else is read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {name: {"dtype": d, "shape": s, "data_offsets": [0, size]} for name, (d, s, size) in found.items()}
    data = json.dumps(header).encode()
    path.write_bytes(len(data).to_bytes(8, "little") + data)
    return str(path)


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_transcripts(shell: Shell, golden: Golden, width: int | None):
    shell.width = width
    save(Path("qwen/config.json"), {**NAMED["qwen3-30b-a3b"], "architectures": ["Qwen3MoeForCausalLM"]})
    tensors(Path("a.safetensors"), w=("BF16", [1024, 4096], 8_388_608), b=("BF16", [1024], 2048))
    shell("size", "70b", "--every", "1h")
    shell("size", "llama-3-8b", "--lora", "r=16,targets=all")
    shell("size", "llama-3-8b", "--lora", "r=16", "--frozen-saved", "--ranks", "8", "--every", "30m")
    shell("size", "--config", "qwen/config.json", "--setup", "hf-deepspeed", "--ema", "fp32")
    shell("size", "--safetensors", "a.safetensors", "--optimizer", "adamw-8bit", "--ranks", "64", "--pad", "megatron")
    shell("size", "deepseek-v3", "--optimizer", "muon")
    shell("size", "--setups")
    golden(GOLD / f"size-{width or 'piped'}.txt", shell.transcript)


def test_what_goes_wrong(shell: Shell, golden: Golden):
    save(Path("llava/config.json"), {"model_type": "llava", "text_config": dict(NAMED["llama-2-7b"])})
    save(Path("odd.json"), {**NAMED["llama-3-8b"], "hidden_size": -1})
    save(Path("new.json"), {"model_type": "qwen9"})
    Path("cut.json").write_text('{"model_type"\n "llama"}')
    for words in (
        "",
        "70b --params 8b",
        "lama-3-8b",
        "70",
        "--params llama",
        "--config llava",
        "--config odd.json",
        "--config new.json",
        "--config cut.json",
        "--config absent.json",
        "70b --optimizer adafactor",
        "70b --lora r=16",
        "llama-3-8b --lora r=16,targets=qq",
        "70b --setup bf16-adam",
        "70b --every 60",
        "70b --ema fp16",
        "70b --pad zero1",
        "70b --frozen-saved",
    ):
        assert shell("size", *words.split()).code == 2
    golden(GOLD / "size-errors.txt", shell.transcript)


def test_what_a_program_reads(shell: Shell):
    said = shell("size", "70b", "--every", "1h", "--json").json
    assert (said["total_bytes"], said["day_bytes"], said["year_bytes"]) == (98 * 10**10, 2352 * 10**10, 85848 * 10**11)
    assert sum(said["roles"].values()) == said["total_bytes"] and said["roles"]["weights"] == 140 * 10**9
    assert said["formula"] == "70,000,000,000 x (2 weights + 4 master + 8 moments) = 980,000,000,000 B"
    assert {m["name"] for m in shell("size", "--models", "--json").json["models"]} == set(NAMED)
    assert shell("size", "--models").out.count("\n") == len(NAMED) + 3
    setups = {s["name"]: s["bytes_a_parameter"] for s in shell("size", "--setups", "--json").json["setups"]}
    assert setups["bf16-mixed-adam"] == 14 and setups["bf16-mixed-adafactor"] is None
    assert shell("size", "--params", "70e9", "--json").json["total_bytes"] == 98 * 10**10
    assert shell("size", "70b", "--json", "--lora", "r=1").json["error"]["code"] == "size_unknown"


def count(shell: Shell, *words: str) -> Any:
    return shell("size", *words, "--json").json["model"]["params"]


def test_a_directory_is_its_file(shell: Shell, samples: Path):
    for at in ("plain/checkpoint-8", "sharded/checkpoint-8"):
        assert count(shell, "--config", str(samples / "hf_trainer" / at)) == 28_032
        assert count(shell, "--safetensors", str(samples / "hf_trainer" / at)) == 28_032


def test_an_index_and_its_files(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    files = {"a": "m-1.safetensors", "b": "m-2.safetensors"}
    index = save(Path("m.safetensors.index.json"), {"metadata": {"total_size": 4000}, "weight_map": files})
    assert count(shell, "--safetensors", index) == 2000, "only the index is here"
    tensors(Path("m-1.safetensors"), a=("F32", [1500], 6000))
    assert "1 of 2 files are missing" in shell("size", "--safetensors", index).err
    tensors(Path("m-2.safetensors"), b=("F32", [500], 2000))
    assert count(shell, "--safetensors", index) == 2000
    monkeypatch.setattr("lifecycle.sizing.safetensors.HEADER_MAX_BYTES", 100)
    assert "bytes of headers" in shell("size", "--safetensors", index).err


def test_files_of_other_kinds_are_not_waited_for(shell: Shell):
    os.mkfifo("pipe.json")
    assert "no plain file" in shell("size", "--config", "pipe.json").err
    assert "no plain file" in shell("size", "--safetensors", "/dev/zero").err
    Path("link.json").symlink_to(save(Path("real/config.json"), dict(NAMED["gpt2"])))
    assert count(shell, "--config", "link.json") == 124_439_808, "a hub's cache is made of links"


def test_no_more_is_read_than_a_format_needs(shell: Shell):
    with Path("huge.json").open("wb") as stream:
        stream.truncate(2**40)
    assert "no config.json" in shell("size", "--config", "huge.json").err
    with Path("huge.safetensors").open("wb") as stream:
        stream.write((50_000_000).to_bytes(8, "little"))
        stream.truncate(1000)
    assert "cut short" in shell("size", "--safetensors", "huge.safetensors").err
    with Path("index.json").open("wb") as stream:
        stream.truncate(2**40)
    assert "more than" in shell("size", "--safetensors", "index.json").err
    for text in ("[]", "1" * 5000, "[" * 100_000, '"\udcff'):
        Path("odd.json").write_text(text, errors="surrogateescape")
        assert shell("size", "--config", "odd.json").code == 2
