"""Every layer function under its old module's name. On the driver."""

from __future__ import annotations

from keraunos.compat.paddle.trainer_config_helpers import (
    cost_layers,
    dense_layers,
    image_layers,
    layer_output,
    mixed_layers,
    projections,
    refused,
    sequence_layers,
    structured_costs,
    vector_layers,
)
from keraunos.compat.paddle.trainer_config_helpers.cost_layers import *  # noqa: F403  (names of `__all__` alone)
from keraunos.compat.paddle.trainer_config_helpers.dense_layers import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.image_layers import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.layer_output import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.mixed_layers import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.projections import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.refused import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.sequence_layers import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.structured_costs import *  # noqa: F403
from keraunos.compat.paddle.trainer_config_helpers.vector_layers import *  # noqa: F403

__all__: list[str] = []
__all__ += cost_layers.__all__
__all__ += dense_layers.__all__
__all__ += image_layers.__all__
__all__ += layer_output.__all__
__all__ += mixed_layers.__all__
__all__ += projections.__all__
__all__ += refused.__all__
__all__ += sequence_layers.__all__
__all__ += structured_costs.__all__
__all__ += vector_layers.__all__
