"""The optimizer's state in an archive, and archives without it. Runs on the driver.

A model that serves predictions has no use for it, and with Adam it is two thirds of what travels.
"""

from __future__ import annotations

import io
import zipfile

import numpy as np

from keraunos.learners.archive_parts import arrays_in, content_of, opened

ARRAYS_FILE = "keraunos.npz"  # of what Keras leaves out of an archive
OPTIMIZER = "optimizer"  # what Keras calls the optimizer's part of the weights, and what begins the names of ours
_WEIGHTS = "model.weights.h5"


def without_optimizer(archive: bytes) -> bytes:
    """The same archive without the optimizer's state; the one that was given where it has none."""
    made = io.BytesIO()
    changed = False
    with opened(archive) as source, zipfile.ZipFile(made, "w") as target:
        for entry in source.infolist():
            content = content_of(source, entry.filename)
            kept = _slimmer(entry.filename, content)
            changed |= kept is not content
            if kept:
                target.writestr(entry, kept)
    return made.getvalue() if changed else archive


def _slimmer(name: str, content: bytes) -> bytes:
    if name == _WEIGHTS:
        return _weights(content)
    if name == ARRAYS_FILE:
        return _arrays(content)
    return content


def _weights(content: bytes) -> bytes:
    import h5py

    made = io.BytesIO()
    with h5py.File(io.BytesIO(content), "r") as source:
        if OPTIMIZER not in source:
            return content
        with h5py.File(made, "w") as target:
            target.attrs.update(source.attrs)
            for name in source:
                if name != OPTIMIZER:
                    source.copy(name, target)
    return made.getvalue()


def _arrays(content: bytes) -> bytes:
    found = arrays_in(content)
    kept = {name: value for name, value in found.items() if not name.startswith(f"{OPTIMIZER}/")}
    if len(kept) == len(found):
        return content
    made = io.BytesIO()
    np.savez(made, **kept)  # type: ignore[arg-type]  # see numpy's stub
    return made.getvalue() if kept else b""
