"""Keras on TensorFlow in a program that is written for TensorFlow 1.x. Runs on the driver.

Keras needs TensorFlow to compute at once, and such a program has told it not to. Inside `tensorflow_2` it does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

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
    # `disable_v2_behavior` cannot be undone publicly for a while and not for good.
    from tensorflow.python.eager import context

    resources = v1.resource_variables_enabled()
    with context.eager_mode():
        v1.enable_v2_tensorshape()
        v1.enable_resource_variables()
        try:
            yield
        finally:
            v1.disable_v2_tensorshape()
            if not resources:
                v1.disable_resource_variables()


def in_tensorflow_2(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function inside `tensorflow_2`."""

    @functools.wraps(function)
    def run(*arguments: Given.args, **named: Given.kwargs) -> Result:
        with tensorflow_2():
            return function(*arguments, **named)

    return run
