"""Metrics from files that frameworks write beside their checkpoints: which row is whose, and what is not believed."""

import csv
import io
import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.policy import Best, Limits, Match, Policy
from lifecycle.core.protect import Around
from lifecycle.layouts import records
from lifecycle.layouts.conventions import Conventions, Declared, MetricSource
from lifecycle.layouts.peek import Look, Peek
from lifecycle.layouts.records import read_rows
from lifecycle.layouts.registry import survey
from tests.layouts.frameworks import torch_file
from tests.layouts.trees import memory, tree

Files = dict[str, bytes | int]
NAMES = {
    "lightning": ("epoch", "global_step", "state_dict", "optimizer_states"),
    "fvcore": ("model", "iteration", "optimizer"),
    "mmengine": ("state_dict", "meta", "optimizer"),
    "timm": ("state_dict", "arch", "epoch", "optimizer"),
    "ultralytics": ("train_args", "ema", "best_fitness", "epoch"),
}


def saved(family: str, **values: int) -> bytes:
    return torch_file(*(name for name in NAMES[family] if name not in values), **values)


def look(files: Mapping[str, bytes | int], *sources: MetricSource, failing: tuple[str, ...] = ()) -> list[Run]:
    conventions = Conventions((Declared("mine", "step-{step}"),), metric_sources=sources)
    return survey("s", tree(files), memory(files, failing), conventions)


def metrics(runs: list[Run]) -> dict[str, dict[str, float]]:
    return {c.name: dict(c.metrics) for run in runs for c in run.checkpoints}


def checkpoints(runs: list[Run]) -> dict[str, Checkpoint]:
    return {c.name: c for run in runs for c in run.checkpoints}


