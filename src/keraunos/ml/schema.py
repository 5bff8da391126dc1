"""What a DataFrame's schema says about the columns a model reads. Runs on the driver.

Whatever is wrong with a column and can be seen without looking at a row is found here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    VarcharType,
)

from keraunos.data.arrow_types import IMAGE_FIELDS
from keraunos.errors import ColumnError
from keraunos.job.columns import ColumnsArgument, Slot
from keraunos.job.pixels import Pixels
from keraunos.ml.signature import Shape

ACCEPTED = "a number, a boolean, a decimal, an array of these (also nested), a vector, or an image"

STRING = "string"
ENCODE_STRINGS = "Encode strings first, for instance with StringIndexer."

_WHOLE_NUMBERS = {ByteType: "int8", ShortType: "int16", IntegerType: "int32", LongType: "int64"}


@dataclass(frozen=True)
class SlotSpec:
    """What is known of the rows of a slot: the shape, with `None` for lengths that only rows tell, and the type.

    `is_array` says whether they are arrays, which may differ in length.
    """

    shape: Shape
    dtype: str
    is_array: bool = False

    @property
    def complete(self) -> bool:
        """Whether every length is known."""
        return None not in self.shape


def find_field(schema: Any, name: str, parameter: str, *, case_sensitive: bool = False) -> Any:
    """The field that Spark would find under this name, be it plain or, as in SQL, within backticks."""
    for spelling in dict.fromkeys((name, _unquoted(name))):
        for field in schema.fields:
            if field.name == spelling:
                return field
        if not case_sensitive:
            for field in schema.fields:
                if field.name.lower() == spelling.lower():
                    return field
    names = [field.name for field in schema.fields]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ColumnError(
        f"`{parameter}` names a column that the DataFrame does not have. Expected one of "
        f"{', '.join(map(repr, names))}. Received: {name!r}.{hint}"
    )


def find_slots(
    schema: Any,
    argument: ColumnsArgument,
    parameter: str,
    *,
    case_sensitive: bool = False,
    pixels: Mapping[str, Any] | None = None,
    strings: bool = False,
) -> tuple[tuple[Slot, ...], tuple[SlotSpec, ...]]:
    """The slots of a `featuresCol` or `labelCol`, with the columns' own spelling, and what is known of each.

    `pixels` is for the images among them. With `strings`, columns of strings, of binary values, and of arrays of these
    are taken too; whether the model takes them is seen when its inputs are.
    """
    slots = []
    specs = []
    options = Pixels() if pixels is None else Pixels.of(pixels)
    for slot in Slot.all_from(argument, parameter):
        fields = [find_field(schema, name, parameter, case_sensitive=case_sensitive) for name in slot.columns]
        columns = tuple(field.name for field in fields)
        if not slot.stacked and is_image(fields[0].dataType):
            slots.append(Slot(slot.name, columns, kind="image", pixels=options))
            specs.append(_image_spec(fields[0], options))
            continue
        depth, leaf = _nested(fields[0].dataType)
        if strings and not slot.stacked and is_string(leaf):
            slots.append(Slot(slot.name, columns, kind="bytes"))
            specs.append(SlotSpec((None,) * depth, STRING))
            continue
        slots.append(Slot(slot.name, columns, slot.stacked))
        specs.append(_stacked_spec(fields, parameter) if slot.stacked else column_spec(fields[0], parameter))
    return tuple(slots), tuple(specs)


def column_spec(field: Any, parameter: str) -> SlotSpec:
    """What is known of the rows of one column."""
    if is_vector(field.dataType):
        return SlotSpec((_vector_size(field),), "float64")
    depth, leaf = _nested(field.dataType)
    if not isinstance(leaf, NumericType | BooleanType):
        raise ColumnError(
            f"`{parameter}` names column {field.name!r}, which has a type that no model reads. Expected {ACCEPTED}. "
            f"Received: {field.dataType.simpleString()}.{_advice(leaf)}"
        )
    return SlotSpec((None,) * depth, _dtype(leaf), is_array=depth > 0)


def scalar_column(schema: Any, name: str, parameter: str, kind: Any, what: str, *, case_sensitive: bool = False) -> str:
    """The spelling of a column that must hold one value of a certain kind a row."""
    field = find_field(schema, name, parameter, case_sensitive=case_sensitive)
    if not isinstance(field.dataType, kind):
        raise ColumnError(
            f"`{parameter}` must name {what}. Received: {field.name!r} of type {field.dataType.simpleString()}."
        )
    return str(field.name)


def is_vector(data_type: DataType) -> bool:
    """Whether this is a spark.ml or mllib vector."""
    return isinstance(data_type, UserDefinedType) and data_type.simpleString() == "vector"


def is_image(data_type: DataType) -> bool:
    """Whether this is Spark's image struct."""
    return isinstance(data_type, StructType) and set(data_type.names) >= set(IMAGE_FIELDS)


def is_string(data_type: DataType) -> bool:
    """Whether a value is a text or a piece of binary data."""
    return isinstance(data_type, StringType | CharType | VarcharType | BinaryType)


def _unquoted(name: str) -> str:
    within = name[1:-1]
    quoted = len(name) > 2 and name[0] == name[-1] == "`" and "`" not in within.replace("``", "")
    return within.replace("``", "`") if quoted else name


def _nested(data_type: Any) -> tuple[int, Any]:
    """How many arrays are around single values, and the type of these."""
    depth = 0
    while isinstance(data_type, ArrayType):
        data_type = data_type.elementType
        depth += 1
    return depth, data_type


def _stacked_spec(fields: Sequence[StructField], parameter: str) -> SlotSpec:
    dtypes = []
    for field in fields:
        spec = column_spec(field, parameter)
        if spec.shape != ():
            raise ColumnError(
                f"`{parameter}` lists columns that are stacked into one input, so each must hold one number a row. "
                f"Received: {field.name!r} of type {field.dataType.simpleString()}. Give an array or vector column on "
                "its own, or put the columns together with VectorAssembler."
            )
        dtypes.append(spec.dtype)
    whole = set(dtypes) <= {*_WHOLE_NUMBERS.values(), "bool"}
    return SlotSpec((len(fields),), dtypes[0] if len(set(dtypes)) == 1 else "int64" if whole else "float64")


def _image_spec(field: Any, pixels: Pixels) -> SlotSpec:
    size = (field.metadata or {}).get("image", {})
    shape = pixels.shape_of(*(size.get(name) for name in ("height", "width", "nChannels")))
    return SlotSpec(shape, "uint8" if pixels.scale is None else "float64")


def _vector_size(field: Any) -> int | None:
    attributes = (field.metadata or {}).get("ml_attr", {})
    size = attributes.get("num_attrs")
    if size is None and "attrs" in attributes:
        size = sum(len(group) for group in attributes["attrs"].values())
    return int(size) if size else None


def _dtype(leaf: Any) -> str:
    if isinstance(leaf, BooleanType):
        return "bool"
    if isinstance(leaf, DecimalType):
        return "float64"
    return _WHOLE_NUMBERS.get(type(leaf), "float64")


def _advice(leaf: Any) -> str:
    if leaf.typeName() == "string":
        return f" {ENCODE_STRINGS}"
    return " Cast or encode the column first."
