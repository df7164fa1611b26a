"""Composer: saves each batch, keeps the newest few by a list in its memory, resumes by the link `latest-rank0.pt`."""

import toy
from telling import allow_torchvision, told

allow_torchvision()

from composer import Callback, Trainer  # noqa: E402 - the line above has to come first
from composer.models import ComposerModel  # noqa: E402 - likewise


class Toy(ComposerModel):
    def __init__(self) -> None:
        super().__init__()
        self.layer = toy.layer()

    def forward(self, batch):
        return self.layer(batch[0])

    def loss(self, outputs, batch, *_, **__):
        return toy.loss(outputs, batch[1])


class Telling(Callback):
    """A batch's checkpoint is written by the last callback of its end, so it is told of at the next one's start."""

    def __init__(self, ask) -> None:
        self.ask = ask
        self.last = 0

    def batch_start(self, state, logger):
        self.tell(state)

    def tell(self, state) -> None:
        step = state.timestamp.batch.value
        if step > self.last:
            self.ask.saved(step, **toy.state(state.model, state.optimizers[0]))
        self.last = step


def main() -> None:
    ask = told()
    model = Toy()
    telling = Telling(ask)
    trainer = Trainer(
        model=model,
        optimizers=toy.adam(model),
        train_dataloader=toy.batches(),
        max_duration=f"{ask.until}ba",
        save_folder=str(ask.directory),
        save_interval="1ba",
        save_num_checkpoints_to_keep=ask.limit,
        run_name="toy",
        autoresume=True,
        device="cpu",
        progress_bar=False,
        callbacks=[telling],
        seed=1,
    )
    if ask.resume:
        telling.last = trainer.state.timestamp.batch.value
        ask.resumed(telling.last, **toy.state(trainer.state.model, trainer.state.optimizers[0]))
    trainer.fit()
    telling.tell(trainer.state)
    ask.ended(trainer.state.timestamp.batch.value)
    trainer.close()


if __name__ == "__main__":
    main()