def lines(*rows: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


LIGHTNING: Files = {
    "v/checkpoints/epoch=0-step=50.ckpt": saved("lightning", epoch=0, global_step=50),
    "v/checkpoints/epoch=1-step=100-val_loss=0.31.ckpt": saved("lightning", epoch=1, global_step=100),
    "v/metrics.csv": (
        b"epoch,step,train_loss,val_acc,val_loss\r\n0,49,0.9,,\r\n0,49,,0.7,0.5\r\n"
        b"0,50,0.8,,\r\n1,99,,0.8,0.3125\r\n1,100,0.1,0.1,0.1\r\n"
    ),
}


def test_lightning_counts_batches_from_0_and_epochs_must_agree():
    found = checkpoints(look(LIGHTNING))
    assert dict(found["epoch=0-step=50.ckpt"].metrics) == {"train_loss": 0.9, "val_acc": 0.7, "val_loss": 0.5}
    other = found["epoch=1-step=100-val_loss=0.31.ckpt"]
    assert origins(other) == {"val_acc": "metrics.csv", "val_loss": "metrics.csv"}
    assert other.metric("val_loss") == 0.3125, "a name says the same with fewer digits"


def origins(c: Checkpoint) -> dict[str, str]:
    return dict(zip((name for name, _ in c.metrics), c.metrics_from, strict=True))


@pytest.mark.parametrize(
    ("named", "told", "finer"),
    [
        ("0.31", "0.3125", True),
        ("0.31", "0.305", True),
        ("0.31", "0.3151", False),
        ("0.310", "0.3125", False),
        ("0.31", "0.31", False),
        ("0.31", "0.4", False),
        ("0.31", "nan", False),
        ("-0.3", "-0.3125", True),
        ("3e-01", "0.3125", True),
        ("3.1e-05", "3.125e-05", True),
        ("3.1e-05", "3.2e-05", False),
        ("7", "7.25", True),
        ("nan", "0.3125", False),
    ],
)
def test_a_name_is_overruled_by_a_file_that_says_the_same_with_more_digits_alone(named: str, told: str, finer: bool):
    key = f"v/checkpoints/epoch=1-step=100-val_loss={named}.ckpt"
    files: Files = {key: saved("lightning", epoch=1, global_step=100)}
    files["v/metrics.csv"] = f"epoch,step,val_loss\n1,99,{told}\n".encode()
    (found,) = checkpoints(look(files)).values()
    assert origins(found) == {"val_loss": "metrics.csv" if finer else "name"}
    value = found.metric("val_loss")
    assert value == float(told if finer else named) or (named == "nan" and value is not None and math.isnan(value))


def test_what_a_checkpoint_holds_is_overruled_by_no_file_beside_it():
    files: Files = {"t/checkpoint-1.pth.tar": saved("timm", epoch=1), "t/summary.csv": b"epoch,loss\n1,0.5\n"}
    ours = MetricSource("mine.jsonl")
    files |= {"t/step-1/x": 9, "t/mine.jsonl": lines({"step": 1, "loss": 0.25})}
    assert metrics(look(files, ours))["step-1"] == {"loss": 0.25}


NAMED = "v/checkpoints/epoch={e}-step={s}-val_loss={v}.ckpt"


def plan_best(files: Files, count: int = 1, mode: str = "min") -> list[str]:
    rule = Best("val_loss", mode, count)
    rules = Policy("p", Match(), (rule,), limits=Limits(grace_s=0))
    times = {key: int(key.partition("step=")[2].partition("-")[0]) * 10**9 for key in files if "step=" in key}
    listing = tree(files, times=times)
    judgement = evaluate(tuple(survey("s", listing, memory(files), Conventions())), [rules], Around(10**15))
    floor = {"floor.newest", "floor.full"}
    return sorted(
        d.checkpoint.name for d in judgement.decisions if any(m.keeps and m.code not in floor for _, m in d.marks)
    )


def named(*rows: tuple[int, str]) -> Files:
    return {
        NAMED.format(e=epoch, s=50 * epoch, v=value): saved("lightning", epoch=epoch, global_step=50 * epoch)
        for epoch, value in rows
    }


def test_of_names_that_round_to_one_number_all_stay_at_the_boundary():
    """Which of them is better nobody knows: rounding is not a fact."""
    files = named((1, "0.12"), (2, "0.12"), (3, "0.13"), (4, "0.12"), (5, "0.20"))
    assert [name[6] for name in plan_best(files)] == ["1", "2", "4"]
    assert [name[6] for name in plan_best(files, 3)] == ["1", "2", "4"]
    assert [name[6] for name in plan_best(files, 4)] == ["1", "2", "3", "4"]
    assert [name[6] for name in plan_best(files, 1, "max")] == ["5"]


def test_with_the_digits_of_a_file_the_best_is_known():
    files = named((1, "0.12"), (2, "0.12"), (3, "0.13"), (4, "0.12"), (5, "0.20"))
    table = "epoch,step,val_loss\n1,49,0.1204\n2,99,0.1157\n3,149,0.1251\n4,199,0.1241\n5,249,0.2\n"
    assert [name[6] for name in plan_best(files | {"v/metrics.csv": table.encode()})] == ["2"]


def test_a_number_of_a_file_and_one_of_a_name_are_compared_as_far_as_the_name_goes():
    files = named((1, "0.12"), (2, "0.12"), (3, "0.13"), (4, "0.14"), (5, "0.20"))
    table = b"epoch,step,val_loss\n1,49,0.1241\n"
    assert [name[6] for name in plan_best(files | {"v/metrics.csv": table})] == ["1", "2"]
    table = b"epoch,step,val_loss\n2,99,0.1151\n3,149,0.1252\n"
    assert [name[6] for name in plan_best(files | {"v/metrics.csv": table})] == ["1", "2"]
    assert [name[6] for name in plan_best(files | {"v/metrics.csv": table}, 2)] == ["1", "2"]


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=8), st.sets(st.integers(0, 7)), st.integers(1, 3), st.integers(1, 3)
)
def test_the_truly_best_are_kept_whatever_names_round_and_files_leave_out(
    true: list[float], told: set[int], count: int, digits: int
):
    files = named(*((n + 1, f"{value:.{digits}f}") for n, value in enumerate(true)))
    rows = "".join(f"{n + 1},{50 * (n + 1) - 1},{value!r}\n" for n, value in enumerate(true) if n in told)
    kept = plan_best(files | {"v/metrics.csv": f"epoch,step,val_loss\n{rows}".encode()}, count)
    best = sorted(range(len(true)), key=lambda n: (true[n], -n))[:count]
    assert {NAMED.format(e=n + 1, s=50 * (n + 1), v=f"{true[n]:.{digits}f}")[14:] for n in best} <= set(kept)


