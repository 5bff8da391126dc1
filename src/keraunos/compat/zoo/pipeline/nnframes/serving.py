"""A model's outputs as a column of a DataFrame, and a model in files. Runs on the driver."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, StructField, StructType

from keraunos.compat.zoo.pipeline.api.keras import training
from keraunos.compat.zoo.pipeline.api.keras.models import net_around
from keraunos.compat.zoo.pipeline.nnframes import rows
from keraunos.compat.zoo.pipeline.nnframes.net_of import Shapes, keras_model
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import ColumnError, DataError, ModelError
from keraunos.formats.keras_format import MODEL_FILE
from keraunos.job.columns import Columns
from keraunos.launch.predict import predict_rdd
from keraunos.learners.keras_archive import from_archive, live_source, to_archive
from keraunos.ml.persistence import Parts
from keraunos.session.registry import running_session, session_of

_ROWS_A_SLOT = 4
_STEP = "samplePreprocessing"


def rows_at_once() -> int:
    """Returns the default number of rows per prediction: four per slot."""
    session = running_session()
    return _ROWS_A_SLOT * (1 if session is None else session.slots())


def with_predictions(stage: Any, dataset: Any, threshold: float | None) -> Any:
    """Returns the DataFrame with the outputs of the stage's model; with a threshold as classes."""
    features, added = stage.getFeaturesCol(), stage.getPredictionCol()
    schema = dataset.schema
    if features not in schema.names:
        raise ColumnError(
            f"`featuresCol` must name a column: {', '.join(map(repr, schema.names))}. Received: {features!r}."
        )
    if added in schema.names:
        raise ColumnError(
            f"`predictionCol` must be a new column. Received: {added!r}, which already exists. Call setPredictionCol."
        )
    shapes = functools.partial(_shapes, stage, dataset)
    source, columns = _served(keras_model(stage.model, shapes))
    reading = rows.RowReading(stage.getSamplePreprocessing(), len(columns.features), pairs=False)
    task = functools.partial(rows.kept_records, reading, schema.names.index(features))
    slots = session_of(dataset).slots()
    pairs = dataset.rdd.mapPartitions(task, preservesPartitioning=True)
    found = predict_rdd(pairs, source, columns, -(-stage.getBatchSize() // slots), kept=True)
    kind: DataType = DoubleType()
    if threshold is None:
        kind = ArrayType(FloatType(), containsNull=False)
        made = found.mapPartitions(rows.with_outputs)
    else:
        made = found.mapPartitions(functools.partial(rows.with_classes, threshold))
    wider = StructType([*schema.fields, StructField(added, kind, nullable=True)])
    return dataset.sparkSession.createDataFrame(made, wider, verifySchema=False)


@in_tensorflow_2
def to_parts(net: Any, step: Mapping[str, Any]) -> Parts:
    """Returns a model and its step as files."""
    return Parts({MODEL_FILE: to_archive(keras_model(net, _unknown))}, {_STEP: json.dumps(step)})


@in_tensorflow_2
def from_parts(parts: Parts, custom_objects: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """Returns the model and its step that `to_parts` put there."""
    step: Mapping[str, Any] = json.loads(parts.facts[_STEP])
    return net_around(from_archive(parts.files[MODEL_FILE], custom_objects)), step


def _shapes(stage: Any, dataset: Any) -> Shapes:
    """Returns the shapes of the first row's arrays."""
    first = dataset.select(dataset[stage.getFeaturesCol()]).first()
    if first is None:
        raise DataError("The DataFrame must have rows to predict for. Received: none.")
    return rows.feature_shapes(stage.getSamplePreprocessing(), first[0])


def _unknown() -> Shapes:
    raise ModelError(
        "A model must know the shapes of its inputs to be saved. Received: one that was neither trained nor run. "
        "Transform a DataFrame first."
    )


@in_tensorflow_2
def _served(model: Any) -> tuple[Any, Columns]:
    return live_source(model, backend="tensorflow"), Columns(features=training.columns_of(model).features)
