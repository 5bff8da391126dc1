"""`bigdl.dataset.sentence`: texts cut into sentences and words, by NLTK where that is installed. Runs on the driver."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any


def read_localfile(fileName: str) -> list[str]:
    """Returns the lines of a file, with their ends."""
    return Path(fileName).read_text(encoding="utf-8").splitlines(keepends=True)


def sentences_split(line: str) -> list[str]:
    """Returns the sentences of a text."""
    nltk = _nltk()
    nltk.data.path.append(os.environ.get("PWD", "."))
    return list(nltk.tokenize.PunktSentenceTokenizer().tokenize(line))


def sentences_bipadding(sent: str) -> str:
    """Returns a sentence between the words that mark its start and its end."""
    return f"SENTENCESTART {sent} SENTENCEEND"


def sentence_tokenizer(sentences: str) -> list[str]:
    """Returns the words of a sentence."""
    return list(_nltk().word_tokenize(sentences))


def _nltk() -> Any:
    try:
        return importlib.import_module("nltk")
    except ImportError as error:
        raise ImportError(
            "bigdl.dataset.sentence needs the package nltk to cut texts, which cannot be imported here. Install it."
        ) from error
