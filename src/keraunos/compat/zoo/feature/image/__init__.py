"""Analytics Zoo's `zoo.feature.image` by its names. Runs on the driver and on executors."""

from __future__ import annotations

from keraunos.compat.zoo.bigdl.util import common
from keraunos.compat.zoo.bigdl.util.common import *  # noqa: F403 - programs use what came with the star
from keraunos.compat.zoo.feature.image import imagePreprocessing, imageset
from keraunos.compat.zoo.feature.image.imagePreprocessing import *  # noqa: F403 - the names that its __all__ lists
from keraunos.compat.zoo.feature.image.imageset import *  # noqa: F403 - the same

__all__ = [*common.__all__, *imagePreprocessing.__all__, *imageset.__all__]  # noqa: PLE0604 - lists of strings
