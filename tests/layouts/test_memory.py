"""What the newest checkpoint of a run says of the others: believed within the run, whatever the pickle holds."""

import io
import pickle
import pickletools
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Pointer, PointerRole, Run
from lifecycle.layouts.conventions import Conventions, Declared
from lifecycle.layouts.lightning import RETAINED_MAX
from lifecycle.layouts.opcodes import OPCODES_MAX, plain_dicts
from lifecycle.layouts.registry import survey
from tests.layouts.trees import memory, reader, scan, tree


class Score:
    """Stands for a tensor: anything that is not plain."""


def state(best: str, listed: Iterable[str] = (), last: str = "") -> dict[str, object]:
    scores = {path: Score() for path in listed}
    return {
        "monitor": "val_loss",
        "best_model_score": Score(),
        "best_model_path": best,
        "dirpath": "/scratch",
        "best_k_models": scores,
        "kth_best_model_path": next(iter(scores), ""),
        "last_model_path": last,
    }


def checkpoint(step: int, *states: dict[str, object], protocol: int = 2) -> bytes:
    callbacks = {f"ModelCheckpoint{{{n}}}": held for n, held in enumerate(states)}
    content = {"epoch": 1, "global_step": step, "state_dict": {"w": Score()}, "callbacks": callbacks}
    return torch_zip(pickle.dumps(content | {"optimizer_states": [{"state": {0: Score()}}]}, protocol))


