"""`keras.preprocessing.text` and `sequence` as they were. Runs on the driver."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from keras.src.legacy.preprocessing import sequence as legacy_sequence
from keras.src.legacy.preprocessing import text as legacy

from keraunos.compat.old_keras import undecided
from keraunos.compat.old_keras.days import DAYS, Day
from keraunos.errors import JobError


class OldTokenizer(legacy.Tokenizer):  # type: ignore[misc] # Keras has no types
    """`Tokenizer` of Keras 0 and 1: each day has a subclass of it."""

    day: Day = DAYS["1"]
    lower: bool

    def __init__(self, nb_words: int | None = None, *arguments: Any, **named: Any) -> None:
        super().__init__(nb_words, *arguments, **named)

    @property
    def nb_words(self) -> int | None:
        """The number of words, including 0 for no word."""
        return self.num_words

    @nb_words.setter
    def nb_words(self, number: int | None) -> None:
        self.num_words = number

    def fit_on_texts(self, texts: Iterable[str]) -> None:
        """Count words; the count of documents is reset by each call."""
        self.document_count = 0
        self._in_its_case(super().fit_on_texts, texts)

    def fit_on_sequences(self, sequences: Sequence[Sequence[int]]) -> None:
        """Count the documents that contain words; reset by each call."""
        self.document_count = 0
        self.index_docs.clear()
        super().fit_on_sequences(sequences)

    def texts_to_sequences_generator(self, texts: Iterable[str]) -> Any:
        """Returns the numbers of the words of one text after the other."""
        return self._in_its_case(
            lambda each: iter(list(super(OldTokenizer, self).texts_to_sequences_generator(each))), texts
        )

    def sequences_to_matrix(self, sequences: Sequence[Sequence[int]], mode: str = "binary") -> Any:
        """Returns a row for each text."""
        if mode != "tfidf":
            return super().sequences_to_matrix(sequences, mode)
        if self.day.name == "1":
            undecided.warn_once(
                "The mode 'tfidf' of Tokenizer was log(share) / (1 + log(1 + documents with it / documents)) until "
                "Keras 1.0.4, and (1 + log(count)) * log(1 + documents / documents with it) from 1.0.5 on, which is "
                "taken."
            )
            return super().sequences_to_matrix(sequences, mode)
        counts = super().sequences_to_matrix(sequences, "count")
        if not self.document_count:
            raise JobError("Tokenizer must be fit before mode 'tfidf' is used. Received: no call of fit_on_texts.")
        lengths = np.array([[max(len(each), 1)] for each in sequences])
        within = np.array([self.index_docs.get(number, 0) for number in range(counts.shape[1])])
        shares = np.log(np.where(counts, counts / lengths, 1))
        return shares / (1 + np.log(1 + within / (1 + self.document_count)))

    def _in_its_case(self, call: Any, texts: Iterable[str]) -> Any:
        """Returns the result of the call; single characters were taken in the case they have."""
        before = self.lower
        self.lower = before and not self.char_level
        try:
            return call(texts)
        finally:
            self.lower = before


def base_filter() -> str:
    """Returns the characters that are no part of a word."""
    return string.punctuation.replace("'", "") + "\t\n"


def text_to_word_sequence(text: str, *arguments: Any, **named: Any) -> list[str]:
    """Returns the words of a text."""
    return list(legacy.text_to_word_sequence(text, *arguments, **named))


def one_hot(text: str, n: int, *arguments: Any, **named: Any) -> list[int]:
    """Returns a number below `n` for each word of a text."""
    return list(legacy.one_hot(text, n, *arguments, **named))


def of_texts(day: Day, module: str) -> dict[str, Any]:
    """Returns the names of the module `text`."""
    found = {"text_to_word_sequence": text_to_word_sequence, "one_hot": one_hot}
    if not day.speaks_keras_2:
        made = type("Tokenizer", (OldTokenizer,), {"day": day, "__module__": module})
        return {**found, "Tokenizer": made, "base_filter": base_filter}
    return {**found, **_some(legacy, "Tokenizer", "hashing_trick", "tokenizer_from_json")}


def of_sequences(day: Day) -> dict[str, Any]:
    """Returns the names of the module `sequence`."""
    more = ("TimeseriesGenerator",) if day.speaks_keras_2 else ()
    found = _some(legacy_sequence, "make_sampling_table", "skipgrams", *more)
    return {**found, "pad_sequences": keras.utils.pad_sequences}


def _some(module: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names}
