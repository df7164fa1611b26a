"""Lightning: a ModelCheckpoint that keeps all, and a `last.ckpt` by which it resumes.

With scores there is a second one beside it that keeps the best two, as the variant says: `last.ckpt` is then of that
one, a link to what it saved last or a copy of each step.
"""

import lightning
import toy
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from telling import told


class Toy(lightning.LightningModule):
    def __init__(self, scores) -> None:
        super().__init__()
        self.layer = toy.layer()
        self.scores = scores

    def training_step(self, batch, _index):
        x, y = batch
        if self.scores:
            self.log("val_loss", self.scores[self.global_step])
        return toy.loss(self.layer(x), y)

    def configure_optimizers(self):
        return toy.adam(self)


class Telling(Callback):
    """A step's checkpoint is written by the last callback of its end, so it is told of at the next one's start."""

    def __init__(self, ask) -> None:
        self.ask = ask
        self.first = True

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.tell(trainer, pl_module)

    def on_fit_end(self, trainer, pl_module):
        self.tell(trainer, pl_module)

    def tell(self, trainer, module) -> None:
        state = toy.state(module, trainer.optimizers[0])
        if self.first and self.ask.resume:
            self.ask.resumed(trainer.global_step, **state)
        elif trainer.global_step:
            self.ask.saved(trainer.global_step, **state)
        self.first = False


def main() -> None:
    ask = told()
    often = {"dirpath": ask.directory / "checkpoints", "every_n_train_steps": 1}
    saving = [
        ModelCheckpoint(**often, filename="{epoch}-{step}", save_top_k=-1, save_last=None if ask.scores else "link")
    ]
    if ask.scores:
        last = "link" if ask.variant == "link" else True
        best = "best-{epoch}-{step}-{val_loss:.2f}"
        saving.append(ModelCheckpoint(**often, filename=best, monitor="val_loss", save_top_k=2, save_last=last))
    trainer = lightning.Trainer(
        max_steps=ask.until,
        accelerator="cpu",
        devices=1,
        callbacks=[Telling(ask), *saving],
        logger=False,
        default_root_dir=ask.directory,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Toy(ask.scores), toy.batches(), ckpt_path="last" if ask.resume else None)
    ask.ended(trainer.global_step)


if __name__ == "__main__":
    main()
