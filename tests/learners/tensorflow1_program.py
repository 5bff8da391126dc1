"""A program as it was written for TensorFlow 1, run in a process of its own by `test_tensorflow_graph.py`.

Its variables, its loops and its conditions are those of TensorFlow 1, and one of its operations has a gradient that is
written in Python. It saves what its own session computed beside the archives of its graph.
"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

from keraunos.learners.graph_source import graph_source

tf.disable_v2_behavior()


def main(path):
    x = tf.placeholder(tf.float32, [None, 5, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    training = tf.placeholder(tf.bool, [], name="training")
    kernel, recurrent = tf.get_variable("kernel", [3, 4]), tf.get_variable("recurrent", [4, 4])
    mean = tf.get_variable("mean", [4], trainable=False, initializer=tf.zeros_initializer())

    def step(i, hidden):
        return i + 1, tf.nn.silu(tf.matmul(x[:, i], kernel) + tf.matmul(hidden, recurrent))

    _, hidden = tf.while_loop(lambda i, _: i < 5, step, [0, tf.zeros([tf.shape(x)[0], 4])])
    move = tf.cond(
        training,
        lambda: tf.assign(mean, 0.9 * mean + 0.1 * tf.reduce_mean(hidden, 0)),
        lambda: tf.identity(mean),
    )
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, move)
    out = tf.reduce_sum(hidden, 1, keepdims=True, name="out")
    loss = tf.reduce_mean(tf.square(out - y), name="loss")
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss)
    kinds = {operation.type for operation in tf.get_default_graph().get_operations()}
    assert {"VariableV2", "Enter", "Switch", "RefSwitch"} <= kinds

    random = np.random.default_rng(0)
    rows = {x: random.normal(size=(6, 5, 3)), y: random.normal(size=(6, 1))}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        parts = {"inputs": {"x": x}, "targets": {"y": y}, "loss": loss, "outputs": {"out": out}}
        parts["feeds"] = {training: (True, False)}
        archives = {
            "loss_only": graph_source(session, **parts).archive,
            "stepping": graph_source(session, train_op=train_op, **parts).archive,
        }
        gradients = session.run(tf.gradients(loss, [kernel, recurrent]), rows)
        losses = [session.run([loss, train_op, move], {**rows, training: True})[0] for _ in range(5)]
        np.savez(
            path,
            x=rows[x],
            y=rows[y],
            gradient=np.concatenate([each.ravel() for each in gradients]),
            losses=losses,
            parameters=np.concatenate([each.ravel() for each in session.run([kernel, recurrent, mean])]),
            out=session.run(out, rows),
            **{name: np.frombuffer(archive, np.uint8) for name, archive in archives.items()},
        )


if __name__ == "__main__":
    main(sys.argv[1])
