"""Which column feeds which data layer, and what its rows are. Runs on the driver.

Labels go to the data layer that a cost compares with, features to the other one; a network with more of either takes
columns of the layers' own names, or a mapping. Sequences are padded to one length, with columns for their lengths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, IntegralType, NumericType, StructField

from keraunos.compat.paddle.lowering import data_kinds
from keraunos.compat.paddle.lowering.call import layer_type
from keraunos.compat.paddle.lowering.data_kinds import DataKind
from keraunos.compat.paddle.lowering.network import LENGTH
from keraunos.compat.paddle.model_config import LayerConfig, ModelConfig
from keraunos.errors import ColumnError, DataError
from keraunos.job.columns import Slot
from keraunos.job.pixels import Pixels
from keraunos.launch.spark import quoted
from keraunos.ml.schema import find_field, is_image, is_vector

# The name of a column while it is padded to one length.
_PADDED = "__paddle_{}"
# Costs whose second input is the number of a class of their first.
_CLASSES = frozenset({"multi-class-cross-entropy", "multi_class_cross_entropy_with_selfnorm", "crf"})


@dataclass(frozen=True)
class Sources:
    """The columns of a fit or of a prediction.

    Attributes:
        columns: the column of each data layer.
        kinds: what each data layer takes.
        classes: for a layer of ids or of class numbers, how many there are.
    """

    columns: Mapping[str, str]
    kinds: Mapping[str, DataKind]
    classes: Mapping[str, int]


def label_layers(model: ModelConfig) -> tuple[str, ...]:
    """Returns the data layers that costs and evaluators compare with, and that feed nothing else."""
    uses: dict[str, set[bool]] = {}
    for layer in model.layers:
        for at, each in enumerate(layer.inputs):
            compares = at > 0 and layer_type(layer.type).is_cost
            uses.setdefault(each.layer, set()).add(compares)
    return tuple(layer.name for layer in _data(model) if uses.get(layer.name) == {True})


def feature_layers(model: ModelConfig) -> tuple[str, ...]:
    """Returns the data layers that a prediction needs."""
    labels = label_layers(model)
    return tuple(layer.name for layer in _data(model) if layer.name not in labels)


def columns_of(
    model: ModelConfig, names: Sequence[str], given: Mapping[str, str], alone: str, parameter: str, schema: Any
) -> dict[str, str]:
    """The column of each of the data layers `names`: as given, `alone` if there is one layer only, else by its name."""
    known = [layer.name for layer in _data(model)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ColumnError(
            f"`inputCols` names a data layer that the configuration does not have. Expected some of "
            f"{', '.join(map(repr, known))}. Received: {unknown[0]!r}."
        )
    found = {}
    for name in names:
        column = given.get(name, alone if len(names) == 1 else name)
        if column not in schema.names and len(names) > 1 and name not in given:
            raise ColumnError(
                f"The configuration has the data layers {', '.join(map(repr, names))}, and no column is known for "
                f"{name!r}. Expected a column of that name, or setInputCols({{{name!r}: 'column', ...}}). Received: "
                f"columns {', '.join(map(repr, schema.names))}."
            )
        found[name] = str(find_field(schema, column, parameter).name)
    return found


def sources_of(
    model: ModelConfig, columns: Mapping[str, str], schema: Any, given: Mapping[str, str] | None = None
) -> Sources:
    """Returns the types of the data layers, from their use in the network and from the columns."""
    told = {name: DataKind(kind) for name, kind in (given or {}).items()}
    kinds = data_kinds.inferred(model, told)
    by_name = {layer.name: layer for layer in _data(model)}
    for name, column in columns.items():
        field = find_field(schema, column, "inputCols")
        if name not in told:
            kinds[name] = _kind_of(by_name[name], kinds[name], field)
        elif is_image(field.dataType):
            kinds[name] = replace(kinds[name], image=_image(by_name[name]))
    return Sources(dict(columns), kinds, known_numbers(model))


def known_numbers(model: ModelConfig) -> dict[str, int]:
    """Returns how many classes the labels of classifying costs may have, and how many rows the tables of ids have."""
    found = {}
    for layer in model.layers:
        for each in layer.inputs:
            told = each.settings.get("proj", {})
            if told.get("type") == "table":
                found[each.layer] = int(told["input_size"])
        if layer.type in _CLASSES and len(layer.inputs) > 1:
            found[layer.inputs[1].layer] = model.layer(layer.inputs[0].layer).size
        elif layer.type in ("nce", "hsigmoid") and len(layer.inputs) > 1:
            found[layer.inputs[-1].layer] = int(layer.attributes["num_classes"])
    return found


def readied(dataset: Any, sources: Sources, layers: Mapping[str, LayerConfig]) -> tuple[Any, dict[str, str]]:
    """Returns the DataFrame with sequences padded to one length, and the column of each of the model's inputs."""
    inputs = dict(sources.columns)
    longest = _longest(dataset, sources)
    for name, steps in longest.items():
        column, kind = sf.col(quoted(sources.columns[name])), sources.kinds[name]
        target = _PADDED.format(name)
        if kind.element == data_kinds.DENSE_VECTOR:
            dataset = dataset.withColumn(target + LENGTH, sf.size(column).cast("int"))
            inputs[name + LENGTH] = target + LENGTH
            dataset = dataset.withColumn(target, _padded_vectors(dataset, column, layers[name].size, steps))
        else:
            filler = sf.array_repeat(sf.lit(-1), sf.lit(steps) - sf.size(column))
            dataset = dataset.withColumn(target, sf.concat(column.cast("array<int>"), filler))
        inputs[name] = target
    return dataset, inputs


