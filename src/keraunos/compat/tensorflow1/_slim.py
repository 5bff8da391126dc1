"""tf-slim, fixed where today's TensorFlow broke it. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from keraunos.compat.tensorflow1 import _mode

# The places where tf-slim looks for parts of TensorFlow that have moved, and their names in the API.
_MOVED = {
    "tensorflow.python.framework.ops": {"IndexedSlices": "IndexedSlices", "Tensor": "Tensor"},
    "tensorflow.python.ops.array_ops": {"stack": "stack", "unstack": "unstack"},
    "tensorflow.python.ops.control_flow_ops": {
        "Assert": "Assert",
        "case": "case",
        "cond": "cond",
        "while_loop": "while_loop",
    },
    "tensorflow.python.ops.variable_scope": {"variable": "Variable"},
}

# What a program may import of a place that has another name.
_SHOWN = {"tf_keras.api._v1.keras.__internal__.legacy.rnn_cell": "tf.nn.rnn_cell"}


def look_up(module: str, places: Sequence[str], name: str) -> Any:
    """Returns the first of the places' attributes of that name, or a module that a program may import from there."""
    mend()
    for place in places:
        home = import_module(place)
        if hasattr(home, name):
            return getattr(home, name)
        if hasattr(home, "__path__") and not name.startswith("_") and find_spec(f"{place}.{name}") is not None:
            return import_module(f"{place}.{name}")
    shown = ", ".join(_SHOWN.get(place, place.replace("tensorflow.compat.v1.", "tf.")) for place in places)
    raise AttributeError(f"{module} has no attribute {name!r} here. It is looked up in {shown}.")


def names_in(places: Sequence[str]) -> list[str]:
    """Returns the existing objects in these places."""
    mend()
    return sorted({name for place in places for name in dir(import_module(place)) if not name.startswith("_")})


@cache
def mend() -> None:
    """Give tf-slim back what it lost. Its own networks use it too, so it is put into tf-slim itself."""
    if find_spec("tf_slim") is None:
        raise ImportError(
            "tf.contrib needs the package tf-slim, which cannot be imported here. Install what programs for TensorFlow "
            "1.x need with `pip install 'keraunos[tensorflow1]'`, on the executors too."
        )
    v1 = _mode.tensorflow_1()
    for home, names in _MOVED.items():
        for name, public in names.items():
            if not hasattr(import_module(home), name):
                setattr(import_module(home), name, getattr(v1, public))
    from keraunos.compat.tensorflow1._batch_norm import batch_norm

    for home in ("tf_slim", "tf_slim.layers", "tf_slim.layers.layers"):
        import_module(home).batch_norm = batch_norm  # type: ignore[attr-defined]
