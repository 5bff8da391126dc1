"""What `keraunos.compat.tensorflow1` does, found out in a process of its own and printed as JSON.

Once TensorFlow is in the mode of 1.x, a process is of no use to other tests. TensorFlow is imported before our module,
which is the harder case.
"""

import json
import sys
import traceback

import numpy as np
import tensorflow  # noqa: ICN001 - `tf` is the module that is looked at

from keraunos.compat import tensorflow1 as tf

slim = tf.contrib.slim
rng = np.random.default_rng(0)


def document_of_tensorspark():
    """The model of TensorSpark's document, trained on points of three kinds."""
    x = tf.placeholder(tf.float32, [None, 784])
    W = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, W) + b)
    y_ = tf.placeholder(tf.float32, [None, 10])
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
    init = tf.initialize_all_variables()
    sess = tf.Session()
    sess.run(init)
    labels = np.arange(60) % 3
    images = rng.random((60, 784)).astype("float32") * 0.1
    images[np.arange(60), labels] += 1
    feed = {x: images, y_: np.eye(10)[labels]}
    before = sess.run(cross_entropy, feed)
    for _ in range(20):
        sess.run(train_step, feed)
    return {"before": float(before), "after": float(sess.run(cross_entropy, feed)), "names": [x.name, W.name]}


def lenet():
    """A network of slim's model zoo, as Analytics Zoo's document uses it."""

    def arg_scope(weight_decay=0.0):
        regularizer = slim.l2_regularizer(weight_decay)
        with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=regularizer):
            initializer = tf.truncated_normal_initializer(stddev=0.1)
            with slim.arg_scope([slim.conv2d], weights_initializer=initializer, activation_fn=tf.nn.relu) as scope:
                return scope

    images = tf.placeholder(tf.float32, [None, 28, 28, 1])
    labels = tf.placeholder(tf.int32, [None, 1])
    with slim.arg_scope(arg_scope(0.01)), tf.variable_scope("LeNet"):
        net = slim.conv2d(images, 8, [5, 5], scope="conv1")
        net = slim.max_pool2d(net, [2, 2], 2, scope="pool1")
        net = slim.flatten(net)
        net = slim.fully_connected(net, 16, scope="fc3")
        net = slim.dropout(net, 0.5, is_training=True, scope="dropout3")
        logits = slim.fully_connected(net, 10, activation_fn=None, scope="fc4")
    tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=tf.squeeze(labels)))
    return {
        "variables": [variable.op.name for variable in slim.get_model_variables()],
        "losses": len(tf.losses.get_losses()),
        "regularization": len(tf.losses.get_regularization_losses()),
    }


def batch_norm(shape, fused=None, data_format="NHWC", updates_collections=tf.GraphKeys.UPDATE_OPS, placeholder=False):
    """One training step and one prediction of a batch norm beside what numpy says of both."""
    values = rng.normal(3, 2, shape).astype("float32")
    axis = 1 if data_format == "NCHW" else len(shape) - 1
    others = tuple(each for each in range(len(shape)) if each != axis)
    x = tf.placeholder(tf.float32, [None, *shape[1:]])
    training = tf.placeholder(tf.bool, []) if placeholder else True
    wanted = {
        "decay": 0.9,
        "epsilon": 0.001,
        "scale": True,
        "fused": fused,
        "data_format": data_format,
        "updates_collections": updates_collections,
    }
    with slim.arg_scope([slim.batch_norm], **wanted):
        out = slim.batch_norm(x, is_training=training, scope="bn")
        predicted = slim.batch_norm(x, is_training=False, scope="bn", reuse=True)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: values} | ({training: True} if placeholder else {})
        got, *_ = sess.run([out, *updates], feed)
        mean, variance = sess.run(["bn/moving_mean:0", "bn/moving_variance:0"])
        served = sess.run(predicted, {x: values})
        if placeholder:
            again = sess.run([out, *updates], feed | {training: False})[0]
            still = sess.run(["bn/moving_mean:0", "bn/moving_variance:0"])
        else:
            again, still = served, [mean, variance]

    def wide(vector):
        return np.reshape(vector, [-1 if each == axis else 1 for each in range(len(shape))])

    expected = (values - values.mean(others, keepdims=True)) / np.sqrt(values.var(others, keepdims=True) + 0.001)
    rows = values.size // shape[axis]
    sample = values.var(others) * (rows / (rows - 1) if fused is not False and len(shape) in (2, 4) else 1)
    served_expected = (values - wide(mean)) / np.sqrt(wide(variance) + 0.001)
    return {
        "output": float(np.abs(got - expected).max()),
        "mean": float(np.abs(mean - 0.1 * values.mean(others)).max()),
        "variance": float(np.abs(variance - (0.9 + 0.1 * sample)).max()),
        "served": float(np.abs(served - served_expected).max()),
        "served by the placeholder": float(np.abs(again - served).max()),
        "unmoved": float(max(np.abs(still[0] - mean).max(), np.abs(still[1] - variance).max())),
        "updates": len(updates),
        "variables": sorted(variable.op.name for variable in tf.global_variables()),
        "trainable": sorted(variable.op.name for variable in tf.trainable_variables()),
    }


