"""What an archive may name of Keras itself. Runs on the driver and on workers.

A configuration is turned into objects by Keras, and Keras has functions that download, read and write files, and layers
that run code or read files that their configuration names. Releases of Keras differ in what they refuse. This is
checked before Keras sees the configuration: layers, losses and the like are allowed, and of functions only those that
compute.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import keras

from keraunos.errors import ModelError
from keraunos.learners.custom_code import FUNCTION_MODULES, is_of_keras

# The parts of Keras whose functions compute, and nothing else.
_COMPUTE = {*FUNCTION_MODULES, "ops", "random", "nn"}
# The parts whose classes a model consists of, by their public names and inside of Keras.
_PARTS = {
    *_COMPUTE,
    "distillation",
    "dtype_policies",
    "layers",
    "mixed_precision",
    "models",
    "quantizers",
    "trainers",
}
_ALONE = {"keras.utils.FeatureSpace", "keras.src.layers.preprocessing.feature_space.FeatureSpace"}
# They run code, or read files, that their configuration names.
_UNSAFE = {
    "TFSMLayer": "reads a SavedModel from another place",
    "TorchModuleWrapper": "unpickles a torch module",
}
_NO_FUNCTIONS = {"get", "serialize", "deserialize"}
# What Keras 2 wrote of a lambda, or of a function: bytecode in a list, and a word that says so.
_LAMBDA_KEYS = ("function", "output_shape", "mask")


def check_names(config: Any) -> None:
    """Refuse a configuration that names something of Keras that is no part of a model.

    Raises:
        ModelError: naming what was found.
    """
    for each in named(config):
        name, module, inner = each["class_name"], each.get("module"), each.get("config")
        if module is not None and not isinstance(module, str):
            raise _refused(str(name), "must have the name of its module", repr(module))
        if module is None or is_of_keras(module):
            _check_layer(str(name), inner)
        if is_of_keras(module) and "config" in each:
            called = str(inner) if name == "function" else str(name)
            _check_part(str(module), called, is_function=name == "function")


def named(config: Any) -> Iterator[dict[str, Any]]:
    """Everything in a configuration that has the name of a class."""
    if isinstance(config, list):
        for item in config:
            yield from named(item)
    elif isinstance(config, dict):
        if "class_name" in config:
            yield config
        for value in config.values():
            yield from named(value)


def _check_layer(name: str, config: Any) -> None:
    if name == "__lambda__":
        raise _refused("lambda", "must be a function with a name", "the bytecode of a lambda")
    if name in _UNSAFE:
        raise _refused(name, f"{_UNSAFE[name]} and is not read from an archive", name)
    if not isinstance(config, dict):
        return
    if name == "Lambda":
        for key in _LAMBDA_KEYS:
            value = config.get(key)
            packed = isinstance(value, list) and any(isinstance(each, str) for each in value)
            if packed or config.get(f"{key}_type") == "lambda":
                raise _refused(name, f"must have a function with a name as `{key}`", "the bytecode of a lambda")
    if isinstance(config.get("vocabulary"), str):
        raise _refused(name, "must have its vocabulary in the archive", f"the file {config['vocabulary']!r}")


def _check_part(module: str, name: str, *, is_function: bool) -> None:
    # A name may itself have dots in it, and Keras joins both.
    whole = f"{module}.{name}"
    module, _, name = whole.rpartition(".")
    part = _part_of(module)
    known = part in _PARTS or module == "keras" or whole in _ALONE
    found = _found(module, name) if known else None
    if known and found is None:
        # What this Keras does not have it refuses by itself.
        return
    if isinstance(found, type) and not is_function:
        fits = known and is_of_keras(found.__module__)
    else:
        # A module may have imported a function of another part.
        own = str(getattr(found, "__module__", "")) or module
        computes = is_of_keras(own) and part in _COMPUTE and _part_of(own) in _COMPUTE
        fits = known and computes and name not in _NO_FUNCTIONS
    if not fits:
        raise _refused(whole, "is no part of a model", f"an archive that names {whole!r}")


def _part_of(module: str) -> str:
    """The part of Keras that a module belongs to, such as `layers`."""
    parts = module.split(".")
    if parts[1:3] == ["src", "backend"] and parts[4:5] == ["optimizers"]:
        # Keras on torch has optimizers of its own.
        return "optimizers"
    return parts[2] if parts[1:2] == ["src"] and len(parts) > 2 else "".join(parts[1:2])


def _found(module: str, name: str) -> Any:
    """What Keras has under the name; its modules hold nothing but Keras's own code."""
    held: Any = sys.modules.get(module)
    if held is None:
        with contextlib.suppress(ImportError):
            held = importlib.import_module(module)
    return None if held is None else getattr(held, name, None)


def _refused(name: str, why: str, received: str) -> ModelError:
    return ModelError(
        f"{name!r} in the model's archive {why}. Expected: layers, losses, metrics, an optimizer and functions that "
        f"compute. Received: {received}. Build that part in your program, and save the model without it. (Keras "
        f"{keras.__version__})"
    )
