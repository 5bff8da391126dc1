"""Which columns of a DataFrame feed which inputs and outputs of a model. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keraunos.errors import ColumnError, one_of
from keraunos.job.id_range import IdRange
from keraunos.job.pixels import Pixels

KINDS = ("number", "bytes", "image")

ColumnsArgument = str | Sequence[str] | Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Slot:
    """One model input or output and the column, or the list of scalar columns, that fills it.

    Attributes:
        name: the model's name for it; `None` where the model has just one.
        columns: the column, or the scalar columns that are stacked side by side.
        stacked: whether `columns` is such a list, be it of one column.
        classes: for a label that is a class number, how many classes there are.
        shape: the shape of a row that the model takes, with `None` for a length it leaves open; `None` where it is
            not known.
        kind: what a row holds: `"number"`, or an array or vector of them; `"bytes"`, a text or binary value, or
            an array of them, for models that take strings, where text becomes its UTF-8 bytes; or `"image"`, Spark's
            image struct.
        one_hot: whether a class number becomes a row of zeros with a one at its place, as wide as there are classes.
        pixels: how an image becomes numbers; images alone have it, and all of them do.
        dtype: the type of the model's input, where values are held against it: a type of whole numbers or, for an
            input of ids, any.
        ids: which elements of a row an Embedding looks up.
        length: for arrays that are padded, with zeros at the end of the first dimension, how long they become.
        cut: arrays that are padded are cut to this length before; `None`: they are not.
        grows: whether longer arrays make all rows of a batch as long as they are; otherwise one is an error.
    """

    name: str | None
    columns: tuple[str, ...]
    stacked: bool = False
    classes: int | None = None
    shape: tuple[int | None, ...] | None = None
    kind: str = "number"
    one_hot: bool = False
    pixels: Pixels | None = None
    dtype: str | None = None
    ids: tuple[IdRange, ...] = ()
    length: int | None = None
    cut: int | None = None
    grows: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ColumnError(one_of("kind", self.kind, KINDS))
        if self.one_hot and self.classes is None:
            raise ColumnError(
                "A label that becomes one-hot must come with its number of classes. "
                f"Received: {', '.join(map(repr, self.columns))} without it."
            )
        if self.kind != "number" and (self.stacked or self.classes is not None):
            use = "a list of columns" if self.stacked else "class numbers"
            raise ColumnError(
                f"A column of {self.kind.removesuffix('s')}s must be a model input or output of its own. "
                f"Received: {', '.join(map(repr, self.columns))} as {use}."
            )
        if self.kind == "image" and self.pixels is None:
            object.__setattr__(self, "pixels", Pixels())
        if self.kind != "image" and self.pixels is not None:
            raise ColumnError(
                "`pixels` is for columns of images. "
                f"Received: {self.pixels!r} for {', '.join(map(repr, self.columns))} of kind {self.kind!r}."
            )

    @classmethod
    def all_from(cls, argument: ColumnsArgument, parameter: str) -> tuple[Slot, ...]:
        """Read what a user wrote: a column, a list of scalar columns, or a dict of either by model name."""
        if isinstance(argument, Mapping):
            if not argument:
                raise ColumnError(f"`{parameter}` must name at least one column. Received: {argument!r}.")
            return tuple(cls._one_from(name, columns, parameter) for name, columns in argument.items())
        return (cls._one_from(None, argument, parameter),)

    @classmethod
    def _one_from(cls, name: str | None, columns: Any, parameter: str) -> Slot:
        if isinstance(columns, str) and columns:
            return cls(name, (columns,))
        if isinstance(columns, Sequence) and columns and all(isinstance(each, str) for each in columns):
            return cls(name, tuple(columns), stacked=True)
        raise ColumnError(
            f"`{parameter}` must be a column name, a list of scalar columns, or a dict from model input or output "
            f"name to either. Received: {columns!r}."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        shape = None if self.shape is None else list(self.shape)
        return {
            "name": self.name,
            "columns": list(self.columns),
            "stacked": self.stacked,
            "classes": self.classes,
            "shape": shape,
            "kind": self.kind,
            "one_hot": self.one_hot,
            "pixels": None if self.pixels is None else self.pixels.to_json(),
            "dtype": self.dtype,
            "ids": [each.to_json() for each in self.ids],
            "length": self.length,
            "cut": self.cut,
            "grows": self.grows,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Slot:
        """The slot that `to_json` described."""
        shape, pixels = data["shape"], data.get("pixels")
        return cls(
            name=data["name"],
            columns=tuple(data["columns"]),
            stacked=data["stacked"],
            classes=data["classes"],
            shape=None if shape is None else tuple(shape),
            kind=data.get("kind", "number"),
            one_hot=data.get("one_hot", False),
            pixels=None if pixels is None else Pixels.from_json(pixels),
            dtype=data.get("dtype"),
            ids=tuple(IdRange.from_json(each) for each in data.get("ids", ())),
            length=data.get("length"),
            cut=data.get("cut"),
            grows=data.get("grows", False),
        )


@dataclass(frozen=True)
class Columns:
    """Everything a worker reads from the DataFrame.

    `unchecked_ids` names the model's Embeddings whose ids cannot be told from the rows, and so are not checked.
    """

    features: tuple[Slot, ...]
    labels: tuple[Slot, ...] = ()
    weight: str | None = None
    validation: str | None = None
    allow_nan: bool = False
    unchecked_ids: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read, once, in a fixed order."""
        slots = [column for slot in (*self.features, *self.labels) for column in slot.columns]
        extra = [column for column in (self.weight, self.validation) if column is not None]
        return tuple(dict.fromkeys([*slots, *extra]))

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {
            "features": [slot.to_json() for slot in self.features],
            "labels": [slot.to_json() for slot in self.labels],
            "weight": self.weight,
            "validation": self.validation,
            "allow_nan": self.allow_nan,
            "unchecked_ids": list(self.unchecked_ids),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Columns:
        """The columns that `to_json` described."""
        return cls(
            features=tuple(Slot.from_json(slot) for slot in data["features"]),
            labels=tuple(Slot.from_json(slot) for slot in data["labels"]),
            weight=data["weight"],
            validation=data["validation"],
            allow_nan=data["allow_nan"],
            unchecked_ids=tuple(data.get("unchecked_ids", ())),
        )
