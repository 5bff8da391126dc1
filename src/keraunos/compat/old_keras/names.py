"""Names of the Keras of old: each is called as it was, and is the class of today that it makes. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from keraunos.errors import JobError


class OldName:
    """A class of that day: calling it makes an object of today's class; `isinstance` and subclasses take that class.

    Args:
        module: Keraunos's module with the name.
        name: the name.
        make: from the arguments of a call to what it makes.
        today: today's class; `None` if there is none.
        base: what a subclass of it inherits from, one class or several; a text is why there can be none.
        own: attributes of the class that are not today's.
    """

    def __init__(
        self,
        module: str,
        name: str,
        make: Callable[..., Any],
        today: Any = None,
        base: Any = None,
        own: Mapping[str, Any] | None = None,
    ) -> None:
        self.__module__ = module
        self.__name__ = self.__qualname__ = name
        self.__doc__ = getattr(today, "__doc__", None)
        self._make = make
        self._today = today
        self._base = base
        vars(self).update(own or {})

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Returns the result of the old call, as an object of today's Keras."""
        return self._make(arguments, named)

    def __instancecheck__(self, value: Any) -> bool:
        return self._today is not None and isinstance(value, self._today)

    def __subclasscheck__(self, kind: type) -> bool:
        return self._today is not None and issubclass(kind, self._today)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        if isinstance(self._base, str) or self._base is None:
            raise JobError(
                f"A class of your own cannot inherit from {self.__name__} of this Keras. "
                f"{self._base or 'Received: a subclass.'} Write it for today's Keras, and say --keras 3."
            )
        return self._base if isinstance(self._base, tuple) else (self._base,)

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.__module__, self.__name__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._today, name)

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.__module__}>"


def refused(module: str, name: str, instead: str) -> OldName:
    """Returns an object for an unsupported name, which raises an error with the reason when it is used."""

    def refuse(_arguments: Any, _named: Any) -> NoReturn:
        raise JobError(f"{name} cannot be kept on today's Keras. Received: a program that uses it. {instead}")

    return OldName(module, name, refuse, None, instead)


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)
