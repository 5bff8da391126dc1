"""RDD elements as the records that workers read. `columns_of` and the like run on the driver, the others on executors.

An element is `(features, label)` or `(features, label, weight)`, or a `LabeledPoint`. A model with several inputs takes
features as a list or dict of arrays, or as one flat array that is cut into parts of equal width, as Elephas cuts it;
the same holds for outputs and labels.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark import RDD

from keraunos.data.records import RowBlock
from keraunos.errors import DataError, JobError, ModelError
from keraunos.job.columns import Columns, Slot
from keraunos.launch.driver_rows import spread_arrays
from keraunos.ml.keras import losses
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.signature import Port
from keraunos.session.registry import session_of
from keraunos.session.session import Session

VALIDATION, WEIGHT = "validation", "weight"
_FEATURES, _LABEL = "features", "label"
# The attribute of an RDD of rows with the RDD of its blocks; RDDs derived from it do not.
_WHOLE = "_keraunos_blocks"


def columns_of(
    model: Any, *, weighted: bool = False, validated: bool = False, labels: bool = True, classes: int | None = None
) -> Columns:
    """Returns the columns that a worker reads; records have their entries in this order.

    With `classes`, labels are class numbers that the model sees one-hot.
    """
    inputs, outputs = _ports(model)
    slots = _label_slots(model, outputs) if labels else ()
    if classes is not None:
        slots = tuple(replace(slot, classes=classes, one_hot=True) for slot in slots)
    return Columns(
        features=_slots(inputs, _FEATURES),
        labels=slots,
        weight=WEIGHT if weighted else None,
        validation=VALIDATION if validated else None,
    )


def build(model: Any, element: Any) -> None:
    """Give a model without shapes those of an RDD's element."""
    features = element.features if type(element).__name__ == "LabeledPoint" else element[0]
    if isinstance(features, Mapping):
        shapes: Any = {name: (None, *np.shape(each)) for name, each in features.items()}
    elif isinstance(features, (list, tuple)) and features and np.ndim(features[0]) > 0:
        shapes = [(None, *np.shape(each)) for each in features]
    else:
        shapes = (None, *np.shape(features.toArray() if hasattr(features, "toArray") else features))
    model.build(shapes)


def spread(session: Session, arrays: Sequence[Any], partitions: int | None = None) -> RDD[Any]:
    """Returns an RDD of tuples, one per row, with an entry from each of the arrays; rows keep their order.

    Arrays travel whole, a slice for each partition, and come apart on the executors; if they are to be records they
    need not even do that (see `training_records`).
    """
    whole = blocks(session, arrays, partitions)
    rdd = whole.flatMap(_rows)
    vars(rdd)[_WHOLE] = whole
    return rdd


def blocks(session: Session, arrays: Sequence[Any], partitions: int | None = None) -> RDD[RowBlock]:
    """Returns an RDD of blocks of rows, one per partition, in the order of the arrays."""
    return spread_arrays(session, arrays, partitions or session.parallelism, RowBlock)


def record_arrays(columns: Columns, features: Any, labels: Any = None, weights: Any = None) -> list[Any]:
    """Arrays of rows on the driver, one for each column of a record."""
    arrays = [*_split(features, columns.features, "features")]
    if columns.labels:
        arrays += _split(labels, columns.labels, "labels")
    if columns.weight is not None:
        arrays.append(np.asarray(weights))
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) != 1:
        raise DataError(f"Features, labels and weights must have as many rows as each other. Received: {lengths}.")
    return arrays


def records_to_arrays(elements: Sequence[Any], columns: Columns) -> list[Any]:
    """Elements of an RDD that are on the driver, as `record_arrays` returns them."""
    records = [_entries(element, columns) for element in elements]
    return [
        np.stack([np.asarray(each.toArray() if hasattr(each, "toArray") else each) for each in column])
        for column in zip(*records, strict=True)
    ]


def training_records(rdd: RDD[Any], columns: Columns, validation: Sequence[Any] | None = None) -> RDD[Any]:
    """Returns the elements of an RDD as records of training.

    `validation` has the rows to validate on, as `record_arrays` returns them. They go to all executors, and each worker
    takes its share of them.
    """
    if validation is None and len(columns.features) == len(columns.labels) == 1:
        # Pairs and LabeledPoints are already records.
        whole: RDD[Any] = vars(rdd).get(_WHOLE, rdd)
        return whole
    shared = None if validation is None else session_of(rdd).broadcast(validation)
    task = functools.partial(_training_partition, columns.to_json(), shared, rdd.getNumPartitions())
    return rdd.mapPartitionsWithIndex(task, preservesPartitioning=True)


def feature_records(rdd: RDD[Any], columns: Columns) -> RDD[Any]:
    """Returns rows of features as records."""
    task = functools.partial(_feature_partition, columns.to_json())
    return rdd.mapPartitions(task, preservesPartitioning=True)


