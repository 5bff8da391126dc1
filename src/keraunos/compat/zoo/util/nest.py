"""`zoo.util.nest`: nests of lists, tuples and dicts. Runs on the driver and on executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.tfpark.structure import flatten, pack

__all__ = ["flatten", "is_sequence", "pack_sequence_as", "ptensor_to_numpy"]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Returns the nest with other leaves, in the order of `flatten`."""
    return pack(structure, flat_sequence)


def is_sequence(s: Any) -> bool:
    """Returns whether something is a list, a tuple or a dict."""
    return isinstance(s, (dict, list, tuple))


def ptensor_to_numpy(seq: Any) -> list[Any]:
    """Returns the arrays of a nest of PyTorch's tensors."""
    return [tensor.data.numpy() for tensor in flatten(seq)]
