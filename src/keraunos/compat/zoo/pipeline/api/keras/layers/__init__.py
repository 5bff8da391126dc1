"""`zoo.pipeline.api.keras.layers`: layers of Keras by their Keras 1 names and arguments. Runs on the driver.

Each function makes a Keras layer. `input_shape`, without the batch, is noted on the layer; a `Sequential` whose first
layer it is reads it there. Images have their channels first unless `dim_ordering="tf"` is given, as in Analytics Zoo.
"""

import math
import sys
from typing import Any

import numpy as np

from keraunos.compat.zoo.pipeline.api.keras.engine.topology import Input as Input
from keraunos.compat.zoo.pipeline.api.keras.engine.topology import InputLayer as InputLayer
from keraunos.compat.zoo.pipeline.api.keras.engine.topology import Merge as Merge
from keraunos.compat.zoo.pipeline.api.keras.engine.topology import merge as merge
from keraunos.compat.zoo.pipeline.api.keras.layer_making import noted_shape as noted_shape
from keraunos.compat.zoo.pipeline.api.keras.layers.advanced_activations import *
from keraunos.compat.zoo.pipeline.api.keras.layers.convolutional import *
from keraunos.compat.zoo.pipeline.api.keras.layers.convolutional_recurrent import *
from keraunos.compat.zoo.pipeline.api.keras.layers.core import *
from keraunos.compat.zoo.pipeline.api.keras.layers.embeddings import *
from keraunos.compat.zoo.pipeline.api.keras.layers.local import *
from keraunos.compat.zoo.pipeline.api.keras.layers.noise import *
from keraunos.compat.zoo.pipeline.api.keras.layers.normalization import *
from keraunos.compat.zoo.pipeline.api.keras.layers.pooling import *
from keraunos.compat.zoo.pipeline.api.keras.layers.recurrent import *
from keraunos.compat.zoo.pipeline.api.keras.layers.self_attention import *
from keraunos.compat.zoo.pipeline.api.keras.layers.torch import *
from keraunos.compat.zoo.pipeline.api.keras.layers.wrappers import *

# Models need layers, so these are found when they are asked for; a star import asks for them.
_MODELS = ("KerasNet", "Model", "Sequential")
__all__ = [*(name for name in list(globals()) if not name.startswith("_")), *_MODELS]  # noqa: PLE0604 - names all


def __getattr__(name: str) -> Any:
    if name in _MODELS:
        from keraunos.compat.zoo.pipeline.api.keras import models

        return getattr(models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
