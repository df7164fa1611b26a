"""PyTorch Ignite: a Checkpoint with n_saved, which removes what it remembers without a look, resumed by the newest."""

import re

import torch
import toy
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver
from telling import told


def main() -> None:
    ask = told()
    model = toy.layer()
    optimizer = toy.adam(model)

    def learn(_engine, batch) -> None:
        optimizer.zero_grad()
        toy.loss(model(batch[0]), batch[1]).backward()
        optimizer.step()

    def saved(engine) -> None:
        ask.saved(engine.state.iteration, **toy.state(model, optimizer))
        if engine.state.iteration == ask.until:
            engine.terminate()

    trainer = Engine(learn)
    content = {"model": model, "optimizer": optimizer, "trainer": trainer}
    disk = DiskSaver(str(ask.directory), require_empty=False)
    saving = Checkpoint(
        content, disk, n_saved=ask.limit, global_step_transform=lambda engine, _: engine.state.iteration
    )
    trainer.add_event_handler(Events.ITERATION_COMPLETED, saving)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, saved)
    if ask.resume:
        found = [
            (int(m[1]), p) for p in ask.directory.iterdir() if (m := re.fullmatch(r"checkpoint_(\d+)\.pt", p.name))
        ]
        Checkpoint.load_objects(content, torch.load(max(found)[1]))
        ask.resumed(trainer.state.iteration, **toy.state(model, optimizer))
    trainer.run(toy.batches(), max_epochs=1)
    ask.ended(trainer.state.iteration)


if __name__ == "__main__":
    main()
