"""`zoo.pipeline.api.keras.objectives`: Analytics Zoo's losses, by its formulas. Runs on the driver and on workers.

Each is a loss of Keras. `size_average=False` adds elements up instead of taking their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keraunos.compat.zoo.bigdl.optim.arguments import float_type
from keraunos.compat.zoo.class_labels import Classes
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

_SMALL = 1e-12
_LEAST_CHANCE = 1e-8
_registered = keras.saving.register_keras_serializable("keraunos.zoo")


class LossFunction(keras.losses.Loss):  # type: ignore[misc]  # Keras is untyped
    """Base class of these losses; `own` has the arguments of the constructor."""

    def __init__(self, bigdl_type: str = "float", **own: Any) -> None:
        float_type(bigdl_type)
        super().__init__(reduction="sum_over_batch_size" if own.get("size_average", True) else "sum")
        self.own = own

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return dict(self.own)


class _Elementwise(LossFunction):
    """A loss whose labels have the outputs' shape."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each element."""
        return self.elements(keras.ops.reshape(y_true, keras.ops.shape(y_pred)), y_pred)

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the same, for labels of the outputs' shape."""
        raise NotImplementedError


@_registered
class MeanSquaredError(_Elementwise):
    """The mean square of the difference."""

    def __init__(self, size_average: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type, size_average=size_average)

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the square of each difference."""
        return keras.ops.square(y_pred - y_true)


@_registered
class MeanAbsoluteError(_Elementwise):
    """The mean absolute difference."""

    def __init__(self, size_average: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type, size_average=size_average)

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns each absolute difference."""
        return keras.ops.abs(y_pred - y_true)


@_registered
class BinaryCrossEntropy(_Elementwise):
    """The cross entropy of probabilities of one of two classes."""

    def __init__(self, weights: Any = None, size_average: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type, size_average=size_average)
        _no_weights(weights)

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the cross entropy of each element."""
        right, wrong = keras.ops.log(y_pred + _SMALL), keras.ops.log(1.0 - y_pred + _SMALL)
        return -(y_true * right + (1.0 - y_true) * wrong)


@_registered
class SparseCategoricalCrossEntropy(LossFunction):
    """Minus the log-probability of the label's class.

    Args:
        log_prob_as_input: whether outputs are log-probabilities rather than probabilities.
        zero_based_label: whether classes count from 0 rather than from 1.
        weights: must be `None`.
        size_average: whether the loss is a mean rather than a sum.
        padding_value: the label of what is left out.
        bigdl_type: must be "float".
    """

    def __init__(
        self,
        log_prob_as_input: bool = False,
        zero_based_label: bool = True,
        weights: Any = None,
        size_average: bool = True,
        padding_value: int = -1,
        bigdl_type: str = "float",
    ) -> None:
        super().__init__(
            bigdl_type,
            log_prob_as_input=log_prob_as_input,
            zero_based_label=zero_based_label,
            size_average=size_average,
            padding_value=padding_value,
        )
        _no_weights(weights)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each row; what is left out is masked, and what is no class has none."""
        labels = keras.ops.cast(keras.ops.reshape(y_true, keras.ops.shape(y_pred)[:-1]), "int32")
        known = self.classes(y_pred.shape[-1])
        classes = keras.ops.one_hot(labels - known.first, known.count)
        chances = y_pred if self.own["log_prob_as_input"] else keras.ops.log(keras.ops.maximum(y_pred, _LEAST_CHANCE))
        return known.counted(-keras.ops.sum(classes * chances, axis=-1), labels)

    def classes(self, count: int) -> Classes:
        """Returns the labels that it takes."""
        return Classes(0 if self.own["zero_based_label"] else 1, count, self.own["padding_value"])


@_registered
class CategoricalCrossEntropy(LossFunction):
    """The cross entropy of probabilities, for labels that are one-hot."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each row."""
        return keras.losses.categorical_crossentropy(y_true, y_pred)


