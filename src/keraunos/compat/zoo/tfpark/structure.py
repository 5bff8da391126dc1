"""The structure of a dataset's record: tensors in lists, tuples and dicts. Runs on the driver and on workers.

A structure is a nest whose leaves are `TensorMeta`. Records have the same nest with arrays as leaves; they travel flat,
one entry a leaf, in the order in which `flatten` meets them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.errors import DataError, JobError

STRING = "string"
_EXCERPT = 80


@dataclass(frozen=True)
class TensorMeta:
    """One tensor of a record: its type, the shape of a row (`None` if it is not known) and its name."""

    dtype: str
    shape: tuple[int | None, ...] | None
    name: str

    @classmethod
    def of(cls, dtype: Any, shape: Any, name: str) -> TensorMeta:
        """The tensor that a user described, with TensorFlow's, numpy's or Python's own words for types and shapes."""
        meta = cls(dtype_name(dtype, name), shape_tuple(shape, name), name)
        if meta.dtype == STRING and meta.shape not in (None, ()):
            raise JobError(
                f"The tensor {name!r} must be one string a record. Expected: shape []. Received: {shape!r}. Give each "
                "string a tensor of its own, or join them and split them in the graph."
            )
        return replace(meta, shape=()) if meta.dtype == STRING else meta

    @property
    def fixed(self) -> bool:
        """Whether every row has the same shape, so that rows can be stacked."""
        return self.shape is not None and None not in self.shape


def dtype_name(dtype: Any, name: str) -> str:
    """Returns the name of a type that a tensor can have."""
    found = str(getattr(dtype, "name", dtype) if not isinstance(dtype, type) else np.dtype(dtype).name)
    found = found.removesuffix("_ref")
    if found in (STRING, "str", "bytes", "object") or np.dtype(object) == dtype or found.startswith(("str", "bytes")):
        return STRING
    try:
        kind: str = np.dtype(found).kind
    except TypeError:
        kind = "none"
    if kind not in ("b", "i", "u", "f"):
        raise JobError(
            f"The type of the tensor {name!r} must be a boolean, a whole number, a float or a string, such as "
            f"tf.float32. Received: {dtype!r}."
        )
    return "bool" if kind == "b" else str(np.dtype(found).name)


def shape_tuple(shape: Any, name: str) -> tuple[int | None, ...] | None:
    """Returns a row's shape; `None` and -1 mean an unknown length."""
    if shape is None or getattr(shape, "rank", 0) is None:
        return None
    entries = shape.as_list() if hasattr(shape, "as_list") else shape
    try:
        lengths = tuple(None if each in (None, -1) else int(getattr(each, "value", each)) for each in entries)
    except (TypeError, ValueError):
        lengths = (-1,)
    if any(length is not None and length < 0 for length in lengths):
        raise JobError(
            f"The shape of the tensor {name!r} must be a list of lengths without the batch, such as [28, 28, 1] or [] "
            f"for a number. Received: {shape!r}."
        )
    return lengths


def flatten(structure: Any) -> list[Any]:
    """Returns the leaves of a nest of lists, tuples and dicts; a dict's in the order of its keys."""
    if isinstance(structure, Mapping):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [leaf for each in structure for leaf in flatten(each)]
    return [structure]


def pack(structure: Any, leaves: Sequence[Any]) -> Any:
    """Returns the nest with other leaves, given in the order of `flatten`."""
    return _packed(structure, iter(leaves))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, Mapping):
        packed = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return {key: packed[key] for key in structure}
    if isinstance(structure, (list, tuple)):
        return type(structure)(_packed(each, leaves) for each in structure)
    return next(leaves)


def with_unique_names(structure: Any) -> Any:
    """Returns the structure with names that columns and placeholders can have, each given once."""
    taken: set[str] = set()
    renamed = []
    for meta in flatten(structure):
        plain = re.sub(r"[^A-Za-z0-9_.]", "_", meta.name).lstrip("_.") or "tensor"
        name, number = plain, 1
        while name in taken:
            name, number = f"{plain}_{number}", number + 1
        taken.add(name)
        renamed.append(replace(meta, name=name))
    return pack(structure, renamed)


def named(structure: Any, name: str) -> Any:
    """Returns the structure with the leaves' places as their names: `features`, `features_0`, or a dict's key."""
    if isinstance(structure, Mapping):
        return {key: named(each, str(key)) for key, each in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)(named(each, f"{name}_{at}") for at, each in enumerate(structure))
    return replace(structure, name=name)


