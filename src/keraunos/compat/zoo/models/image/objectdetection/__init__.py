"""Analytics Zoo's `zoo.models.image.objectdetection`: what programs take from there by `import *`. Driver only."""

from __future__ import annotations

import sys
from typing import Any

from keraunos.compat.zoo.feature.image import imagePreprocessing, imageset
from keraunos.compat.zoo.feature.image.imagePreprocessing import *  # noqa: F403 - the names that its __all__ lists
from keraunos.compat.zoo.feature.image.imageset import *  # noqa: F403 - the same
from keraunos.compat.zoo.models.image.refused import RefusedModel, refused_step

__all__ = ["ObjectDetector", "sys", *imagePreprocessing.__all__, *imageset.__all__]  # noqa: PLE0604 - lists of strings

_STEPS = {"ImInfo", "DecodeOutput", "Visualizer", "read_coco_label_map", "read_pascal_label_map", "ScaleDetection"}


class ObjectDetector(RefusedModel):
    """Refused: use a TFNet, or a model of Keras."""


def __getattr__(name: str) -> Any:
    if name in _STEPS:
        raise refused_step("zoo.models.image.objectdetection", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
