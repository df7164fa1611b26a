"""Frameworks with names of their own: what is recognised, that a loss is seen, and that nothing else is taken."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.listing import Flavour, Listing
from lifecycle.core.model import Checkpoint, Evidence, Kind, Run, Shape
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.gather import Gathering
from lifecycle.layouts.peek import Peek
from lifecycle.layouts.registry import CATALOGUE, survey
from lifecycle.layouts.walk import Walk
from tests.layouts.frameworks import ALIKE, BUILT, TRAPS, Files, each, torch_file
from tests.layouts.test_golden import GOLDEN, document, facts
from tests.layouts.trees import memory, tree

CODE = re.compile(r"`(\w+)`")
SOUND = (Evidence.PROVEN, Evidence.WHOLE)


def look(files: Files, links: Mapping[str, str] | None = None, flavour: Flavour = Flavour.POSIX) -> list[Run]:
    return survey("s", tree(files, links=links, flavour=flavour), memory(files), Conventions(), url="file:///data")


def units(runs: list[Run]) -> dict[str, Checkpoint]:
    return {c.key: c for run in runs for c in run.checkpoints}


def keys_of(c: Checkpoint, files: Files) -> list[str]:
    return [k for k in files if k in c.members or (c.shape is Shape.DIR and k.startswith(f"{c.key}/"))]


@pytest.mark.parametrize("family", BUILT)
def test_each_framework_is_recognised_as_before(family: str, golden: Callable[[Path, str], None]):
    built = BUILT[family]
    seen = document(look(built.files, built.links))
    golden(GOLDEN / f"built-{family}.json", json.dumps(seen, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("family", BUILT)
def test_a_lost_or_emptied_member_is_never_overlooked(family: str):
    built = BUILT[family]
    for key, c in units(look(built.files, built.links)).items():
        members = keys_of(c, built.files) if c.evidence in SOUND else []
        for member in members if len(members) > 1 else ():
            if built.spare and member.endswith(built.spare):
                continue
            rest = {k: v for k, v in built.files.items() if k != member}
            left = units(look(rest, built.links)).get(key)
            assert left is None or left.evidence not in SOUND, f"{key} without {member}: {left.why}"
            if built.files[member]:
                left = units(look({**built.files, member: 0}, built.links)).get(key)
                assert left is None or left.evidence not in SOUND, f"{key} with an empty {member}: {left.why}"


@pytest.mark.parametrize("family", BUILT)
def test_a_read_that_fails_proves_nothing(family: str):
    built = BUILT[family]
    listing = tree(built.files, links=built.links)
    sure = units(look(built.files, built.links))
    for failing in built.files:
        read = memory(built.files, (failing,))
        for key, c in units(survey("s", listing, read, Conventions(), url="file:///data")).items():
            better = c.evidence in SOUND and sure[key].evidence not in SOUND
            assert not better, f"{key}: {c.why}, though {failing} was not read"


@pytest.mark.parametrize("family", BUILT)
def test_names_and_sizes_alone_claim_the_same(family: str):
    built = BUILT[family]
    blind = survey("s", tree(built.files, links=built.links), None, Conventions())
    assert units(blind).keys() == units(look(built.files, built.links)).keys()


UNRELATED = [
    "notes.txt", "README.md", "train.py", "model.py", "config.yaml", "events.out.tfevents.1", "wandb/run-1/x.json",
    "data/part-0.parquet", "logs/stdout.log", "samples/step_1.png", "results.json", "metrics.csv", "tokenizer.json",
    "2024/x.bin", "eval/step_5/scores.json", "src/checkpoint/x.py", "a.pt", "embeddings.pth", "x.zip", "best/README",
    "nohup.out", "__pycache__/x.pyc", "cache/model-00001-of-00001.bin", ".DS_Store", "epoch.txt", "step.json",
]  # fmt: skip
RANK = {Evidence.PROVEN: 2, Evidence.WHOLE: 2}


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(BUILT)),
    st.lists(st.sampled_from(UNRELATED), min_size=1, max_size=6, unique=True),
    st.sampled_from(["", "g/", "g/t1/", "g/fold_0/", "g/weights/", "g/huggingface/"]),
    st.integers(0, 9),
)
def test_what_is_unrelated_makes_no_unit_grow_or_complete(family: str, names: list[str], at: str, size: int):
    built = BUILT[family]
    before = units(look(built.files, built.links))
    after = units(look({**built.files, **{at + n: size for n in names if at + n not in built.files}}, built.links))
    assert after.keys() == before.keys()
    for key, c in before.items():
        assert (after[key].members, after[key].bytes) == (c.members, c.bytes)
        assert RANK.get(after[key].evidence, 0) <= RANK.get(c.evidence, 0), after[key].why


@settings(max_examples=60)
@given(st.sampled_from(sorted(BUILT)), st.data())
def test_no_loss_makes_a_unit_complete(family: str, data: st.DataObject):
    built = BUILT[family]
    before = units(look(built.files, built.links))
    lost = set(data.draw(st.lists(st.sampled_from(sorted(built.files)), min_size=1, max_size=4)))
    after = units(look({k: v for k, v in built.files.items() if k not in lost}, built.links))
    inside = {key: [k for k in lost if k in keys_of(c, built.files)] for key, c in before.items()}
    for key, c in after.items():
        if key in before and before[key].evidence in (Evidence.PARTIAL, Evidence.WRITING) and inside[key]:
            assert c.evidence not in SOUND, c.why


@pytest.mark.parametrize("name", TRAPS)
def test_traps_are_not_claimed(name: str):
    for flavour in Flavour:
        assert units(look(TRAPS[name], flavour=flavour)) == {}


@pytest.mark.parametrize("name", ALIKE)
def test_what_only_looks_alike_never_counts(name: str):
    for flavour in Flavour:
        found = units(look(ALIKE[name], flavour=flavour))
        assert {key: c.why for key, c in found.items() if c.evidence in SOUND} == {}


OTHERS_ON_OBJECTS = {
    "nemo_rl/g/step_10": "whole",
    "nemo_rl/g/step_20": "whole",
    "t5x/g/checkpoint_1000": "doubtful",
    "t5x/g/checkpoint_2000": "doubtful",
}
"""Where a rename proves them on a file system."""


@pytest.mark.parametrize("family", BUILT)
def test_a_flat_store_shows_the_same(family: str):
    built = BUILT[family]
    same(look(built.files, built.links), look(built.files, flavour=Flavour.OBJECT), family)


def same(files: list[Run], objects: list[Run], family: str = "") -> None:
    here, there = units(files), units(objects)
    assert there.keys() == here.keys()
    for key, c in here.items():
        mine, other = facts(c), facts(there[key])
        name = f"{family}/{key}".removeprefix("/")
        if name in OTHERS_ON_OBJECTS:
            assert other.pop("evidence") == OTHERS_ON_OBJECTS[name]
            mine.pop("evidence")
        mine.pop("why"), other.pop("why")
        assert other == mine


def test_hard_linked_copies_are_told():
    built = BUILT["timm"].files
    listing = tree(built)
    folder = listing.folders["g"]
    at = {name: index for index, name in enumerate(folder.names)}
    tokens: Any = folder.tokens
    tokens[at["last.pth.tar"]] = tokens[at["checkpoint-2.pth.tar"]]
    found = units(survey("s", listing, memory(built), Conventions()))
    assert {c.name for c in found.values() if "duplicate_path" in c.flags} == {"last.pth.tar", "checkpoint-2.pth.tar"}
    assert found["g/model_best.pth.tar"].kind is Kind.BEST_COPY


def test_a_name_alone_is_no_wrapper_and_a_snapshot_that_is_odd_stops():
    files: Files = {"g/checkpoint_000001/checkpoint-5/trainer_state.json": b"{}", "g/experiment_state.json": 2}
    assert units(look(files)) == {}
    ray = dict(BUILT["ray_train"].files)
    ray["g/checkpoint_manager_snapshot.json"] = b"{cut"
    (run,) = look(ray)
    assert {c.evidence for c in run.checkpoints} == {Evidence.DOUBTFUL}
    assert [p.flags for p in run.pointers] == [("pointer_unreadable",)]


def test_a_file_that_somebody_has_open_keeps_its_unit():
    files = {**BUILT["olmo_core"].files, "g/step0/train/.nfs0001": 5}
    assert units(look(files))["g/step0"].evidence is Evidence.WRITING


def test_rows_that_were_there_before_come_first():
    files: Files = {"g/step-5/_CHECKPOINT_METADATA": 9, "g/step-5/model/manifest.ocdbt": 9, "g/step-5/metadata.json": 9}
    files |= {"h/step-5/random_states_0.pkl": 9, "h/step-5/model.safetensors": 9, "h/step-5/model/x/.zarray": 9}
    assert {key: c.layout for key, c in units(look(files)).items()} == {"g/step-5": "orbax", "h/step-5": "accelerate"}


def test_a_directory_that_is_more_than_a_snapshot_is_doubtful():
    built = BUILT["torchsnapshot"].files
    for more in ({"g/any/runs/checkpoint-1/model.safetensors": 9}, {"g/any/.snapshot_metadata": 0}):
        assert units(look({**built, **more}))["g/any"].evidence is Evidence.DOUBTFUL


def test_a_cut_file_is_partial_and_a_foreign_one_doubtful():
    good = torch_file("model", "optimizer", iteration=4)
    files: Files = {"g/last_checkpoint": b"x", "g/model_0000001.pth": good[:-5], "g/model_0000002.pth": b"old pickle"}
    files |= {"g/model_0000003.pth": good, "g/model_0000004.pth": 0}
    found = {c.name: (c.evidence.value, c.step) for c in units(look(files)).values()}
    assert found == {
        "model_0000001.pth": ("partial", 2),
        "model_0000002.pth": ("doubtful", 3),
        "model_0000003.pth": ("proven", 4),
        "model_0000004.pth": ("partial", 5),
    }


PAGE = (Path(__file__).parents[2] / "docs/layouts.md").read_text()


def test_the_page_names_every_layout_and_no_other():
    shown = {name for line in re.findall(r"^\| [^|]+ \|([^|]*)\|", PAGE, re.MULTILINE) for name in CODE.findall(line)}
    rows: list[Any] = [*CATALOGUE.directories, *CATALOGUE.files, *CATALOGUE.spread]
    assert shown == {row.name for row in rows}


def test_the_framework_that_the_page_adds_is_recognised():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made: dict[str, Any] = {}
    exec(code, made)  # the page's own example, which is to work as it stands
    catalogue = replace(CATALOGUE, directories=(made["ACME"], *CATALOGUE.directories))
    files: Files = each((1, 2, 3), {f"a/acme-{{n}}/weights.rank{rank}.bin": 64 for rank in (0, 1)})
    files |= {"a/acme-1/DONE.json": 2, "a/acme-2/DONE.json": 2, "a/newest.txt": b"acme-2\n", "b/acme-9/notes": 1}
    listing, peek = tree(files), Peek(memory(files))
    trail = Walk(listing, peek, Conventions(), catalogue).run("")
    (run,) = Gathering("s", listing, peek, Conventions(), catalogue, "").runs(trail, "")
    assert [(c.key, c.step, c.evidence.value) for c in run.checkpoints] == [
        ("a/acme-1", 1, "proven"),
        ("a/acme-2", 2, "proven"),
        ("a/acme-3", 3, "partial"),
    ]
    assert [(p.role.value, p.target) for p in run.pointers] == [("latest", "s:a/acme-2")]


def test_nothing_is_slower_for_those_who_have_none_of_them():
    """A directory of names that no row knows costs no read at all."""
    files: Files = each(tuple(range(50)), {"x/run/{n}/out.log": 9, "x/run/notes-{n}.txt": 9})

    def read(key: str, offset: int, limit: int) -> bytes:
        raise AssertionError(f"{key} was read")

    listing: Listing = tree(files)
    assert units(survey("s", listing, read, Conventions())) == {}
