"""Which frameworks are tried, how their checkpoints are found again, and what each does by itself."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.frameworks.environment import HERE
from tests.frameworks.rotation import Rotation, best, everything, newest, newest_and_best

LIMIT = 4
"""How many checkpoints a framework that rotates is told to keep, if nothing else is said."""
STEP = re.compile(r"\"?(?:step|epoch)\"?:\s*(\d+)")


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
    ending: str = ""
    """What of that is not in our name for it: what is made of several files is called by what they share."""
    trainer: str = ""
    """The script, where it is not called as the framework is here."""
    variant: str = ""
    """A word for the script."""
    counts: str = "steps"
    """What the numbers are to a policy: steps or epochs."""
    first: int = 0
    """To be added to the number in the name: fvcore counts from 0, where a step is one that is done."""
    begins: int = 1
    """The number of its first checkpoint."""
    step_in: str = ""
    """A file in the unit that tells the step where the name does not."""
    limit: int = LIMIT
    rotation: Rotation = newest
    """What it lets be by itself."""
    remembers: bool = False
    """Whether it goes by a list in its memory: what we took stays in there until it comes to it."""
    forgets: bool = False
    """Whether a new process rotates only what it saved itself."""
    listed: int = 0
    """How many of the newest stand in a list of the framework's own, and stay for that."""
    pins_best: bool = False
    """Whether something of its own points at the best of those that lie there."""
    scored: bool = False
    """Whether it is told what each step is measured at (SCORES)."""
    ends_with_best: bool = False
    """Whether its last word are the weights of the best checkpoint, loaded again."""
    beside: str = ""
    """Another series in the same directory, as a whole path: its best two, which only the framework takes away."""
    declared: str = ""
    """Lines of lifecycle.yaml that a user writes for it."""
    touchy: bool = False
    """Whether it may fail over what goes while it runs: then the plan either leaves all, or it survives what went."""
    cheap: bool = False
    """Whether it runs with every `make test`."""

    @property
    def script(self) -> Path:
        return HERE / "trainers" / f"{self.trainer or self.name}.py"

    def called(self, path: Path) -> str:
        """What we call what lies there."""
        return path.as_posix().removesuffix(self.ending)

    def steps(self, directory: Path, unit: str = "") -> dict[int, Path]:
        """The checkpoints that lie there, by step."""
        found: dict[int, Path] = {}
        for path in sorted(directory.rglob("*")):
            match = re.fullmatch(unit or self.unit, path.relative_to(directory).as_posix())
            if match is None or path.is_symlink():
                continue
            told = STEP.search((path / self.step_in).read_text()) if self.step_in else None
            found[int(told[1] if told else match["step"]) + self.first] = path
        return found

    def rotated(
        self, there: Iterable[int], saved: Iterable[int], *, begun: int = -1, taken: Collection[int] = ()
    ) -> set[int]:
        """What lies there when the framework has saved ``saved`` after it; ``begun`` is where its process did.

        ``taken`` is what we took from under a process that still runs.
        """
        counted = set(there) | (set(taken) if self.remembers else set())
        strange = {step for step in counted if step <= begun} if self.forgets else set()
        counted -= strange
        for step in saved:
            counted = self.rotation({*counted, step}, self.limit)
        return (counted | strange) - set(taken)


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
        "hf_best",
        "Hugging Face Trainer, load_best_model_at_end",
        "transformers",
        environment="torch",
        layout="hf_trainer",
        unit=r"checkpoint-(?P<step>\d+)",
        trainer="hf_trainer",
        limit=5,
        rotation=newest_and_best,
        pins_best=True,
        scored=True,
        ends_with_best=True,
    ),
    Framework(
        "lightning_fit",
        "Lightning",
        "lightning",
        environment="torch",
        layout="lightning",
        unit=r"checkpoints/epoch=\d+-step=(?P<step>\d+)\.ckpt",
        rotation=everything,
    ),
    Framework(
        "lightning_top_link",
        "Lightning, the best two beside all, save_last='link'",
        "lightning",
        environment="torch",
        layout="lightning",
        unit=r"checkpoints/epoch=\d+-step=(?P<step>\d+)\.ckpt",
        trainer="lightning_fit",
        variant="link",
        rotation=everything,
        scored=True,
        beside=r"checkpoints/best-epoch=\d+-step=(?P<step>\d+)-val_loss=.*\.ckpt",
    ),
    Framework(
        "lightning_top_copy",
        "Lightning, the best two beside all, save_last=True",
        "lightning",
        environment="torch",
        layout="lightning",
        unit=r"checkpoints/epoch=\d+-step=(?P<step>\d+)\.ckpt",
        trainer="lightning_fit",
        variant="copy",
        rotation=everything,
        scored=True,
        beside=r"checkpoints/best-epoch=\d+-step=(?P<step>\d+)-val_loss=.*\.ckpt",
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
        rotation=everything,
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
        "orbax_best",
        "Orbax, best_fn",
        "orbax-checkpoint",
        environment="jax",
        layout="orbax",
        unit=r"(?P<step>\d+)",
        trainer="orbax_manager",
        limit=5,
        rotation=best,
        remembers=True,
        scored=True,
    ),
    Framework(
        "flax_checkpoints",
        "Flax, its own format",
        "flax",
        environment="flax",
        layout="flax",
        unit=r"checkpoint_(?P<step>\d+)",
    ),
    Framework(
        "keras_fit",
        "Keras, with BackupAndRestore",
        "keras",
        environment="tensorflow",
        layout="keras",
        unit=r"ckpt-(?P<step>\d+)\.keras",
        counts="epochs",
        rotation=everything,
    ),
    Framework(
        "tensorflow_manager",
        "TensorFlow",
        "tensorflow-cpu",
        environment="tensorflow",
        layout="tensorflow",
        unit=r"ckpt-(?P<step>\d+)\.index",
        ending=".index",
        rotation=everything,
        listed=LIMIT,
    ),
    Framework(
        "composer_trainer",
        "Composer",
        "mosaicml",
        environment="composer",
        layout="composer",
        unit=r"ep\d+-ba(?P<step>\d+)-rank0\.pt",
        ending="0.pt",
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
        ending=".zip",
        rotation=everything,
    ),
    Framework(
        "mmengine_runner",
        "mmengine (OpenMMLab)",
        "mmengine",
        environment="torch",
        layout="mmengine",
        unit=r"iter_(?P<step>\d+)\.pth",
    ),
    Framework(
        "timm_saver",
        "timm",
        "timm",
        environment="vision",
        layout="timm",
        unit=r"checkpoint-(?P<step>\d+)\.pth\.tar",
        counts="epochs",
        limit=5,
        rotation=best,
        remembers=True,
        pins_best=True,
        scored=True,
    ),
    Framework(
        "ultralytics_cls",
        "ultralytics",
        "ultralytics",
        environment="vision",
        layout="ultralytics",
        unit=r"weights/epoch(?P<step>\d+)\.pt",
        counts="epochs",
        begins=0,
        rotation=everything,
    ),
    Framework(
        "speechbrain_checkpointer",
        "SpeechBrain",
        "speechbrain",
        environment="torch",
        layout="speechbrain",
        unit=r"CKPT\+[\d+-]+",
        counts="epochs",
        step_in="CKPT.yaml",
        touchy=True,
    ),
    Framework(
        "torchsnapshot_take",
        "torchsnapshot",
        "torchsnapshot",
        environment="torch",
        layout="step_{step}",
        unit=r"step_(?P<step>\d+)",
        rotation=everything,
        declared='layouts: [{template: "step_{step}", proof: .snapshot_metadata}]',
    ),
    Framework(
        "ignite_checkpoint",
        "PyTorch Ignite",
        "pytorch-ignite",
        environment="ignite",
        layout="ignite",
        unit=r"checkpoint_(?P<step>\d+)\.pt",
        forgets=True,
        declared='layouts: [{name: ignite, template: "checkpoint_{step}.pt", rotation: crash}]',
        touchy=True,
    ),
    Framework(
        "plain_torch",
        "torch.save, as nanoGPT",
        "torch",
        environment="torch",
        layout="ckpt_{step}.pt",
        unit=r"ckpt_(?P<step>\d+)\.pt",
        rotation=everything,
        declared='layouts: [{template: "ckpt_{step}.pt"}]',
    ),
)
BY_NAME = {framework.name: framework for framework in FRAMEWORKS}