class _Margin(_Elementwise):
    """A loss of outputs on the wrong side of a margin; labels are -1 and 1."""

    def __init__(self, margin: float, size_average: bool, bigdl_type: str) -> None:
        super().__init__(bigdl_type, margin=margin, size_average=size_average)

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """How far each element is from the right side."""
        return keras.ops.maximum(self.own["margin"] - y_pred * y_true, 0.0)


@_registered
class Hinge(_Margin):
    """How far outputs are from the margin, for labels of -1 and 1."""

    def __init__(self, margin: float = 1.0, size_average: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(margin, size_average, bigdl_type)


@_registered
class SquaredHinge(_Margin):
    """The square of that; added up, not averaged, unless `size_average` is given."""

    def __init__(self, margin: float = 1.0, size_average: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(margin, size_average, bigdl_type)

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the square for each element."""
        return keras.ops.square(super().elements(y_true, y_pred))


class _Plain(_Elementwise):
    """A loss without arguments."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)


@_registered
class CosineProximity(_Plain):
    """Minus the mean product of the elements of outputs and labels, each scaled to the norm 1 over the last axis."""

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Minus each product."""
        return -(_scaled(y_true) * _scaled(y_pred))


@_registered
class KullbackLeiblerDivergence(_Plain):
    """The divergence of the outputs' distribution from the labels', a row."""

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the divergence of each row."""
        return keras.losses.kl_divergence(y_true, y_pred)


@_registered
class MeanAbsolutePercentageError(_Plain):
    """The mean absolute difference in percent of the label."""

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns each difference."""
        least = keras.config.epsilon()
        return 100.0 * keras.ops.abs((y_true - y_pred) / keras.ops.maximum(keras.ops.abs(y_true), least))


@_registered
class MeanSquaredLogarithmicError(_Plain):
    """The mean square of the difference of the logarithms of 1 and more."""

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns each square."""
        left, right = (
            keras.ops.log(keras.ops.maximum(each, keras.config.epsilon()) + 1.0) for each in (y_true, y_pred)
        )
        return keras.ops.square(left - right)


@_registered
class Poisson(_Plain):
    """The mean of the output minus the label times the output's logarithm."""

    def elements(self, y_true: Any, y_pred: Any) -> Any:
        """Returns each term."""
        return y_pred - y_true * keras.ops.log(y_pred + keras.config.epsilon())


@_registered
class RankHinge(LossFunction):
    """How far the second output of a pair is from being less than the first by the margin; labels are ignored."""

    def __init__(self, margin: float = 1.0, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type, margin=margin)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each pair."""
        del y_true
        if len(y_pred.shape) < 2 or y_pred.shape[1] != 2:
            raise JobError(
                f"RankHinge must be given pairs of outputs, a pair a record. Received: the shape {tuple(y_pred.shape)}."
            )
        return keras.ops.maximum(y_pred[:, 1] - y_pred[:, 0] + self.own["margin"], 0.0)


mae = MAE = MeanAbsoluteError
mape = MAPE = MeanAbsolutePercentageError
mse = MSE = MeanSquaredError
msle = MSLE = MeanSquaredLogarithmicError

# Names whose formulas Keras no longer has, or has changed; Keras has the rest.
_OWN: Mapping[str, Callable[[], LossFunction]] = {
    "cosine": CosineProximity,
    "cosine_proximity": CosineProximity,
    "hinge": Hinge,
    "rank_hinge": RankHinge,
    "sparse_categorical_crossentropy": SparseCategoricalCrossEntropy,
    "squared_hinge": SquaredHinge,
}


def loss_of(loss: Any) -> Any:
    """Returns the given loss, or the one of a name of Analytics Zoo or Keras."""
    if isinstance(loss, str):
        name = loss.lower()
        return _OWN[name]() if name in _OWN else {"kullback_leibler_divergence": "kl_divergence"}.get(name, name)
    return loss


def _scaled(values: Any) -> Any:
    squares = keras.ops.sum(keras.ops.square(values), axis=-1, keepdims=True)
    return values / keras.ops.sqrt(keras.ops.maximum(squares, _SMALL))


def _no_weights(weights: Any) -> None:
    if weights is not None:
        raise JobError("`weights` must be None. Received: an array. Repeat the rows of classes that are to count more.")
