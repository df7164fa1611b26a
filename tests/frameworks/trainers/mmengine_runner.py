"""mmengine: a Runner by iterations with max_keep_ckpts, resumed by the file `last_checkpoint`."""

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its own files hold more than torch reads by default since 2.6

import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from telling import told


class Toy(BaseModel):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x, y, mode="loss"):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), y)}

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
    return {"optimizer": runner.optim_wrapper.optimizer.state_dict(), "weights": runner.model.state_dict()}


def main() -> None:
    ask = told()
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(1)
    data = [(torch.randn(8, generator=draw), torch.randn(4, generator=draw)) for _ in range(256)]
    model = Toy()
    runner = Runner(
        model=model,
        work_dir=str(ask.directory),
        train_dataloader=torch.utils.data.DataLoader(data, batch_size=4),
        optim_wrapper=OptimWrapper(torch.optim.Adam(model.parameters(), lr=0.1)),
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
