"""Predictions and measures of BigDL's modules. Runs on the driver; RDDs are predicted for on executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.nn.criterion_losses import counts_from_one
from keraunos.compat.zoo.bigdl.util.common import EvaluatedResult, JTensor, Sample
from keraunos.compat.zoo.pipeline.api.keras import training
from keraunos.compat.zoo.pipeline.api.keras.training import Records
from keraunos.compat.zoo.sample_records import spread_records
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import DataError
from keraunos.job.columns import Columns
from keraunos.launch.predict import predict_rdd
from keraunos.session.registry import session_of

if TYPE_CHECKING:
    from keraunos.compat.zoo.bigdl.nn.module import Layer


@in_tensorflow_2
def predicted(module: Layer, features: Any, batch_size: int) -> Any:
    """Returns the outputs: an RDD for an RDD of Samples, arrays for arrays."""
    rows = batch_size if batch_size > 0 else 128
    if not hasattr(features, "mapPartitions"):
        given = features if isinstance(features, (list, tuple)) else [features]
        arrays = Records([each.to_ndarray() if isinstance(each, JTensor) else each for each in given], None).arrays
        model = module.lowered([each.shape[1:] for each in arrays])
        return model.predict(arrays if len(arrays) > 1 else arrays[0], batch_size=rows, verbose=0)
    shapes = input_shapes(features)
    model = module.lowered(shapes)
    columns = Columns(features=training.columns_of(model).features)
    return predict_rdd(spread_records(features, len(shapes)), module.source(), columns, batch_rows=rows)


@in_tensorflow_2
def evaluated(module: Layer, records: Any, batch_size: int, methods: Any) -> list[EvaluatedResult]:
    """Returns the results of validation methods for an RDD of Samples, which is collected to the driver."""
    shapes = input_shapes(records)
    model = module.lowered(shapes)
    arrays = Records(records, None).brought(len(shapes) + len(model.outputs))
    wanted = list(methods) if isinstance(methods, (list, tuple)) else [methods]
    return measured(model, arrays, batch_size, wanted)


def measured(model: Any, arrays: Sequence[Array], batch_size: int, methods: Sequence[Any]) -> list[EvaluatedResult]:
    """Returns the results of validation methods for arrays, inputs first, then labels."""
    count = len(model.inputs)
    inputs = list(arrays[:count])
    found = model.predict(inputs if count > 1 else inputs[0], batch_size=batch_size, verbose=0)
    outputs = found[0] if isinstance(found, list) else found
    results = []
    for method in methods:
        label = np.asarray(arrays[count])
        if counts_from_one(method) and np.ndim(outputs) > 1 and outputs.shape[-1] > 1:
            label = label - 1
        results.append(
            EvaluatedResult(method.result(method.merge([method.state(outputs, label)])), len(label), method.name)
        )
    return results


def input_shapes(records: Any) -> list[tuple[int, ...]]:
    """Returns the shapes of the features of an RDD's Samples."""
    with session_of(records).own_python():
        first = records.take(1)
    if not first:
        raise DataError("The RDD must have at least one record. Received: none.")
    if not isinstance(first[0], Sample):
        raise DataError(
            f"Records must be Samples of bigdl.util.common. Received: {type(first[0]).__name__}. Make them with "
            "Sample.from_ndarray(features, label)."
        )
    return [tuple(each.shape) for each in first[0].features]
