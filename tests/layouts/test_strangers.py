"""Models of several people in one directory: none is ranked against another's, and no policy drops anybody's newest."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Evidence, Run
from lifecycle.core.oddities import oddities
from lifecycle.core.policy import Anchor, Every, Incomplete, Last, Limits, Match, Policy, Rule, Unit, Younger
from lifecycle.core.protect import Around, by_target
from lifecycle.layouts.conventions import Conventions, Declared
from lifecycle.layouts.doubts import FAMILY
from lifecycle.layouts.heads import head_of
from lifecycle.layouts.registry import survey
from tests.layouts.frameworks import BUILT, KERAS, SB3, Files, dcp, hdf5, lines, stored, text, torch_file
from tests.layouts.trees import memory, tree

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS
SOUND = (Evidence.PROVEN, Evidence.WHOLE)

Make = Callable[[str, int], Files]
"""Files of one unit from the head of its name and its number."""


def joined(head: str, rest: str, by: str = "-") -> str:
    return f"{head}{by}{rest}" if head else rest


def spread_out(head: str, n: int) -> Files:
    at = f"g/{joined(head, str(n), '_')}"
    manifest = lines({"manifest": {"w": {"location": "0/w"}}})
    return {f"{at}/.snapshot_metadata": manifest, f"{at}/0/w": 64}


MAKERS: dict[str, Make] = {
    "lightning": lambda head, n: {f"g/{joined(head, f'epoch={n}-step={n}0')}.ckpt": torch_file("state_dict")},
    "lightning, a metric first": lambda head, n: {f"g/{joined(head, f'val_loss=0.{n}-step={n}0')}.ckpt": torch_file()},
    "lightning, by _": lambda head, n: {f"g/{joined(head, f'epoch={n}_acc=0.{n}', '_')}.ckpt": torch_file()},
    "lightning, a pair": lambda head, n: {f"g/model={head or 'x'}-epoch={n}-step={n}0.ckpt": torch_file()},
    "lightning, directories": lambda head, n: {
        f"g/{joined(head, f'step={n}')}.ckpt/meta.pt": 9,
        **dcp(f"g/{joined(head, f'step={n}')}.ckpt"),
    },
    "nemo": lambda head, n: {
        f"g/{head or 'default'}--loss=0.5-step={n}/weights/metadata.json": 9,
        **dcp(f"g/{head or 'default'}--loss=0.5-step={n}/weights"),
    },
    "orbax": lambda head, n: {f"g/{joined(head, str(n), '_')}/commit_success.txt": 9},
    "tensorflow": lambda head, n: {
        f"g/{joined(head or 'ckpt', str(n))}.index": 9,
        f"g/{joined(head or 'ckpt', str(n))}.data-00000-of-00001": 64,
    },
    "sb3": lambda head, n: {f"g/{head or 'rl_model'}_{n}_steps.zip": SB3},
    "keras": lambda head, n: {f"g/{joined(head, f'epoch-0{n}')}.keras": KERAS},
    "keras, by template": lambda head, n: {f"g/{head or 'model'}-0{n}-1.5{n}.keras": KERAS},
    "keras_weights": lambda head, n: {f"g/{joined(head, f'epoch-0{n}')}.weights.h5": hdf5(64)},
    "deepspeed": lambda head, n: {
        f"g/{joined(head, f'step_{n}', '_')}/{file}": 64
        for file in ("mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt")
    },
    "dcp": lambda head, n: dcp(f"g/{joined(head, str(n))}"),
    "torchsnapshot": spread_out,
    "accelerate": lambda head, n: {
        f"g/{joined(head, f'step_{n}', '_')}/{file}": 64 for file in ("model.safetensors", "random_states_0.pkl")
    },
    "speechbrain": lambda head, n: {
        f"g/CKPT+{joined(head, f'epoch_{n}')}/{file}": 64 for file in ("CKPT.yaml", "m.ckpt")
    },
}

HEADS = ["", "resnet", "vit", "gpt-2", "gpt-3", "ResNet", "fold1", "fold2", "llama7b", "llama13b", "modèle", "run-1"]


class Side(NamedTuple):
    """What one person put there."""

    make: str
    head: str
    numbers: tuple[int, ...]
    days: int
    """When the first one was saved, in days before the last possible one."""


def files_of(side: Side) -> tuple[Files, dict[str, int]]:
    files: Files = {}
    times: dict[str, int] = {}
    for n in side.numbers:
        made = MAKERS[side.make](side.head, n)
        files |= made
        times |= dict.fromkeys(made, NOW_NS - (40 + side.days - n) * DAY_NS)
    return files, times


def look(files: Mapping[str, bytes | int], times: Mapping[str, int], site: Conventions | None = None) -> list[Run]:
    listing = tree(files, times=times)
    return survey("s", listing, memory(files), site or Conventions(), url="file:///data")


def evidence(
    files: Mapping[str, bytes | int], site: Conventions | None = None
) -> dict[str, tuple[str, tuple[str, ...]]]:
    found = look(files, dict.fromkeys(files, NOW_NS - 9 * DAY_NS), site)
    return {c.key.removeprefix("g/"): (c.evidence.value, c.flags) for run in found for c in run.checkpoints}


def dropped(runs: list[Run], rules: tuple[Rule, ...]) -> set[str]:
    policy = Policy("p", Match(), rules, incomplete=Incomplete(0, 0), limits=Limits(grace_s=60), digest="p")
    around = Around(NOW_NS, pointers=by_target(p for run in runs for p in run.pointers))
    decisions = [d for run in runs for d in evaluate((run,), [policy], around).decisions]
    return {d.checkpoint.key for d in decisions if not d.keep}


def newest(runs: list[Run]) -> str | None:
    sound = [c for run in runs for c in run.checkpoints if c.evidence in SOUND]
    rank: Callable[[Checkpoint], tuple[int, float, int]] = lambda c: (c.step or 0, c.epoch or 0, c.saved_at_ns)  # noqa: E731  # one expression
    return max(sound, key=rank).key if sound else None


sides = st.builds(
    Side,
    st.sampled_from(sorted(MAKERS)),
    st.sampled_from(HEADS),
    st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True).map(lambda found: tuple(sorted(found))),
    st.integers(0, 20),
)
rules = st.lists(
    st.sampled_from([Last(1), Last(2), Every(Unit.STEPS, 50), Every(Unit.EPOCHS, 5), Younger(3600, Anchor.NOW)]),
    max_size=2,
).map(tuple)


def nobodys_newest_goes(one: tuple[Files, dict[str, int]], other: tuple[Files, dict[str, int]], keep: tuple[Rule, ...]):
    together = look({**one[0], **other[0]}, {**one[1], **other[1]})
    gone = dropped(together, keep)
    for files, times in (one, other):
        alone = look(files, times)
        last = newest(alone)
        assert last is None or last not in gone or last in dropped(alone, keep), sorted(gone)


def families(side: Side) -> set[str]:
    return {FAMILY.get(c.layout, c.layout) for run in look(*files_of(side)) for c in run.checkpoints}


@settings(max_examples=120)
@given(sides, sides, rules)
def test_no_policy_drops_the_newest_of_another_name(one: Side, other: Side, keep: tuple[Rule, ...]):
    here, there = families(one), families(other)
    if one.head != other.head or (here and there and here.isdisjoint(there)):
        nobodys_newest_goes(files_of(one), files_of(other), keep)


def old(files: Files, days: int) -> tuple[Files, dict[str, int]]:
    return files, dict.fromkeys(files, NOW_NS - days * DAY_NS)


@settings(max_examples=60)
@given(st.sampled_from(sorted(BUILT)), st.sampled_from(sorted(BUILT)), st.integers(2, 9), st.integers(2, 9), rules)
def test_no_policy_drops_the_newest_of_another_framework(a: str, b: str, days: int, more: int, keep: tuple[Rule, ...]):
    one = old({k: v for k, v in BUILT[a].files.items() if k.startswith("g/")}, days)
    other = old({k: v for k, v in BUILT[b].files.items() if k.startswith("g/")}, more)
    if not one[0].keys() & other[0].keys():
        nobodys_newest_goes(one, other, keep)


@pytest.mark.parametrize("make", sorted(MAKERS))
def test_two_names_are_doubtful_and_one_is_not(make: str):
    files = {**MAKERS[make]("resnet", 1), **MAKERS[make]("resnet", 2)}
    alone, both = evidence(files), evidence({**files, **MAKERS[make]("vit", 9)})
    assert len(both) == len(alone) + 1
    assert {found[0] for found in both.values()} == {"doubtful"}
    numberless = make in ("deepspeed", "dcp", "torchsnapshot", "accelerate")
    assert {found[0] == "doubtful" for found in alone.values()} == {numberless}
    assert {found[1] for found in both.values()} == {("step_unknown",) if numberless else ("several_names",)}


NAMES = [("model1", "model2"), ("mean", "max"), ("test", "train"), ("full", "dev"), ("rl", "map"), ("raw", "ssim")]
NAMES += [(f"{word}1", f"{word}2") for word in ("test", "train", "save", "rl", "full", "data", "weights", "loss")]


@pytest.mark.parametrize("names", NAMES, ids="/".join)
@pytest.mark.parametrize("make", ["lightning", "lightning, by _", "sb3", "keras", "orbax", "keras_weights"])
def test_words_of_the_trade_with_numbers_and_without_are_names(names: tuple[str, str], make: str):
    files = {k: v for name in names for n in (1, 2) for k, v in MAKERS[make](name, n).items()}
    assert set(evidence(files).values()) == {("doubtful", ("several_names",))}


def lightning(*names: str) -> Files:
    return {f"g/{name}.ckpt": torch_file("state_dict") for name in names}


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        ([f"alpha={a}-epoch={e}-val_loss=0.{9 - e}" for a in (0.1, 0.5) for e in (1, 2)], True),
        ([f"alpha={a}-epoch={e}" for a, e in ((0.1, 3), (0.5, 3))], True),
        ([f"alpha={a}-epoch={e}" for a, e in ((0.1, 1), (0.1, 2), (0.5, 8), (0.5, 9))], True),
        ([f"alpha=0.1-epoch={e}" for e in (1, 2, 3)], False),
        (["dice=0.5-epoch=1", "dice=0.5-epoch=2", "dice=0.6-epoch=3"], False),
        (["val_loss=0.5-epoch=1", "val_loss=0.5-epoch=2", "val_loss=0.4-epoch=3", "val_loss=0.4-epoch=4"], False),
    ],
)
def test_a_setting_in_the_names_tells_runs_apart_and_a_metric_does_not(names: list[str], apart: bool):
    assert {found[0] for found in evidence(lightning(*names)).values()} == {"doubtful" if apart else "proven"}


@pytest.mark.parametrize("head", ["", "best-", "vit-"])
def test_two_jobs_that_write_the_same_names_are_two_runs(head: str):
    """Lightning puts ``-v1`` behind a name that is taken: each time, if two jobs write into one directory."""
    once = [f"{head}epoch={e}-step={e}0" for e in (1, 2, 3)]
    two = lightning(*once, "last", "last-v1", *(f"{name}-v1" for name in once[:2]))
    assert set(evidence(two).values()) == {("doubtful", ("several_names",))}
    again = lightning(*once, "last", "last-v1", "best", "best-v1", f"{once[2]}-v1")
    assert {found[0] for found in evidence(again).values()} == {"proven"}


def measured(*rows: tuple[int, float, int], memory_of: tuple[str, ...] = ()) -> dict[str, str]:
    """Evidence by name of one file for each (epoch, loss, minute of its save)."""
    names = {f"epoch={epoch}-val_loss={loss}": (epoch, minute) for epoch, loss, minute in rows}
    files: Files = {}
    for name, (epoch, _) in names.items():
        held = remembering(*memory_of) if memory_of else torch_file("state_dict", epoch=epoch, global_step=epoch * 50)
        files[f"g/{name}.ckpt" if not memory_of else f"g/{name}-step={epoch * 50}.ckpt"] = held
    times = dict(zip(files, (NOW_NS - 9 * DAY_NS + m * 60 * 10**9 for _, m in names.values()), strict=True))
    return {c.name: c.evidence.value for run in look(files, times) for c in run.checkpoints}


TWO_JOBS = ((1, 0.5, 0), (1, 0.6, 2), (2, 0.4, 10), (2, 0.45, 11), (3, 0.3, 20), (3, 0.35, 23))


def test_two_jobs_at_once_whose_names_differ_in_a_metric_are_two_runs():
    assert set(measured(*TWO_JOBS).values()) == {"doubtful"}
    assert set(measured(*TWO_JOBS[:4]).values()) == {"doubtful"}
    assert set(measured(*TWO_JOBS, (9, 0.1, 90)).values()) == {"doubtful"}


@pytest.mark.parametrize(
    "rows",
    [
        TWO_JOBS[:3],
        [(epoch, loss, minute + 500 * (n % 2)) for n, (epoch, loss, minute) in enumerate(TWO_JOBS)],
        [(epoch, 0.5 - epoch / 10, minute) for epoch, _, minute in TWO_JOBS],
        [(1, 0.5, 0), (2, 0.4, 5), (1, 0.6, 5), (2, 0.3, 10)],
    ],
    ids=("one repeated save", "a restart from the beginning", "one job", "not after one another"),
)
def test_what_a_restart_may_leave_is_one_run(rows: list[tuple[int, float, int]]):
    assert set(measured(*rows).values()) == {"proven"}


def test_two_callbacks_that_save_at_one_step_are_one_run():
    """One saves before the validation of a step and one after it: each file knows what both have saved."""
    both = tuple(f"epoch={epoch}-val_loss={loss}-step={epoch * 50}" for epoch, loss, _ in TWO_JOBS[4:])
    assert set(measured(*TWO_JOBS, memory_of=both).values()) == {"proven"}
    assert set(measured(*TWO_JOBS, memory_of=both[:1]).values()) == {"doubtful"}


def test_two_callbacks_that_write_the_same_names_are_one_run():
    once = [f"epoch={e}-step={e}0" for e in (1, 2)]
    pair = (once[1], f"{once[1]}-v1")
    known = {**lightning(*once, f"{once[0]}-v1"), f"g/{pair[1]}.ckpt": remembering(*pair)}
    assert {found[0] for found in evidence(known).values()} == {"proven"}
    mixed = {**known, f"g/{pair[1]}.ckpt": remembering(f"{once[0]}-v1", once[1])}
    assert {found[0] for found in evidence(mixed).values()} == {"doubtful"}


ONE_RUN = [
    ("best-epoch=3-val_loss=0.3", "epoch=3-step=30", "last", "epoch=3-PSNR=31.5", "epoch=4-PSNR=32.5"),
    ("best_model-epoch=3", "model-epoch=4", "model-epoch=5", "last"),
    ("best_val_loss-epoch=3", "epoch=4-step=40", "periodic-epoch=4", "final"),
    ("best-epoch=3-val_loss=0.3", "epoch=3-step=30", "epoch=4-step=40", "last"),
    ("sample-mnist-epoch=02-val_loss=0.32", "sample-mnist-epoch=03-val_loss=0.30", "last", "last-v1"),
    ("periodic-step=10", "best-val_acc=0.9-step=20", "top1-epoch=3", "hpc_ckpt_1", "epoch=1-step=10-v1"),
    ("epoch02-loss0.07", "epoch01-loss0.12", "last"),
    ("train_loss=0.3-epoch=1", "valAcc=0.3-epoch=2", "f1=0.5-epoch=3"),
]


@pytest.mark.parametrize("names", ONE_RUN)
def test_the_callbacks_of_one_run_are_one_run(names: tuple[str, ...]):
    found = evidence({f"g/checkpoints/{name}.ckpt": torch_file("state_dict") for name in names})
    assert {value[0] for value in found.values()} == {"proven"}


def remembering(*names: str) -> bytes:
    """A Lightning file whose callbacks name these files of its directory."""
    states = b"".join(text("best_model_path") + text(f"/gone/g/{name}.ckpt") for name in names[:1])
    states += b"".join(text("last_model_path") + text(f"/gone/g/{name}.ckpt") for name in names[1:])
    return stored({"archive/data.pkl": b"\x80\x02}(" + text("state_dict") + b"}(" + states + b"uu."})


def test_what_the_callbacks_of_a_file_name_is_of_its_run():
    """Two callbacks with names of their own: each file holds the states of both."""
    names = ("dice-epoch=3", "hausdorff-epoch=4", "last")
    both = {f"g/{name}.ckpt": remembering("dice-epoch=3", "hausdorff-epoch=4") for name in names}
    assert {found[0] for found in evidence(both).values()} == {"proven"}
    more = {**both, "g/vit-epoch=9.ckpt": remembering("vit-epoch=9")}
    assert set(evidence(more).values()) == {("doubtful", ("several_names",))}
    elsewhere = {k: v.replace(b"/gone/g/", b"/gone/h/") for k, v in both.items()}
    assert {found[0] for found in evidence(elsewhere).values()} == {"doubtful"}


def test_two_layouts_in_one_directory_are_two_runs():
    files: Files = {
        **{f"g/checkpoint-{n}/{file}": b"{}" for n in (1, 2) for file in ("trainer_state.json", "model.safetensors")},
        "g/iter_0000900/mp_rank_00/model_optim_rng.pt": 64,
    }
    assert set(evidence(files).values()) == {("doubtful", ("several_names",))}
    kin: Files = {"g/ep0-ba1-rank0.pt": 64, **dcp("g/ep0-ba2")}
    assert {found[0] for found in evidence(kin).values()} == {"whole", "proven"}


TRAINER: Files = {f"g/checkpoint-{n}/{f}": b"{}" for n in (1, 2) for f in ("trainer_state.json", "model.safetensors")}
DIFFUSERS: Files = {
    f"g/checkpoint-{n}/{f}": 64
    for n in (1000, 2000)
    for f in ("unet/diffusion_pytorch_model.safetensors", "random_states_0.pkl")
}
ACCELERATE: Files = {f"g/step_{n}/{f}": 64 for n in (1, 2) for f in ("model.safetensors", "random_states_0.pkl")}
FLAX: Files = {f"g/checkpoint_{n}": b"\x82\xa6params\x80\xa3opt\x80" for n in (100, 200)}


@pytest.mark.parametrize(
    ("one", "other"), [(TRAINER, DIFFUSERS), (TRAINER, ACCELERATE), (FLAX, MAKERS["orbax"]("", 300))]
)
def test_libraries_with_names_alike_are_no_kin(one: Files, other: Files):
    assert set(evidence({**one, **other}).values()) == {("doubtful", ("several_names",))}


def test_accelerate_and_the_scripts_of_diffusers_are_kin():
    assert {found[0] for found in evidence({**DIFFUSERS, **ACCELERATE}).values()} == {"whole"}


@pytest.mark.parametrize("name", ["epoch_{}", "step_{}", "ckpt_{}", "{}"])
def test_what_is_said_of_a_step_that_no_layout_tells_is_true(name: str):
    files = {k: v for n in (1, 2) for k, v in dcp(f"g/{name.format(n)}").items()}
    (run,) = look(files, dict.fromkeys(files, NOW_NS - 9 * DAY_NS))
    told = {f.text for f in oddities(run) if f.code == "step_unknown"}
    assert told == {"no layout tells its step: declare one, or give it a directory of its own, to have it judged"}


def test_an_export_or_a_best_copy_is_nobodys_run():
    files = {**MAKERS["orbax"]("", 100), **MAKERS["orbax"]("", 200), "g/served/saved_model.pb": 9}
    assert {found[0] for found in evidence(files).values()} == {"proven", "whole"}


def test_what_a_site_declares_is_as_it_says():
    conventions = Conventions(declared=(Declared("mine", "{name}-{step}.ckpt"),))
    files: Files = {f"g/{name}.ckpt": torch_file() for name in ("resnet-1", "vit-9")}
    assert {found[0] for found in evidence(files, conventions).values()} == {"proven"}


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("", ()),
        ("best-epoch=03-val_loss=0.31", ()),
        ("resnet50-epoch=3", ("resnet50",)),
        ("gpt-2-epoch=3", ("gpt", "2")),
        ("checkpoint-500-BestModel", ()),
        ("model=vit-epoch=1", ("model", "vit")),
        ("lr=0.1-epoch=1", ("lr", "0.1")),
        ("weights. epoch-0.35", ("weights",)),
        ("epoch=1-val/dice=0.5", ("dice",)),
        ("\udcfe-step=1", ("\udcfe",)),
        ("epoch02-loss0.07", ()),
        ("model1-epoch=3", ("model1",)),
        ("model_2", ("model", "2")),
        ("mean-epoch=3", ("mean",)),
        ("mean_epoch=3", ("mean",)),
        ("mean_loss=0.3-step=3", ()),
        ("loss1-epoch=3", ("loss1",)),
        ("val_loss-0.31-epoch=3", ()),
        ("best_val_loss-epoch=3", ()),
        ("model-best-0.93-epoch=3", ()),
        ("global_step=3-consumed_samples=30.0", ()),
        ("global_step3", ()),
        ("on_exception", ()),
        ("top1-epoch=3", ()),
        ("epoch=3-PSNR=31.5-acc5=0.9", ()),
        ("_=3", ()),
        ("gpt-3.5-epoch=1", ("gpt", "3.5")),
    ],
)
def test_the_head_of_a_name(name: str, head: tuple[str, ...]):
    assert head_of(name) == head


@settings(max_examples=100)
@given(st.sampled_from(HEADS), st.sampled_from(HEADS))
def test_heads_tell_apart_what_people_call_differently(one: str, other: str):
    assert (head_of(one) == head_of(other)) == (one == other)
    assert head_of(f"{one}-epoch=3-val_loss=0.5") == head_of(f"{one}-epoch=17-val_loss=0.25")


def test_equal_times_and_a_half_copied_tree_change_nothing():
    """What `cp -r` leaves behind: all of one age, shards after their metadata, and files still to come."""
    files = {k: v for n in (1, 2, 3) for k, v in dcp(f"g/step-{n}").items()}
    copied = {key: NOW_NS - 9 * DAY_NS + (0 if key.endswith("metadata") else 60 * 10**9) for key in files}
    late = dcp("g/step-4")
    runs = look({**files, **late}, {**copied, **dict.fromkeys(late, NOW_NS - 8 * DAY_NS)})
    assert dropped(runs, (Last(3),)) == set()
