"""Files made to be read badly, in every place that is looked into: no exception, no code run, no more than caps read.

The laws, for content alone (names and sizes stay): what is claimed does not change, no other checkpoint fares better
for it, and noise in the place of a file that proves itself proves nothing.
"""

import json
import os
import pickle
import pickletools
import random
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, Evidence, Run, Shape
from lifecycle.layouts import opcodes, peek
from lifecycle.layouts.conventions import Conventions, MetricSource
from lifecycle.layouts.hf import promised_by
from lifecycle.layouts.peek import Look, Peek, parse_json
from lifecycle.layouts.registry import survey
from lifecycle.layouts.single import FILES_MAX
from tests.layouts.frameworks import BUILT, stored, torch_file
from tests.layouts.trees import memory, tree

Files = dict[str, bytes | int]
SOUND = (Evidence.PROVEN, Evidence.WHOLE)
RANK = {Evidence.PROVEN: 2, Evidence.WHOLE: 1}
CONVENTIONS = Conventions(metric_sources=(MetricSource("metrics.json"), MetricSource("metrics.csv")))

ran: list[str] = []


def _hear(event: str, _: tuple[object, ...]) -> None:
    if event in ("pickle.find_class", "os.mkdir", "os.system", "compile"):
        ran.append(event)


@cache
def listening() -> list[str]:
    """Every class that an unpickler of this process asks for from now on: a hook of the interpreter's own."""
    sys.addaudithook(_hear)
    return ran


class Canary:
    """Its unpickling makes a directory."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("exploded",)


def torch_zip(data: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3")
    return stream.getvalue()


def zip64(size: int, offset: int) -> bytes:
    """An end of a zip whose directory would be that large, or begin there."""
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, size, offset)
    return (
        b"PK\3\4" + record + b"PK\6\7" + struct.pack("<IQI", 0, 4, 1) + b"PK\5\6" + b"\0" * 4 + b"\xff" * 12 + b"\0\0"
    )


def grown(directory_bytes: int, member_bytes: int) -> bytes:
    """A torch zip that says that its pickle is larger than the file."""
    whole = bytearray(torch_zip(b"\x80\x02N."))
    at = whole.index(b"PK\1\2")
    struct.pack_into("<I", whole, at + 24, member_bytes)
    return bytes(whole) if not directory_bytes else bytes(whole) + b"\0" * directory_bytes


BOMB = pickle.dumps({"epoch": 1, "global_step": 2, "state_dict": {}, "best_model_path": "x", "bomb": Canary()})
CRAFTED: dict[str, bytes] = {
    "pickle that would run": BOMB,
    "torch file that would run": torch_zip(BOMB),
    "old torch file that would run": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + BOMB,
    "packed bomb": torch_zip(b"\x80\x02" + b"N0" * 2_000_000 + b"N.", zipfile.ZIP_DEFLATED),
    "header of 2^60": struct.pack("<Q", 2**60) + b"{}",
    "header of all there is": struct.pack("<Q", 2**64 - 1) + b"{" * 60,
    "offsets beyond all": struct.pack("<Q", 84) + (b'{"w":{"data_offsets":[0,%d]}}' % 2**200).ljust(84),
    "zip64 of 2^62": zip64(2**62, 2**62),
    "zip64 of its own size": zip64(0, 4),
    "pickle larger than its file": grown(0, 2**32 - 2),
    "many ends": b"PK\5\6" * 4000,
    "many members": stored({f"archive/{n}/data.pkl": b"" for n in range(300)}),
    "text of 2^60 in a pickle": torch_zip(b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"x"),
    "long of 2^31 in a pickle": torch_zip(b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"1"),
    "digits in a pickle": torch_zip(b"L" + b"9" * 50_000 + b"L\n."),
    "marks in a pickle": torch_zip(b"\x80\x02" + b"(" * 3_000 + b"u" * 3_000 + b"."),
    "memo in a pickle": torch_zip(b"\x80\x04}" + b"\x94" * 2_000 + b"h\0" * 1_000 + b"s" * 100 + b"."),
    "dicts in dicts in a pickle": torch_zip(b"\x80\x02}" + b"X\1\0\0\0a}" * 1_500 + b"s" * 1_500 + b"."),
    "nested lists": b"[" * 100_000,
    "nested objects": b'{"a":' * 50_000,
    "numbers beyond all": b'{"step": 1e999, "global_step": -1e999, "epoch": ' + b"9" * 4000 + b"}",
    "digits beyond all": b'{"global_step": ' + b"9" * 5000 + b"}",
    "a name twice": b'{"global_step": 1, "global_step": NaN, "log_history": [[]], "weight_map": {"a": 1}}',
    "odd kinds": json.dumps({k: [{}] for k in ("global_step", "epoch", "log_history", "manifest", "metrics")}).encode(),
    "all checkpoints there are": b'all_model_checkpoint_paths: "../../etc"\n' * 2000,
    "climbing": b"../" * 20_000,
    "no text": b"\xff\xfe\0\n\r\n" * 500,
    "a table of commas": b",".join([b"step"] * 3000) + b"\n" + b"," * 50_000 + b"\n",
}


def look(files: Files, read: peek.Read | None = None) -> list[Run]:
    return survey("s", tree(files), read or memory(files), CONVENTIONS, url="file:///data")


def units(runs: list[Run]) -> dict[str, Checkpoint]:
    return {c.key: c for run in runs for c in run.checkpoints}


def checked(runs: list[Run]) -> None:
    """What holds of any survey."""
    for run in runs:
        for c in run.checkpoints:
            assert c.proof is None or c.evidence is Evidence.PROVEN
            assert c.step is None or 0 <= c.step < 2**63
            assert len(c.metrics) == len(c.metrics_from) <= 64 * 3
            assert c.why and len(c.why) < 1000
        for pointer in run.pointers:
            assert pointer.target is None or not {"", ".", ".."} & set(pointer.target.partition(":")[2].split("/"))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many opcodes each walk over a pickle took."""
    walks: list[int] = []
    real = pickletools.genops

    def genops(data: bytes) -> Iterator[Any]:
        walks.append(0)
        for one in real(data):
            walks[-1] += 1
            yield one

    monkeypatch.setattr(pickletools, "genops", genops)
    yield walks
    assert max(walks, default=0) <= opcodes.OPCODES_MAX + 2


