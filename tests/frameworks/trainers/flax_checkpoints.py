"""Flax, its own format: save_checkpoint with `keep`, one file a step, and restore_checkpoint of the newest."""

import flax
import toy_jax
from flax.training import checkpoints
from telling import told


def main() -> None:
    ask = told()
    flax.config.update("flax_use_orbax_checkpointing", False)  # else Orbax writes, which is tried on its own
    content = {"step": 0, "state": toy_jax.begin()}
    if ask.resume:
        content = checkpoints.restore_checkpoint(ask.directory, content)
        ask.resumed(content["step"], **toy_jax.told(content["state"]))

    def save(step: int, state: toy_jax.State) -> None:
        checkpoints.save_checkpoint(ask.directory, {"step": step, "state": state}, step, keep=ask.limit)

    toy_jax.train(ask, int(content["step"]), content["state"], save)
    ask.ended(ask.until)


if __name__ == "__main__":
    main()