def test_lightning_with_two_optimizers_gets_no_row_of_another_epoch():
    files = {"v/checkpoints/epoch=0-step=100.ckpt": saved("lightning", epoch=0, global_step=100)}
    assert metrics(look({**files, "v/metrics.csv": LIGHTNING["v/metrics.csv"]})) == {"epoch=0-step=100.ckpt": {}}


def test_a_csv_above_a_directory_of_another_name_is_nobodys():
    moved = {key.replace("checkpoints", "run7"): content for key, content in LIGHTNING.items()}
    assert metrics(look(moved))["epoch=0-step=50.ckpt"] == {}
    beside = {**moved, "v/run7/metrics.csv": LIGHTNING["v/metrics.csv"]}
    assert metrics(look(beside))["epoch=0-step=50.ckpt"]["val_acc"] == 0.7


def test_a_step_told_with_two_epochs_is_not_taken_where_the_epoch_is_unknown():
    files: Files = {"v/checkpoints/step=50.ckpt": torch_file("state_dict", "optimizer_states", global_step=50)}
    table = b"epoch,step,loss\n0,49,0.5\n"
    assert metrics(look({**files, "v/metrics.csv": table})) == {"step=50.ckpt": {"loss": 0.5}}
    assert metrics(look({**files, "v/metrics.csv": table + b"1,49,0.4\n"})) == {"step=50.ckpt": {}}


def test_fvcore_iterations_count_from_0_in_name_and_file():
    files: Files = {
        "o/model_0004999.pth": saved("fvcore", iteration=4999),
        "o/last_checkpoint": b"model_0004999.pth",
        "o/metrics.json": lines(
            {"iteration": 4999, "bbox/AP": 30.0, "total_loss": 1.5},
            {"iteration": 5000, "bbox/AP": 99.0},
            {"iteration": 4999, "bbox/AP": 31.5},
        ),
    }
    (found,) = checkpoints(look(files)).values()
    assert found.step == 5000
    assert (dict(found.metrics), {*found.metrics_from}) == ({"bbox/AP": 31.5, "total_loss": 1.5}, {"metrics.json"})


def mmengine(*rows: dict[str, object], names: tuple[str, ...] = ("epoch_1.pth", "epoch_2.pth")) -> Files:
    files: Files = {f"w/{name}": saved("mmengine") for name in names}
    return {**files, "w/last_checkpoint": b"", "w/20260101_000000/vis_data/scalars.json": lines(*rows)}


def train(iteration: int, epoch: int | None = None) -> dict[str, object]:
    row: dict[str, object] = {"loss": 1.0, "iter": iteration, "step": iteration}
    return row if epoch is None else {**row, "epoch": epoch}


def test_mmengine_validates_epochs_or_iterations():
    by_epoch = mmengine(train(50, 1), {"acc": 0.1, "step": 1}, train(100, 2), {"acc": 0.2, "step": 2})
    assert metrics(look(by_epoch)) == {"epoch_1.pth": {"acc": 0.1}, "epoch_2.pth": {"acc": 0.2}}
    by_iteration = mmengine(train(50), {"acc": 0.1, "step": 50}, names=("iter_50.pth", "iter_100.pth"))
    assert metrics(look(by_iteration)) == {"iter_50.pth": {"acc": 0.1, "loss": 1.0}, "iter_100.pth": {}}


@pytest.mark.parametrize(
    "rows",
    [
        [{"acc": 0.1, "step": 2}],
        [train(50, 1), {"acc": 0.1, "step": 2}],
        [train(2), {"acc": 0.1, "step": 2}],
        [train(50, 2), {"acc": 0.1, "step": "2"}],
    ],
)
def test_mmengine_rows_that_may_count_something_else_are_nobodys(rows: list[dict[str, object]]):
    assert metrics(look(mmengine(*rows))) == {"epoch_1.pth": {}, "epoch_2.pth": {}}


