"""SpeechBrain: a Checkpointer that keeps the newest few of the directories it lists, and recovers the newest."""

import sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

import toy
from telling import told

# The wheel of torchaudio goes with another build of torch, and nothing is listened to here.
sound = MagicMock(__spec__=ModuleSpec("torchaudio", None), __version__="2.9.0")
sys.modules["torchaudio"] = sound
sys.modules["torchaudio.functional"] = sys.modules["torchaudio.transforms"] = sound

from speechbrain.utils.checkpoints import Checkpointer  # noqa: E402 - the lines above have to come first
from speechbrain.utils.epoch_loop import EpochCounter  # noqa: E402 - likewise


def main() -> None:
    ask = told()
    model = toy.layer()
    optimizer = toy.adam(model)
    counter = EpochCounter(ask.until)
    checkpointer = Checkpointer(ask.directory, {"model": model, "optimizer": optimizer, "counter": counter})
    if ask.resume:
        checkpointer.recover_if_possible()
        ask.resumed(counter.current, **toy.state(model, optimizer))

    def save(epoch: int) -> None:
        counter.current = epoch
        checkpointer.save_and_keep_only(meta={"epoch": epoch}, num_to_keep=ask.limit)

    toy.train(ask, counter.current, model, optimizer, save)


if __name__ == "__main__":
    main()
