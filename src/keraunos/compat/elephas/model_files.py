"""A model and how it is trained in one file, as Elephas keeps them. Runs on the driver.

An `.h5` file is Keras's with one more attribute, a `.keras` file Keras's archive with one more entry; both are read by
Keras alone too.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keraunos.errors import JobError, ModelError
from keraunos.launch.given_paths import given_path
from keraunos.launch.session_trust import session_trust
from keraunos.learners.archive_parts import check_hdf5, opened
from keraunos.learners.keras_files import read_file
from keraunos.trust import trusting

SUFFIXES = (".keras", ".h5")
_ATTRIBUTE = "distributed_config"
_ENTRY = "distributed_config.json"


def save(model: Any, described: Mapping[str, Any], file_name: str, *, overwrite: bool, to_hadoop: bool) -> None:
    """Write the file; an existing one is replaced only with `overwrite`."""
    _check_suffix(file_name)
    file = given_path(file_name, "file_name", plain_by_hadoop=to_hadoop)
    if file.exists() and not overwrite:
        raise JobError(f"There is a file {file_name!r} already. Save with overwrite=True to replace it.")
    with file.written() as path:
        write(model, path, _ATTRIBUTE, described)


def load(
    file_name: str, *, from_hadoop: bool, custom_objects: Mapping[str, Any] | None
) -> tuple[Any, Mapping[str, Any]]:
    """Returns the compiled model, and what describes how it is trained."""
    _check_suffix(file_name)
    with given_path(file_name, "file_name", plain_by_hadoop=from_hadoop).local() as path:
        described = read_attribute(path, _ATTRIBUTE)
        if described is None:
            raise ModelError(
                f"The file {file_name!r} must have been saved by SparkModel.save. Received: one without a description "
                "of the training. Read it with keras.saving.load_model and give the model to SparkModel."
            )
        with trusting(*session_trust()):
            model = read_file(path, custom_objects)
    return model, described


def write(model: Any, path: Path, attribute: str, described: Mapping[str, Any]) -> None:
    """Let Keras write the model, and add the description."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.save(path)
    text = json.dumps(described)
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path, "a") as file:
            file.attrs[attribute] = text
    else:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(_ENTRY, text)


def read_attribute(path: Path, attribute: str) -> Any:
    """Returns the description of the training in a file, or `None`."""
    if path.suffix == ".h5":
        import h5py

        check_hdf5(path.read_bytes())
        with h5py.File(path, "r") as file:
            text = file.attrs.get(attribute)
    else:
        with opened(path.read_bytes()) as archive:
            text = archive.read(_ENTRY) if _ENTRY in archive.namelist() else None
    return None if text is None else json.loads(text)


def _check_suffix(file_name: str) -> None:
    if Path(file_name).suffix not in SUFFIXES:
        raise JobError(
            f"The name of a model's file must end in {' or '.join(map(repr, SUFFIXES))}. Received: {file_name!r}."
        )
