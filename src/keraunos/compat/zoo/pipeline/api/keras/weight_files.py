"""The weights of a model in their own file, as numpy's archive. Runs on the driver."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

import numpy as np

from keraunos.batch import Array
from keraunos.errors import JobError, ModelError
from keraunos.launch.given_paths import given_path


def write_weights(path: str, weights: Sequence[Array], *, over_write: bool) -> None:
    """Write arrays in their order."""
    file = given_path(path, "weightPath")
    if file.exists() and not over_write:
        raise JobError(f"`weightPath` must not exist yet, or `over_write` must be True. Received: {str(path)!r}.")
    content = io.BytesIO()
    np.savez(content, *weights)
    file.replace(content.getvalue())


def read_weights(path: str) -> list[Array]:
    """Returns the arrays that `write_weights` wrote."""
    try:
        with np.load(io.BytesIO(given_path(path, "weight_path").read()), allow_pickle=False) as found:
            return [found[f"arr_{number}"] for number in range(len(found.files))]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"`weight_path` must be a file that `saveModel` wrote. Received: {str(path)!r} ({error})."
        ) from error
