"""DeepSpeed, ZeRO stage 1 on one process: tags `global_stepN` and a file `latest`; it never deletes."""

import os

import deepspeed
import torch
import toy
from telling import told


def main() -> None:
    ask = told()
    # One process that talks to nobody: without this a launcher or MPI is looked for.
    os.environ["LOCAL_RANK"] = "0"
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model = toy.layer()
    # Else shared memory between processes is compiled for minutes, and there is one process.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=toy.adam(model),
        config={
            "train_micro_batch_size_per_gpu": 4,
            "zero_optimization": {"stage": 1},
            "zero_allow_untested_optimizer": True,
        },
    )

    def state() -> dict[str, object]:
        inner = engine.optimizer.optimizer.state_dict()["state"]
        return {"optimizer": inner, "weights": engine.module.state_dict()}

    if ask.resume:
        path, _ = engine.load_checkpoint(str(ask.directory))
        if path is None:
            raise SystemExit("nothing was loaded")
        ask.resumed(engine.global_steps, **state())
    # The engine is the model and, as far as steps go, the optimizer.
    toy.train(
        ask,
        engine.global_steps,
        engine,
        engine,
        lambda _step: engine.save_checkpoint(str(ask.directory)),
        backward=engine.backward,
        told=state,
    )


if __name__ == "__main__":
    main()
