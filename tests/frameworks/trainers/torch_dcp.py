"""torch.distributed.checkpoint in directories `step-N`, resumed and rotated as TorchTitan does it."""

import re
import shutil

import torch
import torch.distributed.checkpoint as dcp
from telling import told
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def steps(folder) -> list[int]:
    """TorchTitan: every directory whose name has `step-N` in it and that has a `.metadata`."""
    found = [(re.search(r"step-(\d+)", path.name), path) for path in folder.iterdir() if path.is_dir()]
    return sorted(int(match[1]) for match, path in found if match and (path / ".metadata").is_file())


def rotate(folder, limit: int) -> None:
    """TorchTitan keeps the newest `keep_latest_k`; what cannot be removed is passed over."""
    known = sorted((int(m[1]), p) for p in folder.iterdir() if (m := re.search(r"step-(\d+)", p.name)))
    for _, path in known[:-limit]:
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    ask = told()
    folder = ask.directory / "checkpoint"
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    begin = 0
    if ask.resume:
        begin = steps(folder)[-1]
        weights, state = get_state_dict(model, optimizer)
        wanted = {"model": weights, "optimizer": state, "step": 0}
        dcp.load(wanted, checkpoint_id=folder / f"step-{begin}")
        set_state_dict(model, optimizer, model_state_dict=wanted["model"], optim_state_dict=wanted["optimizer"])
        ask.resumed(wanted["step"], optimizer=optimizer.state_dict(), weights=model.state_dict())
    for step in range(begin + 1, ask.until + 1):
        draw = torch.Generator().manual_seed(step)
        loss = torch.nn.functional.mse_loss(model(torch.randn(4, 8, generator=draw)), torch.randn(4, 4, generator=draw))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights, state = get_state_dict(model, optimizer)
        dcp.save(
            {"model": weights, "optimizer": state, "step": step}, checkpoint_id=folder / f"step-{step}", no_dist=True
        )
        rotate(folder, ask.limit)
        ask.saved(step, optimizer=optimizer.state_dict(), weights=model.state_dict())
    ask.ended(ask.until)


if __name__ == "__main__":
    main()
