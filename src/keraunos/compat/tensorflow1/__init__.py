"""TensorFlow 1.x on today's TensorFlow. Runs on the driver and on workers.

    from keraunos.compat import tensorflow1 as tf

What a program of that time finds below `tf` is here: placeholders and sessions, `tf.layers`, `tf.losses`, `tf.train`,
`tf.contrib.slim`, the names that 1.0 dropped (`tf.mul`, `tf.initialize_all_variables`, …). Importing this module turns
TensorFlow's 2.x behaviour off for the whole process, eager execution included; Keras 3 cannot train in it any more.

Not here: the parts of `tf.contrib` that were discontinued; asking for one names the nearest equivalent. Of the calls
whose arguments changed places in 1.0, `concat` and `split` take both orders; the cross entropies of `tf.nn` refuse
arguments without names, as 1.x did, because the two orders cannot be distinguished.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from keraunos.compat.tensorflow1 import _mode, _renamed

# Programs ask whether they run on 1.x; what they get below is the API of its last release.
__version__ = VERSION = "1.15.5"

_v1 = _mode.tensorflow_1()

# Modules of Keraunos with TensorFlow's names, and modules of Keras 2 that TensorFlow shows under its own names.
_OURS = ("contrib", "estimator", "examples", "nn", "train")
_OF_KERAS = {"keras": "tf_keras.api._v1.keras", "layers": _mode.LAYERS}
# TensorFlow's insides, which are no part of its API and which programs import all the same.
_INSIDES = ("compiler", "core", "python", "tools")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("_")]
    value = _found(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"VERSION", "__version__", *dir(_v1), *_OURS, *_OF_KERAS, *_renamed.NAMES})


def _found(name: str) -> Any:
    if name in _OURS:
        return import_module(f"{__name__}.{name}")
    if name in _OF_KERAS:
        return import_module(_OF_KERAS[name])
    if name in _INSIDES:
        return import_module(f"tensorflow.{name}")
    if name in _renamed.NAMES:
        return _renamed.find(name)
    try:
        return getattr(_v1, name)
    except AttributeError:
        raise AttributeError(
            f"TensorFlow 1.x has no attribute {name!r}, or today's TensorFlow has dropped it without a successor."
        ) from None
