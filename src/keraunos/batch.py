"""Rows as arrays: what the data side hands to a learner. Runs on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Array | dict[str, Array]


@dataclass(frozen=True)
class Batch:
    """Some rows: inputs and targets (one array, or one per name), and a weight for each row if there is one."""

    inputs: Arrays
    targets: Arrays | None
    weights: Array | None
    rows: int


@dataclass(frozen=True)
class ArraySpec:
    """Shape without the row dimension, and type, of an array in a batch."""

    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, array: Array) -> ArraySpec:
        """Returns the spec of the rows of `array`."""
        return cls(tuple(array.shape[1:]), array.dtype.name)

    def zeros(self, rows: int) -> Array:
        """Returns rows of zeros of this spec; if it is bytes, empty ones."""
        if self.dtype == "object":
            return np.full((rows, *self.shape), b"", dtype=object)
        return np.zeros((rows, *self.shape), dtype=self.dtype)


@dataclass(frozen=True)
class BatchSpec:
    """The spec of every batch of a job; enough to build a model, its metrics and an example batch."""

    inputs: ArraySpec | dict[str, ArraySpec]
    targets: ArraySpec | dict[str, ArraySpec] | None
    weighted: bool

    @classmethod
    def of(cls, batch: Batch) -> BatchSpec:
        """Returns the spec that `batch` follows."""
        return cls(
            inputs=_map(ArraySpec.of, batch.inputs),
            targets=None if batch.targets is None else _map(ArraySpec.of, batch.targets),
            weighted=batch.weights is not None,
        )

    def example(self, rows: int = 2) -> Batch:
        """Returns a batch of zeros that follows this spec."""
        return Batch(
            inputs=_map(lambda spec: spec.zeros(rows), self.inputs),
            targets=None if self.targets is None else _map(lambda spec: spec.zeros(rows), self.targets),
            weights=np.ones(rows, dtype=np.float32) if self.weighted else None,
            rows=rows,
        )

    def to_json(self) -> dict[str, Any]:
        """Returns plain data that `from_json` reads back."""
        return {
            "inputs": _map(_spec_to_json, self.inputs),
            "targets": None if self.targets is None else _map(_spec_to_json, self.targets),
            "weighted": self.weighted,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> BatchSpec:
        """Returns the spec that `to_json` described."""
        return cls(
            inputs=_specs_from_json(data["inputs"]),
            targets=None if data["targets"] is None else _specs_from_json(data["targets"]),
            weighted=data["weighted"],
        )


class Front(Protocol):
    """The layers of a model that are run once per row, where rows are read, before a learner sees them."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all inputs of the model."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs that the front reads."""

    @property
    def keeps(self) -> tuple[str, ...]:
        """The inputs that the learner takes as they are."""

    @property
    def makes(self) -> tuple[str, ...]:
        """The names of what the front makes for the learner."""

    def __call__(self, inputs: Arrays) -> Arrays:
        """Returns the learner's inputs for these rows."""

    def encode(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Returns the outputs for the inputs that it reads."""


def fits(found: tuple[int | None, ...], expected: tuple[int | None, ...]) -> bool:
    """Returns whether rows of one shape can feed an input of another.

    Keras adds or drops a last dimension of 1 itself.
    """
    if len(found) == len(expected) + 1 and found[-1] in (1, None):
        found = found[:-1]
    elif len(expected) == len(found) + 1 and expected[-1] in (1, None):
        expected = expected[:-1]
    if len(found) != len(expected):
        return False
    return all(have is None or want is None or have == want for have, want in zip(found, expected, strict=True))


def _map(function: Any, value: Any) -> Any:
    return {name: function(each) for name, each in value.items()} if isinstance(value, dict) else function(value)


def _spec_to_json(spec: ArraySpec) -> list[Any]:
    return [list(spec.shape), spec.dtype]


def _specs_from_json(data: Any) -> Any:
    return _map(lambda pair: ArraySpec(tuple(pair[0]), pair[1]), data)
