"""Operations of Python 2 that differ in Python 3, as functions. Runs on the driver and on executors.

Translated code calls these; Spark pickles them by name.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from numbers import Integral
from typing import Any

import numpy as np

from keraunos.compat.python2.text import (
    character,
    contains,
    decode,
    differs,
    each,
    equals,
    format,  # noqa: A004 - the method's name
    get,
    is_instance,
    misses,
    percent,
    text,
)
from keraunos.errors import JobError

# What is of another module.
__all__ = [
    "character", "contains", "decode", "differs", "each", "equals", "format", "get", "is_instance", "misses", "percent",
    "text",
]  # fmt: skip

slice = builtins.slice  # noqa: A001 - subscripts of translated code call it by this module
_VIEWS = (KeysView, ValuesView, ItemsView)


def divide(left: Any, right: Any) -> Any:
    """`left / right`: of integers the floor, also of numpy's."""
    if isinstance(left, Integral) and isinstance(right, Integral):
        return left // right
    for value, other, name in ((left, right, "__div__"), (right, left, "__rdiv__")):
        # As classes of that time, and TensorFlow's tensors, still define it.
        method = getattr(type(value), name, None)
        if method is not None:
            result = method(value, other)
            if result is not NotImplemented:
                return result
    if _is_whole(left) and _is_whole(right) and _any_array(left, right):
        return np.floor_divide(left, right)
    return left / right


def divide_arrays(left: Any, right: Any, *arguments: Any, **named: Any) -> Any:
    """`numpy.divide`, which gave the floor of integers."""
    whole = _is_whole(left) and _is_whole(right) and named.get("dtype") is None
    return (np.floor_divide if whole else np.divide)(left, right, *arguments, **named)


def divide_in_place(value: Any, by: Any) -> Any:
    """Returns the value of `value` after `value /= by`."""
    if isinstance(value, np.ndarray) and _is_whole(value) and _is_whole(by):
        return np.floor_divide(value, by, out=value)
    if isinstance(value, np.ndarray):
        value /= by
        return value
    method = getattr(type(value), "__idiv__", None)
    return divide(value, by) if method is None else method(value, by)


def divide_attribute(owner: Any, name: str, by: Any) -> None:
    """`owner.name /= by`."""
    setattr(owner, name, divide_in_place(getattr(owner, name), by))


def divide_item(owner: Any, key: Any, by: Any) -> None:
    """`owner[key] /= by`."""
    owner[key] = divide_in_place(owner[key], by)


def message(error: Any) -> Any:
    """`error.message`, which every exception had: its argument, if it has one."""
    if hasattr(error, "message") or not isinstance(error, BaseException):
        return error.message
    return error.args[0] if len(error.args) == 1 else ""


def keys(owner: Any) -> Any:
    """`owner.keys()`, which was a list."""
    return _listed(owner.keys())


def values(owner: Any) -> Any:
    """`owner.values()`, which was a list."""
    return _listed(owner.values())


def items(owner: Any) -> Any:
    """`owner.items()`, which was a list."""
    return _listed(owner.items())


def _iterating(old: str, new: str) -> Callable[[Any], Iterator[Any]]:
    def method(owner: Any) -> Iterator[Any]:
        return getattr(owner, old)() if hasattr(owner, old) else iter(getattr(owner, new)())

    method.__doc__ = f"`owner.{old}()`, as dicts had it."
    return method


def _viewing(old: str, new: str) -> Callable[[Any], Any]:
    def method(owner: Any) -> Any:
        return getattr(owner, old if hasattr(owner, old) else new)()

    method.__doc__ = f"`owner.{old}()`, as dicts had it."
    return method


iterkeys, itervalues, iteritems = (_iterating(f"iter{name}", name) for name in ("keys", "values", "items"))
viewkeys, viewvalues, viewitems = (_viewing(f"view{name}", name) for name in ("keys", "values", "items"))


def has_key(owner: Any, key: Any) -> Any:
    """`owner.has_key(key)`, as dicts had it."""
    return owner.has_key(key) if hasattr(owner, "has_key") else key in owner


def next(iterator: Any) -> Any:  # noqa: A001 - the method's name
    """`iterator.next()`, as iterators had it."""
    return iterator.next() if hasattr(iterator, "next") else iterator.__next__()


def sort(owner: Any, *arguments: Any, **named: Any) -> Any:
    """`owner.sort(cmp, key, reverse)`, as lists had it."""
    if not isinstance(owner, list):
        return owner.sort(*arguments, **named)
    return owner.sort(**sort_arguments(*arguments, **named))


def sort_arguments(cmp: Any = None, key: Any = None, reverse: Any = False) -> dict[str, Any]:
    """Returns the arguments of Python 2's sorts in terms of today's."""
    if cmp is not None:
        compared = functools.cmp_to_key(cmp)
        by = key
        key = compared if by is None else lambda each: compared(by(each))
    return {"key": key, "reverse": bool(reverse)}


def setdefaultencoding(name: str) -> None:
    """`sys.setdefaultencoding`: Python 3 has only UTF-8."""
    if name.lower().replace("-", "").replace("_", "") not in ("utf8", "ascii"):
        raise JobError(f"sys.setdefaultencoding of Python 2 can be given 'utf-8' only here. Received: {name!r}.")


def hide(namespace: dict[str, Any], names: Sequence[str]) -> None:
    """Let a star import of a module leave out the builtins of Python 2 that it was given."""
    from keraunos.compat.python2.old_builtins import NAMES

    if "__all__" not in namespace and namespace.get("__name__") != "__main__":
        given = {name for name in names if namespace.get(name) is NAMES[name]}
        namespace["__all__"] = [name for name in namespace if not name.startswith("_") and name not in given]


def _compared(name: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        result = self.__cmp__(other)
        return result if result is NotImplemented else holds(result)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`__{name}__` of a class that has `__cmp__`."
    return method


eq = _compared("eq", lambda result: result == 0)
ge = _compared("ge", lambda result: result >= 0)
gt = _compared("gt", lambda result: result > 0)
le = _compared("le", lambda result: result <= 0)
lt = _compared("lt", lambda result: result < 0)
ne = _compared("ne", lambda result: result != 0)


def _listed(found: Any) -> Any:
    return list(found) if isinstance(found, _VIEWS) else found


def _is_whole(value: Any) -> bool:
    """Returns whether a value is of whole numbers: an int, or an array or list of them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biu"
    if isinstance(value, list | tuple):
        return bool(value) and np.asarray(value).dtype.kind in "biu"
    return isinstance(value, Integral)


def _any_array(*values: Iterable[Any] | Any) -> bool:
    return any(isinstance(each, np.ndarray | np.generic) for each in values)
