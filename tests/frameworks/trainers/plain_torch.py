"""No framework: torch.save of nanoGPT's `ckpt.pt`, written over at each step, and of a file `ckpt_N.pt` a step."""

import torch
import toy
from telling import told


def main() -> None:
    ask = told()
    model = toy.layer()
    optimizer = toy.adam(model)
    begin = 0
    if ask.resume:
        found = torch.load(ask.directory / "ckpt.pt")
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        begin = found["iter_num"]
        ask.resumed(begin, **toy.state(model, optimizer))

    def save(step: int) -> None:
        content = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "model_args": {"n_layer": 1},
            "iter_num": step,
            "best_val_loss": 1.0,
            "config": {"out_dir": str(ask.directory)},
        }
        torch.save(content, ask.directory / f"ckpt_{step}.pt")
        torch.save(content, ask.directory / "ckpt.pt")

    toy.train(ask, begin, model, optimizer, save)


if __name__ == "__main__":
    main()
