"""SparkFlow's `graph_utils`: a model function as JSON, and optimizers' options as JSON. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from keraunos.errors import ModelError

# The collection in which a graph remembers what its model function returned.
RETURNED = "keraunos_returned"


def build_graph(func: Callable[[], Any]) -> str:
    """Returns the TensorFlow graph that `func` builds, as the JSON of its MetaGraphDef.

    The function runs in its own graph, so that nothing is left in the default one. If it returns a tensor, the
    graph remembers it: a model that puts no loss into a collection is trained on what it returned.
    """
    if not callable(func):
        raise ModelError(f"`func` must be a function that builds the model. Received: {func!r}.")
    import tensorflow as tf
    from google.protobuf import json_format

    with tf.Graph().as_default() as graph:
        returned = func()
        if isinstance(returned, tf.Tensor) and returned.graph is graph:
            graph.add_to_collection(RETURNED, returned)
        exported = tf.compat.v1.train.export_meta_graph(graph=graph)
    if not exported.graph_def.node:
        raise ModelError(
            f"`func` must build its model when it is called. Expected placeholders, variables and a loss. Received: "
            f"{func!r}, which built nothing. Create them inside of the function."
        )
    text: str = json_format.MessageToJson(exported)
    return text


def generate_config(**kwargs: Any) -> str:
    """Options of an optimizer as JSON, for `optimizerOptions`."""
    return json.dumps(kwargs)


def build_adam_config(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    use_locking: bool = False,
) -> str:
    """Options for `tfOptimizer='adam'`."""
    return generate_config(
        learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, use_locking=use_locking
    )


def build_rmsprop_config(
    learning_rate: float = 0.001,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float = 1e-10,
    use_locking: bool = False,
    centered: bool = False,
) -> str:
    """Options for `tfOptimizer='rmsprop'`."""
    return generate_config(
        learning_rate=learning_rate,
        decay=decay,
        momentum=momentum,
        epsilon=epsilon,
        use_locking=use_locking,
        centered=centered,
    )


def build_momentum_config(
    learning_rate: float = 0.001, momentum: float = 0.9, use_locking: bool = False, use_nesterov: bool = False
) -> str:
    """Options for `tfOptimizer='momentum'`."""
    return generate_config(
        learning_rate=learning_rate, momentum=momentum, use_locking=use_locking, use_nesterov=use_nesterov
    )


def build_adadelta_config(
    learning_rate: float = 0.001, rho: float = 0.95, epsilon: float = 1e-8, use_locking: bool = False
) -> str:
    """Options for `tfOptimizer='adadelta'`."""
    return generate_config(learning_rate=learning_rate, rho=rho, epsilon=epsilon, use_locking=use_locking)


def build_adagrad_config(
    learning_rate: float = 0.001, initial_accumulator: float = 0.1, use_locking: bool = False
) -> str:
    """Options for `tfOptimizer='adagrad'`, under the name that TensorFlow has for the accumulator."""
    return generate_config(
        learning_rate=learning_rate, initial_accumulator_value=initial_accumulator, use_locking=use_locking
    )


def build_gradient_descent(learning_rate: float = 0.001, use_locking: bool = False) -> str:
    """Options for `tfOptimizer='gradient_descent'`."""
    return generate_config(learning_rate=learning_rate, use_locking=use_locking)
