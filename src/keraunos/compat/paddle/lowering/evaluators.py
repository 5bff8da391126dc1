"""The measures of evaluators per row during training. Runs on the driver, and as layers of a model on workers.

Paddle divides what it summed over a batch by the batch's number of samples: of rows, of the steps of all sequences, or
by the sum of their weights. A row's measure here is its own sum times the rows of the batch over that number, so that
the mean over the rows of a batch is what Paddle says of it; over several batches it is the mean of what Paddle says of
each, weighed by their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import BAG, DENSE
from keraunos.compat.paddle.model_config import EvaluatorConfig

ops = keras.ops

_MEASURED = ("classification_error", "sum", "last-column-sum")


def row_measure(evaluator: EvaluatorConfig, inputs: Sequence[Any]) -> Any | None:
    """Returns a symbolic tensor (rows,), whose mean is the evaluator's value.

    `None` for those that are no mean over rows.
    """
    if evaluator.type not in _MEASURED:
        return None
    if evaluator.type == "classification_error" and inputs[1].kind == BAG:
        return None
    weight_at = 2 if evaluator.type == "classification_error" else 1
    weight = inputs[weight_at] if len(inputs) > weight_at else None
    mask = inputs[0].mask
    measure = RowMeasure(
        evaluator.type,
        threshold=float(evaluator.attributes.get("classification_threshold", 0.5)),
        top_k=int(evaluator.attributes.get("top_k") or 1),
        kinds=[each.kind for each in inputs],
        masked=mask is not None,
        weighted=weight is not None,
        name=f"{evaluator.name}_of_rows",
    )
    given = [inputs[0], *inputs[1:weight_at], weight]
    return measure([*(each.tensor for each in given if each is not None), *([] if mask is None else [mask])])


@keras.saving.register_keras_serializable("keraunos.paddle")
class RowMeasure(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """One evaluator's measure of each row.

    Args:
        what: the evaluator's type.
        threshold: above which a column counts as positive, if columns are evaluated separately.
        top_k: among how many of the highest columns a label counts as found.
        kinds: what its inputs are (see `Value`).
        masked: whether the last tensor that it is called on is the mask of sequences.
        weighted: whether a tensor of weights comes before that.
    """

    def __init__(
        self,
        what: str,
        threshold: float = 0.5,
        top_k: int = 1,
        kinds: Sequence[str] = (DENSE,),
        masked: bool = False,
        weighted: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._told = {
            "what": what, "threshold": threshold, "top_k": top_k, "kinds": list(kinds), "masked": masked,
            "weighted": weighted,
        }  # fmt: skip
        self._what, self._threshold, self._top_k, self._kinds = what, threshold, top_k, list(kinds)
        self._masked, self._weighted = masked, weighted

    def call(self, inputs: Any) -> Any:
        """Returns the rows' measures."""
        tensors = list(inputs)
        mask = tensors.pop() if self._masked else None
        weight = tensors.pop() if self._weighted else None
        measured = self._measured(tensors)
        share = ops.ones_like(measured)
        if weight is not None:
            weight = ops.squeeze(ops.cast(weight, measured.dtype), axis=-1)
            share = share * (weight if len(weight.shape) == len(measured.shape) else weight[:, None])
        if mask is None:
            sums, counts = measured * share, share
        else:
            share = share * ops.cast(mask, measured.dtype)
            sums, counts = ops.sum(measured * share, axis=1), ops.sum(share, axis=1)
        return sums / ops.maximum(ops.mean(counts), 1e-12)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), **self._told}

    def _measured(self, tensors: Sequence[Any]) -> Any:
        """Of rows, or of steps."""
        output = tensors[0]
        if self._what == "classification_error":
            return ops.cast(self._errors(output, tensors[1]), self.compute_dtype)
        if self._kinds[0] != DENSE:
            numbers = ops.cast(output, self.compute_dtype)
            return numbers if self._kinds[0] != BAG else ops.sum(ops.maximum(numbers, 0.0), axis=-1)
        return output[..., -1] if self._what == "last-column-sum" else ops.sum(output, axis=-1)

    def _errors(self, output: Any, label: Any) -> Any:
        if self._kinds[1] == DENSE and output.shape[-1] > 1 and label.shape[-1] > 1:
            wrong = ops.not_equal(output > self._threshold, label > self._threshold)
            return ops.mean(ops.cast(wrong, self.compute_dtype), axis=-1)
        ids = ops.cast(label if self._kinds[1] != DENSE else ops.squeeze(label, axis=-1), "int32")
        if output.shape[-1] == 1:
            return ops.not_equal(ops.cast(output[..., 0] > self._threshold, "int32"), ids)
        if self._top_k == 1:
            return ops.not_equal(ops.cast(ops.argmax(output, axis=-1), "int32"), ids)
        found = ops.equal(ops.cast(ops.top_k(output, self._top_k)[1], "int32"), ids[..., None])
        return ops.logical_not(ops.any(found, axis=-1))
