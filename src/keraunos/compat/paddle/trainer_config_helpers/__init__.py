"""Paddle's higher-level vocabulary: layer functions, networks and optimizers over the raw language. On the driver.

`from paddle.trainer_config_helpers import *` in a configuration imports the names of `__all__`; each function ends in
calls of the raw language, so that both make the same `TrainerConfig`.
"""

from __future__ import annotations

from keraunos.compat.paddle.trainer_config_helpers import (
    activations,
    attrs,
    data_sources,
    evaluators,
    layer_math,
    layers,
    networks,
    optimizers,
    poolings,
)
from keraunos.compat.paddle.trainer_config_helpers.activations import *  # noqa: F403  (names of `__all__` alone)
from keraunos.compat.paddle.trainer_config_helpers.attrs import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.data_sources import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.evaluators import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.layers import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.networks import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.optimizers import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.poolings import *  # noqa: F403

__all__ = ["layer_math"]
__all__ += activations.__all__
__all__ += attrs.__all__
__all__ += data_sources.__all__
__all__ += evaluators.__all__
__all__ += layers.__all__
__all__ += networks.__all__
__all__ += optimizers.__all__
__all__ += poolings.__all__
