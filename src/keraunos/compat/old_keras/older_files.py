"""Models that an older Keras wrote, in files and as text: refused, with what to do. Runs on the driver.

Keras reads some of them, and takes what they name for what it means today.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keraunos.compat.old_keras.days import Day
from keraunos.errors import ModelError

_TODAY = 3


def check_file(path: Any, day: Day) -> None:
    """Refuse an HDF5 file with a model of an older Keras."""
    import h5py

    if not h5py.is_hdf5(path):
        return
    with h5py.File(path, "r") as file:
        version, config = (_text(file.attrs.get(name, "")) for name in ("keras_version", "model_config"))
    _check(f"The file {str(path)!r}", version, config, day)


def check_text(config: Any, text: str, day: Day) -> None:
    """Refuse a model that an older Keras wrote as JSON."""
    found = config if isinstance(config, Mapping) else {}
    # Keras 3 stores the module of each class; Keras 0 stored no version.
    version = str(found.get("keras_version") or ("" if "module" in found else "0"))
    _check("The text", version, text, day)


def _check(what: str, version: str, config: str, day: Day) -> None:
    number = version.partition(".")[0]
    if not number.isdigit() or int(number) >= _TODAY or (day.name == "tf2" and "hard_sigmoid" not in config):
        return
    saved = "an older Keras" if number == "0" else f"Keras {version}"
    raise ModelError(
        f"{what} must hold a model that was saved here, or by Keras 3. Received: one of {saved}, whose names mean "
        "other things today, as 'hard_sigmoid' does. Build the model in the program as it was built; a file's weights "
        "come by model.load_weights."
    )


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
