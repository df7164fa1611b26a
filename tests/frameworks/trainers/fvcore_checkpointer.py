"""fvcore, as detectron2 uses it: a PeriodicCheckpointer with max_to_keep, and `last_checkpoint` to resume by."""

import torch
from fvcore.common.checkpoint import Checkpointer, PeriodicCheckpointer
from telling import told


def main() -> None:
    ask = told()
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpointer = Checkpointer(model, str(ask.directory), optimizer=optimizer)
    periodic = PeriodicCheckpointer(checkpointer, period=1, max_to_keep=ask.limit)
    begin = 0
    if ask.resume:
        begin = checkpointer.resume_or_load("", resume=True)["iteration"] + 1
        ask.resumed(begin, optimizer=optimizer.state_dict(), weights=model.state_dict())
    for step in range(begin + 1, ask.until + 1):
        draw = torch.Generator().manual_seed(step)
        loss = torch.nn.functional.mse_loss(model(torch.randn(4, 8, generator=draw)), torch.randn(4, 4, generator=draw))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        periodic.step(step - 1)  # it counts from 0
        ask.saved(step, optimizer=optimizer.state_dict(), weights=model.state_dict())
    ask.ended(ask.until)


if __name__ == "__main__":
    main()
