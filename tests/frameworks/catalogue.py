"""Which frameworks are tried, how their checkpoints are found again, and what each does by itself."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.frameworks.environment import HERE

LIMIT = 4
"""How many checkpoints a framework that rotates is told to keep."""


@dataclass(frozen=True)
class Framework:
    """One script in `trainers/`, and what is to be seen of it from outside."""

    name: str
    title: str
    package: str
    """The distribution whose version is told."""
    environment: str
    layout: str
    """As `lifecycle ls` calls it; several where one run has several."""
    unit: str
    """A whole path below the run's directory, with the step in it."""
    first: int = 0
    """To be added to the number in the name: fvcore counts from 0, where a step is one that is done."""
    rotates: bool = True
    """Whether it keeps the newest LIMIT by itself."""
    forgets: bool = False
    """Whether a new process rotates only what it saved itself."""
    step_in: str = ""
    """A JSON file in the unit that tells the step where the name does not."""
    listed: int = 0
    """How many of the newest stand in a list of the framework's own, and stay for that."""
    touchy: bool = False
    """Whether it may fail over what goes while it runs: then the plan either leaves all, or it survives what went."""
    cheap: bool = False
    """Whether it runs with every `make test`."""

    @property
    def script(self) -> Path:
        return HERE / "trainers" / f"{self.name}.py"

    def steps(self, directory: Path) -> dict[int, Path]:
        """The checkpoints that lie there, by step."""
        found: dict[int, Path] = {}
        for path in sorted(directory.rglob("*")):
            match = re.fullmatch(self.unit, path.relative_to(directory).as_posix())
            if match is None or path.is_symlink():
                continue
            step = json.loads((path / self.step_in).read_text())["step"] if self.step_in else match["step"]
            found[int(step) + self.first] = path
        return found

    def rotated(self, there: Iterable[int], saved: Iterable[int], *, begun: int = 0) -> set[int]:
        """What stays of ``there`` when the framework saves ``saved`` after it; ``begun`` is where its process did."""
        every = sorted({*there, *saved})
        if not self.rotates:
            return set(every)
        if self.forgets:
            mine = [step for step in every if step > begun]
            return {step for step in every if step <= begun} | set(mine[-LIMIT:])
        return set(every[-LIMIT:])


FRAMEWORKS = (
    Framework(
        "hf_trainer",
        "Hugging Face Trainer",
        "transformers",
        environment="torch",
        layout="hf_trainer",
        unit=r"checkpoint-(?P<step>\d+)",
    ),
    Framework(
        "lightning_fit",
        "Lightning",
        "lightning",
        environment="torch",
        layout="lightning",
        unit=r"checkpoints/epoch=\d+-step=(?P<step>\d+)\.ckpt",
        rotates=False,
    ),
    Framework(
        "accelerate_state",
        "accelerate",
        "accelerate",
        environment="torch",
        layout="accelerate",
        unit=r"checkpoints/checkpoint_(?P<step>\d+)",
        touchy=True,
    ),
    Framework(
        "torch_dcp",
        "torch DCP, as TorchTitan",
        "torch",
        environment="torch",
        layout="torchtitan",
        unit=r"checkpoint/step-(?P<step>\d+)",
    ),
    Framework(
        "deepspeed_zero",
        "DeepSpeed",
        "deepspeed",
        environment="torch",
        layout="deepspeed",
        unit=r"global_step(?P<step>\d+)",
        rotates=False,
    ),
    Framework(
        "orbax_manager",
        "Orbax",
        "orbax-checkpoint",
        environment="jax",
        layout="orbax",
        unit=r"(?P<step>\d+)",
        cheap=True,
    ),
    Framework(
        "tensorflow_manager",
        "TensorFlow",
        "tensorflow-cpu",
        environment="tensorflow",
        layout="tensorflow",
        unit=r"ckpt-(?P<step>\d+)\.index",
        rotates=False,
        listed=LIMIT,
    ),
    Framework(
        "composer_trainer",
        "Composer",
        "mosaicml",
        environment="composer",
        layout="composer",
        unit=r"ep\d+-ba(?P<step>\d+)-rank0\.pt",
        forgets=True,
        touchy=True,
    ),
    Framework(
        "ray_train",
        "Ray Train",
        "ray",
        environment="ray",
        layout="ray_train",
        unit=r"toy/checkpoint_[\d_.-]+",
        step_in=".metadata.json",
        listed=LIMIT,
        touchy=True,
    ),
    Framework(
        "fvcore_checkpointer",
        "fvcore (detectron2)",
        "fvcore",
        environment="torch",
        layout="fvcore",
        unit=r"model_(?P<step>\d{7})\.pth",
        first=1,
        forgets=True,
    ),
    Framework(
        "sb3_ppo",
        "Stable-Baselines3",
        "stable-baselines3",
        environment="torch",
        layout="sb3",
        unit=r"rl_model_(?P<step>\d+)_steps\.zip",
        rotates=False,
    ),
    Framework(
        "mmengine_runner",
        "mmengine (OpenMMLab)",
        "mmengine",
        environment="torch",
        layout="mmengine",
        unit=r"iter_(?P<step>\d+)\.pth",
    ),
)
BY_NAME = {framework.name: framework for framework in FRAMEWORKS}
