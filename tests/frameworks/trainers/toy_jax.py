"""The toy of the trainers on JAX: one layer, Adam of optax, and the loop."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from telling import Told

RULE = optax.adam(0.1)

State = dict[str, object]


def begin() -> State:
    """Weights and optimizer before the first step."""
    weights = {"w": jnp.ones((8, 4)), "b": jnp.zeros(4)}
    return {"weights": weights, "optimizer": RULE.init(weights)}


def loss(weights, x, y):
    return jnp.mean((x @ weights["w"] + weights["b"] - y) ** 2)


def told(state: State) -> dict[str, object]:
    """What has to come back with a resume."""
    return {name: jax.tree.leaves(jax.device_get(part)) for name, part in state.items()}


def train(ask: Told, done: int, state: State, save: Callable[[int, State], object]) -> None:
    """From the step after ``done`` to the last one; each draws its batch by its own number, and is saved."""
    for step in range(done + 1, ask.until + 1):
        one, two = jax.random.split(jax.random.key(step))
        slope = jax.grad(loss)(state["weights"], jax.random.normal(one, (4, 8)), jax.random.normal(two, (4, 4)))
        change, optimizer = RULE.update(slope, state["optimizer"])
        state = {"weights": optax.apply_updates(state["weights"], change), "optimizer": optimizer}
        save(step, state)
        ask.saved(step, **told(state))