def flat_records(structure: Any, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Records as flat tuples of arrays that fit their tensors; runs on executors.

    If the structure is a plain list, or features alone, a record may have more entries, which are left out.
    """
    metas = flatten(structure)
    plain = isinstance(structure, list) and all(isinstance(each, TensorMeta) for each in structure)
    for number, record in enumerate(records):
        if plain:
            leaves = _first_entries(record, metas, number)
        else:
            leaves = []
            alone = len(structure) == 1
            whole = record[:1] if alone and isinstance(record, tuple) else [record] if alone else record
            _gather(structure, whole, leaves, number)
        yield tuple(conformed(leaf, meta, number) for leaf, meta in zip(leaves, metas, strict=True))


def conformed(value: Any, meta: TensorMeta, number: int) -> Any:
    """Returns one entry of a record in the type and shape of its tensor.

    Raises an error if that would change its meaning.
    """
    if meta.dtype == STRING:
        return _as_bytes(value, meta, number)
    array: Array = np.asarray(value)
    if array.dtype.name != meta.dtype:
        array = _cast(array, meta, number, value)
    if meta.shape is None or array.shape == meta.shape:
        return array
    return _reshaped(array, meta, number)


def _first_entries(record: Any, metas: Sequence[TensorMeta], number: int) -> list[Any]:
    whole = record if isinstance(record, (list, tuple)) else [record]
    entries = list(whole[: len(metas)])
    if len(entries) != len(metas):
        names = ", ".join(repr(meta.name) for meta in metas)
        raise DataError(
            f"A record must be a list with an array for each of {names}. Received: {_excerpt(record)} in record "
            f"{number}. Map the RDD to such lists."
        )
    return entries


def _gather(structure: Any, record: Any, leaves: list[Any], number: int) -> None:
    """Append the leaves of a record that must have the structure's nest."""
    if isinstance(structure, Mapping):
        if not isinstance(record, Mapping) or any(key not in record for key in structure):
            raise _wrong_nest(f"a dict with {', '.join(map(repr, structure))}", record, number)
        for key in sorted(structure):
            _gather(structure[key], record[key], leaves, number)
    elif isinstance(structure, (list, tuple)):
        if not isinstance(record, (list, tuple)) or len(record) != len(structure):
            raise _wrong_nest(f"{len(structure)} entries in a tuple or list", record, number)
        for each, part in zip(structure, record, strict=True):
            _gather(each, part, leaves, number)
    else:
        leaves.append(record)


def _wrong_nest(expected: str, record: Any, number: int) -> DataError:
    return DataError(
        f"A record does not have the structure of `features` and `labels`. Expected: {expected}. Received: "
        f"{_excerpt(record)} in record {number}. Map the RDD to (features, labels)."
    )


def _as_bytes(value: Any, meta: TensorMeta, number: int) -> bytes:
    value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise DataError(
        f"A record has no string for the tensor {meta.name!r}. Expected: str or bytes. Received: {_excerpt(value)} in "
        f"record {number}."
    )


def _cast(array: Array, meta: TensorMeta, number: int, value: Any) -> Array:
    dtype = np.dtype(meta.dtype)
    if array.dtype.kind in "biuf":
        cast = array.astype(dtype)
        # Floats may lose digits, as anywhere in TensorFlow; whole numbers must stay what they are.
        if dtype.kind == "f" or np.array_equal(cast, array):
            return cast
    raise DataError(
        f"A record's entry for the tensor {meta.name!r} cannot become {meta.dtype}. Expected: values of that type. "
        f"Received: {_excerpt(value)} of type {array.dtype} in record {number}. Cast it, or give another type."
    )


def _reshaped(array: Array, meta: TensorMeta, number: int) -> Array:
    """Returns the array in its tensor's shape, from which it may differ in lengths of 1."""
    shape = meta.shape or ()
    if len(array.shape) == len(shape) and all(want in (None, have) for have, want in zip(array.shape, shape)):
        return array
    squeezed = [length for length in array.shape if length != 1]
    lengths = [length for length in shape if length is not None]
    if len(lengths) == len(shape) and squeezed == [length for length in lengths if length != 1]:
        return array.reshape(lengths)
    raise DataError(
        f"A record's entry for the tensor {meta.name!r} has another shape. Expected: {list(shape)}. Received: "
        f"{list(array.shape)} in record {number}. Reshape it, or give its shape in `shapes`."
    )


def _excerpt(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