def torch_zip(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    return stream.getvalue()


def look(files: dict[str, bytes], conventions: Conventions | None = None, **more) -> list[Run]:
    read = memory(files, more.pop("failing", ()))
    return survey("s", tree(files, **more), read, conventions or Conventions(), url="file:///data")


def believed(runs: list[Run]) -> set[tuple[str, str | None]]:
    return {(p.role.value, p.target) for run in runs for p in run.pointers if p.form == "pickle"}


OLD = "/scratch/exp/checkpoints"
OTHERS = {f"x/checkpoints/epoch={n}.ckpt": checkpoint(n) for n in (1, 2, 3)}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_resumed_trainers_beliefs_are_pointers(protocol: int):
    held = state(f"{OLD}/epoch=1.ckpt", [f"{OLD}/epoch=2.ckpt", f"{OLD}/epoch=1.ckpt", f"{OLD}/gone.ckpt"])
    newest = {"x/checkpoints/epoch=4.ckpt": checkpoint(4, held, protocol=protocol)}
    runs = look(OTHERS | newest)
    assert believed(runs) == {("best", "s:x/checkpoints/epoch=1.ckpt"), ("listed", "s:x/checkpoints/epoch=2.ckpt")}
    assert {p.on_dangle.value for run in runs for p in run.pointers if p.form == "pickle"} == {"ignored"}


def test_only_the_newest_is_heard_and_both_where_steps_and_times_disagree():
    files = {
        "x/checkpoints/epoch=4.ckpt": checkpoint(4, state("epoch=1.ckpt")),
        "x/checkpoints/epoch=5.ckpt": checkpoint(5, state("epoch=2.ckpt")),
    }
    second = ("best", "s:x/checkpoints/epoch=2.ckpt")
    assert believed(look(OTHERS | files)) == {second}
    times = {"x/checkpoints/epoch=4.ckpt": 2_000_000_000}
    assert believed(look(OTHERS | files, times=times)) == {second, ("best", "s:x/checkpoints/epoch=1.ckpt")}


def test_what_is_gone_dangles_in_the_run_and_lists_are_no_alarm():
    files = {
        "x/checkpoints/epoch=4.ckpt": checkpoint(4, state("/else/where/epoch=9.ckpt", ["/a/gone.ckpt"], "last.ckpt"))
    }
    links = {"x/checkpoints/last.ckpt": "../../y/epoch=1.ckpt"}
    runs = look(files | {"y/epoch=1.ckpt": checkpoint(1)}, links=links)
    assert believed(runs) == {("best", "s:x/checkpoints/epoch=9.ckpt"), ("latest", None)}
    assert {p.flags for run in runs for p in run.pointers if p.form == "pickle"} == {(), ("external_reference",)}


def test_the_longest_common_end_decides_and_equals_are_all_protected():
    names = ("x/checkpoints/epoch=0-val/acc=0.5.ckpt", "x/checkpoints/epoch=1-val/acc=0.5.ckpt")
    files = {name: checkpoint(n) for n, name in enumerate(names)}

    def of(path: str) -> set[tuple[str, str | None]]:
        return believed(look(files | {"x/checkpoints/last.ckpt": checkpoint(9, state(path))}))

    assert of("/old/checkpoints/epoch=1-val/acc=0.5.ckpt") == {("best", f"s:{names[1]}")}
    assert of("/old/elsewhere/acc=0.5.ckpt") == {("best", f"s:{name}") for name in names}


def test_a_list_of_everything_ever_saved_chooses_nothing():
    files = {f"x/checkpoints/epoch={n}.ckpt": checkpoint(n) for n in range(RETAINED_MAX + 1)}
    held = state(f"{OLD}/epoch=0.ckpt", [f"{OLD}/epoch={n}.ckpt" for n in range(RETAINED_MAX + 1)])
    files[f"x/checkpoints/epoch={RETAINED_MAX + 1}.ckpt"] = checkpoint(RETAINED_MAX + 1, held)
    assert believed(look(files)) == {("best", "s:x/checkpoints/epoch=0.ckpt")}


def test_files_under_declared_names_are_heard_too():
    files = {"r/net-1.ckpt": checkpoint(1), "r/net-2.ckpt": checkpoint(2, state("/old/net-1.ckpt"))}
    runs = look(files, Conventions(declared=(Declared("mine", "net-{step}.ckpt"),)))
    assert believed(runs) == {("best", "s:r/net-1.ckpt")}


def test_weights_alone_and_cut_files_are_not_heard():
    bare = torch_zip(pickle.dumps({"global_step": 9, "state_dict": {}, "callbacks": {"c": state("epoch=1.ckpt")}}, 2))
    cut = checkpoint(8, state("epoch=2.ckpt"))[:-9]
    files = {"x/checkpoints/epoch=9.ckpt": bare, "x/checkpoints/epoch=8.ckpt": cut}
    assert believed(look(OTHERS | files)) == set()


def test_a_read_that_fails_stops_the_run():
    key = "x/checkpoints/epoch=4.ckpt"
    files = OTHERS | {key: checkpoint(4, state("epoch=1.ckpt"))}
    read, seen = memory(files), [0]

    def once(wanted: str, offset: int, limit: int) -> bytes:
        seen[0] += wanted == key
        return read(wanted if seen[0] < 5 or wanted != key else "no", offset, limit)

    (run,) = survey("s", tree(files), once, Conventions())
    assert not run.complete
    (run,) = survey("s", tree(files), read, Conventions())
    assert run.complete


def test_links_to_last_and_runs_that_moved_are_found_in_the_samples(samples: Path):
    runs = survey("s", scan(samples / "lightning"), reader(samples / "lightning"), Conventions())
    pointers = [p for run in runs for p in run.pointers if p.form == "pickle"]
    assert {p.role for p in pointers} == {PointerRole.BEST, PointerRole.LATEST, PointerRole.LISTED}
    assert all(p.target and p.target.startswith(f"s:{p.run}/") for p in pointers)


HOSTILE = [
    "/etc/passwd", "..", "../..", "../../y/epoch=1.ckpt", "/data/y/epoch=1.ckpt", "\ud800/epoch=1.ckpt", "\udcff",
    "a\0b", "x" * 5000, "a\nb", "/", "s3://other/epoch=1.ckpt", "y/epoch=1.ckpt", "epoch=1.ckpt/", "///epoch=1.ckpt",
]  # fmt: skip
paths = st.sampled_from(HOSTILE) | st.text(max_size=20)


@given(paths, st.lists(paths, max_size=4), paths, st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_no_pickle_points_out_of_its_run(best: str, listed: list[str], last: str, protocol: int):
    stored = checkpoint(4, state(best, listed, last), protocol=protocol)
    runs = look(OTHERS | {"x/checkpoints/epoch=4.ckpt": stored, "y/epoch=1.ckpt": checkpoint(1)})
    for pointer in (p for run in runs for p in run.pointers if p.form == "pickle"):
        check(pointer)


def check(pointer: Pointer) -> None:
    if pointer.target is None:
        assert pointer.flags
        return
    assert pointer.target.startswith("s:x/checkpoints/"), pointer
    assert not {"", ".", ".."} & set(pointer.target.split("/"))
    pointer.target.encode("utf-8", "surrogateescape")


plain = st.recursive(
    st.integers() | st.text(max_size=5) | st.none() | st.floats() | st.binary(max_size=5) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=12,
)


@given(plain, st.text(max_size=30), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_the_machine_sees_what_an_unpickler_would_make(around: object, text: str, protocol: int):
    inner = {"here": text, "again": text, "more": {text: around, "k": 1}}
    (found,) = plain_dicts(pickle.dumps([around, {"a": inner}, around], protocol), "here")
    assert (found["here"], found["again"]) == (text, text)
    more = found["more"]
    assert isinstance(more, dict) and more.keys() == {text, "k"}


@given(st.binary(max_size=300), st.integers(0, 60), st.integers(0, 255))
def test_any_bytes_end_the_walk_and_nothing_else(data: bytes, at: int, byte: int):
    plain_dicts(data, "here")
    good = bytearray(pickle.dumps({"here": "x", "b": [{}, (), {1: 2}]}, 2))
    good[at % len(good)] = byte
    plain_dicts(bytes(good), "here")


@pytest.mark.parametrize(
    "data",
    [b"(" * 1_000_000, b"}" * 1_000_000, b"}2" * 500_000, b"(" + b"]" * 500_000 + b"u", b"}q\0" + b"h\0" * 1_000_000],
    ids=["marks", "dicts", "copies", "no pairs", "one dict"],
)
def test_a_long_walk_is_cut(data: bytes, monkeypatch: pytest.MonkeyPatch):
    taken = 0
    steps = pickletools.genops

    def counted(source: bytes):
        nonlocal taken
        for step in steps(source):
            taken += 1
            yield step

    monkeypatch.setattr(pickletools, "genops", counted)
    assert plain_dicts(data, "here") == []
    assert taken <= OPCODES_MAX + 2
