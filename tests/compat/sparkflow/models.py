"""Model functions as SparkFlow's users write them, in TensorFlow 1.x's way."""

import tensorflow as tf

v1 = tf.compat.v1


def dense(inputs, units, activation=None, name=None):
    """A dense layer out of plain variables; `tf.layers` needs Keras 2, which the front-end does not."""
    with v1.variable_scope(name, default_name="dense"):
        kernel = v1.get_variable("kernel", [inputs.shape[-1], units], initializer=v1.glorot_uniform_initializer(seed=7))
        bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer())
        outputs = tf.matmul(inputs, kernel) + bias
        return outputs if activation is None else activation(outputs)


def gaussians_model():
    """The classifier of SparkFlow's own tests."""
    x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
    y = v1.placeholder(tf.float32, shape=[None, 1], name="y")
    hidden = dense(dense(x, 12, tf.nn.relu), 7, tf.nn.relu)
    out = dense(hidden, 1, tf.nn.sigmoid, name="outer")
    return v1.losses.mean_squared_error(y, out)


def xor_model():
    """Two numbers in, one out."""
    x = v1.placeholder(tf.float32, shape=[None, 2], name="x")
    y = v1.placeholder(tf.float32, shape=[None, 1], name="y")
    out = dense(dense(x, 12, tf.nn.tanh), 1, tf.nn.sigmoid, name="outer")
    return v1.losses.mean_squared_error(y, out)


def without_collection():
    """A loss of `tf.nn`, which is in no collection."""
    x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
    y = v1.placeholder(tf.float32, shape=[None, 1], name="y")
    logits = dense(x, 1)
    tf.sigmoid(logits, name="out")
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))


def autoencoder():
    """Learns to give what it gets."""
    x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
    out = tf.identity(dense(dense(x, 4, tf.nn.tanh), 10), name="out")
    return v1.losses.mean_squared_error(x, out)


def dropout_model(keep):
    """A linear model of ones whose inputs drop out; what its placeholder means is in `keep`."""

    def build():
        x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
        y = v1.placeholder(tf.float32, shape=[None, 1], name="y")
        amount = v1.placeholder_with_default(0.5, shape=[], name="drop")
        rate = 1.0 - amount if keep else amount
        kernel = v1.get_variable("kernel", [10, 1], initializer=v1.ones_initializer())
        out = tf.matmul(tf.nn.dropout(x, rate=rate), kernel, name="out")
        return v1.losses.mean_squared_error(y, out)

    return build


def batch_norm_model():
    """Inputs far from zero, which only the moving statistics bring back; `training` is a placeholder."""
    x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
    y = v1.placeholder(tf.float32, shape=[None, 1], name="y")
    training = v1.placeholder_with_default(True, shape=[], name="training")
    mean = v1.get_variable("moving_mean", [10], initializer=v1.zeros_initializer(), trainable=False)
    variance = v1.get_variable("moving_variance", [10], initializer=v1.ones_initializer(), trainable=False)
    batch_mean, batch_variance = tf.nn.moments(x, axes=[0])
    updates = [
        v1.assign(moving, 0.5 * moving + 0.5 * new) for moving, new in ((mean, batch_mean), (variance, batch_variance))
    ]
    for update in updates:
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    used_mean, used_variance = tf.cond(training, lambda: (batch_mean, batch_variance), lambda: (mean, variance))
    normal = (x - used_mean) / tf.sqrt(used_variance + 1e-3)
    out = dense(normal, 1, tf.nn.sigmoid, name="outer")
    return v1.losses.mean_squared_error(y, out)
