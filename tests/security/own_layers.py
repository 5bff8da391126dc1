"""A user's own module, which is installed on all machines: nothing in it is registered with Keras."""

import keras


class Twice(keras.layers.Layer):
    def call(self, inputs):
        return 2 * inputs


def squared(labels, outputs):
    return keras.ops.mean(keras.ops.square(labels - outputs), axis=-1)
