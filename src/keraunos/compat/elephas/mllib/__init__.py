"""spark.mllib beside Keras: `adapter` converts."""

from keraunos.compat.elephas.mllib.adapter import from_matrix, from_vector, to_matrix, to_vector

__all__ = ["from_matrix", "from_vector", "to_matrix", "to_vector"]
