"""Stable-Baselines3: PPO with a CheckpointCallback after every step of the environment; it never deletes."""

import re

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from telling import told


class Telling(CheckpointCallback):
    def __init__(self, ask) -> None:
        super().__init__(save_freq=1, save_path=str(ask.directory))
        self.ask = ask

    def _on_step(self) -> bool:
        super()._on_step()
        self.ask.saved(self.num_timesteps, **state(self.model))
        return True


def state(model) -> dict[str, object]:
    return {"optimizer": model.policy.optimizer.state_dict(), "weights": model.policy.state_dict()}


def main() -> None:
    ask = told()
    world = gymnasium.make("CartPole-v1")
    if ask.resume:
        found = [(int(m[1]), p) for p in ask.directory.iterdir() if (m := re.fullmatch(r".+_(\d+)_steps\.zip", p.name))]
        model = PPO.load(max(found)[1], env=world, device="cpu")
        ask.resumed(model.num_timesteps, **state(model))
    else:
        model = PPO("MlpPolicy", world, n_steps=2, batch_size=2, n_epochs=1, seed=0, device="cpu")
    model.learn(ask.until - model.num_timesteps, callback=Telling(ask), reset_num_timesteps=not ask.resume)
    ask.ended(model.num_timesteps)


if __name__ == "__main__":
    main()
