"""The graph that the examples train: one layer from 784 pixels to 10 digits. Runs on the driver."""

from __future__ import annotations

from typing import Any


class SoftmaxRegression:
    """A graph of its own with the names of the document's program, and a session in which it is initialised."""

    def __init__(self, learning_rate: float = 0.5) -> None:
        import tensorflow as tf

        v1 = tf.compat.v1
        graph = tf.Graph()
        with graph.as_default():
            self.x = v1.placeholder(tf.float32, [None, 784], name="x")
            self.y_ = v1.placeholder(tf.float32, [None, 10], name="y_")
            self.W = v1.get_variable("W", initializer=tf.zeros([784, 10]))
            self.b = v1.get_variable("b", initializer=tf.zeros([10]))
            logits = tf.matmul(self.x, self.W) + self.b
            # From the logits: the logarithm of a softmax that has run to zero would be minus infinity.
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=self.y_, logits=logits))
            self.train_step = v1.train.GradientDescentOptimizer(learning_rate).minimize(loss)
            hits = tf.equal(tf.argmax(logits, 1), tf.argmax(self.y_, 1))
            self._accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
            start = v1.global_variables_initializer()
        self.session: Any = v1.Session(graph=graph)
        self.session.run(start)

    def step(self, images: Any, labels: Any) -> None:
        """One step here, on the driver."""
        self.session.run(self.train_step, {self.x: images, self.y_: labels})

    def accuracy(self, images: Any, labels: Any) -> float:
        """Returns the part of the images that is recognised."""
        return float(self.session.run(self._accuracy, {self.x: images, self.y_: labels}))
