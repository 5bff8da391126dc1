"""One declaration for each Param: the Param itself, its default, its getter and its setter. Runs on the driver.

    epochs, getEpochs, setEpochs = param(
        "How often the training passes over all rows.", conversion.whole_number("epochs", at_least=1), default=1
    )

in the body of a class gives it a Param of spark.ml and two methods with a docstring and annotations. The names are
those on the left, where editors and type checkers find them. What the setter takes and the getter returns is what the
converter takes and returns; the getter of a Param without a default returns `None` as well.
"""

from __future__ import annotations

import textwrap
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar, overload

from pyspark.ml.param import Param, Params

from keraunos.ml.conversion import Converter

T = TypeVar("T")
V = TypeVar("V")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)
V_contra = TypeVar("V_contra", contravariant=True)

_MISSING: Any = object()


class Getter(Protocol[T_co]):
    """The method that returns a Param's value, as type checkers see it."""

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[[Any], T_co]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[[], T_co]: ...


class Setter(Protocol[V_contra]):
    """The method that sets a Param and returns its object, as type checkers see it."""

    @overload
    def __get__(self, instance: None, owner: type[S]) -> Callable[[Any, V_contra], S]: ...

    @overload
    def __get__(self, instance: S, owner: type[S]) -> BoundSetter[V_contra, S]: ...


class BoundSetter(Protocol[V_contra, S_co]):
    """A setter of one object."""

    def __call__(self, value: V_contra) -> S_co:
        """Set the Param."""


class Declaring(Params):  # type: ignore[misc]  # pyspark is used untyped
    """A class whose body may declare Params."""

    # By Param: of those that the class declares, and of those that it inherits and has another default for.
    _DEFAULTS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**self._all_defaults())

    def _get(self, name: str) -> Any:
        """The value of a Param, as getters return it; `None` where it has none."""
        param = self.getParam(name)
        return self.getOrDefault(param) if self.isDefined(param) else None

    def _put(self, name: str, value: Any) -> Self:
        """Set a Param, as setters do."""
        self._set(**{name: value})
        return self

    @classmethod
    def _setter_argument(cls, name: str) -> str:  # noqa: ARG003 - other systems name it after the Param
        """What the argument of a Param's setter is called."""
        return "value"

    @classmethod
    def _all_defaults(cls) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            merged.update(vars(base).get("_DEFAULTS", {}))
        return merged


@overload
def param(
    doc: str, converter: Converter[V, T], *, default: None = None, read: Callable[[Any], Any] | None = None
) -> tuple[Any, Getter[T | None], Setter[V]]: ...


@overload
def param(
    doc: str, converter: Converter[V, T], *, default: object, read: Callable[[Any], Any] | None = None
) -> tuple[Any, Getter[T], Setter[V]]: ...


@overload
def param(
    doc: str, converter: Converter[V, T], *, empty: Any, read: Callable[[Any], Any] | None = None
) -> tuple[Any, Getter[T], Setter[V]]: ...


def param(
    doc: str,
    converter: Converter[Any, Any],
    *,
    default: Any = _MISSING,
    empty: Any = None,
    read: Callable[[Any], Any] | None = None,
) -> Any:
    """A Param, its getter and its setter.

    Args:
        doc: what a user reads about it.
        converter: makes of what a user sets what is kept, or raises.
        default: its value where none is set.
        empty: what the getter returns, or hands to `read`, where there is no value.
        read: makes of what is kept what the getter returns, such as a copy of a list.
    """
    told = _Declared(doc, converter, default, empty, read)
    return _Placeholder(told, _param), _Placeholder(told, _getter), _Placeholder(told, _setter)


@overload
def readable_param(doc: str, converter: Converter[V, T], *, default: None = None) -> tuple[Any, Getter[T | None]]: ...


@overload
def readable_param(doc: str, converter: Converter[V, T], *, default: object) -> tuple[Any, Getter[T]]: ...


