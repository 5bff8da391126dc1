"""SparkFlow's `ml_util`, as far as programs used it: weights in and out of sessions and JSON. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError

Weights = Sequence[npt.NDArray[Any]]


def tensorflow_get_weights(vs: Sequence[Any] | None = None) -> list[npt.NDArray[Any]]:
    """Returns the values of variables, by default the trainable ones, in the default session."""
    session, variables = _session_and_variables(vs)
    return list(session.run(variables))


def tensorflow_set_weights(weights: Sequence[Any], vs: Sequence[Any] | None = None) -> None:
    """Set variables, by default the trainable ones, in the default session; its graph does not change."""
    session, variables = _session_and_variables(vs)
    for variable, value in zip(variables, weights, strict=True):
        # The value takes the place of the one that the variable is initialized with.
        session.run(variable.initializer, {variable.initializer.inputs[1]: np.asarray(value)})


def convert_weights_to_json(weights: Weights) -> str:
    """Weights as JSON, in nested lists."""
    return json.dumps([np.asarray(each).tolist() for each in weights])


def convert_json_to_weights(json_weights: str) -> list[npt.NDArray[Any]]:
    """Returns the weights that `convert_weights_to_json` wrote."""
    try:
        return [np.asarray(each) for each in json.loads(json_weights)]
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"Weights must be a JSON list of nested lists, one for each variable. Received: {str(json_weights)[:60]!r}…"
        ) from error


def calculate_weights(collected_weights: Sequence[Weights]) -> list[npt.NDArray[Any]]:
    """Returns the mean of several models' weights."""
    return [np.mean(each, axis=0) for each in zip(*collected_weights, strict=True)]


def _session_and_variables(vs: Sequence[Any] | None) -> tuple[Any, Sequence[Any]]:
    import tensorflow as tf

    session = tf.compat.v1.get_default_session()
    if session is None:
        raise ModelError(
            "There must be a default session. Received: None. Call this within `with session.as_default():`."
        )
    with session.graph.as_default():
        return session, vs or tf.compat.v1.trainable_variables()
