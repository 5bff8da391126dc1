"""The modules of the Keras of a day, under the names that programs import them by. Runs on the driver and on workers.

`furnish` fills a package with them. The modules below it are made when they are imported: they hold nothing but names
from the tables, and every process that imports the package can import them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from keraunos.compat.old_keras.days import DAYS, Day
from keraunos.learners.framework_imports import import_keras

_OLD_LAYER_MODULES = (
    "advanced_activations",
    "containers",
    "convolutional",
    "convolutional_recurrent",
    "core",
    "embeddings",
    "local",
    "merge",
    "noise",
    "normalization",
    "pooling",
    "recurrent",
    "wrappers",
)
_DATASETS = ("boston_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters")
_UTILS = ("data_utils", "generic_utils", "layer_utils", "np_utils", "vis_utils", "visualize_util")


def furnish(package: str, day: str) -> None:
    """Make the package the Keras of that day."""
    module: Any = sys.modules[package]
    module.__version__ = DAYS[day].version
    module.__path__ = []
    if not any(isinstance(finder, _FurnishedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FurnishedFinder())
    _furnished[package] = DAYS[day]
    module.__getattr__ = functools.partial(_late, package, DAYS[day])


_furnished: dict[str, Day] = {}


class _FurnishedFinder(MetaPathFinder):
    """Finds the modules below the furnished packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for package, day in _furnished.items():
            if fullname.startswith(f"{package}."):
                part = fullname.removeprefix(f"{package}.")
                if part in _PARTS:
                    return ModuleSpec(fullname, _Maker(package, day, part), is_package=part in _PACKAGES)
        return None


class _Maker(Loader):
    """Makes one of the modules."""

    def __init__(self, package: str, day: Day, part: str) -> None:
        self._package, self._day, self._part = package, day, part

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        import_keras()
        from keraunos.compat.old_keras import contents

        vars(module).update(contents.names_of(self._package, self._part, self._day))
        vars(module)["__getattr__"] = functools.partial(_missing, module.__name__, self._part, self._day)


def _late(package: str, day: Day, name: str) -> Any:
    """Returns a module of the package, or a name that Keras 2 had at its top."""
    if name in _PARTS:
        return import_module(f"{package}.{name}")
    if day.speaks_keras_2 and name in {"Input", "Model", "Sequential"}:
        return getattr(import_module(f"{package}.{'layers' if name == 'Input' else 'models'}"), name)
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(_told("keras", day, name))


def _missing(module: str, part: str, day: Day, name: str) -> Any:
    child = f"{part}.{name}"
    if child in _PARTS:
        return import_module(f"{module}.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(_told(f"keras.{part}", day, name))


def _told(module: str, day: Day, name: str) -> str:
    return (
        f"{module} has no {name!r} here, as Keras {day.name} on today's Keras. If the program was written for another "
        f"Keras, say so: --keras {' or '.join(each for each in ('0', '1', '2', '3') if each != day.name)}."
    )


_PARTS: tuple[str, ...] = (
    "activations",
    "applications",
    "backend",
    "callbacks",
    "constraints",
    "datasets",
    *(f"datasets.{name}" for name in _DATASETS),
    "engine",
    "engine.topology",
    "engine.training",
    "initializations",
    "initializers",
    "layers",
    *(f"layers.{name}" for name in _OLD_LAYER_MODULES),
    "losses",
    "metrics",
    "models",
    "objectives",
    "optimizers",
    "preprocessing",
    "preprocessing.image",
    "preprocessing.sequence",
    "preprocessing.text",
    "regularizers",
    "utils",
    *(f"utils.{name}" for name in _UTILS),
    "wrappers",
    "wrappers.scikit_learn",
)
_PACKAGES = frozenset(part.rpartition(".")[0] for part in _PARTS if "." in part)
