"""Ray Train (V2): one worker reports checkpoints, the controller keeps the newest few and lists them in a snapshot."""

import os
import tempfile
import time
from pathlib import Path

os.environ["RAY_TRAIN_V2_ENABLED"] = "1"  # read when ray.train is imported
os.environ["RAY_AUTH_MODE"] = "disabled"  # all of it is on this machine, and ends with the script

import numpy as np
import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from telling import Told, told

NAME = "toy"


def train(settings: dict) -> None:
    """Adam by hand: this environment has no other library of training."""
    ask = Told(settings["words"])
    state = {name: np.zeros((8, 4)) for name in ("w", "m", "v")}
    begin = 0
    if (found := ray.train.get_checkpoint()) is not None:
        with found.as_directory() as folder, np.load(Path(folder, "state.npz")) as stored:
            state = {name: stored[name] for name in state}
            begin = int(stored["step"])
        ask.resumed(begin, **told_state(state))
    for step in range(begin + 1, ask.until + 1):
        draw = np.random.default_rng(step)
        x, y = draw.normal(size=(4, 8)), draw.normal(size=(4, 4))
        slope = x.T @ (x @ state["w"] - y)
        state["m"] = 0.9 * state["m"] + 0.1 * slope
        state["v"] = 0.99 * state["v"] + 0.01 * slope**2
        state["w"] = state["w"] - 0.1 * state["m"] / (np.sqrt(state["v"]) + 1e-8)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder, "state.npz"), step=step, **state)
            checkpoint = ray.train.Checkpoint.from_directory(folder)
            checkpoint.set_metadata({"step": step})
            ray.train.report({"step": step}, checkpoint=checkpoint)
        listed(ask.directory / NAME / "checkpoint_manager_snapshot.json", step)
        ask.saved(step, **told_state(state))


def listed(snapshot: Path, step: int) -> None:
    """Wait until the controller has taken in a report: it does so in its own time, after the worker went on."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        # Read as text: it is rewritten in place, so it may be cut short at this moment.
        if snapshot.exists() and f'"step":{step}}}' in snapshot.read_text():
            return
        time.sleep(0.05)
    raise SystemExit(f"step {step} never came into {snapshot}")


def told_state(state: dict[str, np.ndarray]) -> dict[str, object]:
    return {"optimizer": [state["m"], state["v"]], "weights": state["w"]}


def main() -> None:
    ask = told()
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", object_store_memory=100_000_000)
    trainer = DataParallelTrainer(
        train,
        train_loop_config={"words": ask.words},
        scaling_config=ray.train.ScalingConfig(num_workers=1),
        run_config=ray.train.RunConfig(
            name=NAME,
            storage_path=str(ask.directory),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=ask.limit),
        ),
    )
    result = trainer.fit()
    ray.shutdown()
    ask.ended(result.metrics["step"])


if __name__ == "__main__":
    main()
