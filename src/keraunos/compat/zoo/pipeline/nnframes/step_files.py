"""Steps as plain data, for files. Runs on the driver.

A file may name the steps of zoo.feature and bigdl.transform, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.transform.vision import image as bigdl_image
from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing
from keraunos.compat.zoo.feature import common
from keraunos.compat.zoo.feature.image import imagePreprocessing
from keraunos.errors import JobError

_MODULES = {
    "zoo.feature.common": common,
    "zoo.feature.image": imagePreprocessing,
    "bigdl.transform.vision.image": bigdl_image,
}


def _steps() -> dict[str, type[Preprocessing]]:
    found = {}
    for place, module in _MODULES.items():
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, Preprocessing):
                found[f"{place}.{name}"] = kind
    return found


def to_json(value: Any) -> Any:
    """Returns a step, or what it has, as plain data."""
    if isinstance(value, Preprocessing):
        name = next((name for name, kind in _steps().items() if kind is type(value)), None)
        if name is None:
            raise JobError(
                f"`samplePreprocessing` must consist of steps of zoo.feature to be saved. Received: {value!r}."
            )
        return {"step": name, "has": {key: to_json(each) for key, each in vars(value).items()}}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    return value


def from_json(value: Any) -> Any:
    """Returns what `to_json` described."""
    if isinstance(value, list):
        return [from_json(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "array" in value:
        return np.asarray(value["array"], np.float32)
    kind = _steps().get(value["step"])
    if kind is None:
        raise JobError(f"A saved step must be one of zoo.feature's. Received: {value['step']!r}.")
    made = kind.__new__(kind)
    vars(made).update({key: from_json(each) for key, each in value["has"].items()})
    return made