def classes_of(model: Any, nb_classes: Any, *, categorical: bool) -> int | None:
    """Returns the number of classes for one-hot labels; `None` if labels are used unchanged."""
    if not categorical:
        return None
    if nb_classes is not None:
        if isinstance(nb_classes, bool) or not isinstance(nb_classes, int) or nb_classes < 1:
            raise JobError(f"`nb_classes` must be a whole number of at least 1. Received: {nb_classes!r}.")
        return nb_classes
    ports = _ports(model)[1]
    only = ports[0] if len(ports) == 1 else None
    width = only.shape[-1] if only is not None and only.shape else None
    if width is None:
        raise JobError(
            "`nb_classes` must be given with categorical=True where the model does not tell how many classes there "
            f"are. Received: None, for a model with {len(ports)} output(s)."
        )
    return int(width)


def _ports(model: Any) -> tuple[Sequence[Port | None], Sequence[Port | None]]:
    """Returns a model's inputs and outputs; one unknown of each for a subclassed model, which does not declare them."""
    try:
        signature = signature_of(model)
    except ModelError:
        return (None,), (None,)
    return signature.inputs, signature.outputs


def _slots(ports: Sequence[Port | None], column: str) -> tuple[Slot, ...]:
    if len(ports) == 1:
        return (Slot(None, (column,), shape=None if ports[0] is None else ports[0].shape),)
    return tuple(Slot(port.name, (f"{column}.{port.name}",), shape=port.shape) for port in ports if port is not None)


def _label_slots(model: Any, ports: Sequence[Port | None]) -> tuple[Slot, ...]:
    slots = []
    for at, (slot, port) in enumerate(zip(_slots(ports, _LABEL), ports, strict=True)):
        loss = losses.loss_for(model, "" if port is None else port.name, at)
        sparse = losses.loss_name(loss) in losses.SPARSE and getattr(loss, "ignore_class", None) is None
        classes = port.shape[-1] if sparse and port is not None else None
        slots.append(Slot(slot.name, slot.columns, classes=classes))
    return tuple(slots)


def _split(value: Any, slots: Sequence[Slot], what: str) -> list[Any]:
    """Returns an array for each of a model's inputs or outputs, from an array, a list or a dict of arrays."""
    if len(slots) == 1:
        single = isinstance(value, (list, tuple)) and len(value) == 1 and np.ndim(value[0]) > 1
        return [np.asarray(value[0] if single else value)]
    if isinstance(value, Mapping):
        return [np.asarray(each) for each in _by_name(value, slots, what)]
    if isinstance(value, (list, tuple)) and len(value) == len(slots):
        return [np.asarray(each) for each in value]
    array = np.asarray(value)
    if array.ndim < 2 or array.shape[1] % len(slots):
        raise _no_parts(value, slots, what)
    return np.split(array, len(slots), axis=1)


def _by_name(value: Mapping[str, Any], slots: Sequence[Slot], what: str) -> list[Any]:
    absent = [slot.name for slot in slots if slot.name not in value]
    if absent:
        raise DataError(
            f"The {what} must have an entry for each of {[slot.name for slot in slots]}. Received: "
            f"{sorted(map(str, value))}, without {absent}."
        )
    return [value[str(slot.name)] for slot in slots]


def _no_parts(value: Any, slots: Sequence[Slot], what: str) -> DataError:
    return DataError(
        f"The {what} must be a list or dict of {len(slots)} arrays, or one array that can be cut into {len(slots)} "
        f"parts of equal width, for {[slot.name for slot in slots]}. Received: {_told(value)}."
    )


def _rows(block: RowBlock) -> Iterator[Any]:
    return zip(*block.columns, strict=True)


def _training_partition(
    columns: Mapping[str, Any], shared: Any, partitions: int, index: int, elements: Iterable[Any]
) -> Iterator[Any]:
    wanted = Columns.from_json(columns)
    flag = () if wanted.validation is None else (False,)
    for element in elements:
        yield (*_entries(element, wanted), *flag)
    if shared is not None:
        held_out = shared.value
        for at in range(index, len(held_out[0]), partitions):
            yield (*(column[at] for column in held_out), True)


def _feature_partition(columns: Mapping[str, Any], elements: Iterable[Any]) -> Iterator[Any]:
    slots = Columns.from_json(columns).features
    for element in elements:
        yield tuple(_parts(element, slots, "features"))


def _entries(element: Any, columns: Columns) -> tuple[Any, ...]:
    """Returns a record for one element of the RDD."""
    if type(element).__name__ == "LabeledPoint":
        element = (element.features, element.label)
    wanted = 2 if columns.weight is None else 3
    if not isinstance(element, (tuple, list)) or len(element) != wanted:
        what = "(features, label)" if wanted == 2 else "(features, label, weight)"
        raise DataError(
            f"An element of the RDD must be {what} or, without weights, a LabeledPoint. Received: {_told(element)}."
        )
    features, label, *weight = element
    return (*_parts(features, columns.features, "features"), *_parts(label, columns.labels, "label"), *weight)


def _parts(value: Any, slots: Sequence[Slot], what: str) -> Sequence[Any]:
    """Returns one entry for each of a model's inputs or outputs."""
    if len(slots) == 1:
        return [value]
    if isinstance(value, Mapping):
        return _by_name(value, slots, what)
    if isinstance(value, (list, tuple)) and len(value) == len(slots):
        return value
    flat = np.asarray(value.toArray() if hasattr(value, "toArray") else value)
    if flat.ndim == 0 or len(flat) % len(slots):
        raise _no_parts(value, slots, what)
    return np.split(flat, len(slots))


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else f"{text[:100]}…"
