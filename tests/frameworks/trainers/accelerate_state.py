"""accelerate: save_state with automatic names and a total_limit; load_state takes the highest number it finds."""

import toy
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration
from telling import told


class Progress:
    """A step that goes into the checkpoint with all else, as accelerate's examples register it."""

    step = 0

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]


def main() -> None:
    ask = told()
    naming = ProjectConfiguration(
        project_dir=str(ask.directory), automatic_checkpoint_naming=True, total_limit=ask.limit, iteration=1
    )
    accelerator = Accelerator(project_config=naming, cpu=True)
    model = toy.layer()
    model, optimizer = accelerator.prepare(model, toy.adam(model))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    if ask.resume:
        accelerator.load_state()
        accelerator.project_configuration.iteration = progress.step + 1
        ask.resumed(progress.step, **toy.state(model, optimizer))

    def save(step: int) -> None:
        progress.step = step
        accelerator.save_state()

    toy.train(ask, progress.step, model, optimizer, save, backward=accelerator.backward)
    accelerator.end_training()


if __name__ == "__main__":
    main()
