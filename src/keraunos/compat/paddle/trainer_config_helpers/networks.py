"""Every network function under its old module's name, and `inputs` and `outputs`. On the driver."""

from __future__ import annotations

import logging

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.language_state import current
from keraunos.compat.paddle.trainer_config_helpers import image_networks, sequence_networks
from keraunos.compat.paddle.trainer_config_helpers.image_networks import *  # noqa: F403  (names of `__all__` alone)
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, LayerType, some_layers
from keraunos.compat.paddle.trainer_config_helpers.sequence_networks import *  # noqa: F403

__all__ = ["inputs", "outputs"]
__all__ += image_networks.__all__
__all__ += sequence_networks.__all__

logger = logging.getLogger(__name__)


def inputs(layers: LayerOutput | list[LayerOutput] | tuple[LayerOutput, ...], *args: LayerOutput) -> None:
    """The data layers, in the order in which rows hold them."""
    raw.Inputs(*[layer.name for layer in [*some_layers(layers, "inputs", "layers"), *args]])


def outputs(layers: LayerOutput | list[LayerOutput] | tuple[LayerOutput, ...], *args: LayerOutput) -> None:
    """Declares the outputs. Without a previous `inputs`, data layers have the order of their first use.

    They are looked for depth first, from the first output to the last, and in each layer from its first input on.

    Args:
        layers: one layer, or several.
        args: more of them.
    """
    ends = (
        [*some_layers(layers, "outputs", "layers"), *some_layers(args, "outputs", "args")]
        if args
        else (some_layers(layers, "outputs", "layers"))
    )
    if current("outputs").inputs is None:
        found = _data_layers(ends)
        logger.info("The data layers are taken in this order: %s.", ", ".join(found))
        raw.Inputs(*found)
    raw.Outputs(*[layer.name for layer in ends])


def _data_layers(ends: list[LayerOutput]) -> list[str]:
    """Returns the names of the data layers behind some layers, in the order of a walk that visits each layer once."""
    seen: set[str] = set()
    found: list[str] = []
    # A long chain of layers must not meet Python's limit on recursion.
    waiting = list(reversed(ends))
    while waiting:
        layer = waiting.pop()
        if layer.name in seen:
            continue
        seen.add(layer.name)
        if layer.layer_type == LayerType.DATA:
            found.append(layer.name)
        waiting.extend(reversed(layer.parents))
    return found