def readable_param(doc: str, converter: Converter[Any, Any], *, default: Any = _MISSING) -> Any:
    """A Param and its getter; see `param`."""
    told = _Declared(doc, converter, default)
    return _Placeholder(told, _param), _Placeholder(told, _getter)


def writable_param(doc: str, converter: Converter[V, Any], *, default: Any = _MISSING) -> tuple[Any, Setter[V]]:
    """A Param and its setter, where the getter is spark.ml's or one of a kind; see `param`."""
    told = _Declared(doc, converter, default)
    made: Any = _Placeholder(told, _setter)
    return _Placeholder(told, _param), made


def bare_param(doc: str, converter: Converter[Any, Any], *, default: Any = _MISSING) -> Any:
    """A Param without a getter and a setter; see `param`."""
    return _Placeholder(_Declared(doc, converter, default), _param)


@dataclass
class _Declared:
    """What is said of a Param; its name is known as soon as there is a class that has it."""

    doc: str
    converter: Converter[Any, Any]
    default: Any
    empty: Any = None
    read: Callable[[Any], Any] | None = None
    name: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether a getter may find no value."""
        return self.empty is None and (self.default is None or self.default is _MISSING)

    @property
    def takes(self) -> Any:
        """What a setter takes: the annotation of the converter's argument."""
        return next((hint for name, hint in self._hints.items() if name != "return"), Any)

    @property
    def gives(self) -> Any:
        """What a getter returns."""
        kept = self._hints.get("return", Any)
        return kept | None if self.is_optional and kept is not Any else kept

    @property
    def _hints(self) -> dict[str, Any]:
        return typing.get_type_hints(self.converter)


class _Placeholder:
    """Stands in the body of a class for what is made when Python tells it its class and its name there."""

    def __init__(self, told: _Declared, make: Callable[[_Declared, type[Declaring], str], Any]) -> None:
        self._told = told
        self._make = make

    def __set_name__(self, owner: type[Declaring], name: str) -> None:
        setattr(owner, name, self._make(self._told, owner, name))


def _param(told: _Declared, owner: type[Declaring], name: str) -> Any:
    # The first of the names on the left, which Python tells in their order.
    told.name = name
    if told.default is not _MISSING:
        owner._DEFAULTS = {**vars(owner).get("_DEFAULTS", {}), name: told.default}
    return Param(Params._dummy(), name, told.doc, typeConverter=told.converter)


def _getter(told: _Declared, owner: type[Declaring], name: str) -> Any:
    param, empty, read = told.name, told.empty, told.read

    def getter(self: Any) -> Any:
        found = self._get(param)
        value = empty if found is None else found
        return value if value is None or read is None else read(value)

    getter.__doc__ = _text(f"The value of `{param}`{', or `None`' if told.is_optional else ''}.", told.doc)
    getter.__annotations__ = {"return": told.gives}
    return _as_method(getter, owner, name)


def _setter(told: _Declared, owner: type[Declaring], name: str) -> Any:
    param, argument = told.name, owner._setter_argument(told.name)

    def setter(self: Any, value: Any) -> Any:
        return self._put(param, value)

    setter.__doc__ = _text(f"Set `{param}`.", told.doc)
    setter.__annotations__ = {argument: told.takes, "return": Self}
    setter.__code__ = setter.__code__.replace(co_varnames=("self", argument))
    return _as_method(setter, owner, name)


def _as_method(made: Any, owner: type, name: str) -> Any:
    """The function as if it had been written in the class: found by pickle, named in tracebacks and in messages."""
    made.__module__, made.__name__, made.__qualname__ = owner.__module__, name, f"{owner.__qualname__}.{name}"
    made.__code__ = made.__code__.replace(co_name=name, co_qualname=made.__qualname__)
    return made


def _text(first: str, doc: str) -> str:
    return f"{first}\n\n{textwrap.fill(doc, 100)}\n"
