"""Lightning: a ModelCheckpoint that keeps all and a link `last.ckpt`, by which it resumes.

What one with `save_top_k` above 1 would rotate stands in its newest checkpoint, and is never ours to take.
"""

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from telling import told


class Toy(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def training_step(self, batch, _index):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


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
        state = {"optimizer": trainer.optimizers[0].state_dict(), "weights": module.state_dict()}
        if self.first and self.ask.resume:
            self.ask.resumed(trainer.global_step, **state)
        elif trainer.global_step:
            self.ask.saved(trainer.global_step, **state)
        self.first = False


def main() -> None:
    ask = told()
    lightning.seed_everything(0)
    draw = torch.Generator().manual_seed(1)
    data = [(torch.randn(8, generator=draw), torch.randn(4, generator=draw)) for _ in range(256)]
    saving = ModelCheckpoint(
        dirpath=ask.directory / "checkpoints",
        filename="{epoch}-{step}",
        save_top_k=-1,
        save_last="link",
        every_n_train_steps=1,
    )
    trainer = lightning.Trainer(
        max_steps=ask.until,
        accelerator="cpu",
        devices=1,
        callbacks=[Telling(ask), saving],
        logger=False,
        default_root_dir=ask.directory,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    trainer.fit(Toy(), loader, ckpt_path="last" if ask.resume else None)
    ask.ended(trainer.global_step)


if __name__ == "__main__":
    main()
