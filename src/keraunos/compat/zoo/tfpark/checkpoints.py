"""Checkpoints of a `TFOptimizer` on this machine or under any Hadoop path. Runs on the driver.

`model.N` holds the variables after N steps, by name, as a numpy archive; `optimMethod-TFParkTraining.N` says where
training stood, as JSON. Each is written under another name first, and the second after the first, so that a checkpoint
that can be found is whole.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim.triggers import TrainingState
from keraunos.errors import JobError
from keraunos.launch.given_paths import given_path
from keraunos.learners.archive_parts import arrays_in
from keraunos.parameters import Layout, Vector

_MODEL, _METHOD = "model", "optimMethod-TFParkTraining"


@dataclass(frozen=True)
class SavedVariables:
    """Variables by name, and where training stood."""

    values: dict[str, Array]
    state: TrainingState


def save_checkpoint(path: str, state: TrainingState, layout: Layout, vector: Vector) -> None:
    """Write the parameters; a checkpoint of the same step is replaced."""
    folder = given_path(path, "model_dir")
    steps = state.neval - 1
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, value in zip(layout.names, layout.split(vector), strict=True):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, value, allow_pickle=False)
    folder.child(f"{_MODEL}.{steps}").replace(packed.getvalue())
    where = {"steps": steps, "epochs": state.epoch - 1, "loss": state.loss, "score": state.score}
    folder.child(f"{_METHOD}.{steps}").replace(json.dumps(where).encode())


def read_checkpoint(path: str, version: Any) -> SavedVariables:
    """Returns the checkpoint after `version` steps."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise JobError(f"`version` must be a number of steps. Received: {version!r}.")
    folder = given_path(path)
    missing = [name for name in (f"{_MODEL}.{version}", f"{_METHOD}.{version}") if not folder.child(name).exists()]
    if missing:
        raise JobError(
            f"`path` must be a folder with a checkpoint of `version` {version}. Received: {path!r}, which has no "
            f"{missing[0]!r}. The versions are the numbers behind 'model.'."
        )
    where = json.loads(folder.child(f"{_METHOD}.{version}").read())
    values = arrays_in(folder.child(f"{_MODEL}.{version}").read())
    state = TrainingState.after(where["steps"], where["epochs"], loss=where["loss"], score=where["score"])
    return SavedVariables(values, state)
