"""Which dataset a graph's placeholders belong to. Runs on the driver.

A dataset makes its placeholders in the graph that is the default when its tensors are first asked for, and leaves a
note on that graph. An optimizer or a predictor walks back from its tensors to placeholders and so finds the dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keraunos.compat.zoo.tfpark.structure import TensorMeta
from keraunos.errors import JobError, ModelError
from keraunos.learners.graph_analysis import PLACEHOLDERS, closure

# An attribute and no collection: collections are written into every checkpoint, and cannot hold a dataset.
_NOTE = "_keraunos_zoo_datasets"


def placeholders_for(dataset: Any, metas: Sequence[TensorMeta], first: int | None) -> list[Any]:
    """Returns a dataset's placeholders in the default graph, made there once, with `first` as the length of a batch."""
    import tensorflow as tf

    if tf.executing_eagerly():
        raise JobError(
            "`dataset.tensors` are placeholders, which TensorFlow's eager mode does not have. Ask for them under "
            "`with tf.Graph().as_default():`, or call tf.compat.v1.disable_eager_execution() at the program's start; "
            "`keraunos run --as zoo` does the latter."
        )
    graph = tf.compat.v1.get_default_graph()
    made = slots_in(graph, dataset)
    if not made:
        notes = _notes(graph)
        for meta in metas:
            shape = None if meta.shape is None else [first, *meta.shape]
            tensor = tf.compat.v1.placeholder(meta.dtype, shape=shape, name=meta.name)
            notes[tensor.name] = (dataset, meta.name)
            made[meta.name] = tensor
    return [made[meta.name] for meta in metas]


def slots_in(graph: Any, dataset: Any) -> dict[str, Any]:
    """Returns the placeholders that a dataset has in a graph, by the names of its tensors."""
    notes = _notes(graph).items()
    return {slot: graph.get_tensor_by_name(name) for name, (owner, slot) in notes if owner is dataset}


def dataset_of(tensors: Iterable[Any], what: str, *, aside: Iterable[Any] | None = None) -> Any:
    """Returns the one dataset whose placeholders the tensors depend on.

    `aside` are placeholders that are fed otherwise.
    """
    kept = list(tensors)
    others = {tensor.name for tensor in aside or ()}
    found: dict[int, Any] = {}
    foreign = []
    for placeholder in placeholders_of(kept):
        note = _notes(placeholder.graph).get(placeholder.name)
        if note is not None:
            found[id(note[0])] = note[0]
        elif placeholder.name not in others:
            foreign.append(placeholder.name)
    if foreign:
        instead = "make it a placeholder_with_default" if aside is None else "give its value in `tensor_with_value`"
        raise ModelError(
            f"{what} must depend on no other placeholders than a dataset's tensors. Received: "
            f"{', '.join(map(repr, foreign))}. Use dataset.tensors in its place, or {instead}."
        )
    if len(found) != 1:
        expected = "Expected: a graph that begins with the tensors of one TFDataset"
        received = "no dataset's" if not found else f"those of {len(found)} datasets"
        raise ModelError(
            f"{what} must depend on the tensors of one dataset. {expected}. Received: {received}. Build the graph from "
            "dataset.tensors."
        )
    return next(iter(found.values()))


def check_used(dataset: Any, tensors: Iterable[Any], what: str) -> None:
    """Refuse a graph that leaves one of the dataset's tensors unused: some input would be missing without a word."""
    kept = list(tensors)
    used = {placeholder.name for placeholder in placeholders_of(kept)}
    graph = kept[0].graph
    unused = [name for name, (owner, _) in _notes(graph).items() if owner is dataset and name not in used]
    if unused:
        raise ModelError(
            f"{what} must depend on every tensor of its dataset. Received: one that does not depend on "
            f"{', '.join(map(repr, unused))}. Use it, or leave it out of the dataset."
        )


def placeholders_of(tensors: Iterable[Any]) -> list[Any]:
    """Returns the placeholders that tensors or operations depend on, by name."""
    found = closure(getattr(each, "op", each) for each in tensors)
    return [found[name].outputs[0] for name in sorted(found) if found[name].type in PLACEHOLDERS]


def _notes(graph: Any) -> dict[str, tuple[Any, str]]:
    notes: dict[str, tuple[Any, str]] | None = getattr(graph, _NOTE, None)
    if notes is None:
        notes = {}
        setattr(graph, _NOTE, notes)
    return notes
