"""timm: a CheckpointSaver that keeps the best few by a list of its own, resumed from `last.pth.tar`, list and all."""

import toy
from telling import allow_torchvision, told

allow_torchvision()

from timm.models import resume_checkpoint  # noqa: E402 - the line above has to come first
from timm.utils import CheckpointSaver  # noqa: E402 - likewise


def main() -> None:
    ask = told()
    model = toy.layer()
    optimizer = toy.adam(model)
    saver = CheckpointSaver(model, optimizer, checkpoint_dir=str(ask.directory), decreasing=True, max_history=ask.limit)
    begin = 0
    if ask.resume:
        last = str(ask.directory / "last.pth.tar")
        begin = resume_checkpoint(model, last, optimizer) - 1  # the epoch that is next
        saver.load_state_dict_from_checkpoint(last)
        ask.resumed(begin, **toy.state(model, optimizer))
    toy.train(ask, begin, model, optimizer, lambda epoch: saver.save_checkpoint(epoch, ask.scores[epoch - 1]))


if __name__ == "__main__":
    main()
