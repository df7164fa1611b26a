"""The toy that the trainers on torch train: one layer, data drawn by number, and a loop for those that bring none.

What a framework does by itself stays in its own script; this is what would else be said in each of them.
"""

from collections.abc import Callable
from typing import Any

import torch
from telling import Told


def layer() -> torch.nn.Module:
    """The model, the same each time it is made."""
    torch.manual_seed(0)
    return torch.nn.Linear(8, 4)


def adam(model: torch.nn.Module) -> torch.optim.Optimizer:
    """An optimizer with a state that a resume can get wrong."""
    return torch.optim.Adam(model.parameters(), lr=0.1)


def data() -> torch.utils.data.TensorDataset:
    """Enough for 64 batches of four, the same each time."""
    draw = torch.Generator().manual_seed(1)
    return torch.utils.data.TensorDataset(torch.randn(256, 8, generator=draw), torch.randn(256, 4, generator=draw))


def batches() -> torch.utils.data.DataLoader:
    return torch.utils.data.DataLoader(data(), batch_size=4)


def loss(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(found, wanted)


def state(model: Any, optimizer: Any) -> dict[str, object]:
    """What has to come back with a resume."""
    return {"optimizer": optimizer.state_dict(), "weights": model.state_dict()}


def train(
    ask: Told,
    begin: int,
    model: Any,
    optimizer: Any,
    save: Callable[[int], object],
    *,
    backward: Callable[[torch.Tensor], object] = torch.Tensor.backward,
    told: Callable[[], dict[str, object]] | None = None,
) -> None:
    """From the step after ``begin`` to the last one; each draws its batch by its own number, and is saved."""
    for step in range(begin + 1, ask.until + 1):
        draw = torch.Generator().manual_seed(step)
        x, y = torch.randn(4, 8, generator=draw), torch.randn(4, 4, generator=draw)
        optimizer.zero_grad()
        backward(loss(model(x), y))
        optimizer.step()
        save(step)
        ask.saved(step, **(told() if told else state(model, optimizer)))
    ask.ended(ask.until)
