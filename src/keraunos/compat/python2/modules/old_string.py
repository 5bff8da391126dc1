"""Python 2's `string`, with the functions that are methods of text. Runs on the driver and on executors."""

from __future__ import annotations

import string
from collections.abc import Iterable
from string import *  # noqa: F403 - a program's star import finds what was there

letters = string.ascii_letters
lowercase = string.ascii_lowercase
uppercase = string.ascii_uppercase

atof = float
atoi = atol = int
capitalize, count, find, lower, lstrip, replace, rfind = (
    getattr(str, name) for name in ("capitalize", "count", "find", "lower", "lstrip", "replace", "rfind")
)
rstrip, split, strip, upper, zfill = (getattr(str, name) for name in ("rstrip", "split", "strip", "upper", "zfill"))
maketrans = str.maketrans
splitfields = split


def join(words: Iterable[str], sep: str = " ") -> str:
    """Returns the words with the separator between them."""
    return sep.join(words)


joinfields = join
