"""Tables of words, and Dense layers for rows that are mostly zeros. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
import tensorflow as tf  # noqa: E402 - the same
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class WordTable(keras.layers.Embedding):  # type: ignore[misc]  # Keras is untyped
    """A row of a table for each whole number.

    Args:
        given: the arguments of Keras's `Embedding`.
        first: the number of the first row.
        padding_value: a number whose row is all zeros; `None` for none.
        named: the arguments of Keras's `Embedding`.
    """

    def __init__(self, *given: Any, first: int = 0, padding_value: int | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.first = int(first)
        self.padding_value = padding_value

    def call(self, inputs: Any) -> Any:
        """Returns the rows. A number below the first is an error, where Keras would count it from the end."""
        numbers = ops.cast(inputs, "int32")
        places, table = numbers - self.first, ops.convert_to_tensor(self.embeddings)
        if self.padding_value is None:
            return ops.cast(tf.gather(table, places), self.compute_dtype)
        kept = numbers != int(self.padding_value)
        found = ops.cast(tf.gather(table, ops.where(kept, places, 0)), self.compute_dtype)
        return found * ops.cast(ops.expand_dims(kept, -1), found.dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), "first": self.first, "padding_value": self.padding_value}


@keras.saving.register_keras_serializable(PACKAGE)
class CombinedWords(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """The sum or the mean of a table's rows for the words of each record; 0 means no word.

    Args:
        input_dim: the rows of the table; the first one is for the number 1.
        output_dim: their length.
        combiner: "sum", "mean" or "sqrtn", the sum divided by the root of the sum of the squared weights.
        max_norm: rows that are longer are scaled to this length first; not if it is not positive.
        initializer: of the table.
        regularizer: of the table.
        named: name, dtype and the like.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        combiner: str = "sum",
        max_norm: float = -1.0,
        initializer: Any = "uniform",
        regularizer: Any = None,
        **named: Any,
    ) -> None:
        super().__init__(**{"autocast": False, **named})
        self.input_dim, self.output_dim = int(input_dim), int(output_dim)
        self.combiner, self.max_norm = combiner, float(max_norm)
        self.initializer = keras.initializers.get(initializer)
        self.regularizer = keras.regularizers.get(regularizer)

    def build(self, input_shape: Any) -> None:
        """Make the table."""
        self.table = self.add_weight(
            name="table",
            shape=(self.input_dim, self.output_dim),
            initializer=self.initializer,
            regularizer=self.regularizer,
        )

    def call(self, inputs: Any) -> Any:
        """Returns a vector for each record."""
        several = isinstance(inputs, (list, tuple))
        words = ops.cast(inputs[0] if several else inputs, "int32")
        present = ops.cast(words > 0, self.table.dtype)
        weights = present * ops.cast(inputs[1], self.table.dtype) if several else present
        table = self.table
        if self.max_norm > 0:
            norms = ops.sqrt(ops.sum(ops.square(table), axis=-1, keepdims=True))
            table = table * ops.minimum(self.max_norm / ops.maximum(norms, 1e-12), 1.0)
        rows = ops.take(table, ops.maximum(words - 1, 0), axis=0)
        total = ops.sum(rows * ops.expand_dims(weights, -1), axis=1)
        if self.combiner == "sum":
            return total
        by = ops.sum(weights, 1, keepdims=True)
        if self.combiner == "sqrtn":
            by = ops.sqrt(ops.sum(ops.square(weights), 1, keepdims=True))
        return total / ops.where(by == 0, ops.ones_like(by), by)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns a vector for each record."""
        batch = input_shape[0][0] if isinstance(input_shape[0], (list, tuple)) else input_shape[0]
        return (batch, self.output_dim)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "combiner": self.combiner,
            "max_norm": self.max_norm,
            "initializer": keras.initializers.serialize(self.initializer),
            "regularizer": keras.regularizers.serialize(self.regularizer),
        }


@keras.saving.register_keras_serializable(PACKAGE)
class SparseDense(keras.layers.Dense):  # type: ignore[misc]  # Keras is untyped
    """A Dense layer through which the layers before learn nothing, or only from some of its inputs.

    Args:
        given: the arguments of Keras's `Dense`.
        backward_start: the first of these inputs, counted from 1.
        backward_length: how many they are; -1 for none.
        named: the arguments of Keras's `Dense`.
    """

    def __init__(self, *given: Any, backward_start: int = -1, backward_length: int = -1, **named: Any) -> None:
        super().__init__(*given, **named)
        self.backward_start, self.backward_length = int(backward_start), int(backward_length)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the layer's outputs."""
        first, count = self.backward_start - 1, self.backward_length
        still = ops.stop_gradient(inputs)
        if first >= 0 and count > 0:
            end = first + count
            still = ops.concatenate([still[..., :first], inputs[..., first:end], still[..., end:]], axis=-1)
        return super().call(still)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "backward_start": self.backward_start,
            "backward_length": self.backward_length,
        }
