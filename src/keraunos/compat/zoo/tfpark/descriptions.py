"""Converts a user's description of a record's tensors to a structure. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keraunos.compat.zoo.tfpark.structure import TensorMeta, flatten, named, pack, with_unique_names
from keraunos.errors import JobError


def listed(names: Any, shapes: Any, types: Any) -> list[TensorMeta]:
    """Returns the tensors of records that are plain lists."""
    names = ["features", "labels"] if names is None else list(names)
    shapes = [None] * len(names) if shapes is None else list(shapes)
    types = ["float32"] * len(names) if types is None else list(types)
    if not names or not len(names) == len(shapes) == len(types) or len(set(names)) != len(names):
        raise JobError(
            "`names`, `shapes` and `types` must have one entry for each tensor, and names must differ. Received: "
            f"names={names!r}, shapes={shapes!r}, types={types!r}."
        )
    return [TensorMeta.of(dtype, shape, str(name)) for name, shape, dtype in zip(names, shapes, types, strict=True)]


def described(features: Any, labels: Any, names: Any = None) -> tuple[Any, ...]:
    """Returns the structure of records that are (features, labels), or features alone.

    `names` are for its tensors in order.
    """
    parts = [_placed(_leaves(features, "features"), "features")]
    if labels is not None:
        parts.append(_placed(_leaves(labels, "labels"), "labels"))
    structure = tuple(parts)
    metas = flatten(structure)
    if names is None:
        return structure
    if len(names) < len(metas):
        raise JobError(
            f"`names` must have one entry for each of the {len(metas)} tensors of `features` and `labels`. Received: "
            f"{names!r}. Leave `names` out."
        )
    return tuple(pack(structure, [replace(meta, name=str(name)) for meta, name in zip(metas, names, strict=False)]))


def _placed(structure: Any, name: str) -> Any:
    """Returns names by place: those of a plain list are Analytics Zoo's, `list_input_0` and so on."""
    plain = isinstance(structure, list) and all(isinstance(each, TensorMeta) for each in structure)
    return named(structure, "list_input" if plain else name)


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
    """Returns names for the leaves of a nest that has none; the parts of a pair are features and labels."""
    if isinstance(structure, tuple) and len(structure) == 2:
        return with_unique_names((named(structure[0], "features"), named(structure[1], "labels")))
    return with_unique_names(named(structure, "features"))