def batch_norm_in_layers():
    """A network that learns through batch norms, given as slim's `normalizer_fn` and called."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.int64, [None])
    parameters = {"is_training": True, "decay": 0.9, "updates_collections": None}
    with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=parameters):
        net = slim.conv2d(x, 4, [3, 3])
    net = slim.batch_norm(slim.fully_connected(slim.flatten(net), 8), activation_fn=tf.nn.relu, scale=True)
    loss = tf.losses.sparse_softmax_cross_entropy(y, slim.fully_connected(net, 2, activation_fn=None))
    step = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.01))
    values = rng.normal(5, 3, (32, 8, 8, 1)).astype("float32")
    labels = (values.mean((1, 2, 3)) > 5).astype("int64")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [float(sess.run(step, {x: values, y: labels})) for _ in range(60)]
        means = sess.run([variable for variable in tf.global_variables() if "moving_mean" in variable.name])
    return {"first": losses[0], "last": losses[-1], "moved": [float(np.abs(mean).max()) for mean in means]}


def batch_norm_with_weights():
    """Rows of weight nought count for nothing."""
    values = rng.normal(size=(6, 3)).astype("float32")
    x = tf.constant(values)
    weights = tf.constant([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    out = slim.batch_norm(x, batch_weights=weights, decay=0.0, param_regularizers={"beta": slim.l2_regularizer(0.1)})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([out, *tf.get_collection(tf.GraphKeys.UPDATE_OPS)])
        mean = sess.run("BatchNorm/moving_mean:0")
    return {
        "mean": float(np.abs(mean - values[:4].mean(0)).max()),
        "regularization": len(tf.losses.get_regularization_losses()),
    }


def batch_norm_without_bias():
    """The first batch alone, where the averages are corrected for having begun at nought; prediction counts no step."""
    values = rng.normal(4, 1, (8, 3)).astype("float32")
    training = tf.placeholder(tf.bool, [])
    out = slim.batch_norm(tf.constant(values), is_training=training, zero_debias_moving_mean=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for value in (True, False, False):
            sess.run([out, *tf.get_collection(tf.GraphKeys.UPDATE_OPS)], {training: value})
        mean = sess.run("BatchNorm/moving_mean:0")
    return {"mean": float(np.abs(mean - values.mean(0)).max())}


def residual_network():
    """tf-slim's own networks reach the batch norm that was mended."""
    from importlib import import_module

    resnet_v1 = import_module("keraunos.compat.tensorflow1.contrib.slim").nets.resnet_v1
    utils = tf.contrib.slim.nets.resnet_utils
    with slim.arg_scope(utils.resnet_arg_scope(weight_decay=1e-4)):
        block = resnet_v1.resnet_v1_block("block1", base_depth=4, num_units=1, stride=1)
        net, _ = resnet_v1.resnet_v1(
            tf.placeholder(tf.float32, [None, 32, 32, 3]), [block], num_classes=5, is_training=True
        )
    return {"shape": net.shape.as_list(), "updates": len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))}


def names_before_1_0():
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 5.0]])
    with tf.Session() as sess:
        return {
            "mul": sess.run(tf.mul(a, b)).tolist(),
            "sub": sess.run(tf.sub(a, b)).tolist(),
            "neg": sess.run(tf.neg(a)).tolist(),
            "pack": sess.run(tf.pack([a, b])).shape,
            "concat": sess.run(tf.concat(0, [a, b])).tolist(),
            "concat of 1.x": sess.run(tf.concat([a, b], 0)).tolist(),
            "concat by name": sess.run(tf.concat(values=[a, b], axis=1)).tolist(),
            "split": [part.tolist() for part in sess.run(tf.split(1, 2, a))],
            "split of 1.x": [part.tolist() for part in sess.run(tf.split(a, 2, 1))],
            "batch_matmul": sess.run(tf.batch_matmul(a, b, adj_y=True)).tolist(),
            "keep_dims": sess.run(tf.reduce_sum(a, 1, keep_dims=True)).tolist(),
            "argmax": sess.run(tf.argmax(a, dimension=1)).tolist(),
            "summary": tf.scalar_summary("loss", tf.reduce_sum(a)).dtype.name,
            "merged": tf.merge_all_summaries().dtype.name,
            "writer": tf.train.SummaryWriter is tf.summary.FileWriter,
        }


