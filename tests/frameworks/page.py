"""docs/compatibility.md, written from the results that lie beside this file, one a framework."""

import json
from pathlib import Path
from typing import Any

from tests.frameworks.catalogue import FRAMEWORKS, LIMIT, Framework
from tests.frameworks.environment import HERE
from tests.frameworks.scenario import AGAIN, END, MILESTONE, NEWEST, WAIT, Result

PAGE = HERE.parent.parent / "docs" / "compatibility.md"
RESULTS = HERE / "results"

HEAD = f"""\
# What was tried with real frameworks

`make test-frameworks` installs each framework into an environment of its own below `build/frameworks`, for processors
only, and runs the same story with each; `FRAMEWORKS=hf_trainer,orbax_manager` picks some. A framework that cannot be
installed is skipped and says why. `ARGS=--regold` writes this page anew. `make test` has {{cheap}} only, the one that
costs least: some 15 s to install from nothing, and then as much of one processor.

1. It trains a toy and saves after every step. After step {WAIT} it stands still, alive, between two saves.
2. `lifecycle plan` and `apply`: the newest {NEWEST} stay and every step that {MILESTONE} divides, without any grace.
3. It goes on to step {END} and ends. Where it rotates by itself it keeps {LIMIT} (the best rows 5), and has to do so
   although some of them were gone before it came to them.
4. `plan` and `apply` again, two hours later by our clock, by the same rules and with the usual grace of an hour.
5. It is started anew, has to resume from step {END} with the optimizer and the weights that it had said it saved (their
   digests are compared), trains until step {AGAIN} and has to end well.

Where a framework keeps the best, step 2 is measured best, long before it is old. Trainer, Lightning and timm point at
it, so it has to stay although the policy asks for none of the best; Orbax points at nothing, so there it goes. A policy
for such runs needs `best:`.

After each apply the run's directory is compared with what it was, by kind, size and time of every file and directory:
what the plan named is gone, all else is as it was, nothing is new.

| framework | version | layout | dropped while it ran | dropped after its end | resumed at | then there | took | tried |
|---|---|---|---|---|---|---|---|---|
"""

FOOT = """
*3 of 2 3 4 5* reads: of the steps 2 to 5 that lay there, step 3 went. *then there* is what lay there after the resumed
run had come to its end, its own rotation included. *left alone*: the framework may stop, or not start again, without a
checkpoint that it still counts on, so the plan leaves those of a run at work alone. *took*: on two shared cores,
without the installation. ultralytics counts from epoch 0.

- **Lists are obeyed.** What a framework's own list names is never dropped. Of TensorFlow only what its manager has
  preserved beyond `max_to_keep` went; of Ray Train nothing, for its snapshot lists all that it retains: that it goes on
  is all that this row says.
- **Lightning's best two** stand in a list inside each checkpoint. In the two rows for them a second `ModelCheckpoint`
  with `save_top_k=2` writes into the same directory as one that keeps all; ours thins the latter out, and Lightning
  has rotated the former by its own list, without an error, to exactly the best two. `last.ckpt` is a link into them, or
  a copy.
- **Trainer's best** was loaded at the end of both runs: its weights are compared, too.
- **timm and Orbax** go by a list in memory: what ours took counts among its best until something better comes. timm
  then logs an error where the file is gone, Orbax a warning, and both go on.
- **ultralytics** strips `last.pt` at the end, and such a run cannot be resumed; so the first one is cut off, as by a
  preemption.
- **torchsnapshot, Ignite and torch.save**: names that no layout tells the step of, so `layouts:` in lifecycle.yaml
  declares them, as a user would. Ignite crashes over what went before its own deletion came to it (it did here), so its
  layout says `rotation: crash`.

torchvision and torchaudio are not what is tried, and their builds do not fit a torch for processors only: what needs
them gets the Python half, or nothing. The scripts are in `tests/frameworks/trainers`, one a framework. A row says that
this version did this once on that day; it does not speak of other versions, of many ranks, or of object stores.
"""


def render() -> str:
    """The page, from the results that are there."""
    cheap = ", ".join(framework.title for framework in FRAMEWORKS if framework.cheap)
    rows = [row(framework, path(framework)) for framework in FRAMEWORKS]
    return HEAD.replace("{cheap}", cheap) + "".join(rows) + FOOT


def row(framework: Framework, file: Path) -> str:
    """One line of the table."""
    found = json.loads(file.read_text())
    name = f"{framework.title} (`{framework.name}`)"
    if found["not_run"]:
        return f"| {name} | {found['version']} | | not tried: {found['not_run']} | | | | | {found['date']} |\n"
    layouts = ", ".join(f"`{layout}`" for layout in found["layouts"])
    then = " ".join(map(str, found["after"]))
    return (
        f"| {name} | {found['version']} | {layouts} | {turn(found['live'])} | {turn(found['ended'])} "
        f"| {found['resumed']} | {then} | {found['wall_s']} s, cpu {found['cpu_s']} s | {found['date']} |\n"
    )


def turn(told: dict[str, Any]) -> str:
    """What went, of what lay there."""
    there = " ".join(map(str, told["there"]))
    return f"{' '.join(map(str, told['dropped']))} of {there}" if told["dropped"] else f"left alone: {there}"


def path(framework: Framework) -> Path:
    """Where the result of a framework lies."""
    return RESULTS / f"{framework.name}.json"


def keep(result: Result) -> None:
    """Write a result down for the page."""
    (RESULTS / f"{result.framework}.json").write_text(result.as_json())
