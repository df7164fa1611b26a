"""Keras: a ModelCheckpoint with a file an epoch, and BackupAndRestore, which is what it resumes by."""

import keras
import numpy as np
from telling import told


class Telling(keras.callbacks.Callback):
    """The last of the callbacks, so the others have saved and restored before it."""

    def __init__(self, ask) -> None:
        super().__init__()
        self.ask = ask

    def state(self) -> dict[str, object]:
        return {"optimizer": [v.numpy() for v in self.model.optimizer.variables], "weights": self.model.get_weights()}

    def on_train_begin(self, logs=None):
        if self.ask.resume:
            self.ask.resumed(self.model._initial_epoch, **self.state())

    def on_epoch_end(self, epoch, logs=None):
        self.ask.saved(epoch + 1, **self.state())


def main() -> None:
    ask = told()
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    draw = np.random.default_rng(1)
    saving = [
        keras.callbacks.ModelCheckpoint(str(ask.directory / "ckpt-{epoch:03d}.keras")),
        keras.callbacks.BackupAndRestore(str(ask.directory / "backup"), delete_checkpoint=False),
    ]
    model.fit(
        draw.normal(size=(16, 8)),
        draw.normal(size=(16, 4)),
        batch_size=4,
        epochs=ask.until,
        verbose=0,
        callbacks=[*saving, Telling(ask)],
    )
    ask.ended(ask.until)


if __name__ == "__main__":
    main()
