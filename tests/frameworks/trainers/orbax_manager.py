"""Orbax: a CheckpointManager with max_to_keep, asynchronous as it is by default, over the state of optax."""

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from telling import told


def main() -> None:
    ask = told()
    weights = {"w": jnp.ones((8, 4)), "b": jnp.zeros(4)}
    rule = optax.adam(0.1)
    state = {"weights": weights, "optimizer": rule.init(weights)}

    def loss(weights, x, y):
        return jnp.mean((x @ weights["w"] + weights["b"] - y) ** 2)

    options = ocp.CheckpointManagerOptions(max_to_keep=ask.limit, save_interval_steps=1)
    with ocp.CheckpointManager(ask.directory, options=options) as manager:
        begin = 0
        if ask.resume:
            begin = manager.latest_step()
            state = manager.restore(begin, args=ocp.args.StandardRestore(state))
            ask.resumed(begin, **tell(state))
        for step in range(begin + 1, ask.until + 1):
            one, two = jax.random.split(jax.random.key(step))
            slope = jax.grad(loss)(state["weights"], jax.random.normal(one, (4, 8)), jax.random.normal(two, (4, 4)))
            change, optimizer = rule.update(slope, state["optimizer"])
            state = {"weights": optax.apply_updates(state["weights"], change), "optimizer": optimizer}
            manager.save(step, args=ocp.args.StandardSave(state))
            manager.wait_until_finished()
            ask.saved(step, **tell(state))
    ask.ended(ask.until)


def tell(state) -> dict[str, object]:
    return {name: jax.tree.leaves(jax.device_get(part)) for name, part in state.items()}


if __name__ == "__main__":
    main()