def layers_of_tensorflow():
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    net = tf.layers.max_pooling2d(tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu), 2, 2)
    net = tf.layers.dense(tf.layers.flatten(net), 5, kernel_initializer=tf.contrib.layers.xavier_initializer())
    net = tf.layers.dropout(tf.layers.batch_normalization(net, training=True), 0.5, training=True)
    cell = tf.contrib.rnn.BasicLSTMCell(3)
    rnn, _ = tf.nn.dynamic_rnn(cell, tf.reshape(net, [-1, 5, 1]), dtype=tf.float32)
    dense = tf.keras.layers.Dense(2)(net)
    return {
        "dense": net.shape.as_list(),
        "rnn": rnn.shape.as_list(),
        "keras": dense.shape.as_list(),
        "value": net.get_shape()[1].value,
        "step": tf.contrib.framework.get_or_create_global_step().op.name,
        "kinds": sorted({type(variable).__name__ for variable in tf.global_variables()}),
    }


def optimized():
    x = tf.placeholder(tf.float32, [None, 3])
    loss = tf.reduce_mean(slim.fully_connected(x, 1))
    step = tf.train.get_or_create_global_step()
    op = tf.contrib.layers.optimize_loss(loss, step, 0.1, "SGD", clip_gradients=1.0)
    clipped = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(), clip_gradient_norm=1.0)
    weighed = tf.contrib.metrics.streaming_auc(tf.sigmoid(x), tf.ones_like(x, tf.bool))[0]
    local = tf.contrib.framework.local_variable(3.0, name="kept")
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        sess.run([op, clipped], {x: [[1.0, 2.0, 3.0]]})
        return {"steps": int(sess.run(step)), "kept": float(sess.run(local)), "auc": weighed.shape.as_list()}


def error_of(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - the error is what is asked for
        return {"kind": type(error).__name__, "message": str(error)}
    return {"kind": None, "message": ""}


def errors():
    x = tf.placeholder(tf.float32, [None, 3])
    return {
        "cross entropy": error_of(tf.nn.softmax_cross_entropy_with_logits, x, x),
        "sparse": error_of(tf.nn.sparse_softmax_cross_entropy_with_logits, x, x),
        "contrib": error_of(getattr, tf.contrib, "seq2seq"),
        "unknown contrib": error_of(getattr, tf.contrib, "bayesflow"),
        "layers": error_of(getattr, tf.contrib.layers, "real_valued_column"),
        "estimator": error_of(getattr, tf.estimator, "BoostedTreesClassifier"),
        "unknown": error_of(getattr, tf, "no_such_thing"),
        "renorm": error_of(slim.batch_norm, x, renorm=True),
        "channels": error_of(slim.batch_norm, tf.placeholder(tf.float32, [None, None])),
        "format": error_of(slim.batch_norm, x, data_format="CHWN"),
    }


def surroundings():
    return {
        "version": tf.__version__,
        "eager": tensorflow.executing_eagerly(),
        "names": {"placeholder", "layers", "contrib", "mul", "__version__"} <= set(dir(tf)),
        "contrib": {"slim", "layers"} <= set(dir(tf.contrib)),
        "slim": {"batch_norm", "conv2d"} <= set(dir(slim)),
        "name": tf.__name__,
        "insides": tf.python.__name__,
        "moved": callable(tf.python.ops.variable_scope.default_variable_creator),
    }


FACTS = {
    "document_of_tensorspark": document_of_tensorspark,
    "lenet": lenet,
    "batch_norm of images": lambda: batch_norm((16, 4, 4, 3)),
    "batch_norm of rows": lambda: batch_norm((32, 5)),
    "batch_norm of rows in place": lambda: batch_norm((32, 5), updates_collections=None),
    "batch_norm of sequences": lambda: batch_norm((8, 6, 3)),
    "batch_norm not fused": lambda: batch_norm((16, 4, 4, 3), fused=False),
    "batch_norm channels first": lambda: batch_norm((16, 3, 4, 4), fused=False, data_format="NCHW"),
    "batch_norm by a placeholder": lambda: batch_norm((16, 4, 4, 3), placeholder=True),
    "batch_norm of rows by a placeholder": lambda: batch_norm((32, 5), placeholder=True, updates_collections=None),
    "batch_norm_in_layers": batch_norm_in_layers,
    "batch_norm_with_weights": batch_norm_with_weights,
    "batch_norm_without_bias": batch_norm_without_bias,
    "residual_network": residual_network,
    "names_before_1_0": names_before_1_0,
    "layers_of_tensorflow": layers_of_tensorflow,
    "optimized": optimized,
    "errors": errors,
    "surroundings": surroundings,
}

if __name__ == "__main__":
    found = {}
    for name, function in FACTS.items():
        with tf.Graph().as_default():
            try:
                found[name] = function()
            except Exception:  # noqa: BLE001 - told to the test that asks for this fact
                found[name] = {"failed": traceback.format_exc()}
    json.dump(found, sys.stdout)
