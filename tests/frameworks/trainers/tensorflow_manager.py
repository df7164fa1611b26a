"""TensorFlow: tf.train.CheckpointManager that lists the newest few and preserves what leaves the list, as it can."""

import tensorflow as tf
from telling import told


def main() -> None:
    ask = told()
    weights = tf.Variable(tf.ones((8, 4)))
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build([weights])
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step, weights=weights, optimizer=optimizer)
    # What it lists is never ours to take; so there is to be something that it has left lying and does not list.
    manager = tf.train.CheckpointManager(
        checkpoint, str(ask.directory), max_to_keep=ask.limit, keep_checkpoint_every_n_hours=1e-9
    )

    def state() -> dict[str, object]:
        return {"optimizer": [v.numpy() for v in optimizer.variables], "weights": weights.numpy()}

    if ask.resume:
        checkpoint.restore(manager.latest_checkpoint).assert_consumed()
        ask.resumed(int(step.numpy()), **state())
    while step < ask.until:
        step.assign_add(1)
        seed = (int(step.numpy()), 0)
        x, y = tf.random.stateless_normal((4, 8), seed), tf.random.stateless_normal((4, 4), seed)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        manager.save(checkpoint_number=int(step.numpy()))
        ask.saved(int(step.numpy()), **state())
    ask.ended(int(step.numpy()))


if __name__ == "__main__":
    main()
