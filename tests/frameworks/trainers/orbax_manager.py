"""Orbax: a CheckpointManager with max_to_keep, asynchronous as it is by default; with scores it keeps the best few."""

import orbax.checkpoint as ocp
import toy_jax
from telling import told


def main() -> None:
    ask = told()
    state = toy_jax.begin()
    best = {"best_fn": lambda metrics: metrics["loss"], "best_mode": "min"} if ask.scores else {}
    options = ocp.CheckpointManagerOptions(max_to_keep=ask.limit, save_interval_steps=1, **best)
    with ocp.CheckpointManager(ask.directory, options=options) as manager:
        done = 0
        if ask.resume:
            done = manager.latest_step()
            state = manager.restore(done, args=ocp.args.StandardRestore(state))
            ask.resumed(done, **toy_jax.told(state))

        def save(step: int, state: toy_jax.State) -> None:
            measured = {"metrics": {"loss": ask.scores[step - 1]}} if ask.scores else {}
            manager.save(step, args=ocp.args.StandardSave(state), **measured)
            manager.wait_until_finished()

        toy_jax.train(ask, done, state, save)
    ask.ended(ask.until)


if __name__ == "__main__":
    main()