@pytest.mark.parametrize("kind", CRAFTED)
def test_a_crafted_file_in_any_place_runs_nothing_and_proves_nothing(
    kind: str, counted: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    heard = listening()
    for family, built in BUILT.items():
        files: Files = dict.fromkeys(built.files, CRAFTED[kind])
        heard.clear()
        runs = look(files)
        assert not heard and not list(tmp_path.iterdir()), family
        checked(runs)
        blind = units(survey("s", tree(files), None, CONVENTIONS, url="file:///data"))
        assert units(runs).keys() == blind.keys(), "a content claims or hides something"


def test_the_canary_sings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Else nothing were heard above, whatever was run."""
    monkeypatch.chdir(tmp_path)
    heard = listening()
    heard.clear()
    pickle.loads(BOMB)  # it is what must not happen
    assert "pickle.find_class" in heard and "os.mkdir" in heard and (tmp_path / "exploded").is_dir()


@pytest.mark.parametrize("size", [2**40, 2**62])
def test_of_files_without_end_no_more_than_caps_is_asked(size: int):
    """Holes make a file of any size at no cost, so what counts is what is asked for."""
    for family, built in BUILT.items():
        for kind in ("zip64 of 2^62", "header of 2^60", "nested objects", "pickle that would run"):
            content, asked = CRAFTED[kind], list[int]()

            def read(_key: str, offset: int, limit: int, content: bytes = content, asked: list[int] = asked) -> bytes:
                assert 0 <= offset <= size
                asked.append(limit)
                from_end = size - offset
                return content[-from_end:][:limit] if from_end <= len(content) else content[: min(limit, 65_536)]

            checked(look(dict.fromkeys(built.files, size), read))
            assert max(asked, default=0) <= peek.JSON_MAX_BYTES, family
            assert sum(asked) <= len(built.files) * 2**20 + 2 * peek.JSON_MAX_BYTES, family


def test_a_name_that_promises_many_files_costs_nothing():
    files: Files = {f"r/checkpoint-5/model_{n}-00001-of-99999.safetensors": 9 for n in range(300)}
    (found,) = units(look({**files, "r/checkpoint-5/trainer_state.json": b'{"global_step": 5}'})).values()
    assert found.evidence is Evidence.PARTIAL and "model_0-00002-of-99999.safetensors is missing" in found.why
    assert len(promised_by(("a-00001-of-99999.bin", "a-00003-of-99999.bin"))) == 3
    ranks: Files = {f"v/global_step_1/actor/model_world_size_999999_rank_{n}.pt": 9 for n in (0, 2)}
    (found,) = units(look({**ranks, "v/global_step_1/data.pt": 9})).values()
    assert "rank_1.pt is missing" in found.why


MANY: dict[str, Callable[[int], Files]] = {
    "composer": lambda ranks: {f"m/ep0-ba7-rank{n}.pt": torch_zip(b"\x80\x02}.") for n in range(ranks)},
    "fairseq": lambda ranks: {
        f"m/checkpoint_1_7-shard{n}.pt": torch_file("model", "args", "extra_state") for n in range(ranks)
    },
    "dlrover": lambda ranks: {
        "m/dlrover_latest.txt": b"7",
        **{f"m/7/rank_{n}.pt": torch_file() for n in range(ranks)},
    },
    "nanochat": lambda ranks: {
        "m/model_000007.pt": torch_file(),
        "m/meta_000007.json": b'{"step": 7}',
        **{f"m/optim_000007_rank{n}.pt": torch_file() for n in range(ranks - 2)},
    },
    "nemo1_ranks": lambda ranks: {
        f"m/fsdp_shard_{n:05d}/m--step=7.ckpt": torch_file("state_dict", "optimizer_states") for n in range(ranks)
    },
    "speechbrain": lambda ranks: {
        f"m/CKPT+2026-01-01+10-00-0{at}+00/{name}": torch_file()
        for at in "12"
        for name in ("CKPT.yaml", *(f"{n}.ckpt" for n in range(ranks - 1)))
    },
}


@pytest.mark.parametrize("family", MANY)
def test_of_thousands_of_ranks_none_is_looked_into_and_that_is_told(family: str):
    """As many as the cap are; a run of ten thousand such checkpoints streams."""
    for ranks, evidence in ((FILES_MAX, SOUND), (FILES_MAX + 1, (Evidence.DOUBTFUL,))):
        files, asked = MANY[family](ranks), list[int]()
        read = memory(files)

        def heard(key: str, offset: int, limit: int, read: peek.Read = read, asked: list[int] = asked) -> bytes:
            asked.append(limit)
            return read(key, offset, limit)

        found = units(look(files, heard))
        assert {c.evidence in evidence for c in found.values()} == {True}, [c.why for c in found.values()]
        if ranks > FILES_MAX:
            assert len(asked) <= 4
            assert all(f"more than {FILES_MAX} are not looked into" in c.why for c in found.values())
        else:
            assert len(found) * ranks / 2 <= len(asked) <= len(found) * (2 * ranks + 4)


def test_json_that_would_take_far_more_room_than_its_text_is_not_read(monkeypatch: pytest.MonkeyPatch):
    assert parse_json(b'{"a": [[], [], []]}').look is Look.SEEN
    monkeypatch.setattr(peek, "JSON_NESTS_MAX", 4)
    assert parse_json(b'{"a": [[], [], []]}').look is Look.ODD
    monkeypatch.setattr(peek, "JSON_ITEMS_MAX", 2)
    assert parse_json(b'{"a": [1, 2, 3, 4]}').look is Look.ODD


def test_a_list_beside_many_units_is_read_once_and_a_failure_never_remembered():
    reads: list[str] = []
    broken = True

    def read(key: str, _offset: int, _limit: int) -> bytes:
        reads.append(key)
        if broken:
            raise OSError("not now")
        return b'{"a": 1}'

    one = Peek(read)
    assert [one.json("a", 8).look, one.json("a", 8).look, one.failures] == [Look.FAILED, Look.FAILED, 2]
    broken = False
    assert [one.json(key, 8).data for key in ("a", "a", "b", "a")] == [{"a": 1}] * 4
    assert reads == ["a", "a", "a", "b", "a"]


# -- real files, changed


REAL: dict[str, Files] = {}
"""No argument of a test: Hypothesis would print all of it."""


@pytest.fixture(scope="session")
def real(samples: Path) -> None:
    """Small runs that the frameworks themselves wrote, and trees built after the others."""
    REAL.update((name, built.files) for name, built in BUILT.items() if any(map(is_told, built.files.values())))
    for name in (
        "lightning/topk_metric_last", "hf_trainer/plain", "orbax/mgr_composite", "fvcore_detectron2", "torch_dcp",
        "ray_train", "sb3", "nanogpt", "torchsnapshot",
    ):  # fmt: skip
        root = samples / name
        paths = (p for p in sorted(root.rglob("*")) if p.is_file() and not p.is_symlink() and p.stat().st_size < 60_000)
        REAL[name] = {p.relative_to(root).as_posix(): p.read_bytes() for p in paths}
    assert all(REAL.values()) and len(REAL) > 25


def is_told(content: bytes | int) -> bool:
    """Whether there is content to change."""
    return isinstance(content, bytes) and bool(content)


def changed(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """The same number of bytes, some of them others."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.choice(b'\0\xff"{[(}].u\x80PK0e-')
            case 2:
                piece = other[chance.randrange(len(other)) :][: chance.choice((4, 30, 1000))]
                data[at : at + len(piece)] = piece[: len(data) - at]
            case _:
                end = chance.randrange(at, len(data)) + 1
                data[at:end] = data[at:end][::-1]
    return bytes(data)


def owner_of(key: str, found: dict[str, Checkpoint]) -> str | None:
    for c in found.values():
        if key in c.members or (c.shape is Shape.DIR and key.startswith(f"{c.key}/")):
            return c.key
    return None


@pytest.mark.usefixtures("real")
@settings(max_examples=150)
@given(seed=st.integers(0, 2**64))
def test_a_changed_file_helps_no_other_checkpoint(seed: int):
    chance = random.Random(seed)
    files = REAL[chance.choice(sorted(REAL))]
    before = units(look(files))
    key = chance.choice(sorted(key for key, content in files.items() if is_told(content)))
    content = files[key]
    assert isinstance(content, bytes)
    other = chance.choice([*CRAFTED.values(), *(c for c in files.values() if isinstance(c, bytes) and c)])
    runs = look({**files, key: changed(content, other, chance)})
    checked(runs)
    after = units(runs)
    assert after.keys() == before.keys(), "a content claims or hides something"
    owner = owner_of(key, before)
    for name, c in after.items() if owner is not None else ():
        if name != owner:
            assert RANK.get(c.evidence, 0) <= RANK.get(before[name].evidence, 0), f"{name} gains by {key}"


@pytest.mark.usefixtures("real")
@settings(max_examples=100)
@given(seed=st.integers(0, 2**64))
def test_a_file_of_another_length_is_survived(seed: int):
    chance = random.Random(seed)
    files = REAL[chance.choice(sorted(REAL))]
    key = chance.choice(sorted(files))
    content = files[key] or b"x"
    data = content if isinstance(content, bytes) else b"x" * content
    other = chance.choice([*CRAFTED.values()])
    at = chance.randrange(len(data))
    made = chance.choice((data[:at], data[:at] + other + data[at:], other, data + other, data * 2))
    checked(look({**files, key: made}))


ALONE = sorted(
    (family, key)
    for family, built in BUILT.items()
    for key, c in units(look(dict(built.files), None)).items()
    if c.shape is Shape.FILE and c.evidence in SOUND and c.layout != "flax"
)
"""Files that are a checkpoint each and show themselves that they are whole; Flax's show whose they are alone."""


def test_there_are_many_files_that_prove_themselves():
    assert len(ALONE) >= 20 and len({family for family, _ in ALONE}) >= 8


@pytest.mark.parametrize(("family", "key"), ALONE)
def test_noise_or_a_part_of_it_proves_nothing(family: str, key: str):
    files = dict(BUILT[family].files)
    content = files[key]
    assert isinstance(content, bytes)
    chance = random.Random(key)
    noise = [chance.randbytes(len(content)), b"\0" * len(content), content[:4] + chance.randbytes(len(content) - 4)]
    cuts = [content[:at] for at in {1, len(content) - 1, len(content) - 22, *chance.sample(range(1, len(content)), 8)}]
    for made in (*noise, *cuts):
        c = units(look({**files, key: made}))[key]
        assert c.evidence not in SOUND, f"{len(made)} of {len(content)} bytes: {c.why}"
