"""Zeros behind rows that were shorter, and whether a Keras model passes over them. Runs on the driver."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger(__name__)


def warn_of_zeros(model: Any) -> None:
    """Warn where no layer of the model makes a mask, so that the zeros at the end count."""
    if any(_makes_mask(layer) for layer in model._flatten_layers()):
        return
    logger.warning(
        "Rows are padded with zeros, and no layer of the model %r makes a mask, so that the zeros count like other "
        "values. Use keras.layers.Embedding(..., mask_zero=True), where 0 is then no id, or keras.layers.Masking().",
        model.name,
    )


def _makes_mask(layer: Any) -> bool:
    import keras

    if isinstance(layer, keras.layers.Embedding):
        return bool(layer.mask_zero)
    own = not type(layer).__module__.startswith("keras.") and not isinstance(layer, keras.Model)
    return isinstance(layer, keras.layers.Masking) or (own and "compute_mask" in vars(type(layer)))
