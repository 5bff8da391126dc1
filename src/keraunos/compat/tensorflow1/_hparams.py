"""`tf.contrib.training.HParams`: named values with types. Runs on the driver and on workers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_PAIR = re.compile(r"\s*([a-zA-Z]\w*)\s*(?:\[\s*(\d+)\s*\])?\s*=\s*(\[[^\]]*\]|[^,\[\]]*)\s*(?:,|$)")
_TRUE, _FALSE = ("true", "1"), ("false", "0")


class HParams:
    """Hyperparameters as attributes. A value keeps the type that it was given first; a list that of its members."""

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None or model_structure is not None:
            raise ValueError(
                "HParams takes values by their names here, and neither `hparam_def` nor `model_structure`. Received: "
                f"{hparam_def!r}, {model_structure!r}. Use HParams(name=value, ...)."
            )
        self._types: dict[str, tuple[type, bool]] = {}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a hyperparameter, whose type is that of its value."""
        if hasattr(self, name):
            raise ValueError(f"A hyperparameter must have a name of its own. Received: {name!r}, which is taken.")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(
                f"A list must have a member, which tells the type of all. Received: {value!r} for {name!r}."
            )
        self._types[name] = (type(value[0]) if is_list else type(value), is_list)
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Set an existing hyperparameter to another value of its type."""
        kind, is_list = self._known(name)
        if isinstance(value, (list, tuple)) != is_list:
            raise ValueError(f"{name!r} must be {'a list' if is_list else 'a single value'}. Received: {value!r}.")
        setattr(self, name, [_cast(name, kind, each) for each in value] if is_list else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Remove a hyperparameter. Ignored if it does not exist."""
        if self._types.pop(name, None) is not None:
            delattr(self, name)

    def parse(self, values: str) -> HParams:
        """Set values from text such as "rate=0.1,layers=[4,8],name=x". Returns itself."""
        at = 0
        seen: set[str] = set()
        while at < len(values):
            match = _PAIR.match(values, at)
            if match is None or match.end() == at:
                raise ValueError(f"Values must be written as 'name=value,name=[value,...]'. Received: {values[at:]!r}.")
            name, index, text = match[1], match[2], match[3].strip()
            if index is None and name in seen:
                raise ValueError(f"A value must be given once. Received: {name!r} twice in {values!r}.")
            seen.add(name)
            self._parse_one(name, index, text)
            at = match.end()
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Set values from a dict. Returns itself."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Set values from a JSON object. Returns itself."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """Returns the values by their names."""
        return {name: getattr(self, name) for name in self._types}

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """Returns the values as a JSON object."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a value, or the default if there is not one of that name."""
        return getattr(self, key) if key in self._types else default

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"

    def _known(self, name: str) -> tuple[type, bool]:
        if name not in self._types:
            raise ValueError(
                f"There is no hyperparameter {name!r}. Expected one of {', '.join(map(repr, self._types)) or 'none'}. "
                "Add it with add_hparam first."
            )
        return self._types[name]

    def _parse_one(self, name: str, index: str | None, text: str) -> None:
        kind, is_list = self._known(name)
        if index is not None:
            if not is_list:
                raise ValueError(f"{name!r} must be a list to be given by its members. Received: {name}[{index}].")
            values = list(getattr(self, name))
            values[int(index)] = _read(name, kind, text)
            setattr(self, name, values)
        elif text.startswith("["):
            members = [each.strip() for each in text[1:-1].split(",") if each.strip()]
            self.set_hparam(name, [_read(name, kind, each) for each in members])
        else:
            self.set_hparam(name, _read(name, kind, text))


def _read(name: str, kind: type, text: str) -> Any:
    """Returns a value of the type from its text."""
    if kind is bool:
        if text.lower() not in (*_TRUE, *_FALSE):
            raise ValueError(f"{name!r} must be true or false. Received: {text!r}.")
        return text.lower() in _TRUE
    if kind is str:
        return text
    try:
        return kind(text)
    except (TypeError, ValueError):
        raise ValueError(f"{name!r} must be of type {kind.__name__}. Received: {text!r}.") from None


def _cast(name: str, kind: type, value: Any) -> Any:
    """Returns a value as one of the type, where that loses nothing."""
    if (
        value is None
        or kind is type(None)
        or (isinstance(value, kind) and not (kind is int and isinstance(value, bool)))
    ):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(f"{name!r} must be of type {kind.__name__}. Received: {value!r}.")