def slots_of(sources: Sources, inputs: Mapping[str, str], layers: Mapping[str, LayerConfig], pixels: Any) -> list[Slot]:
    """Returns the column that a worker reads for each of the model's inputs."""
    slots = []
    for name, column in inputs.items():
        if name.endswith(LENGTH) and name not in layers:
            slots.append(Slot(name, (column,), shape=()))
            continue
        kind = sources.kinds[name]
        if kind.image is not None:
            slots.append(Slot(name, (column,), shape=kind.image, kind="image", pixels=pixels))
            continue
        shape: tuple[int | None, ...] = (layers[name].size,)
        if kind.element == data_kinds.INTEGER_VALUE:
            shape = ()
        elif kind.name == data_kinds.SPARSE_BINARY_VECTOR:
            shape = (None,)
        if kind.is_sequence:
            shape = (None, *shape)
        slots.append(Slot(name, (column,), shape=shape, classes=None if shape else sources.classes.get(name)))
    return slots


def pixels_of(options: Any) -> Pixels:
    """How images become numbers; a network of Paddle's takes the channels apart by itself."""
    pixels = Pixels.of(options or {})
    if pixels.layout != "HWC":
        raise ColumnError(
            "`pixels` must leave the layout to Paddle's network, which keeps a channel after the other in any case. "
            f"Received: layout={pixels.layout!r}. Leave it out."
        )
    return pixels


def _longest(dataset: Any, sources: Sources) -> dict[str, int]:
    """Returns the length of the longest sequence of each data layer. Ids outside the network's range raise an error."""
    varying = [name for name in sources.columns if _varies(sources.kinds[name])]
    asked = []
    for name in varying:
        column = sf.col(quoted(sources.columns[name]))
        known = sources.classes.get(name) if sources.kinds[name].element != data_kinds.DENSE_VECTOR else None
        ends = (sf.array_min(column), sf.array_max(column)) if known else (sf.lit(0), sf.lit(0))
        asked += [sf.max(sf.size(column)), sf.min(ends[0]), sf.max(ends[1])]
    found = dataset.agg(*(each.alias(str(at)) for at, each in enumerate(asked))).head() if asked else ()
    longest = {}
    for at, name in enumerate(varying):
        steps, least, most = found[3 * at : 3 * at + 3]
        if steps is None:
            raise DataError(
                f"The data layer {name!r} reads column {sources.columns[name]!r}, which has no sequences. Expected at "
                "least one row. Received: none."
            )
        known = sources.classes.get(name)
        if known is not None and least is not None and not (least >= 0 and most < known):
            wrong = most if most >= known else least
            raise DataError(
                f"The data layer {name!r} takes numbers from 0 to {known - 1}. Received: {wrong} in column "
                f"{sources.columns[name]!r}. Number the values from 0, or give the layer a larger size."
            )
        longest[name] = max(1, int(steps))
    return longest


def _data(model: ModelConfig) -> list[LayerConfig]:
    return [layer for layer in model.layers if layer.type == "data"]


def _varies(kind: DataKind) -> bool:
    return kind.is_sequence or kind.name == data_kinds.SPARSE_BINARY_VECTOR


def _kind_of(layer: LayerConfig, inferred: DataKind, field: StructField) -> DataKind:
    """Returns the network's input type in the form of the column."""
    data_type = field.dataType
    if is_image(data_type):
        return DataKind(data_kinds.DENSE_VECTOR, _image(layer))
    nested = isinstance(data_type, ArrayType) and (
        isinstance(data_type.elementType, ArrayType) or is_vector(data_type.elementType)
    )
    if nested and inferred.element == data_kinds.DENSE_VECTOR:
        return DataKind(data_kinds.DENSE_VECTOR + data_kinds.SEQUENCE)
    if inferred.element == data_kinds.INTEGER_VALUE:
        array = isinstance(data_type, ArrayType) or is_vector(data_type)
        if array and not isinstance(getattr(data_type, "elementType", None), IntegralType | NumericType):
            raise ColumnError(
                f"The data layer {layer.name!r} takes whole numbers, one a row or a sequence of them. Received: column "
                f"{field.name!r} of type {data_type.simpleString()}."
            )
        return DataKind(data_kinds.INTEGER_VALUE + (data_kinds.SEQUENCE if array else ""))
    return inferred


def _image(layer: LayerConfig) -> tuple[int, int, int]:
    """Returns the height, width and channels of a data layer of images."""
    height, width = layer.attributes.get("height"), layer.attributes.get("width")
    if height and width:
        return int(height), int(width), layer.size // (int(height) * int(width))
    for channels in (3, 1):
        side = math.isqrt(layer.size // channels)
        if side * side * channels == layer.size:
            return side, side, channels
    raise ColumnError(
        f"The data layer {layer.name!r} of size {layer.size} is no square image of 3 channels or 1. Give it height and "
        "width."
    )


def _padded_vectors(dataset: Any, column: Any, size: int, steps: int) -> Any:
    from pyspark.ml.functions import vector_to_array

    element = dataset.select(column).schema.fields[0].dataType.elementType
    vectors = sf.transform(column, vector_to_array) if is_vector(element) else column
    zeros = sf.array_repeat(sf.array_repeat(sf.lit(0.0), size), sf.lit(steps) - sf.size(column))
    return sf.concat(vectors.cast("array<array<double>>"), zeros)
