"""Keras on TensorFlow in a program that is written for TensorFlow 1.x. Runs on the driver.

Keras needs TensorFlow's eager mode, which such a program disables. `tensorflow_2` enables it within its block. Layers
of Keras, and operators between their outputs, are called by the program itself; they enter `tensorflow_2` by
themselves once it was entered before, which making an `Input` does.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


@contextmanager
def tensorflow_2() -> Iterator[None]:
    """Let this thread compute at once; nothing happens where it does anyway."""
    import tensorflow as tf

    v1 = tf.compat.v1
    if v1.executing_eagerly_outside_functions():
        yield
        return
    if "keras" in sys.modules:
        _let_keras_enter(sys.modules["keras"])
    # `disable_v2_behavior` cannot be undone publicly for a while and not for good.
    from tensorflow.python.eager import context

    resources = v1.resource_variables_enabled()
    with context.eager_mode():
        v1.enable_v2_tensorshape()
        v1.enable_tensor_equality()
        v1.enable_resource_variables()
        try:
            yield
        finally:
            v1.disable_v2_tensorshape()
            v1.disable_tensor_equality()
            if not resources:
                v1.disable_resource_variables()


def in_tensorflow_2(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function inside `tensorflow_2`."""

    @functools.wraps(function)
    def run(*arguments: Given.args, **named: Given.kwargs) -> Result:
        with tensorflow_2():
            return function(*arguments, **named)

    return run


def _let_keras_enter(keras: Any) -> None:
    """Run calls of Keras's operations, of which layers are some, inside `tensorflow_2`."""
    for owner, name in ((keras.Operation, "__call__"), (keras.Operation, "symbolic_call"), (keras.Layer, "__call__")):
        function = vars(owner)[name]
        if not hasattr(function, "enters_tensorflow_2"):
            entering = in_tensorflow_2(function)
            entering.enters_tensorflow_2 = True  # type: ignore[attr-defined]
            setattr(owner, name, entering)
