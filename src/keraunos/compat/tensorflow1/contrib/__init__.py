"""`tf.contrib`, as far as tf-slim and TensorFlow still have it. Runs on the driver and on workers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = ("framework", "layers", "lookup", "losses", "metrics", "rnn", "slim", "training")

_NEAREST = {
    "cudnn_rnn": "tf.keras.layers.CuDNNLSTM or tf.keras.layers.CuDNNGRU",
    "data": "tf.data, and tf.data.experimental for what it lacks",
    "distribute": "one of Keraunos's front-ends: they are what distributes the training here",
    "distributions": "the package tensorflow-probability, or tf.distributions",
    "eager": "TensorFlow 2.x as it is, in a program of its own",
    "estimator": "tf.estimator",
    "gan": "a training loop of your own: a loss for each of the two networks, with var_list=",
    "image": "tf.image",
    "keras": "tf.keras",
    "learn": "keraunos.KerasEstimator; for its datasets, sklearn.datasets or tf.keras.datasets",
    "legacy_seq2seq": "tf.nn.dynamic_rnn with tf.nn.rnn_cell",
    "linalg": "tf.linalg",
    "nn": "tf.nn",
    "opt": "tf.train",
    "predictor": "zoo.tfpark.TFPredictor, or a tf.Session of your own",
    "quantize": "the package tensorflow-model-optimization",
    "saved_model": "tf.saved_model",
    "seq2seq": "tf.nn.dynamic_rnn with tf.nn.rnn_cell",
    "signal": "tf.signal",
    "stateless": "tf.random.stateless_normal and its sisters",
    "summary": "tf.summary",
    "tpu": "tf.tpu",
    "util": "tf.make_tensor_proto, tf.make_ndarray",
}


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"{__name__}.{name}")
    instead = f" Use {_NEAREST[name]}." if name in _NEAREST else ""
    raise AttributeError(
        f"tf.contrib.{name} is not part of today's TensorFlow.{instead} Of tf.contrib there are: {', '.join(MODULES)}."
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
