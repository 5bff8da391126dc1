"""Python 2's syntax in terms of Python 3's, by fissix. Runs on the driver and on executors.

Importing this module raises `ImportError` where fissix is not installed.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from fissix import refactor
from fissix.pgen2 import token, tokenize

# What is only spelled differently. What means something else is for `rewriting`.
_FIXERS = (
    "except", "exec", "funcattrs", "metaclass", "methodattrs", "ne", "numliterals", "paren", "print", "raise", "repr",
    "throw", "tuple_params",
)  # fmt: skip
_TAB = 8
_OLD_OCTAL = re.compile(r"0+([1-7][0-7]*)")
_RAW_UNICODE = re.compile(r"^[uU]([rR])")


class NotPythonError(SyntaxError):
    """A source that is not Python 2 either."""


@dataclass(frozen=True)
class Translation:
    """A source in today's syntax, and from its lines' numbers to those of the source."""

    text: str
    lines: Callable[[int], int]


def translate(text: str) -> Translation:
    """Returns the source in the syntax of Python 3; raises `NotPythonError` if it is not one of Python 2."""
    source = _plain_indents(text if text.endswith("\n") else text + "\n")
    tool = _tool()
    tree = tool.refactor_string(source, "the program")
    if tree is None:
        raise NotPythonError(tool.told)
    for leaf in tree.leaves():
        _respell(leaf)
    return Translation(str(tree), _line_numbers(tree))


@cache
def _tool() -> Any:
    class Tool(refactor.RefactoringTool):  # type: ignore[misc]  # fissix has no types
        """Notes what could not be parsed, instead of logging it."""

        told = ""

        def log_error(self, message: str, *arguments: Any, **named: Any) -> None:
            self.told = message % arguments

        def log_message(self, message: str, *arguments: Any) -> None:
            pass

        log_debug = log_message

    return Tool([f"fissix.fixes.fix_{name}" for name in _FIXERS])


def _respell(leaf: Any) -> None:
    """Two spellings that fissix's fixers do not change: `ur"…"` and `0777L`."""
    if leaf.type == token.STRING and _RAW_UNICODE.match(leaf.value):
        leaf.value = _RAW_UNICODE.sub(r"\1", leaf.value)
    elif leaf.type == token.NUMBER:
        octal = _OLD_OCTAL.fullmatch(leaf.value)
        leaf.value = f"0o{octal[1]}" if octal else leaf.value


def _line_numbers(tree: Any) -> Callable[[int], int]:
    """Restores line numbers: fixers add and remove lines, but the remaining nodes know their original line."""
    new, old, line = [1], [1], 1
    for leaf in tree.leaves():
        line += leaf.prefix.count("\n")
        if leaf.lineno and leaf.value.strip() and line > new[-1]:
            new.append(line)
            old.append(max(leaf.lineno, old[-1]))
        line += leaf.value.count("\n")

    def number(of: int) -> int:
        place = bisect_right(new, of) - 1
        ahead = old[place] + of - new[place]
        return min(ahead, old[place + 1]) if place + 1 < len(old) else ahead

    return number


def _plain_indents(text: str) -> str:
    """Tabs that indent as Python 2 reads them, to the next multiple of 8, written as spaces; strings keep theirs."""
    if "\t" not in text:
        return text
    inside: set[int] = set()
    try:
        for kind, _, (first, _), (last, _), _ in tokenize.generate_tokens(io.StringIO(text).readline):
            if kind == token.STRING:
                inside.update(range(first + 1, last + 1))
    except (tokenize.TokenError, IndentationError):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        rest = line.lstrip(" \t\f")
        if number not in inside and rest is not line:
            lines[number - 1] = line[: len(line) - len(rest)].expandtabs(_TAB) + rest
    return "\n".join(lines)
