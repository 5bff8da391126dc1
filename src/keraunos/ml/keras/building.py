"""A model without shapes is built as a copy, from what the columns are. Runs on the driver."""

from __future__ import annotations

import logging
from typing import Any

from keraunos.errors import ModelError
from keraunos.ml.keras.random_start import drawn_from
from keraunos.ml.schema import STRING

logger = logging.getLogger(__name__)

# Keras's layers that look whole numbers up, and those that may stand before them.
_LOOKUPS = frozenset({"Embedding", "IntegerLookup", "Hashing", "HashedCrossing", "CategoryEncoding"})
_BEFORE = frozenset({"Identity", "Masking", "Reshape", "Flatten", "Permute", "RepeatVector", "Cropping1D"})


def build_sequential(model: Any, shape: tuple[int, ...], dtype: str, *, seed: int, backend: str) -> Any:
    """A built copy of a Sequential for rows of this shape and type.

    Whole numbers stay what they are where the model may look them up, and become floats where Keras's first layer
    computes with them. Rows of one number become rows of shape (1,) for such a layer, which takes nothing else.
    """
    import keras

    if dtype == STRING:
        with drawn_from(seed):
            copy = unbuilt_copy(model)
            # Keras gives the input the type that the first layer computes in, which for Hashing is not what it takes.
            copy._layers = [keras.layers.InputLayer(batch_shape=(None, *shape), dtype=STRING), *copy._layers]
            copy.build((None, *shape))
        return copy
    looks_up = _looks_up(model)
    if dtype.startswith(("int", "uint")) and looks_up:
        # JAX, be it that of the driver only, makes int32 of int64, and says so each time.
        wide = dtype == "int64" and "jax" not in {backend, keras.config.backend()}
        whole = keras.layers.InputLayer(batch_shape=(None, *shape), dtype="int64" if wide else "int32")
        try:
            with drawn_from(seed):
                return unbuilt_copy(model, whole)
        except Exception as error:  # noqa: BLE001 - a layer of the user's that takes floats only gets them
            logger.debug("the model takes no whole numbers: %s", error)
    with drawn_from(seed):
        copy = unbuilt_copy(model)
        copy.build((None, *(shape if shape or looks_up else (1,))))
    return copy


def unbuilt_copy(model: Any, input_layer: Any = None) -> Any:
    """A copy of a model that is not built; with an input layer, a built copy of a Sequential."""
    import keras

    from keraunos.learners import tensorflow_layers
    from keraunos.learners.custom_code import essence
    from keraunos.learners.keras_archive import without_tensorflow
    from keraunos.learners.live_code import noted_code

    try:
        with without_tensorflow(), noted_code() as live:
            told = keras.saving.serialize_keras_object(model)
            if input_layer is not None:
                told["config"]["layers"].insert(0, keras.saving.serialize_keras_object(input_layer))
        # What a copy is made of is here already, wherever a worker would find it.
        registered = keras.saving.get_registered_object
        here = {name: value for name, value in live.all().items() if registered(name) is None}
        copy = keras.saving.deserialize_keras_object(told, custom_objects=here)
        tensorflow_layers.copy_vocabularies(model, copy)
    except Exception as error:
        raise ModelError(
            f"The model {model.name!r} has no shapes yet, and a copy of it to build could not be made. Expected every "
            f"layer to have `get_config`. Received: {essence(error)} Build the model first, for instance with an "
            "Input layer, or give custom classes in `customObjects`."
        ) from error
    return copy


def _looks_up(model: Any) -> bool:
    """Whether the first layer that does more than move numbers may look them up: one of Keras's, or custom code."""
    import keras

    for layer in model.layers:
        if isinstance(layer, keras.layers.TimeDistributed):
            return type(layer.layer).__name__ in _LOOKUPS
        if isinstance(layer, keras.Sequential):
            return _looks_up(layer)
        if not type(layer).__module__.startswith("keras."):
            return True
        if type(layer).__name__ not in _BEFORE:
            return type(layer).__name__ in _LOOKUPS
    return False
