"""Columns of strings, and the Keras models that take them. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from keraunos.errors import ColumnError, ModelError
from keraunos.job.columns import Slot
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.schema import STRING, SlotSpec
from keraunos.ml.signature import Signature
from keraunos.ml.strings import refusal


def check_taken(model: Any, slots: Sequence[Slot], specs: Sequence[SlotSpec]) -> None:
    """Refuse columns of strings for a model that takes none, and is not built or does not tell its inputs."""
    import keras

    from keraunos.learners import tensorflow_layers

    columns = [slot.columns[0] for slot, spec in zip(slots, specs, strict=True) if spec.dtype == STRING]
    if not columns:
        return
    if not isinstance(model, keras.Sequential):
        raise ModelError(
            f"The model {model.name!r} cannot be given the strings of column {columns[0]!r}: the layers that take them "
            "are run apart from its training steps. Expected: a Sequential or functional model. Received: "
            f"{type(model).__qualname__}, a class of its own. Call such a layer before it: "
            "keras.Sequential([layer, model])."
        )
    if not tensorflow_layers.in_model(model):
        raise ColumnError(refusal(columns[0], f"the model {model.name!r} has no layer that takes strings"))


def signature_in_parts(model: Any, signature: Signature, custom_objects: Mapping[str, Any]) -> Signature:
    """The signature of a built model with the outputs as they come behind the layers that take strings.

    Some of these layers say one shape and give another. Refuses a model that cannot be parted from them.
    """
    from keraunos.learners import tensorflow_layers

    if not tensorflow_layers.in_model(model):
        return signature
    from keraunos.learners.keras_archive import from_archive, write_live
    from keraunos.learners.keras_front import parted

    # A copy: parting calls the layers once more, and a user may ask their own for the outputs of the only call.
    written = write_live(model, custom_objects)
    rest, _ = parted(from_archive(written.archive, written.code, written.trusted))
    outputs = signature_of(rest).outputs
    named = [replace(seen, name=port.name) for port, seen in zip(signature.outputs, outputs, strict=True)]
    return replace(signature, outputs=tuple(named))
