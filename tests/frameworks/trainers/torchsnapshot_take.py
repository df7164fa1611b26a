"""torchsnapshot: a directory `step_N` a step, of which the script restores the newest; nothing rotates."""

import re

import toy
from telling import told
from torchsnapshot import Snapshot, StateDict


def main() -> None:
    ask = told()
    model = toy.layer()
    optimizer = toy.adam(model)
    progress = StateDict(step=0)
    content = {"model": model, "optimizer": optimizer, "progress": progress}
    if ask.resume:
        found = [(int(m[1]), path) for path in ask.directory.iterdir() if (m := re.fullmatch(r"step_(\d+)", path.name))]
        Snapshot(path=str(max(found)[1])).restore(content)
        ask.resumed(progress["step"], **toy.state(model, optimizer))

    def save(step: int) -> None:
        progress["step"] = step
        Snapshot.take(path=str(ask.directory / f"step_{step}"), app_state=content)

    toy.train(ask, progress["step"], model, optimizer, save)


if __name__ == "__main__":
    main()