def test_of_many_starts_the_newest_are_read_and_the_later_one_counts(monkeypatch: pytest.MonkeyPatch):
    files = mmengine(train(50, 1), {"acc": 0.1, "step": 1})
    again = lines(train(50, 1), {"acc": 0.3, "step": 1})
    files |= {f"w/2026010{day}_000000/vis_data/scalars.json": again for day in range(2, 10)}
    (run,) = look(files)
    assert metrics([run])["epoch_1.pth"] == {"acc": 0.3}
    assert ("w/20260101_000000/vis_data/scalars.json", "metrics_cut") in run.flags
    assert checkpoints([run])["epoch_1.pth"].metrics_from == ("20260109_000000/vis_data/scalars.json",)


def test_timm_epochs_are_those_of_the_names():
    files: Files = {
        "t/checkpoint-0.pth.tar": saved("timm", epoch=0),
        "t/checkpoint-1.pth.tar": saved("timm", epoch=1),
        "t/summary.csv": b"epoch,train_loss,eval_top1\n0,2.0,10.5\nepoch,train_loss,eval_top1\n1,1.5,20.5\n",
    }
    assert metrics(look(files)) == {
        "checkpoint-0.pth.tar": {"eval_top1": 10.5, "train_loss": 2.0},
        "checkpoint-1.pth.tar": {"eval_top1": 20.5, "train_loss": 1.5},
    }


@pytest.mark.parametrize(("first", "map50"), [(0, 0.25), (1, 0.5), (7, None)])
def test_ultralytics_epochs_count_from_what_the_first_row_says(first: int, map50: float | None):
    table = "             epoch,   metrics/mAP50(B)\n" + "".join(f"{first + n}, {n / 4 + 0.25}\n" for n in range(4))
    if first == 1:
        table = table.replace("0.25\n", "0.5\n", 1)
    files: Files = {
        "r/weights/epoch0.pt": saved("ultralytics", epoch=0),
        "r/weights/last.pt": saved("ultralytics", epoch=3),
        "r/results.csv": table.encode(),
    }
    found = metrics(look(files))
    assert found["epoch0.pt"].get("metrics/mAP50(B)") == map50
    assert found["last.pt"].get("metrics/mAP50(B)") == (None if map50 is None else 1.0)


MINE: Files = {"m/step-1/w": 9, "m/step-2/w": 9, "m/step-3/w": 9}


@pytest.mark.parametrize("name", ["h.jsonl", "h.csv"])
def test_a_declared_file_may_be_lines_or_a_table(name: str):
    table = b"step,val/reward\n1,0.5\n2,0.75\n1.0,0.625\n2.5,9\n"
    told = lines({"step": 1, "val/reward": 0.5}, {"step": 2, "val/reward": 0.75}, {"step": 1.0, "val/reward": 0.625})
    (run,) = look({**MINE, f"m/{name}": table if name.endswith("csv") else told}, MetricSource(name))
    assert metrics([run]) == {"step-1": {"val/reward": 0.625}, "step-2": {"val/reward": 0.75}, "step-3": {}}
    assert {c.metrics_from for c in run.checkpoints} == {(name,), ()}


def test_what_the_site_declares_overrules_what_a_framework_wrote():
    source = MetricSource("h.jsonl")
    files = {**LIGHTNING, "v/checkpoints/h.jsonl": lines({"step": 100, "val_loss": 0.25})}
    (run,) = look(files, source)
    found = checkpoints([run])["epoch=1-step=100-val_loss=0.31.ckpt"]
    told = zip(found.metrics, found.metrics_from, strict=True)
    assert [(value, source) for (name, value), source in told if name == "val_loss"] == [(0.25, "h.jsonl")]


