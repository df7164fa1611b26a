"""accelerate: save_state with automatic names and a total_limit; load_state takes the highest number it finds."""

import torch
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
    torch.manual_seed(0)
    naming = ProjectConfiguration(
        project_dir=str(ask.directory), automatic_checkpoint_naming=True, total_limit=ask.limit, iteration=1
    )
    accelerator = Accelerator(project_config=naming, cpu=True)
    model = torch.nn.Linear(8, 4)
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=0.1))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    if ask.resume:
        accelerator.load_state()
        accelerator.project_configuration.iteration = progress.step + 1
        ask.resumed(progress.step, optimizer=optimizer.state_dict(), weights=model.state_dict())
    for step in range(progress.step + 1, ask.until + 1):
        draw = torch.Generator().manual_seed(step)
        loss = torch.nn.functional.mse_loss(model(torch.randn(4, 8, generator=draw)), torch.randn(4, 4, generator=draw))
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        progress.step = step
        accelerator.save_state()
        ask.saved(step, optimizer=optimizer.state_dict(), weights=model.state_dict())
    accelerator.end_training()
    ask.ended(progress.step)


if __name__ == "__main__":
    main()
