"""`zoo.pipeline.api.keras.layers.embeddings`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.own_layers.given import GivenValues
from keraunos.compat.zoo.own_layers.tables import CombinedWords, WordTable
from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, initializer, made
from keraunos.errors import DataError, JobError, one_of

__all__ = ["Embedding", "SparseEmbedding", "WordEmbedding", "prepare_embedding"]

_COMBINERS = ("sum", "mean", "sqrtn")


def Embedding(
    input_dim: int,
    output_dim: int,
    init: Any = "uniform",
    weights: Any = None,
    trainable: bool = True,
    input_length: int | None = None,
    W_regularizer: Any = None,
    input_shape: Shape = None,
    mask_zero: bool = False,
    padding_value: int = 0,
    zero_based_id: bool = True,
    **named: Any,
) -> Any:
    """Returns a row of a table for each whole number.

    With `mask_zero` the row of `padding_value` is all zeros. With `zero_based_id=False` numbers begin with 1.
    """
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float32)
        if weights.shape != (input_dim, output_dim):
            raise JobError(
                f"`weights` of Embedding must have the shape {(input_dim, output_dim)}. Received: {weights.shape}."
            )
    return made(
        WordTable,
        (input_length,) if input_length else input_shape,
        named,
        input_dim,
        output_dim,
        embeddings_initializer=initializer(init) if weights is None else GivenValues(weights),
        embeddings_regularizer=W_regularizer,
        trainable=trainable,
        first=0 if zero_based_id else 1,
        padding_value=int(padding_value) if mask_zero else None,
    )


class WordEmbedding:
    """A table of word vectors that are read from a file of GloVe's.

    The constructor returns the layer. Number 0 is a row of zeros, for unknown words.

    Args:
        embedding_file: lines of a word and its numbers.
        word_index: the number of each word, from 1; `None` for all words of the file in their order.
        trainable: False.
        input_length: the number of steps.
        input_shape: the shape of a row.
        named: name.
    """

    def __new__(
        cls,
        embedding_file: str,
        word_index: Mapping[str, int] | None = None,
        trainable: bool = False,
        input_length: int | None = None,
        input_shape: Shape = None,
        **named: Any,
    ) -> Any:
        """Returns the layer."""
        if trainable:
            raise JobError(
                "`trainable` of WordEmbedding must be False, as in Analytics Zoo. Received: True. Give "
                "Embedding(weights=prepare_embedding(file, word_index)) to train the vectors."
            )
        table = prepare_embedding(embedding_file, word_index)
        return Embedding(
            table.shape[0],
            table.shape[1],
            weights=table,
            trainable=False,
            input_length=input_length,
            input_shape=input_shape,
            **named,
        )

    @staticmethod
    def get_word_index(embedding_file: str, bigdl_type: str = "float") -> dict[str, int]:
        """Returns the number of each word in the file, from 1."""
        del bigdl_type
        return {word: number for number, (word, _) in enumerate(_lines(embedding_file), 1)}


def prepare_embedding(
    embedding_file: str,
    word_index: Mapping[str, int] | None = None,
    randomize_unknown: bool = False,
    normalize: bool = False,
) -> Array:
    """Returns the vectors of words from a file of GloVe's: a row for each number of `word_index`, and zeros for 0.

    Words that the file has not have zeros, or with `randomize_unknown` numbers between -0.05 and 0.05. With `normalize`
    vectors have length 1.
    """
    if word_index is None:
        found = [vector for _, vector in _lines(embedding_file)]
        table = np.stack([np.zeros_like(found[0]), *found])
    else:
        vectors = {word: vector for word, vector in _lines(embedding_file) if word in word_index}
        if not vectors:
            raise DataError(f"`embedding_file` must have a word of `word_index`. Received: {embedding_file!r}.")
        size = len(next(iter(vectors.values())))
        table = np.zeros((max(word_index.values()) + 1, size), dtype=np.float32)
        drawn = np.random.default_rng()
        for word, number in word_index.items():
            if word in vectors:
                table[number] = vectors[word]
            elif randomize_unknown:
                table[number] = drawn.uniform(-0.05, 0.05, size)
    if normalize:
        table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return np.asarray(table, dtype=np.float32)


def SparseEmbedding(
    input_dim: int,
    output_dim: int,
    combiner: str = "sum",
    max_norm: float = -1.0,
    init: Any = "uniform",
    W_regularizer: Any = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns the sum or the mean of a table's rows for the words of each record, counted from 1; 0 means no word.

    Its input is an array of words, or a list of one and of their weights.
    """
    if combiner not in _COMBINERS:
        raise JobError(one_of("combiner", combiner, _COMBINERS))
    return made(
        CombinedWords,
        input_shape,
        named,
        input_dim,
        output_dim,
        combiner,
        max_norm,
        initializer=initializer(init),
        regularizer=W_regularizer,
    )


def _lines(path: str) -> Iterator[tuple[str, Any]]:
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            word, *numbers = line.rstrip().split(" ")
            if numbers:
                yield word, np.asarray(numbers, dtype=np.float32)
