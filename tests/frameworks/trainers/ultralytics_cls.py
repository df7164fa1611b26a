"""ultralytics: a classifier with save_period=1, cut off after the driver's last epoch and resumed from `last.pt`.

A run that came to its own end strips `last.pt` and cannot be resumed, so the first one is ended as by a preemption.
Epochs count from 0.
"""

import os
from copy import deepcopy

import numpy as np
from telling import allow_torchvision, told

allow_torchvision()

from PIL import Image  # noqa: E402 - the line above has to come first
from ultralytics import YOLO  # noqa: E402 - likewise
from ultralytics.utils.torch_utils import convert_optimizer_state_dict_to_fp16  # noqa: E402 - likewise

EPOCHS = 11
"""In all; the driver's second run ends where these do."""


def draw(folder) -> None:
    """Two classes of noise."""
    noise = np.random.default_rng(1)
    for part in ("train", "val"):
        for kind in ("a", "b"):
            (folder / part / kind).mkdir(parents=True)
            for number in range(2):
                pixels = noise.integers(0, 255, (32, 32, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / part / kind / f"{number}.png")


def state(trainer) -> dict[str, object]:
    """As it is saved: with half the digits."""
    optimizer = convert_optimizer_state_dict_to_fp16(deepcopy(trainer.optimizer.state_dict()))
    return {"optimizer": optimizer["state"], "weights": {k: v.half() for k, v in trainer.ema.ema.state_dict().items()}}


def main() -> None:
    ask = told()
    data = ask.events.parent / "pictures"
    if not data.exists():
        draw(data)

    def begun(trainer) -> None:
        if ask.resume:
            ask.resumed(trainer.start_epoch - 1, **state(trainer))

    def saved(trainer) -> None:
        ask.saved(trainer.epoch, **state(trainer))
        if trainer.epoch == ask.until < EPOCHS - 1:
            ask.ended(trainer.epoch)
            os._exit(0)

    model = YOLO(str(ask.directory / "weights" / "last.pt") if ask.resume else "yolo11n-cls.yaml")
    model.add_callback("on_train_start", begun)
    model.add_callback("on_model_save", saved)
    if ask.resume:
        model.train(resume=True)
    else:
        model.train(
            data=str(data),
            epochs=EPOCHS,
            imgsz=32,
            batch=4,
            workers=0,
            device="cpu",
            save_period=1,
            plots=False,
            project=str(ask.directory.parent),
            name=ask.directory.name,
            exist_ok=True,
        )
    ask.ended(model.trainer.epoch)


if __name__ == "__main__":
    main()
