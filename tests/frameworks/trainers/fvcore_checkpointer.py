"""fvcore, as detectron2 uses it: a PeriodicCheckpointer with max_to_keep, and `last_checkpoint` to resume by."""

import toy
from fvcore.common.checkpoint import Checkpointer, PeriodicCheckpointer
from telling import told


def main() -> None:
    ask = told()
    model = toy.layer()
    optimizer = toy.adam(model)
    checkpointer = Checkpointer(model, str(ask.directory), optimizer=optimizer)
    periodic = PeriodicCheckpointer(checkpointer, period=1, max_to_keep=ask.limit)
    begin = 0
    if ask.resume:
        begin = checkpointer.resume_or_load("", resume=True)["iteration"] + 1
        ask.resumed(begin, **toy.state(model, optimizer))
    toy.train(ask, begin, model, optimizer, lambda step: periodic.step(step - 1))  # it counts from 0


if __name__ == "__main__":
    main()
