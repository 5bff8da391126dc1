"""Analytics Zoo's `zoo.feature.image` by its names. Runs on the driver and on executors."""

from __future__ import annotations

from keraunos.compat.zoo.feature.image import imagePreprocessing, imageset
from keraunos.compat.zoo.feature.image.imagePreprocessing import *  # noqa: F403 - the names that its __all__ lists
from keraunos.compat.zoo.feature.image.imageset import *  # noqa: F403 - the same

__all__ = [*imagePreprocessing.__all__, *imageset.__all__]  # noqa: PLE0604 - both are lists of strings
