"""Which code a file may name. Runs on the driver and on workers.

A saved model names the classes that it consists of. A module must not be imported because a file names it: otherwise
the writer of a file could run any code in the process that reads it. A file may name Keras's own classes, objects that
are registered in this process or passed with the call, and modules that the user trusts: those given to
`trust_modules`, to `trusting`, or in Spark's setting `spark.keraunos.trustedModules`.

Workers get a model from their driver, with a list of the modules that it needs there; they trust that list.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from keraunos.errors import JobError

SETTING = "spark.keraunos.trustedModules"
MAIN = "__main__"
# TensorFlow has every operation here by its name: a graph that reads or writes files names it so.
RAW_OPERATIONS = "tensorflow.raw_ops"
# Layers that hold a graph in their configuration.
GRAPH_LAYERS = frozenset({"keraunos.compat.zoo.pipeline.api.net.graph_net", "keraunos.compat.zoo.tfpark.tfnet"})

# The modules of this package whose classes are in models and rules that it saves. Each is named: most of the package's
# modules have no business in a file.
OWN_MODULES = frozenset(
    {
        "keraunos.compat.old_keras.own_images",
        "keraunos.compat.old_keras.own_initializers",
        "keraunos.compat.old_keras.own_layers",
        "keraunos.compat.old_keras.own_metrics",
        "keraunos.compat.old_keras.own_optimizers",
        "keraunos.compat.paddle.lowering.evaluators",
        "keraunos.compat.paddle.lowering.keras_layers",
        "keraunos.compat.paddle.updates.optimizer",
        "keraunos.compat.sparkflow.rules",
        "keraunos.compat.tensorspark.rules",
        "keraunos.compat.zoo.bigdl.nn.criterion_losses",
        "keraunos.compat.zoo.own_layers.activations",
        "keraunos.compat.zoo.own_layers.attention",
        "keraunos.compat.zoo.own_layers.channels_first",
        "keraunos.compat.zoo.own_layers.computed",
        "keraunos.compat.zoo.own_layers.drawn",
        "keraunos.compat.zoo.own_layers.given",
        "keraunos.compat.zoo.own_layers.running",
        "keraunos.compat.zoo.own_layers.tables",
        "keraunos.compat.zoo.own_layers.weighted",
        "keraunos.compat.zoo.pipeline.api.keras.layers.normalization",
        "keraunos.compat.zoo.pipeline.nnframes.losses",
        "keraunos.compat.zoo.rules",
        *GRAPH_LAYERS,
        "keraunos.compat.zoo.vector_rules",
    }
)

_everywhere: set[str] = set()
_lock = threading.Lock()
_here: ContextVar[tuple[str, ...]] = ContextVar("trusted_modules", default=())


def trust_modules(*names: str) -> None:
    """Trust modules in this process from now on: files that are read may name their classes and functions.

    Args:
        names: modules, or packages, which include all modules below them.
    """
    checked = trusted_names(names)
    with _lock:
        _everywhere.update(checked)


@contextmanager
def trusting(*names: str) -> Iterator[None]:
    """Trust modules, besides those that are trusted already, in what this thread reads within the `with` block.

    Args:
        names: modules, or packages, which include all modules below them.
    """
    token = _here.set((*_here.get(), *trusted_names(names)))
    try:
        yield
    finally:
        _here.reset(token)


def is_trusted(module: str | None) -> bool:
    """Returns whether a file may name what is in a module."""
    if not isinstance(module, str) or module == MAIN:
        return False
    return module in OWN_MODULES or any(module == name or module.startswith(f"{name}.") for name in _trusted())


def trusted_names(given: Any, argument: str = "trustedModules") -> tuple[str, ...]:
    """Returns the names of modules in a list, or in a text with commas between them."""
    names: Iterable[Any] = given.split(",") if isinstance(given, str) else given or ()
    if not isinstance(names, Iterable):
        raise JobError(f"`{argument}` must be a list of names of modules. Received: {given!r}.")
    found = [name.strip() if isinstance(name, str) else name for name in names]
    for name in found:
        is_name = isinstance(name, str) and all(part.isidentifier() for part in name.split("."))
        if (name or not isinstance(given, str)) and not is_name:
            raise JobError(
                f"`{argument}` must be names of modules, such as 'my_layers' or 'my_package.layers'. Received: "
                f"{name!r}."
            )
        if name == MAIN:
            raise JobError(
                f"`{argument}` must be modules that other processes can import. Received: {MAIN!r}. Register the class "
                "with `keras.saving.register_keras_serializable` before the file is read."
            )
    return tuple(dict.fromkeys(name for name in found if name))


def how_to_trust(module: str) -> str:
    """Returns the advice in a message for a file that names this module."""
    if module == MAIN:
        return "Register it with `keras.saving.register_keras_serializable`, or hand it over, before the file is read"
    return (
        f"If you trust the file, allow the module: set {SETTING}={module} for the Spark session, or call "
        f"keraunos.trust_modules({module!r})"
    )


def trusted_operations() -> tuple[str, ...]:
    """Returns the trusted names of TensorFlow operations."""
    return tuple(
        sorted(name for name in _trusted() if f"{RAW_OPERATIONS}.".startswith(f"{name}.") or _is_operation(name))
    )


def _is_operation(name: str) -> bool:
    return name.startswith(f"{RAW_OPERATIONS}.")


def _trusted() -> set[str]:
    with _lock:
        return _everywhere | set(_here.get())
