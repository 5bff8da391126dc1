"""A Keras model from the Params of Elephas's stages, and the properties of its predictions. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from keraunos.compat.elephas.ml import values
from keraunos.compat.elephas.utils.model_utils import ModelType
from keraunos.compat.old_keras.days import DAYS
from keraunos.compat.run_unchanged import era
from keraunos.errors import JobError, ModelError
from keraunos.job.model_formats import KERAS
from keraunos.launch.session_trust import session_trust
from keraunos.learners.keras_archive import live_source
from keraunos.learners.keras_files import checked_config
from keraunos.ml.heads import Head
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.model import FittedModel, Trained
from keraunos.ml.rendering import ArrayColumns, ClassColumns, NumberColumn, Rendering, output_names
from keraunos.telemetry.history import History
from keraunos.trust import trusting

CustomObjects = Mapping[str, Any]
# What `show_accuracy` measured until Keras 1 came.
_ACCURACY = frozenset({"acc", "accuracy"})


class Served(FittedModel):
    """A trained model with a rendering that may change between two transformations."""

    format = KERAS

    rendering: Rendering

    @property
    def trained(self) -> Trained:
        """The model as plain data."""
        return self._trained

    def _rendering(self) -> Rendering:
        return self.rendering


def model_of(config: Any, custom_objects: CustomObjects) -> Any:
    """Returns the model of an architecture, with fresh weights.

    Compiled where the JSON was written from a compiled one.
    """
    text = config if isinstance(config, str) else json.dumps(config)
    try:
        with trusting(*session_trust()):
            known = checked_config(json.loads(text), custom_objects)
        model = keras.models.model_from_json(text, custom_objects=known)
        if not isinstance(model, keras.Model):
            raise TypeError(f"It describes a {type(model).__name__}.")
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            "`keras_model_config` must be an architecture that Keras 3 reads. Received: one that it does not: "
            f"{' '.join(str(error).split())[:300]} Hand custom layers and functions over in `custom_objects`; a model "
            "of an older Keras has to be built again."
        ) from error
    return model


def compiled(model: Any, optimizer: Any, loss: Any, metrics: Any, custom_objects: CustomObjects) -> Any:
    """Returns the model with these; what is `None` stays as the model was compiled."""
    if model.compiled:
        loss = model.loss if loss is None else loss
        optimizer = model.optimizer if optimizer is None else optimizer
    for name, value in (("loss", loss), ("optimizer_config", optimizer)):
        if value is None:
            raise ModelError(
                f"`{name}` must be set before `fit`, since `keras_model_config` is of a model that was not compiled. "
                f"Received: None. Use set_{name}, or hand over a compiled model: ElephasEstimator(model=model, ...)."
            )
    _compile(
        model,
        optimizer=optimizer if isinstance(optimizer, str) and era.keras() else optimizer_of(optimizer),
        loss=values.from_plain(loss, custom_objects),
        metrics=values.from_plain(metrics, custom_objects),
    )
    return model


def _compile(model: Any, *, metrics: Any, **named: Any) -> None:
    """Compile the model as the Keras that the program is for would; names mean what they meant there."""
    day = era.keras()
    if day not in DAYS:
        model.compile(**named, metrics=metrics)
        return
    from keraunos.compat.old_keras import accuracy, models

    if day != "0":
        named["metrics"] = metrics
    elif not set(metrics or ()) <= _ACCURACY:
        raise JobError(
            f"`metrics` must be ['acc'] in a program for Keras 0, which measured nothing else. Received: {metrics!r}."
        )
    models.called(model, DAYS["tf2" if day == "2" and not era.has_keras_2_by_itself() else day], "compile", **named)
    if day == "0" and metrics:
        accuracy.measure(model)


def trained_from(config: Any, weights: Sequence[Any], model_type: ModelType | None, custom: CustomObjects) -> Trained:
    """Returns a trained model from its architecture and its weights."""
    model = model_of(config, custom)
    try:
        model.set_weights([np.asarray(weight) for weight in weights])
    except ValueError as error:
        raise ModelError(
            f"`weights` must be those of the model in `keras_model_config`, as model.get_weights() gives them. "
            f"Received: {len(weights)} arrays that do not fit: {error}"
        ) from error
    source = live_source(model, custom)
    return Trained(
        archive=source.archive,
        history=History(),
        signature=signature_of(model),
        backend=keras.config.backend(),
        floatx=keras.config.floatx(),
        head=head_of(model_type, logits=False),
        trusted=source.trusted,
    )


def head_of(model_type: ModelType | None, *, logits: bool) -> dict[str, Any]:
    """Returns the properties of the loss that a transformer needs, as plain data."""
    return {"model_type": None if model_type is None else model_type.name, "logits": logits}


def model_type_of(head: Mapping[str, Any] | None) -> ModelType | None:
    """Returns the kind of model that `head_of` described."""
    name = (head or {}).get("model_type")
    return None if name is None else ModelType[name]


def rendering_of(trained: Trained, column: str | Mapping[str, str], *, classes: bool) -> Rendering:
    """Regression: a number; classification: the class, or all outputs; several or wider outputs: arrays of doubles."""
    ports = trained.signature.outputs
    regression = model_type_of(trained.head) is ModelType.REGRESSION
    names = output_names(ports, column)
    if len(ports) == 1 and names[0] and (regression or classes):
        shape = ports[0].shape
        if regression and shape in ((), (1,)):
            return NumberColumn(names[0])
        units = shape[0] if shape else 1
        if not regression and len(shape) <= 1 and units is not None:
            return ClassColumns(Head(units, bool((trained.head or {}).get("logits"))), names[0], "", "")
    return ArrayColumns(tuple(replace(port, dtype="float64") for port in ports), names)


def optimizer_of(value: Any) -> Any:
    """Returns an optimizer of Keras's by name or configuration."""
    try:
        if isinstance(value, Mapping):
            with keras.saving.custom_object_scope(checked_config(dict(value), {})):
                return keras.optimizers.get(value)
        return keras.optimizers.get(value)
    except (KeyError, TypeError, ValueError) as error:
        raise JobError(
            "`optimizer_config` must be what `keras.optimizers.serialize(optimizer)` gives, or an optimizer's name. "
            f"Received: {value!r}. Keras says: {' '.join(str(error).split())[:200]}"
        ) from error
