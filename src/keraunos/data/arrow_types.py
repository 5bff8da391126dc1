"""Which Arrow types can feed a model. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from keraunos.errors import ColumnError

_VECTOR_FIELDS = {"type", "size", "indices", "values"}
_EXCERPT = 100
IMAGE_FIELDS = (
    "height",
    "width",
    "nChannels",
    "mode",
    "data",
)  # the fields of Spark's image struct from which pixels are read


def is_list(arrow_type: Any) -> bool:
    """Returns whether a value of this type is an array of values."""
    types = pa.types
    return bool(types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type))


def is_vector(arrow_type: Any) -> bool:
    """Returns whether this is a spark.ml or mllib vector as Spark sends it: a struct of type, size, indices, values."""
    return bool(pa.types.is_struct(arrow_type)) and {field.name for field in arrow_type} == _VECTOR_FIELDS


def is_image(arrow_type: Any) -> bool:
    """Returns whether this is Spark's image struct, with or without the image's origin."""
    if not pa.types.is_struct(arrow_type) or not {field.name for field in arrow_type} >= set(IMAGE_FIELDS):
        return False
    data = arrow_type.field("data").type
    return bool(pa.types.is_binary(data) or pa.types.is_large_binary(data))


def is_tensor(arrow_type: Any) -> bool:
    """Returns whether every value is an array of one shape given by the type, as in records of RDDs."""
    return isinstance(arrow_type, pa.FixedShapeTensorType)


def is_bytes(arrow_type: Any) -> bool:
    """Returns whether a value of this type is a text or a piece of binary data."""
    types = pa.types
    text = types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)
    binary = types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type)
    return bool(text or binary or types.is_fixed_size_binary(arrow_type))


def excerpt(array: Any, row: int) -> str:
    """Returns a row of a column as text for a message."""
    text = repr(array[row].as_py())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def check_type(name: str, arrow_type: Any, kind: str = "number") -> None:
    """Refuse a column of a type that no model input of that kind takes."""
    if kind == "bytes":
        leaf = arrow_type
        while is_list(leaf):
            leaf = leaf.value_type
        if is_bytes(leaf):
            return
        raise ColumnError(
            f"Column {name!r} feeds a model input of bytes. Expected a string or binary column, or an array of these. "
            f"Received: {arrow_type}."
        )
    if kind == "image":
        if is_image(arrow_type):
            return
        raise ColumnError(
            f"Column {name!r} feeds a model input of images. Expected Spark's image struct, with the fields "
            f"{', '.join(IMAGE_FIELDS)}. Received: {arrow_type}."
        )
    leaf = arrow_type.value_type if is_tensor(arrow_type) else arrow_type
    while is_list(leaf):
        leaf = leaf.value_type
    is_number = pa.types.is_integer(leaf) or pa.types.is_floating(leaf) or pa.types.is_decimal(leaf)
    if is_number or pa.types.is_boolean(leaf) or is_vector(arrow_type):
        return
    raise ColumnError(
        f"Column {name!r} has a type that no model input takes. Expected a number, a boolean, a decimal, an array of "
        f"these, or a vector. Received: {arrow_type}. Cast or encode the column first, or leave it out."
    )
