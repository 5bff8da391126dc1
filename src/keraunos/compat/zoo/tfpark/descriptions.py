"""What a user says of a record's tensors, as a structure. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.compat.zoo.tfpark.structure import TensorMeta, named, with_unique_names
from keraunos.errors import JobError


def listed(names: Any, shapes: Any, types: Any) -> list[TensorMeta]:
    """The tensors of records that are plain lists."""
    names = ["features", "labels"] if names is None else list(names)
    shapes = [None] * len(names) if shapes is None else list(shapes)
    types = ["float32"] * len(names) if types is None else list(types)
    if not names or not len(names) == len(shapes) == len(types) or len(set(names)) != len(names):
        raise JobError(
            "`names`, `shapes` and `types` must have one entry for each tensor, and names must differ. Received: "
            f"names={names!r}, shapes={shapes!r}, types={types!r}."
        )
    return [TensorMeta.of(dtype, shape, str(name)) for name, shape, dtype in zip(names, shapes, types, strict=True)]


def described(features: Any, labels: Any) -> tuple[Any, ...]:
    """The structure of records that are (features, labels), or features alone."""
    parts = [named(_leaves(features, "features"), "features")]
    if labels is not None:
        parts.append(named(_leaves(labels, "labels"), "labels"))
    return tuple(parts)


def _leaves(description: Any, argument: str) -> Any:
    if isinstance(description, TensorMeta):
        return description
    if isinstance(description, Mapping):
        return {key: _leaves(each, argument) for key, each in description.items()}
    if isinstance(description, tuple) and len(description) == 2 and not isinstance(description[0], (tuple, list, dict)):
        return TensorMeta.of(description[0], description[1], argument)
    if isinstance(description, (list, tuple)) and description:
        return type(description)(_leaves(each, argument) for each in description)
    raise JobError(
        f"`{argument}` must be (type, shape), as in (tf.float32, [28, 28, 1]), or a list or dict of such. Received: "
        f"{description!r}."
    )


def named_pair(structure: Any) -> Any:
    """Names for the leaves of a nest that has none; the parts of a pair are features and labels."""
    if isinstance(structure, tuple) and len(structure) == 2:
        return with_unique_names((named(structure[0], "features"), named(structure[1], "labels")))
    return with_unique_names(named(structure, "features"))
