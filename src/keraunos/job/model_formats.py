"""The model formats that a job may name, and where their classes are. Runs on the driver and on workers.

A format is known here by its home, `module:Class`, and imported when its declaration is asked for; none of this package
loads a framework by that. A package adds its own with `register_format`; the job then carries the format's home.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.errors import JobError, one_of
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.homes import at_home, is_home

KERAS = "keras"
GRAPH = "tensorflow_graph"

# Built-in formats and their homes.
BUILT_IN: Mapping[str, str] = {
    KERAS: "keraunos.formats.keras_format:KerasFormat",
    GRAPH: "keraunos.formats.graph_format:GraphFormat",
}

_REGISTERED: dict[str, str] = {}


def register_format(name: str, home: str) -> None:
    """Make a format known by name: `home` is `module:Class`, a `keraunos.formats.model_format.ModelFormat`.

    The job carries the home with it, so that a worker finds the format where its package is installed.
    """
    _check_home(home)
    taken = _REGISTERED.get(name)
    if not name.isidentifier() or name in BUILT_IN:
        raise JobError(
            f"A registered format's name must be an identifier that no format here goes by. Received: {name!r}."
        )
    if taken not in (None, home):
        raise JobError(f"The format {name!r} must be registered once. Expected: {taken!r}. Received: {home!r}.")
    _REGISTERED[name] = home


def known_formats() -> tuple[str, ...]:
    """Every name that a format goes by in this process."""
    return (*BUILT_IN, *_REGISTERED)


def checked_home(name: str, home: str | None) -> str | None:
    """The home that a job carries for a format: `None` for those that are built in; refused where nobody knows it."""
    home = _REGISTERED.get(name) if home is None else home
    if home is not None:
        _check_home(home)
    elif name not in BUILT_IN:
        raise JobError(one_of("format", name, known_formats()))
    return home


def imported(name: str, home: str | None) -> Any:
    """What is at the home of a format; an error where it cannot be imported."""
    where = home or BUILT_IN[name]
    try:
        return at_home(where)
    except (ImportError, AttributeError) as error:
        raise JobError(
            f"The format {name!r} must be importable wherever its models are. Expected: {where!r}. Received: {error}. "
            "Install the package that registers it on the driver and on the executors."
        ) from error


def declared(name: str, home: str | None) -> FormatDeclaration:
    """What the format's class says about itself; an error where it cannot be imported."""
    found = getattr(imported(name, home), "declaration", None)
    if not isinstance(found, FormatDeclaration):
        raise JobError(f"The format {name!r} must have a FormatDeclaration as `declaration`. Received: {found!r}.")
    return found


def declared_here(name: str, home: str | None) -> FormatDeclaration | None:
    """The same, where the format is built in or registered in this process; otherwise `None`.

    Nothing else is imported for a job that is only read; whoever runs it asks for `declared`.
    """
    return None if home is not None and _REGISTERED.get(name) != home else declared(name, home)


def _check_home(home: str) -> None:
    if not is_home(home):
        raise JobError(f"The home of a registered format must be written 'module:Class'. Received: {home!r}.")
