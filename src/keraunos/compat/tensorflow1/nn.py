"""`tf.nn` of TensorFlow 1.x. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_nn = _mode.tensorflow_1().nn

_RENAMED = {
    "bidirectional_rnn": "static_bidirectional_rnn",
    "rnn": "static_rnn",
    "state_saving_rnn": "static_state_saving_rnn",
}
_NAMED_ONLY = (
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
)


def __getattr__(name: str) -> Any:
    value = _found(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_nn), *_RENAMED})


def _found(name: str) -> Any:
    if name == "rnn_cell":
        return import_module("tf_keras.api._v1.keras.__internal__.legacy.rnn_cell")
    if name == "seq2seq":
        raise AttributeError("tf.nn.seq2seq was removed from TensorFlow. Use tf.nn.dynamic_rnn with tf.nn.rnn_cell.")
    if name in _NAMED_ONLY:
        return _with_names_only(getattr(_nn, name))
    return getattr(_nn, _RENAMED.get(name, name))


def _with_names_only(cross_entropy: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse arguments without names: logits came first before 1.0, labels come first today, and both would run."""

    @wraps(cross_entropy)
    def named(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(
                f"tf.nn.{cross_entropy.__name__} must be called with named arguments, because their order is not the "
                f"same in all versions. Expected labels=…, logits=…. Received: {len(args)} without a name."
            )
        return cross_entropy(**kwargs)

    return named
