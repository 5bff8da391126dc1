"""JSON values, made and changed by choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzz.choices import Choices

INTEGERS = (
    0, 1, 2, 3, -1, -2, 4, 16, 64, 255, 1 << 18, 1 << 19, (1 << 19) + 1, 1 << 20, 1 << 31, 1 << 32, 1 << 39,
    1 << 62, (1 << 62) + 1, 1 << 63, 1 << 64, 10**30, 10**400,
)  # fmt: skip
SMALL = (0, 1, 2, 3, -1, 4, 7, 16)
FLOATS = (0.0, 0.5, -1.5, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"))
_TEXTS = ("", "x", "..", "../x", "a.b", "a:b", "\0", "\ud800", "1", "1e999", "x" * 300)
_DEEP = (10, 190, 300, 480, 900)


class Values:
    """Makes values; `words` are texts that mean something to who reads them, `integers` the numbers to choose from."""

    def __init__(self, choices: Choices, words: Sequence[str] = (), integers: Sequence[int] = INTEGERS) -> None:
        self._choices = choices
        self._words = (*words, *_TEXTS)
        self._integers = integers

    def value(self, depth: int = 3) -> Any:
        """Any value."""
        choices = self._choices
        kind = choices.below(10 if depth else 7)
        if kind <= 1:
            return choices.pick(self._integers)
        if kind == 2:
            return choices.pick(FLOATS)
        if kind == 3:
            return self.word()
        if kind == 4:
            return choices.pick((None, True, False))
        if kind == 5:
            return choices.piece().decode("utf-8", "replace")
        if kind == 6:
            return [] if choices.below(4) else nested(choices.pick(_DEEP), as_list=choices.below(2) == 0)
        if kind == 7:
            return [self.value(depth - 1) for _ in range(choices.below(5))]
        return {self.word(): self.value(depth - 1) for _ in range(choices.below(5))}

    def word(self) -> str:
        """A text that may mean something."""
        return self._choices.pick(self._words)

    def edited(self, value: Any, most: int = 8) -> Any:
        """The value with some changes, each at a place of its own; it may be changed in place."""
        holder = [value]
        for _ in range(1 + self._choices.below(most)):
            self._edit(holder)
        return holder[0]

    def _edit(self, holder: list[Any]) -> None:
        """Change one place: go down from the top, by a choice at each level, and stop by chance."""
        parent: Any = holder
        key: Any = 0
        for _ in range(40):
            inner = parent[key]
            if not isinstance(inner, (dict, list)) or not inner or self._choices.below(6) == 0:
                break
            parent = inner
            key = self._choices.pick(list(inner) if isinstance(inner, dict) else range(len(inner)))
        way = self._choices.below(8)
        if way <= 2 or parent is holder:
            parent[key] = self.value()
        elif way == 3:
            del parent[key]
        elif way == 4 and isinstance(parent, dict):
            parent[self.word()] = parent[key]
        elif way == 5 and isinstance(parent, dict):
            parent[self.word()] = self.value()
        elif way == 6 and isinstance(parent[key], (int, float)):
            parent[key] = parent[key] + self._choices.pick((-1, 1))
        else:
            parent[key] = [parent[key], parent[key]] if isinstance(parent, list) else self.word()


def nested(depth: int, *, as_list: bool) -> Any:
    """A value in many others."""
    value: Any = 0
    for _ in range(depth):
        value = [value] if as_list else {"a": value}
    return value
