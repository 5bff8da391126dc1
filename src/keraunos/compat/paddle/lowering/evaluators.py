"""What evaluators measure of a row while a network trains. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keraunos.compat.paddle.model_config import EvaluatorConfig


def row_measure(evaluator: EvaluatorConfig, inputs: Sequence[Any]) -> Any | None:
    """A symbolic tensor (rows,), whose mean is what the evaluator says; `None` for those that are no mean over rows."""
    if evaluator.type == "classification_error":
        return RowError(name=f"{evaluator.name}_of_rows")([inputs[0].tensor, inputs[1].tensor])
    return None


@keras.saving.register_keras_serializable("keraunos.paddle")
class RowError(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """1 for a row whose highest output is not its label's, otherwise 0."""

    def call(self, inputs: Any) -> Any:
        """The rows' errors; a sequence's is that of its steps on average."""
        output, label = inputs
        chosen = keras.ops.argmax(output, axis=-1)
        wrong = keras.ops.cast(keras.ops.not_equal(chosen, keras.ops.cast(label, chosen.dtype)), self.compute_dtype)
        return wrong if len(wrong.shape) == 1 else keras.ops.mean(wrong, axis=1)