def test_not_finite_numbers_stay_for_they_say_something():
    files = {
        **MINE,
        "m/h.csv": b"step,a,b,c\n1,nan,-inf,1_0\n",
        "m/h.jsonl": b'{"step": 1, "d": Infinity, "e": true}\n',
    }
    found = metrics(look(files, MetricSource("h.csv"), MetricSource("h.jsonl")))["step-1"]
    assert math.isnan(found["a"])
    assert {name: value for name, value in found.items() if name != "a"} == {"b": -math.inf, "d": math.inf}


def test_a_file_that_cannot_be_read_is_told_and_its_metrics_are_absent():
    files = {**MINE, "m/h.jsonl": lines({"step": 1, "a": 1})}
    (run,) = look(files, MetricSource("h.jsonl"), failing=("m/h.jsonl",))
    assert (metrics([run])["step-1"], run.flags) == ({}, (("m/h.jsonl", "metrics_unread"),))
    assert run.complete, "metrics that are missing keep; the rest of the run is known"
    blind = survey("s", tree(files), None, Conventions((Declared("mine", "step-{step}"),)))
    assert blind[0].flags == ()


@pytest.mark.parametrize("name", ["h.jsonl", "h.csv"])
def test_of_a_long_file_the_end_is_read_and_that_is_told(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.layouts.sources.TAIL_MAX_BYTES", 60)
    if name.endswith("csv"):
        content = b"step,a\n" + b"".join(b"%d,%d.5\n" % (n, n) for n in range(1, 40)) + b"2,7\n"
    else:
        content = lines(*({"step": n, "a": n} for n in range(1, 40)), {"step": 2, "a": 7})
    (run,) = look({**MINE, f"m/{name}": content}, MetricSource(name))
    assert metrics([run]) == {"step-1": {}, "step-2": {"a": 7.0}, "step-3": {}}
    assert run.flags == ((f"m/{name}", "metrics_cut"),)


def test_a_table_whose_head_cannot_be_read_is_not_read():
    content = b"step,a\n" + b"1,1\n" * 40

    def read(_key: str, offset: int, limit: int) -> bytes:
        if not offset:
            raise OSError("gone")
        return content[offset : offset + limit]

    assert read_rows(Peek(read), "h.csv", len(content), 60).look is Look.FAILED
    assert read_rows(Peek(None), "h.csv", len(content)).look is Look.BLIND


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"step,a",
        b"step,a\n1,2",
        b'"step,a\n1,2\n',
        b"step;a\n1;2\n",
        b"step,a\n1,2,3\n",
        b"step,step\n1,1\n",
        b"step,a\n0x1,1\n",
        b"\0\0\n\0\n",
        b"," * 5000 + b"\n" + b"," * 5000 + b"\n",
        b"x" * 70_000 + b",step\n1,1\n",
    ],
)
def test_what_is_no_table_tells_nothing(content: bytes):
    assert metrics(look({**MINE, "m/h.csv": content}, MetricSource("h.csv")))["step-1"] == {}


def test_lines_without_end_cost_no_more_than_a_cap(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "LINES_MAX", 3)
    found = read_rows(Peek(memory({"h": lines(*({"step": n} for n in range(9)))})), "h", 9 * 12)
    assert ([row["step"] for row in found.rows], found.cut) == ([7, 8], True)
    assert records.json_row(b'{"a": "' + b"x" * 70_000 + b'"}') == {}


ROWS = st.lists(st.tuples(st.integers(0, 4), st.floats(allow_nan=False, width=32)), max_size=12)


@given(ROWS, st.data())
def test_while_a_table_is_written_nothing_is_told_that_is_not_in_it(rows: list[tuple[int, float]], data: st.DataObject):
    """Cut at any byte, it tells what its whole lines do: less than the whole table or an earlier row, nothing else."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerows([("step", "a"), *rows])
    whole = stream.getvalue().encode()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    done = rows[: max(0, cut.count(b"\n") - 1)]
    seen = metrics(look({**MINE, "m/h.csv": cut}, MetricSource("h.csv")))
    for step in (1, 2, 3):
        said = [value for at, value in done if at == step]
        assert seen[f"step-{step}"] == ({"a": said[-1]} if said else {})
