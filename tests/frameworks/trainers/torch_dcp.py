"""torch.distributed.checkpoint in directories `step-N`, resumed and rotated as TorchTitan does it."""

import re
import shutil

import torch.distributed.checkpoint as dcp
import toy
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
    model = toy.layer()
    optimizer = toy.adam(model)
    begin = 0
    if ask.resume:
        begin = steps(folder)[-1]
        weights, state = get_state_dict(model, optimizer)
        wanted = {"model": weights, "optimizer": state, "step": 0}
        dcp.load(wanted, checkpoint_id=folder / f"step-{begin}")
        set_state_dict(model, optimizer, model_state_dict=wanted["model"], optim_state_dict=wanted["optimizer"])
        ask.resumed(wanted["step"], **toy.state(model, optimizer))

    def save(step: int) -> None:
        weights, state = get_state_dict(model, optimizer)
        content = {"model": weights, "optimizer": state, "step": step}
        dcp.save(content, checkpoint_id=folder / f"step-{step}", no_dist=True)
        rotate(folder, ask.limit)

    toy.train(ask, begin, model, optimizer, save)


if __name__ == "__main__":
    main()
