"""Many arrays seen as one flat vector. Runs on the driver and on workers.

A model's parameters travel as one contiguous vector: the trainable variables first, then its float state
(BatchNorm's moving statistics and the like). A `Layout` says which part of the vector is which variable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]

ALIGNMENT = 64
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Layout:
    """Names and shapes of the variables in a flat vector; the first `trainable` of them are trained."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    trainable: int
    dtype: str = "float32"

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of elements of each variable."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each variable starts, and, as the last entry, where the vector ends."""
        ends = np.cumsum((0, *self.sizes)).tolist()
        return tuple(int(end) for end in ends)

    @property
    def size(self) -> int:
        """The length of the whole vector."""
        return self.offsets[-1]

    @property
    def trainable_size(self) -> int:
        """The length of the trainable part, which comes first."""
        return self.offsets[self.trainable]

    @property
    def state_size(self) -> int:
        """The length of the float state behind the trainable part."""
        return self.size - self.trainable_size

    def empty(self) -> Vector:
        """Returns a vector of this layout, its contents undefined."""
        return aligned_empty(self.size, self.dtype)

    def split(self, vector: Vector) -> list[Vector]:
        """Returns the variables as views into `vector`."""
        return [
            vector[start : start + size].reshape(shape)
            for start, size, shape in zip(self.offsets, self.sizes, self.shapes, strict=False)
        ]

    def join(self, arrays: Sequence[Vector], out: Vector | None = None) -> Vector:
        """Copy the variables into one vector."""
        vector = self.empty() if out is None else out
        for view, array in zip(self.split(vector), arrays, strict=True):
            np.copyto(view, array, casting="same_kind")
        return vector

    def to_json(self) -> dict[str, Any]:
        """Returns plain data that `from_json` reads back."""
        return {
            "names": list(self.names),
            "shapes": [list(shape) for shape in self.shapes],
            "trainable": self.trainable,
            "dtype": self.dtype,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        """Returns the layout that `to_json` described."""
        return cls(
            names=tuple(data["names"]),
            shapes=tuple(tuple(shape) for shape in data["shapes"]),
            trainable=data["trainable"],
            dtype=data["dtype"],
        )


def aligned_empty(size: int, dtype: Any) -> Vector:
    """Returns a vector, its contents undefined, that begins at a cache line.

    Compiled code of JAX reads such a vector in place and copies any other into new memory first. For long vectors the
    copy takes several times as long as the computation.
    """
    length = size * np.dtype(dtype).itemsize
    space = np.empty(length + ALIGNMENT, np.uint8)
    start = -space.ctypes.data % ALIGNMENT
    return space[start : start + length].view(dtype)


def is_aligned(vector: Vector) -> bool:
    """Returns whether the vector is contiguous and begins at a cache line."""
    return bool(vector.flags.c_contiguous) and vector.ctypes.data % ALIGNMENT == 0


def all_finite(vector: Vector, factor: float = 1.0) -> bool:
    """Returns whether no element times `factor` is infinite or NaN.

    One pass over the vector suffices unless it has very large elements: a finite sum of squares means that every
    element is finite. Otherwise the elements are checked block by block.
    """
    with np.errstate(all="ignore"):
        squares = float(np.dot(vector, vector))
        # In Python's floats, because float32 would overflow with a large factor.
        if squares * factor * factor <= np.finfo(vector.dtype).max:
            return True
        typed = vector.dtype.type(factor)
        blocks = (vector[start : start + _BLOCK] for start in range(0, vector.size, _BLOCK))
        return all(bool(np.isfinite(block if factor == 1.0 else block * typed).all()) for block in blocks)


def are_finite(arrays: Sequence[npt.NDArray[Any]]) -> bool:
    """Returns whether no float in any of the arrays is infinite or NaN."""
    return all(array.dtype.kind != "f" or bool(np.isfinite(array).all()) for array in arrays)
