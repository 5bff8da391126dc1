"""Python 2's builtins, for translated programs. Runs on the driver and on executors.

A program gets those that it uses as globals, before it runs: what it defines or imports by the same name comes later
and wins, as it would over a builtin.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import itertools
import math
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from keraunos.compat.python2 import executed
from keraunos.compat.python2.operations import sort_arguments
from keraunos.compat.python2.text import as_text, each, say


class _AnyString(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (str, bytes))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, (str, bytes))


class basestring(metaclass=_AnyString):  # noqa: N801 - Python's own name
    """The common type of text and bytes in Python 2."""


def apply(function: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
    """Call a function with a sequence and a dict of arguments."""
    return function(*args, **(kwargs or {}))


def buffer(owner: Any, offset: int = 0, size: int = -1) -> memoryview:
    """Returns a part of the owner's bytes."""
    whole = memoryview(owner)
    return whole[offset:] if size < 0 else whole[offset : offset + size]


def cmp(left: Any, right: Any) -> int:
    """-1, 0 or 1 as the left is below the right, equal or above."""
    return int(left > right) - int(left < right)


def compile(source: Any, filename: str, mode: str, flags: int = 0, *_: Any) -> Any:  # noqa: A001 - Python's own name
    """Code that means what it meant."""
    return executed.compiled(source, filename, mode, flags, sys._getframe(1))


def eval(source: Any, globals: Any = None, locals: Any = None) -> Any:  # noqa: A001, A002 - Python's own names
    """Returns the value of an expression, in the caller's names or in those that are given."""
    frame = sys._getframe(1)
    names = frame.f_globals if globals is None else globals
    inner = (frame.f_locals if globals is None else names) if locals is None else locals
    return builtins.eval(executed.code_of(source, "eval", names), names, inner)  # noqa: S307 - what was asked for


def exec(source: Any, globals: Any = None, locals: Any = None) -> None:  # noqa: A001, A002 - Python's own names
    """Run text, in the caller's names or in those that are given."""
    executed.executed(source, globals, locals, sys._getframe(1))


def execfile(filename: str, globals: Any = None, locals: Any = None) -> None:  # noqa: A002 - Python's own names
    """Run a file in the caller's names, or in those that are given."""
    from pathlib import Path

    from keraunos.compat.python2.program import read

    frame = sys._getframe(1)
    given = frame.f_globals if globals is None else globals
    inner = (frame.f_locals if globals is None else given) if locals is None else locals
    builtins.exec(read(Path(filename).read_bytes(), filename, beside=True).code, given, inner)  # noqa: S102 - what the program asked for


def filter(function: Any, iterable: Any) -> Any:  # noqa: A001 - Python's own name
    """Returns a list; of a tuple or of text, one of its kind."""
    kept = builtins.filter(function, iterable)
    if isinstance(iterable, str):
        return "".join(kept)
    return tuple(kept) if isinstance(iterable, tuple) else list(kept)


def input(prompt: Any = "") -> Any:  # noqa: A001 - Python's own name
    """Returns the value of the expression that the user writes."""
    names = sys._getframe(1).f_globals
    return builtins.eval(executed.code_of(builtins.input(prompt), "eval", names), names)  # noqa: S307 - as it was


def map(function: Any, iterable: Iterable[Any], *others: Iterable[Any]) -> list[Any]:  # noqa: A001 - Python's own name
    """Returns a list; shorter sequences are padded with `None`. Without a function, returns the arguments."""
    if not others:
        iterable = builtins.map(as_text, iterable) if function is str else each(iterable)
        return list(iterable if function is None else builtins.map(function, iterable))
    rows = itertools.zip_longest(iterable, *others)
    return list(rows) if function is None else [function(*row) for row in rows]


def ord(character: Any) -> int:  # noqa: A001 - Python's own name
    """Returns the number of a character; one of a bytes object is a number already."""
    return character if isinstance(character, int) else builtins.ord(character)


def range(*arguments: Any) -> list[int]:  # noqa: A001 - Python's own name
    """Returns a list of numbers."""
    return list(builtins.range(*arguments))


def reload(module: ModuleType) -> ModuleType:
    """Load a module again; `sys`, which programs reloaded for `setdefaultencoding`, stays as it is."""
    return module if module is sys else importlib.reload(module)


def round(number: Any, ndigits: Any = 0) -> Any:  # noqa: A001 - Python's own name
    """Returns a float; halves are rounded away from zero."""
    if hasattr(type(number), "__float__") and not isinstance(number, (int, float, np.number)):
        return builtins.round(number, ndigits)
    value = float(number)
    rounded = builtins.round(value, ndigits)
    if not math.isfinite(value):
        return value
    # Python 3 rounds a number in the middle to the even side: only there do the two differ.
    from fractions import Fraction

    scale = Fraction(10) ** ndigits
    scaled = abs(Fraction(value)) * scale
    if scaled - math.floor(scaled) != Fraction(1, 2):
        return float(rounded)
    return math.copysign(float((math.floor(scaled) + 1) / scale), value)


def sorted(iterable: Iterable[Any], *arguments: Any, **named: Any) -> list[Any]:  # noqa: A001 - Python's own name
    """Returns a sorted list; `cmp`, `key` and `reverse` as Python 2 took them."""
    return builtins.sorted(iterable, **sort_arguments(*arguments, **named))


def zip(*iterables: Iterable[Any]) -> list[Any]:  # noqa: A001 - Python's own name
    """Returns a list of tuples."""
    return list(builtins.zip(*iterables, strict=False))


NAMES: dict[str, Any] = {
    "StandardError": Exception,
    "apply": apply,
    "basestring": basestring,
    "buffer": buffer,
    "cmp": cmp,
    "compile": compile,
    "eval": eval,
    "exec": exec,
    "execfile": execfile,
    "file": open,
    "filter": filter,
    "input": input,
    "intern": sys.intern,
    "long": int,
    "map": map,
    "ord": ord,
    "print": say,
    "range": range,
    "raw_input": builtins.input,
    "reduce": functools.reduce,
    "reload": reload,
    "round": round,
    "sorted": sorted,
    "unichr": chr,
    "unicode": str,
    "xrange": builtins.range,
    "zip": zip,
}


def __getattr__(name: str) -> Any:
    # Translated code imports a builtin as `_name`, so that a module attribute of ours stays what it is.
    if name[1:] in NAMES:
        return NAMES[name[1:]]
    raise AttributeError(f"Python 2 had no builtin {name!r} that is missing here.")
