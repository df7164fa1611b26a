"""Looks into files: they believe nothing, execute nothing and end."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.layouts.inside import needles
from lifecycle.layouts.peek import Look, Peek, pickle_hints, safetensors_end, zip_directory, zip_member
from lifecycle.layouts.registry import CATALOGUE
from tests.layouts.trees import memory, reader


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_hostile_pickle_is_walked_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({"epoch": 3, "bomb": Bomb(), "global_step": 24, "state_dict": {}})
    hints = pickle_hints(data, frozenset({"epoch", "global_step", "state_dict", "optimizer_states"}))
    assert hints.values == {"epoch": 3, "global_step": 24}
    assert hints.names == {"epoch", "global_step", "state_dict"}
    assert not (tmp_path / "exploded").exists()


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes):
    pickle_hints(data, frozenset({"epoch"}))
    zip_directory(data, len(data))
    zip_member(data, "/data.pkl")
    safetensors_end(data)


@given(st.integers(1, 60), st.binary(max_size=30))
def test_a_zip_is_whole_with_any_comment_and_never_when_cut(cut: int, comment: bytes):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.comment = comment.replace(b"PK", b"--")
    data = stream.getvalue()
    for content, look in ((data, Look.SEEN), (data[:-cut], Look.ODD)):
        assert Peek(memory({"f": content})).zip("f", len(content))[0] is look


def test_torch_files_of_every_sample_are_whole_and_tell_their_names(samples: Path):
    peek = Peek(reader(samples))
    files = sorted(p for p in samples.rglob("*.ckpt") if p.is_file() and "_skeletons" not in p.parts)
    assert files
    for path in files:
        look, directory = peek.zip(path.relative_to(samples).as_posix(), path.stat().st_size)
        assert look is Look.SEEN and directory is not None, path
        hints = peek.torch(path.relative_to(samples).as_posix(), directory, ("global_step",))
        assert hints is not None and isinstance(hints.values["global_step"], int), path


def test_safetensors_of_the_samples_are_as_long_as_they_say(samples: Path):
    peek = Peek(reader(samples))
    files = [p for p in sorted(samples.rglob("*.safetensors")) if "_skeletons" not in p.parts]
    assert files
    for path in files:
        size = path.stat().st_size
        assert peek.safetensors_bytes(path.relative_to(samples).as_posix(), size) == size, path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"[^/]*__\d+_\d+\.distcp", (".distcp",)),
        (r"trainer_state\.json", ("trainer_state.json",)),
        (r"abc?d|wxyz+", ("ab", "wxyz")),
        (r"(a|b)c*", ()),
        (r"x{0,2}", ()),
        (r"lit|\d+", ()),
    ],
)
def test_needles_are_in_whatever_a_pattern_matches(pattern: str, expected: tuple[str, ...]):
    assert needles(pattern) == expected


def test_no_pattern_of_a_row_can_reach_over_a_name():
    for row in CATALOGUE.files:
        assert not row.member.search("/\n/")
        assert not any("/" in m.group() for m in row.member.finditer("/a=1.ckpt/ckpt-5.index/x.y/"))
