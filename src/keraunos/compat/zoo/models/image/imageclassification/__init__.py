"""Analytics Zoo's `zoo.models.image.imageclassification`: what programs take from there by `import *`. Driver only."""

from __future__ import annotations

import sys
from typing import Any

from keraunos.compat.zoo.feature.image import imagePreprocessing, imageset
from keraunos.compat.zoo.feature.image.imagePreprocessing import *  # noqa: F403 - the names that its __all__ lists
from keraunos.compat.zoo.feature.image.imageset import *  # noqa: F403 - the same
from keraunos.compat.zoo.models.image.refused import RefusedModel, refused_step

__all__ = ["ImageClassifier", "sys", *imagePreprocessing.__all__, *imageset.__all__]  # noqa: PLE0604 - lists of strings

_STEPS = {"read_imagenet_label_map", "LabelOutput"}


class ImageClassifier(RefusedModel):
    """Refused: use a TFNet, or a model of Keras."""


def __getattr__(name: str) -> Any:
    if name in _STEPS:
        raise refused_step("zoo.models.image.imageclassification", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
