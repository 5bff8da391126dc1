"""Keras models in files, of the formats that Keras has had, read with what the user trusts. Runs on the driver."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keraunos.errors import ModelError
from keraunos.learners.archive_parts import check_hdf5, config_of
from keraunos.learners.custom_code import custom_code_of, essence, resolved
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_names import check_names, named
from keraunos.trust import how_to_trust, is_trusted

HDF5_SUFFIXES = (".h5", ".hdf5")
_KERAS_2 = "tf_keras"


def read_file(path: Path, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model in a `.keras` or an `.h5` file.

    Raises:
        ModelError: where it names code that is not trusted, or is no model.
    """
    content = path.read_bytes()
    if path.suffix not in HDF5_SUFFIXES:
        return from_archive(content, custom_objects)
    check_hdf5(content)
    needed = dict(custom_objects or {})
    for config in _configs(content):
        needed |= checked_config(config, custom_objects or {})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return keras.saving.load_model(path, custom_objects=needed, safe_mode=True)
    except Exception as error:
        raise ModelError(
            f"The model cannot be read from the file {path.name!r}. Expected: one that `keras.saving.load_model` "
            f"reads. Received: {essence(error)}"
        ) from error


def checked_config(config: Any, custom_objects: Mapping[str, Any]) -> dict[str, Any]:
    """The custom objects with which Keras may read a configuration.

    Raises:
        ModelError: where it names what is not trusted.
    """
    check_names(config)
    return resolved(custom_code_of(config), custom_objects)


def check_keras_2_file(path: Path) -> None:
    """Refuse a file for the old Keras 2 that names code, or holds some; that Keras would run it.

    Raises:
        ModelError: unless `tf_keras` is trusted.
    """
    if is_trusted(_KERAS_2):
        return
    if path.is_dir():
        raise ModelError(
            f"The folder {str(path)!r} holds a SavedModel, whose layers and operations Keras 2 would run as they are. "
            "Expected: an .h5 or a .keras file, or a trusted reader. Received: a folder. Save the model as .h5, or: "
            f"{how_to_trust(_KERAS_2)}."
        )
    content = path.read_bytes()
    if path.suffix == ".keras":
        configs = [config_of(content)]
    else:
        check_hdf5(content)
        configs = _configs(content)
    for config in configs:
        check_names(config)
        for each in named(config):
            module = each.get("module")
            root = str(module).partition(".")[0]
            if module is not None and root not in {"keras", _KERAS_2, "builtins"} and not is_trusted(str(module)):
                raise ModelError(
                    f"The class {each['class_name']!r} of the module {module!r} in {path.name!r} is not trusted. "
                    f"Expected: code of Keras, or a trusted module. Received: a file that names it. "
                    f"{how_to_trust(str(module))}."
                )


def _configs(content: bytes) -> list[Any]:
    """What an HDF5 file says of its model and of how it was compiled."""
    import h5py

    with h5py.File(io.BytesIO(content), "r") as file:
        texts = [file.attrs.get(name) for name in ("model_config", "training_config")]
    try:
        return [json.loads(text) for text in texts if text is not None]
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(
            f"The file's description of its model cannot be read. Expected: JSON. Received: {str(error)[:200]}."
        ) from error
