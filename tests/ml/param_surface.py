"""What users see of the Params of estimators and models, as plain data: names, texts, defaults, getters and setters.

    python -m tests.ml.param_surface FILE CLASS...

writes it down for classes that are given as `module:Class`, or for those that the file has.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import typing
from pathlib import Path
from typing import Any

from pyspark.ml.param import Param

_ACCESSOR = re.compile(r"(set|get|is)(_[a-z]|[A-Z])\w*")


def load(kind: str) -> type:
    """The class that `module:Class` names."""
    module, _, name = kind.partition(":")
    found: type = getattr(importlib.import_module(module), name)
    return found


def accessors(kind: type) -> dict[str, Any]:
    """The methods that set and get something, and of spark.ml's own those of this class's Params."""
    params = {name[0].upper() + name[1:] for name in params_of(kind)}
    methods = {name: getattr(kind, name) for name in dir(kind) if _ACCESSOR.fullmatch(name)}
    return {
        name: each
        for name, each in methods.items()
        if callable(each) and (not each.__module__.startswith("pyspark.") or name[3:] in params)
    }


def params_of(kind: type) -> dict[str, Any]:
    """The Params by name."""
    return {name: getattr(kind, name) for name in dir(kind) if isinstance(getattr(kind, name, None), Param)}


def surface(kind: type) -> dict[str, str]:
    """Lines by name: of the constructor, the Params, and the methods that set and get."""
    lines = {"constructor": str(inspect.signature(kind))}
    for name, param in params_of(kind).items():
        lines[f"Param {name}"] = param.doc
        if hasattr(kind, "_all_defaults") and name in kind._all_defaults():
            lines[f"default {name}"] = repr(kind._all_defaults()[name])
    return lines | {f"def {name}": _signature(each) for name, each in accessors(kind).items()}


def surfaces(kinds: list[str]) -> dict[str, dict[str, str]]:
    """The lines of all classes; those that several share stand once, under all of their names."""
    homes: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        for line in surface(load(kind)).items():
            homes.setdefault(line, []).append(kind)
    shared: dict[str, dict[str, str]] = {}
    for (name, text), found in homes.items():
        shared.setdefault(" ".join(sorted(found)), {})[name] = text
    return {several: dict(sorted(lines.items())) for several, lines in sorted(shared.items())}


def written(file: Path) -> dict[str, dict[str, str]]:
    """What a file has of each class."""
    lines: dict[str, dict[str, str]] = {}
    for several, shared in json.loads(file.read_text()).items():
        for kind in several.split():
            lines.setdefault(kind, {}).update(shared)
    return lines


def _signature(method: Any) -> str:
    """A signature with what its annotations stand for, however they are written."""
    hints = typing.get_type_hints(method)
    signature = inspect.signature(method)
    named = [each.replace(annotation=hints.get(each.name, each.empty)) for each in signature.parameters.values()]
    return str(signature.replace(parameters=named, return_annotation=hints.get("return", signature.empty)))


def main(arguments: list[str]) -> None:
    """Write a file."""
    file, kinds = Path(arguments[0]), arguments[1:]
    file.write_text(json.dumps(surfaces(kinds or sorted(written(file))), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
