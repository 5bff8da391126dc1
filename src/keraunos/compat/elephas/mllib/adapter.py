"""spark.mllib's matrices and vectors as arrays, and back. Runs on the driver and on executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.mllib.linalg import Matrices, Matrix, Vector, Vectors

from keraunos.errors import DataError


def to_matrix(np_array: Any) -> Matrix:
    """Returns a dense matrix with the array's rows and columns."""
    array = np.asarray(np_array, dtype=np.float64)
    if array.ndim != 2:
        raise DataError(f"A matrix must be made of an array with two dimensions. Received: shape {array.shape}.")
    # Spark keeps the numbers of a column side by side.
    return Matrices.dense(array.shape[0], array.shape[1], array.ravel(order="F"))


def from_matrix(matrix: Matrix) -> npt.NDArray[np.float64]:
    """Returns the matrix as an array."""
    return np.asarray(matrix.toArray())


def to_vector(np_array: Any) -> Vector:
    """Returns a dense vector with the array's numbers."""
    array = np.asarray(np_array, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"A vector must be made of an array with one dimension. Received: shape {array.shape}.")
    return Vectors.dense(array)


def from_vector(vector: Vector) -> npt.NDArray[np.float64]:
    """Returns the vector as an array."""
    return np.asarray(vector.toArray())
