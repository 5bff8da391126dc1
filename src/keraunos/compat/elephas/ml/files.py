"""An estimator or transformer in one HDF5 file, as Elephas keeps them. Runs on the driver.

The attribute `distributed_config` holds JSON: the class and its Params. Elephas keeps a transformer's weights in there
too; here they are beside it, in datasets of bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from keraunos.compat.elephas.utils.model_utils import as_enum
from keraunos.errors import JobError, ModelError
from keraunos.launch.given_paths import given_path
from keraunos.learners.archive_parts import check_hdf5
from keraunos.ml.persistence import Parts

SUFFIXES = (".h5", ".hdf5")

_ATTRIBUTE = "distributed_config"
_OURS = "keraunos"


@dataclass(frozen=True)
class Stage:
    """The content of a file; `parts` is `None` for a file that Elephas wrote."""

    class_name: str
    config: Mapping[str, Any]
    parts: Parts | None = None
    references: Mapping[str, str] = field(default_factory=dict)


def is_file(path: str) -> bool:
    """Returns whether a path is meant as one file, and not as a folder of spark.ml's."""
    if Path(path).suffix == ".keras":
        raise JobError(
            f"A stage must be saved to an '.h5' file, or to a folder as spark.ml does. Received: {path!r}. For the "
            "Keras model alone use stage.get_model().save(...)."
        )
    return Path(path).suffix in SUFFIXES


def save(stage: Stage, path: str, *, overwrite: bool, to_hadoop: bool) -> None:
    """Write the file; with `to_hadoop` a plain path is one of Hadoop's default file system."""
    file = given_path(path, plain_by_hadoop=to_hadoop)
    if file.exists() and not overwrite:
        raise JobError(f"There is a file {path!r} already. Save with overwrite=True to replace it.")
    file.replace(_to_bytes(stage))


def load(path: str, class_name: str, *, from_hadoop: bool) -> Stage:
    """Returns the content of the file; raises an error if it is another class."""
    stage = _from_bytes(given_path(path, plain_by_hadoop=from_hadoop).read(), path)
    if stage.class_name != class_name:
        raise ModelError(
            f"The file {path!r} must hold an {class_name}. Received: {stage.class_name}. Load it with "
            f"load_{'ml_transformer' if stage.class_name == 'ElephasTransformer' else 'ml_estimator'}."
        )
    return stage


def _to_bytes(stage: Stage) -> bytes:
    import h5py

    parts = stage.parts or Parts()
    described = {
        "class_name": stage.class_name,
        "config": dict(stage.config),
        _OURS: {"facts": dict(parts.facts), "custom_objects": dict(stage.references)},
    }
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs[_ATTRIBUTE] = json.dumps(described)
        for name, content in parts.files.items():
            file.create_dataset(f"{_OURS}/{name}", data=np.frombuffer(content, dtype=np.uint8))
    return buffer.getvalue()


def _from_bytes(content: bytes, path: str) -> Stage:
    import h5py

    check_hdf5(content)
    with h5py.File(io.BytesIO(content), "r") as file:
        text = file.attrs.get(_ATTRIBUTE)
        if text is None:
            raise ModelError(
                f"The file {path!r} must have been saved by an estimator or a transformer. Received: one without the "
                f"attribute {_ATTRIBUTE!r}."
            )
        described = json.loads(text, object_hook=as_enum)
        files = {name: bytes(data[()].tobytes()) for name, data in file.get(_OURS, {}).items()}
    ours = described.get(_OURS)
    if ours is None:
        return Stage(described["class_name"], described["config"])
    parts = Parts(files, ours["facts"])
    return Stage(described["class_name"], described["config"], parts, ours["custom_objects"])
