"""Running a configuration: its names, its arguments, and what has been written when it ends. Runs on the driver."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keraunos.compat.paddle import language_settings
from keraunos.compat.paddle.language_imports import old_names
from keraunos.compat.paddle.language_state import Configuration, writing
from keraunos.compat.paddle.model_config import ModelConfig, TrainerConfig
from keraunos.compat.python2 import program as python2
from keraunos.errors import ModelError

# Names are lent to a function's module, which other threads may parse with as well.
_ONE_AT_A_TIME = threading.RLock()
_NAMES = "names of the language"
_MISSING = object()


def parse(source: Any, config_args: str, names: Mapping[str, Any]) -> TrainerConfig:
    """Run a function or a file with these names available, and return the configuration that it writes."""
    state = Configuration(args=parsed_args(config_args), extras={_NAMES: names})
    if "extension_module_name" in state.args:
        raise ModelError(
            "Extension modules of Paddle's parser are not loaded here. Expected config args of the "
            "configuration's own. Received: 'extension_module_name'. Import the module's functions in the "
            "configuration instead."
        )
    with _ONE_AT_A_TIME, old_names(), writing(state):
        if callable(source):
            with _lent(source, names):
                source()
        elif isinstance(source, str | os.PathLike):
            run_file(state, source, {})
        else:
            raise ModelError(
                f"A configuration must be a function without arguments or the path of a file. Received: {source!r}."
            )
        return _finished(state)


def run_file(state: Configuration, file: str | os.PathLike[str], further: Mapping[str, Any]) -> None:
    """Run a file as part of a configuration; it finds the names of the language and the further ones."""
    path = state.folder / Path(file)
    if not path.is_file():
        raise ModelError(
            f"There is no configuration file {os.fspath(file)!r}. Expected a file of Python. Received: {str(path)!r}."
        )
    before, state.folder = state.folder, path.parent
    namespace = {"__name__": path.stem, "__file__": str(path), **state.extras[_NAMES], **further}
    try:
        exec(python2.read(path.read_bytes(), str(path)).code, namespace)  # noqa: S102 - a configuration is a program
    finally:
        state.folder = before


def parsed_args(text: str) -> dict[str, str]:
    """Returns the dict of "k=v,k2=v2"."""
    args = {}
    for each in filter(None, (part.strip() for part in (text or "").split(","))):
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise ModelError(f"Config args must be written as 'k=v,k2=v2'. Received: {each!r} in {text!r}.")
        args[name.strip()] = value.strip()
    return args


@contextmanager
def _lent(function: Any, names: Mapping[str, Any]) -> Iterator[None]:
    """Names in the globals of a function; afterwards there is what was there before."""
    inner = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    found: dict[str, Any] = getattr(inner, "__globals__", getattr(type(inner).__call__, "__globals__", {}))
    before = {name: found.get(name, _MISSING) for name in names}
    found.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                found.pop(name, None)
            else:
                found[name] = value


def _finished(state: Configuration) -> TrainerConfig:
    optimization = language_settings.optimization(state.settings)
    if state.outputs is None:
        raise ModelError(
            "The configuration names no outputs. Expected a call of Outputs(…) with the cost. "
            f"Received: layers {', '.join(map(repr, state.layers)) or 'none'}."
        )
    outputs = _known(state, "Outputs", state.outputs)
    for each in state.evaluators.values():
        _known(state, f"Evaluator {each.name!r}", each.input_layers)
    model = ModelConfig(
        layers=tuple(state.layers.values()),
        parameters=tuple(state.parameters.values()),
        input_layer_names=_inputs(state),
        output_layer_names=outputs,
        evaluators=tuple(state.evaluators.values()),
        type=state.model_type,
    )
    return TrainerConfig(model, optimization, config_args=state.args, **language_settings.trainer(state.settings))


def _inputs(state: Configuration) -> tuple[str, ...]:
    data = [layer.name for layer in state.layers.values() if layer.type == "data"]
    if state.inputs is None:
        return tuple(data)
    named = _known(state, "Inputs", state.inputs)
    for each in named:
        if each not in data:
            raise ModelError(
                f"Inputs: {each!r} is of type {state.layers[each].type!r}. Expected a layer of type 'data'. "
                f"Received: {each!r}. Data layers are {', '.join(map(repr, data)) or 'none'}."
            )
    used = {source.layer for layer in state.layers.values() for source in layer.inputs}
    for each in data:
        if each in used and each not in named:
            raise ModelError(
                f"Inputs: the data layer {each!r} is not named, though other layers read it. "
                f"Received: {list(named)!r}. Add it to Inputs(…)."
            )
    return named


def _known(state: Configuration, where: str, names: Iterable[Any]) -> tuple[str, ...]:
    given = tuple(names)
    for each in given:
        if each not in state.layers:
            close = difflib.get_close_matches(str(each), list(state.layers), n=1)
            raise ModelError(
                f"{where}: there is no layer {each!r}. Expected names of layers: "
                f"{', '.join(state.layers) or 'there are none'}. Received: {each!r}."
                + (f" Did you mean {close[0]!r}?" if close else "")
            )
        if given.count(each) > 1:
            raise ModelError(f"{where}: a layer is named once. Received: {each!r} {given.count(each)} times.")
    return given
