"""Bytes as a series of choices, so that what a fuzzer changes in them changes what a target does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads the bytes from the front; past their end every choice is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self._data) - self._at

    def byte(self) -> int:
        """The next byte."""
        if not self.left:
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def below(self, bound: int) -> int:
        """A number from 0 up to `bound`, exclusive."""
        found = self.byte()
        return (found if bound <= 256 else found << 8 | self.byte()) % bound

    def pick(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[self.below(len(options))]

    def take(self, most: int = 1 << 30) -> bytes:
        """The next bytes, as many as there are up to `most`."""
        found = self._data[self._at : self._at + most]
        self._at += len(found)
        return found

    def piece(self) -> bytes:
        """Some bytes, whose number is a choice too."""
        return self.take(self.byte())
