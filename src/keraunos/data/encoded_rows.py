"""Converts feature columns that a model encodes itself, such as text, to the numbers that are stored. Runs on workers.

A model may begin with layers that run once per row, when the rows are read: its front. The shard then stores the
outputs of these layers, and the columns that the rest of the model reads directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keraunos.batch import Front
from keraunos.data.sparse_rows import Block, SparseRows, as_dense
from keraunos.errors import DataError
from keraunos.job.columns import Slot


class EncodedRows:
    """Converts the blocks of feature columns to the blocks that are stored, which `slots` describes."""

    def __init__(self, features: Sequence[Slot], front: Front) -> None:
        self._front = front
        # A slot without a name is for the only input.
        self._names = [front.inputs[0] if slot.name is None else slot.name for slot in features]
        named = {name: replace(slot, name=name) for name, slot in zip(self._names, features, strict=True)}
        columns = tuple(dict.fromkeys(column for name in front.reads for column in named[name].columns))
        self.slots = (
            *(named[name] for name in front.keeps),
            *(Slot(name, columns, stacked=len(columns) > 1) for name in front.makes),
        )

    def encoded(self, blocks: Sequence[Block]) -> list[Block]:
        """Returns the blocks to store, in the order of `slots`."""
        given = dict(zip(self._names, blocks, strict=True))
        made = self._front.encode({name: as_dense(given[name]) for name in self._front.reads})
        return [*(given[name] for name in self._front.keeps), *(made[name] for name in self._front.makes)]


def check_kept(slots: Sequence[Slot], blocks: Sequence[Block]) -> None:
    """Raises an error for arrays of strings that no layer has encoded: only one string per row can be stored."""
    for slot, block in zip(slots, blocks, strict=True):
        if not isinstance(block, SparseRows) and block.dtype.kind == "O" and block.ndim > 1:
            raise DataError(
                f"Column {slot.columns[0]!r} holds arrays of strings. Expected: one string per row, or a Keras model "
                f"whose layers take arrays of them. Received: rows of shape {block.shape[1:]}. Join the strings, as "
                "with concat_ws."
            )
