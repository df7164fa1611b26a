"""What runs were made from: read from their files, by links, declared; and no plan lets a parent go."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import OnDangle, Pointer, PointerRole, Run, Shape
from lifecycle.core.policy import Last, Limits, Match, Policy
from lifecycle.core.protect import Around, by_target
from lifecycle.core.select import glob
from lifecycle.layouts.conventions import Conventions, Declared
from lifecycle.layouts.lineages import DEPTH_MAX, FILE_MAX_BYTES, OF_RUN, OF_UNIT, VALUES_MAX, abroad, declared, said
from lifecycle.layouts.registry import survey
from tests.layouts.trees import memory, tree

DAY = 86_400 * 10**9
NOW = 20_000 * DAY
URLS = {"hot": "file:///mnt/hot", "warm": "file:///mnt/warm", "s3": "s3://bucket/ckpt"}
Files = dict[str, bytes | int]


def unit(key: str) -> Files:
    step = int(key.rpartition("-")[2])
    state = {"global_step": step, "log_history": []}
    names = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin")
    return {f"{key}/trainer_state.json": json.dumps(state).encode()} | {f"{key}/{name}": 64 for name in names}


def look(store: str, files: Files, links: dict[str, str] | None = None, failing: tuple[str, ...] = ()) -> list[Run]:
    def step(key: str) -> int:
        return int(key.split("checkpoint-")[1].split("/", maxsplit=1)[0]) if "checkpoint-" in key else 0

    times = {key: NOW - 100 * DAY + step(key) * DAY for key in files}
    return survey(store, tree(files, links=links, times=times), memory(files, failing), Conventions(), url=URLS[store])


def leads(runs: list[Run], run: str) -> list[tuple[str, str | None]]:
    (one,) = (r for r in runs if r.path == run)
    roles = (PointerRole.RESUME, PointerRole.NEED)
    return [(p.key, p.target) for q in one.pointers for p in abroad(q, URLS) if p.role in roles]


BASE = unit("base/checkpoint-1") | unit("base/checkpoint-2") | unit("base/checkpoint-3")
CHILD = unit("sft/checkpoint-1") | unit("sft/checkpoint-2")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".hydra/config.yaml", "trainer:\n  max: 3\nckpt_path: /mnt/hot/base/checkpoint-1  # warm start\n"),
        (".hydra/config.yaml", "exp_manager:\n    resume_from_checkpoint: '/mnt/hot/base/checkpoint-1'\n"),
        ("hparams.yaml", "cfg:\n  model:\n    restore_from_path: \"/mnt/hot/base/checkpoint-1\"\n"),
        ("hparams.yaml", "restore_config:\n  load_optim: false\n  path: /mnt/hot/base/checkpoint-1\n"),
        ("config.yaml", "checkpoints:\n- init: x\n  resume_checkpoint_path: base/checkpoint-1\n"),
        ("config.yaml", "ckpt_path: ../base/checkpoint-1\r\n"),
        ("args.json", '{"train": {"deep": {"model_name_or_path": "base/checkpoint-1"}}}'),
        ("args.json", '{"resume_from_checkpoint": "/mnt/hot/base/checkpoint-1/"}'),
        ("checkpoint-2/config.json", '{"_name_or_path": "/mnt/hot/base/checkpoint-1"}'),
        ("checkpoint-2/training_args.json", '{"adapter_name_or_path": "/mnt/hot/base/checkpoint-1/model.safetensors"}'),
        ("checkpoint-2/run_config.yaml", "checkpoint:\n  pretrained_checkpoint: /mnt/hot/base/checkpoint-1\n"),
    ],
)  # fmt: skip
def test_where_frameworks_say_so(file: str, content: str):
    found = leads(look("hot", BASE | CHILD | {f"sft/{file}": content.encode()}), "sft")
    assert found == [(f"sft/{file}", "hot:base/checkpoint-1")]


def test_every_file_and_key_of_the_table_is_read():
    for table, place in ((OF_RUN, "sft"), (OF_UNIT, "sft/checkpoint-2")):
        for source in table:
            for key in sorted(source.keys):
                names = key.split(".")
                if source.file.endswith(".json"):
                    document: Any = "/mnt/hot/base/checkpoint-1"
                    for name in reversed(names):
                        document = {name: document}
                    text = json.dumps(document)
                else:
                    text = "".join(f"{'  ' * n}{name}:\n" for n, name in enumerate(names))
                    text = text[:-1] + " /mnt/hot/base/checkpoint-1\n"
                files = BASE | CHILD | {f"{place}/{source.file}": text.encode()}
                assert ("hot:base/checkpoint-1") in [t for _, t in leads(look("hot", files), "sft")], (source.file, key)


@pytest.mark.parametrize(
    "text",
    ["meta-llama/Llama-3-8B", "gpt2", "null", "true", "last", "/mnt/hot/sft", "/mnt/hot/sft/", "."],
)
def test_a_name_on_a_hub_a_switch_and_the_run_itself_are_no_parents(text: str):
    files = BASE | CHILD | {"sft/.hydra/config.yaml": f"ckpt_path: {text}\n".encode()}
    assert leads(look("hot", files), "sft") == []


def test_what_a_newest_checkpoint_was_loaded_from_in_its_own_run_is_no_parent_of_it():
    files = CHILD | {"sft/checkpoint-2/config.json": b'{"_name_or_path": "/mnt/hot/sft/checkpoint-1"}'}
    assert leads(look("hot", files), "sft") == []


def test_the_final_model_in_a_runs_own_directory_is_a_parent_like_any_other():
    export: Files = {"sft/config.json": b"{}", "sft/model.safetensors": 9, "sft/DONE": 1}
    site = Conventions(declared=(Declared("final", "sft", Shape.DIR, proof="DONE"),))
    files = export | {"dpo/args.json": b'{"load_path": "sft"}'} | unit("dpo/checkpoint-1")
    runs = survey("hot", tree(files), memory(files), site, url=URLS["hot"])
    assert [p.target for run in runs for p in run.pointers if p.role is PointerRole.RESUME] == ["hot:sft"]


def test_only_the_newest_checkpoint_is_asked():
    asked: list[str] = []
    files = BASE | {f"base/checkpoint-{n}/config.json": b"{}" for n in (1, 2, 3)}
    read = memory(files)

    def heard(key: str, offset: int, limit: int) -> bytes:
        asked.append(key)
        return read(key, offset, limit)

    survey("hot", tree(files), heard, Conventions(), url=URLS["hot"])
    assert [key for key in asked if key.endswith("config.json")] == ["base/checkpoint-3/config.json"]


def test_what_cannot_be_found_is_told_and_what_cannot_be_read_is_too():
    files = CHILD | {"sft/.hydra/config.yaml": b"ckpt_path: /mnt/hot/gone/checkpoint-9\nload_path: /elsewhere/x\n"}
    (run,) = look("hot", files)
    assert [(p.target, p.flags) for p in run.pointers if p.role is PointerRole.RESUME] == [
        (None, ("external_reference",)),
        ("hot:gone/checkpoint-9", ()),
    ]
    (run,) = look("hot", files, failing=("sft/.hydra/config.yaml",))
    assert [(p.key, p.flags) for p in run.pointers] == [("sft/.hydra/config.yaml", ("metadata_unavailable",))]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".hydra/config.yaml", b"load_path: /scratch7/base/checkpoint-3\n"),
        ("hparams.yaml", b"ckpt_path: /scratch7/base/checkpoint-3\n"),
        ("checkpoint-2/config.json", b'{"_name_or_path": "/scratch7/base/checkpoint-3"}'),
        ("checkpoint-1/adapter_config.json", b'{"base_model_name_or_path": "/scratch7/base/checkpoint-3"}'),
    ],
)
def test_a_parent_below_no_known_store_is_a_note_that_tells_what_to_do(file: str, content: bytes):
    (run,) = look("hot", CHILD | {f"sft/{file}": content})
    judgement = evaluate((run,), [Policy("p", Match(), (Last(1),))], Around(NOW))
    (note,) = [f for f in judgement.findings if f.code == "external_reference"]
    assert (note.severity, note.subject.startswith("hot:sft/")) == ("note", True)
    assert "parents:" in note.text


def test_a_relative_path_to_a_run_and_an_adapter_whose_base_is_a_run_or_elsewhere():
    files = BASE | CHILD | {"sft/config.yaml": b"load_path: ../base\n"}
    assert leads(look("hot", files), "sft") == [("sft/config.yaml", "hot:base")]
    adapter: Files = {
        "lora/checkpoint-1/adapter_model.safetensors": 9,
        "lora/checkpoint-1/trainer_state.json": b'{"global_step": 1}',
        "lora/checkpoint-1/adapter_config.json": b'{"base_model_name_or_path": "s3://bucket/ckpt/base/checkpoint-3"}',
    }
    (run,) = look("hot", adapter)
    (pointer,) = (p for q in run.pointers for p in abroad(q, URLS))
    assert (pointer.role, pointer.target, pointer.on_dangle) == (
        PointerRole.NEED, "s3:base/checkpoint-3", OnDangle.CRASH,
    )  # fmt: skip


OUT = Pointer("hot", "r", "r/a/base", PointerRole.REFERENCE, None, "", "symlink", flags=("external_reference",))


@pytest.mark.parametrize(
    ("text", "form", "targets"),
    [
        ("/mnt/warm/run/checkpoint-1", "symlink", ["warm:run/checkpoint-1"]),
        ("../../../warm/run/x", "symlink", ["warm:run/x"]),
        ("../../../warm/run/x", "config", [None]),
        ("file:///mnt/warm/run", "config", ["warm:run"]),
        ("/mnt/warm//run/./x/../checkpoint-1/", "config", ["warm:run/checkpoint-1"]),
        ("s3a://bucket/ckpt/run/checkpoint-1", "config", ["s3:run/checkpoint-1"]),
        ("s3://bucket/ckpt", "config", [None]),
        ("s3://bucket/ckpt2/run", "config", [None]),
        ("/mnt/warmer/run", "config", [None]),
    ],
)
def test_other_stores(text: str, form: str, targets: list[str | None]):
    pointer = replace(OUT, text=text, form=form)
    found = abroad(pointer, URLS)
    assert [p.target for p in found] == targets
    assert all(p.flags == (() if p.target else ("external_reference",)) for p in found)
    assert abroad(replace(pointer, target="hot:x", flags=()), URLS) == [replace(pointer, target="hot:x", flags=())]
    assert abroad(pointer, {})[0].target is None


def test_roots_within_each_other_are_all_meant():
    urls = {"all": "file:///mnt", "warm": "file:///mnt/warm"}
    found = abroad(replace(OUT, text="/mnt/warm/r"), urls)
    assert [p.target for p in found] == ["all:warm/r", "warm:r"]


@given(st.binary(max_size=300), st.sampled_from(["a.json", "a.yaml"]))
def test_any_bytes_are_read_as_something(data: bytes, name: str):
    found = said(data, name, {"ckpt_path"})
    assert isinstance(found, list) or (b"ckpt_path" in data and name.endswith(".json"))


def test_all_that_a_relative_path_may_mean_stays():
    """Read from the run, from the directory above, or from the root: nobody knows where the child was started."""
    files = unit("out/checkpoint-1") | unit("a/out/checkpoint-1") | unit("a/sft/checkpoint-5")
    files |= {"a/sft/config.yaml": b"ckpt_path: out/checkpoint-1\n"}
    found = {target for _, target in leads(look("hot", files), "a/sft")}
    assert found == {"hot:out/checkpoint-1", "hot:a/out/checkpoint-1"}


def test_a_path_of_another_mount_is_known_by_its_end():
    child: Files = {"sft/config.yaml": b"ckpt_path: /lustre/home/ann/base/checkpoint-1\n"}
    assert ("sft/config.yaml", "hot:base/checkpoint-1") in leads(look("hot", BASE | CHILD | child), "sft")
    child = {"sft/config.yaml": b"ckpt_path: /lustre/home/ann/other/checkpoint-1\n"}
    assert leads(look("hot", BASE | CHILD | child), "sft") == [("sft/config.yaml", None)], "one name says too little"


def test_a_relative_path_may_lead_into_another_store():
    child: Files = {"sft/config.yaml": b"ckpt_path: ../../warm/base/checkpoint-1\n"}
    assert ("sft/config.yaml", "warm:base/checkpoint-1") in leads(look("hot", CHILD | child), "sft")


@pytest.mark.parametrize(
    ("content", "target", "told"),
    [
        (b'{"stages": [{"ckpt_path": "/mnt/hot/base/checkpoint-1"}]}', "hot:base/checkpoint-1", False),
        (b'["ckpt_path"]', None, True),
        (b'["nothing of it"]', None, False),
        (b'{"ckpt_path": "/mnt/hot/base/checkpoint-1"', None, True),
        (b'{"ckpt_path": "/mnt/hot/base/checkpoint-1"}' + b" " * FILE_MAX_BYTES, "hot:base/checkpoint-1", True),
    ],
    ids=("list", "no object", "no key", "cut", "long"),
)
def test_what_is_not_read_is_told(content: bytes, target: str | None, told: bool):
    (run,) = (r for r in look("hot", BASE | CHILD | {"sft/args.json": content}) if r.path == "sft")
    found = [p for p in run.pointers if p.key == "sft/args.json"]
    assert {p.target for p in found if p.target} == ({target} if target else set())
    assert any("metadata_unavailable" in p.flags for p in found) == told


def test_reading_is_bounded():
    deep = b"{" + b'"a":{' * (DEPTH_MAX + 2) + b'"ckpt_path":"/x"' + b"}" * (DEPTH_MAX + 3)
    assert said(deep, "a.json", {"ckpt_path"}) == []
    wide = json.dumps({"x": {str(n): {"y": "z"} for n in range(VALUES_MAX)}, "ckpt_path": "/x"}).encode()
    assert said(wide, "a.json", {"ckpt_path"}) == ["/x"]
    indented = "".join(f"{' ' * n}a{n}:\n" for n in range(20)) + " " * 20 + "ckpt_path: /x\n"
    assert said(indented.encode(), "a.yaml", {"ckpt_path"}) == ["/x"]


# -- the law

WAYS = ("hydra", "args", "name_or_path", "adapter", "link", "declared")
NAMES = ("a", "b/c", "d")


@st.composite
def families(draw: st.DrawFn) -> list[tuple[int, str, int, int | None]]:
    """(child, way, parent, checkpoint or the whole run): any graph, cycles and runs that name themselves included."""
    runs = st.integers(0, 5)
    return draw(st.lists(st.tuples(runs, st.sampled_from(WAYS), runs, st.sampled_from([1, 2, None])), max_size=6))


def place_of(number: int) -> tuple[str, str]:
    return ("hot", "warm")[number % 2], NAMES[number // 2]


@settings(max_examples=60)
@given(families())
def test_no_plan_lets_a_parent_go(family: list[tuple[int, str, int, int | None]]):
    files: dict[str, Files] = {"hot": {}, "warm": {}}
    links: dict[str, dict[str, str]] = {"hot": {}, "warm": {}}
    said_so: list[tuple[str, str]] = []
    for number in range(6):
        store, path = place_of(number)
        for n in (1, 2, 3):
            files[store] |= unit(f"{path}/checkpoint-{n}")
    wanted: set[str] = set()
    used: set[tuple[int, str]] = set()
    for child, way, parent, step in family:
        (store, path), (other, home) = place_of(child), place_of(parent)
        key = home if step is None else f"{home}/checkpoint-{step}"
        text = f"/mnt/{other}/{key}"
        if (child, way) in used or (way == "link" and step is None):
            continue
        used.add((child, way))
        match way:
            case "hydra":
                files[store][f"{path}/.hydra/config.yaml"] = f"load_path: {text}\n".encode()
            case "args":
                files[store][f"{path}/args.json"] = json.dumps({"resume_from_checkpoint": text}).encode()
            case "name_or_path":
                files[store][f"{path}/checkpoint-3/config.json"] = json.dumps({"_name_or_path": text}).encode()
            case "adapter":
                files[store][f"{path}/checkpoint-3/adapter_config.json"] = json.dumps(
                    {"base_model_name_or_path": text}
                ).encode()
            case "link":
                links[store][f"{path}/base"] = text
            case _:
                said_so.append((f"{store}:{path}", f"{other}:{key}"))
        if child != parent:
            wanted |= {f"{other}:{home}/checkpoint-{n}" for n in ((1, 2, 3) if step is None else (step,))}
    runs = [run for store in files for run in look(store, files[store], links[store])]
    pointers = [p for run in runs for q in run.pointers for p in abroad(q, URLS)]
    pointers += [
        Pointer(c.store, c.run, c.key, PointerRole.NEED, f"{c.store}:{need}", need)
        for run in runs for c in run.checkpoints for need in c.needs
    ]  # fmt: skip
    pointers += declared(said_so, ((r.store, r.path) for r in runs), {p: glob(p) for p, _ in said_so})
    policy = Policy("p", Match(), (Last(1),), limits=Limits(grace_s=0))
    judgement = evaluate(tuple(runs), [policy], Around(NOW, (), by_target(pointers)))
    gone = {d.checkpoint.id for d in judgement.decisions if not d.keep}
    assert len(judgement.decisions) == 18
    assert gone & wanted == set()
    if not family:
        assert len(gone) == 12


def test_the_page_names_every_file_and_every_key():
    page = (Path(__file__).parent.parent.parent / "docs/parents.md").read_text()
    words = {word for source in (*OF_RUN, *OF_UNIT) for word in (source.file, *source.keys)}
    assert {word for word in words if f"`{word}`" not in page} == set()
