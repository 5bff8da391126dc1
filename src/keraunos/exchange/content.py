"""What a message says: a frozen dataclass per kind, read from a body of JSON and checked field by field.

Runs on both sides. The classes are in `messages`. A field is read as its annotation says: a plain type takes values
of just that type, and `Annotated` names a reader of its own. One that has a default may be missing from the body,
and is left out of it where it has that value.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Protocol,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from keraunos.exchange.wire import MALFORMED, MAX_COUNTER, Kind, Message, WireError

Subject = TypeVar("Subject")
Result = TypeVar("Result")
Said = TypeVar("Said", bound="OfAKind")
Fields = TypeVar("Fields")

_KINDS: dict[Kind, type[Content]] = {}
_FIELDS: dict[type[Any], tuple[_Field, ...]] = {}


@dataclasses.dataclass(frozen=True)
class As:
    """How a field is read and written, and the key that it has in the body where that is not its name."""

    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    key: str | None = None


def number_between(low: int, high: int) -> As:
    """An integer in a range."""

    def read(value: Any) -> int:
        found = integer(value)
        if not low <= found <= high:
            raise WireError(f"a number from {low} to {high}, not {found}")
        return found

    return As(read)


def integer(value: Any) -> int:
    """An integer."""
    return int(_instance(value, int))


def _real(value: Any) -> float:
    return float(_instance(value, (int, float)))


def _instance(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise WireError(f"not {type(value).__name__}")
    return value


Natural = Annotated[int, number_between(0, MAX_COUNTER)]


class Content:
    """What one kind of message says. Each kind has one class, which names it: `class Save(Content, kind=Kind.SAVE)`."""

    kind: ClassVar[Kind]

    def __init_subclass__(cls, kind: Kind) -> None:
        super().__init_subclass__()
        if kind in _KINDS:
            raise TypeError(f"{kind.name} is said by {_KINDS[kind].__name__} already, and not by {cls.__name__}")
        cls.kind = kind
        _KINDS[kind] = cls

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """What a body says; a `WireError` for one that says something else."""
        try:
            return cls._read(body)
        except MALFORMED as error:
            raise WireError(f"{cls.kind.name} cannot be read: {error}") from None

    def body(self) -> dict[str, Any]:
        """The body that `of` reads back."""
        return body_of(self)

    def message(
        self, rank: int = 0, incarnation: int = 0, round_: int = 0, *, offset: int = 0, payload: Any = None
    ) -> Message:
        """The message that says it."""
        return Message(self.kind, rank, incarnation, round_, offset, self.body(), payload)

    @classmethod
    def _read(cls, body: Mapping[str, Any]) -> Self:
        return read_fields(cls, body)


def class_of(kind: Kind) -> type[Content]:
    """The class of what is said in messages of that kind."""
    return _KINDS[kind]


class OfAKind(Protocol):
    """What is about one kind of message: what a message says, or an event."""

    kind: ClassVar[Kind]


class Handlers(Generic[Subject, Result]):
    """Who handles each kind of message, or of event: one owner each. `Subject` is what it came in."""

    def __init__(self) -> None:
        self._table: dict[Kind, Callable[[Subject, Any], Result]] = {}

    def on(self, said: type[Said], handler: Callable[[Subject, Said], Result]) -> None:
        """Have `handler` handle what is of the kind of `said`; a second one for it is an error."""
        kind = said.kind
        if kind in self._table:
            raise ValueError(f"{kind.name} has a handler already: {self._table[kind]!r}. Received: {handler!r}.")
        self._table[kind] = handler

    def of(self, kind: Kind) -> Callable[[Subject, Any], Result] | None:
        """The one who handles that kind, if there is one."""
        return self._table.get(kind)


def read_fields(cls: type[Fields], data: Mapping[str, Any]) -> Fields:
    """A dataclass from the fields of a JSON object."""
    found: dict[str, Any] = {}
    for each in _fields(cls):
        if each.key in data:
            found[each.name] = each.read(data[each.key])
        elif each.default is dataclasses.MISSING:
            raise WireError(f"{each.key!r} is missing")
    return cls(**found)


def body_of(said: Any) -> dict[str, Any]:
    """The JSON object that `read_fields` reads back."""
    body = {}
    for each in _fields(type(said)):
        value = getattr(said, each.name)
        if value != each.default:
            body[each.key] = value if each.write is None or value is None else each.write(value)
    return body


def nested(cls: type[Any]) -> As:
    """A dataclass as a JSON object in the body."""
    return As(lambda data: read_fields(cls, _instance(data, dict)), body_of)


@dataclasses.dataclass(frozen=True)
class _Field:
    name: str
    key: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None
    default: Any


def _fields(cls: type[Any]) -> tuple[_Field, ...]:
    if cls not in _FIELDS:
        _FIELDS[cls] = _fields_of(cls)
    return _FIELDS[cls]


def _fields_of(cls: type[Any]) -> tuple[_Field, ...]:
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in dataclasses.fields(cls):
        how = _how(hints[field.name])
        assert how.read is not None
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found.append(_Field(field.name, how.key or field.name, how.read, how.write, default))
    return tuple(found)


def _how(hint: Any) -> As:
    """How a field of that annotation is read and written."""
    if get_origin(hint) is Annotated:
        inner, given = get_args(hint)[:2]
        plain = As() if given.read else _how(inner)
        return As(given.read or plain.read, given.write or plain.write, given.key)
    if get_origin(hint) in {Union, types.UnionType}:
        (inner,) = [each for each in get_args(hint) if each is not type(None)]
        how = _how(inner)
        assert how.read is not None
        read = how.read
        return As(lambda value: None if value is None else read(value), how.write, how.key)
    return As(_plain(get_origin(hint) or hint))


def _plain(kind: Any) -> Callable[[Any], Any]:
    if kind is int:
        return integer
    if kind is float:
        return _real
    if kind is Mapping:
        kind = dict
    return lambda value: _instance(value, kind)
