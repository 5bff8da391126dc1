"""Batches that one call of a compiled program steps through, put together in host memory. Runs on workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

_MOST_BATCHES = 64
_MOST_BYTES = 32 << 20
# A step of so large a batch takes longer than its call, and the next batch travels to the device meanwhile.
_LARGE_BATCH_BYTES = 1 << 20

Data = Any  # nested arrays, as Keras's steps take a batch
_Form = tuple[Any, tuple[tuple[tuple[int, ...], str], ...]]


class StepGroups:
    """Consecutive batches of one form, in arrays with one entry per batch that are used for group after group.

    Arrays of a form have as many entries as its first group of several batches had, so that a program is compiled once.
    """

    def __init__(self) -> None:
        self._arrays: dict[_Form, list[npt.NDArray[Any]]] = {}

    def of(self, batches: Iterable[Data]) -> Iterator[list[Data]]:
        """The batches in their order, cut where the form changes or a group is full."""
        group: list[Data] = []
        form, most = None, 0
        for batch in batches:
            now = _form_of(batch)
            if group and (now != form or len(group) >= most):
                yield group
                group = []
            if now != form:
                form, most = now, self._most(now, batch)
            group.append(batch)
        if group:
            yield group

    def stacked(self, group: Sequence[Data]) -> Data:
        """The batches of a group behind each other; entries beyond them are of earlier groups."""
        form = _form_of(group[0])
        arrays = self._arrays.get(form)
        if arrays is None:
            leaves = jax.tree_util.tree_leaves(group[0])
            arrays = self._arrays[form] = [np.zeros((len(group), *leaf.shape), leaf.dtype) for leaf in leaves]
        for place, batch in enumerate(group):
            for array, leaf in zip(arrays, jax.tree_util.tree_leaves(batch), strict=True):
                np.copyto(array[place], leaf)
        return jax.tree_util.tree_unflatten(form[0], arrays)

    def _most(self, form: _Form, batch: Data) -> int:
        arrays = self._arrays.get(form)
        if arrays is not None:
            return len(arrays[0])
        size = sum(int(leaf.nbytes) for leaf in jax.tree_util.tree_leaves(batch))
        return 1 if size >= _LARGE_BATCH_BYTES else min(_MOST_BATCHES, _MOST_BYTES // max(1, size))


def _form_of(batch: Data) -> _Form:
    leaves, tree = jax.tree_util.tree_flatten(batch)
    return tree, tuple((leaf.shape, leaf.dtype.str) for leaf in leaves)
