"""mmengine: a Runner by iterations with max_keep_ckpts, resumed by the file `last_checkpoint`."""

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its own files hold more than torch reads by default since 2.6

import toy
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from telling import told


class Toy(BaseModel):
    def __init__(self) -> None:
        super().__init__()
        self.layer = toy.layer()

    def forward(self, x, y, mode="loss"):
        return {"loss": toy.loss(self.layer(x), y)}

    def train_step(self, data, optim_wrapper):
        loss = self(*data)["loss"]
        optim_wrapper.update_params(loss)
        return {"loss": loss.detach()}


class Telling(Hook):
    priority = "LOWEST"  # after the one that saves

    def __init__(self, ask) -> None:
        self.ask = ask

    def before_train(self, runner):
        if self.ask.resume:
            self.ask.resumed(runner.iter, **state(runner))

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.ask.saved(runner.iter + 1, **state(runner))


def state(runner) -> dict[str, object]:
    return toy.state(runner.model, runner.optim_wrapper.optimizer)


def main() -> None:
    ask = told()
    model = Toy()
    runner = Runner(
        model=model,
        work_dir=str(ask.directory),
        train_dataloader=toy.batches(),
        optim_wrapper=OptimWrapper(toy.adam(model)),
        train_cfg={"by_epoch": False, "max_iters": ask.until},
        default_hooks={
            "checkpoint": {"type": "CheckpointHook", "interval": 1, "by_epoch": False, "max_keep_ckpts": ask.limit}
        },
        custom_hooks=[Telling(ask)],
        resume=ask.resume,
    )
    runner.train()
    ask.ended(runner.iter)


if __name__ == "__main__":
    main()
