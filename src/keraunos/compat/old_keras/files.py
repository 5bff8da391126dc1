"""Files of models and weights, of any name, as Keras 0 to 2 wrote them: HDF5. Runs on the driver.

Today's Keras goes by the ending of a name. A file that ends in `.keras`, or weights that end in `.weights.h5`, are
written in its own format; everything else is HDF5.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras

from keraunos.errors import ModelError

_HDF5 = (".h5", ".hdf5")


def save_model(model: Any, filepath: Any, **named: Any) -> None:
    """Write a model with what it was compiled with, replacing an existing file."""
    path = Path(filepath)
    if path.suffix == ".keras":
        keras.Model.save(model, path, overwrite=True, **named)
        return
    with tempfile.TemporaryDirectory(prefix="keraunos-") as folder:
        made = Path(folder) / "model.h5"
        keras.Model.save(model, made, overwrite=True, **named)
        shutil.move(made, path)


def load_model(filepath: Any, custom_objects: Mapping[str, Any], *, compile: bool) -> Any:  # noqa: A002 - its name
    """Returns the model in a file that was written here."""
    with _ending_in_h5(Path(filepath), ".keras") as path:
        return keras.saving.load_model(path, dict(custom_objects), compile=compile)


def save_weights(model: Any, filepath: Any) -> None:
    """Write the weights, replacing an existing file."""
    path = Path(filepath)
    if path.name.endswith(".weights.h5"):
        keras.Model.save_weights(model, path, overwrite=True)
        return
    import h5py
    from keras.src.legacy.saving import legacy_h5_format

    with h5py.File(path, "w") as file:
        legacy_h5_format.save_weights_to_hdf5_group(file, model)


def load_weights(model: Any, filepath: Any, **named: Any) -> None:
    """Read weights that were written here, alone or with their model."""
    import h5py

    path = Path(filepath)
    if path.is_file() and not h5py.is_hdf5(path) and path.suffix not in {".keras", ".json"}:
        raise ModelError(f"{str(filepath)!r} must be an HDF5 file of weights. Received: a file of another kind.")
    with _ending_in_h5(path, ".weights.h5") as named_so:
        keras.Model.load_weights(model, named_so, **named)


@contextmanager
def _ending_in_h5(path: Path, own: str) -> Iterator[Path]:
    """The file under a name with the right suffix."""
    import h5py

    says = path.name.endswith(own) or path.suffix in _HDF5
    if not path.is_file() or not h5py.is_hdf5(path) or (says and path.suffix != ".keras"):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="keraunos-") as folder:
        copy = Path(folder) / "model.h5"
        shutil.copyfile(path, copy)
        yield copy
