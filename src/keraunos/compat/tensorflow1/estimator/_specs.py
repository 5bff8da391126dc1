"""The arguments and results of a model function. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()


class ModeKeys:
    """The mode in which a model function is called."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Mapping[str, Any]
    export_outputs: Any
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class EstimatorSpec(_Fields):
    """The operations and tensors of a model, for one mode.

    Training needs `loss` and `train_op`, an evaluation `loss`, predictions `predictions`; the rest may be left out.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> Self:
        """Returns the specification; refuses one that lacks what its mode needs."""
        _check_needed(mode, predictions, loss, train_op)
        return super().__new__(
            cls,
            mode,
            {} if predictions is None else predictions,
            None if loss is None else _scalar(loss),
            train_op,
            dict(eval_metric_ops or {}),
            export_outputs,
            tuple(training_chief_hooks or ()),
            tuple(training_hooks or ()),
            scaffold or _v1.train.Scaffold(),
            tuple(evaluation_hooks or ()),
            tuple(prediction_hooks or ()),
        )

    def _replace(self, **fields: Any) -> EstimatorSpec:
        """Returns the specification with other fields, checked again."""
        return EstimatorSpec(**{**self._asdict(), **fields})


def _check_needed(mode: str, predictions: Any, loss: Any, train_op: Any) -> None:
    given = {"predictions": predictions, "loss": loss, "train_op": train_op}
    needed = {ModeKeys.TRAIN: ("loss", "train_op"), ModeKeys.EVAL: ("loss",), ModeKeys.PREDICT: ("predictions",)}
    if mode not in needed:
        raise ValueError(f"`mode` must be one of tf.estimator.ModeKeys. Received: {mode!r}.")
    for name in needed[mode]:
        if given[name] is None:
            raise ValueError(
                f"Missing {name}. An EstimatorSpec for mode {mode!r} must have {' and '.join(needed[mode])}. Return it "
                "from the model function."
            )


def _scalar(loss: Any) -> Any:
    tensor = _v1.convert_to_tensor(loss)
    if tensor.shape.is_compatible_with([]):
        return tensor
    if not tensor.shape.is_compatible_with([1]):
        raise ValueError(f"`loss` must be a scalar. Received: {tensor!r}. Take its mean with tf.reduce_mean.")
    return _v1.reshape(tensor, [])
