"""Today's TensorFlow in the mode of 1.x. Runs on the driver and on workers."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from keraunos.learners.framework_imports import import_tensorflow

LAYERS = "tf_keras.api._v1.keras.__internal__.legacy.layers"


@cache
def tensorflow_1() -> Any:
    """TensorFlow's module for 1.x programs, with the behaviour of 1.x enabled."""
    missing = [name for name in ("tensorflow", "tf_keras") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"Programs for TensorFlow 1.x need {' and '.join(missing)}, which cannot be imported here. Install what "
            "they need with `pip install 'keraunos[tensorflow1]'`, on the executors too."
        )
    # Read while TensorFlow is imported: it loads Keras 2 then instead of Keras 3. The names below `tf` lead to Keras 2
    # in any case, so a TensorFlow that was imported earlier will do, too.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    v1 = import_tensorflow().compat.v1
    _spare_advice(v1)
    v1.disable_v2_behavior()
    _bring_back()
    return v1


def legacy_layers() -> Any:
    """`tf.layers`, which is a part of Keras 2 today."""
    tensorflow_1()
    return import_module(LAYERS)


def _bring_back() -> None:
    """Restore names inside TensorFlow at their old places for programs that use them."""
    from tensorflow.python.ops import ref_variable, variable_scope

    if not hasattr(variable_scope, "default_variable_creator"):
        variable_scope.default_variable_creator = ref_variable.default_variable_creator


def _spare_advice(v1: Any) -> None:
    """Leave out the advice to move on to 2.x: a program that is run through this module has chosen not to."""
    from tensorflow.python.util import deprecation

    if hasattr(deprecation, "_PRINT_DEPRECATION_WARNINGS"):
        deprecation._PRINT_DEPRECATION_WARNINGS = False
    else:
        v1.logging.set_verbosity(v1.logging.ERROR)
    warnings.filterwarnings("ignore", r"`(tf\.layers|layer|tf\.nn\.rnn_cell)\.\w+` is deprecated", UserWarning)
