"""DeepSpeed, ZeRO stage 1 on one process: tags `global_stepN` and a file `latest`; it never deletes."""

import os

import deepspeed
import torch
from telling import told


def main() -> None:
    ask = told()
    torch.manual_seed(0)
    # One process that talks to nobody: without this a launcher or MPI is looked for.
    os.environ["LOCAL_RANK"] = "0"
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model = torch.nn.Linear(8, 4)
    # Else shared memory between processes is compiled for minutes, and there is one process.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
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
    for step in range(engine.global_steps + 1, ask.until + 1):
        draw = torch.Generator().manual_seed(step)
        loss = torch.nn.functional.mse_loss(
            engine(torch.randn(4, 8, generator=draw)), torch.randn(4, 4, generator=draw)
        )
        engine.backward(loss)
        engine.step()
        engine.save_checkpoint(str(ask.directory))
        ask.saved(step, **state())
    ask.ended(engine.global_steps)


if __name__ == "__main__":
    main()
