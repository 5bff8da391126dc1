"""Live Keras models, as estimators check them and make them ready. Runs on the driver, before any task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.errors import ModelError, PlanError
from keraunos.job.columns import Slot
from keraunos.job.model_formats import KERAS
from keraunos.learners.framework_imports import import_keras
from keraunos.ml.keras import fitting, strings
from keraunos.ml.keras.embeddings import with_ids
from keraunos.ml.keras.padding import warn_of_zeros
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.live_models import LiveModels, Read, Settled
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Signature


class KerasModels(LiveModels):
    """Compiled Keras models."""

    format = KERAS
    expected = "a compiled Keras model"

    def settings(self) -> tuple[str, str]:
        """Keras's own, which it has when it is imported."""
        keras = import_keras()
        return keras.config.backend(), keras.config.floatx()

    def check_trainable(self, model: Any, *, labelled: bool) -> None:
        """Refuse a model that is not compiled for it, metrics that do not add up, and missing vocabularies."""
        from keraunos.learners.keras_archive import check_trainable
        from keraunos.learners.metric_states import check_mergeable
        from keraunos.learners.tensorflow_layers import check_vocabularies

        check_trainable(model, labelled=labelled)
        check_mergeable(model)
        check_vocabularies(model)

    def settled(self, model: Any, read: Read, *, seed: int, backend: str, custom_objects: Mapping[str, Any]) -> Settled:
        """The model, or a built copy of it; its outputs are those behind the layers that take strings."""
        keras = import_keras()
        with keras.saving.custom_object_scope(dict(custom_objects)):
            model, signature = fitting.built(model, read, seed=seed, backend=backend)
        signature, unchecked = with_ids(model, signature)
        signature = strings.signature_in_parts(model, signature, custom_objects)
        return Settled(model, signature, unchecked, tuple(fitting.example_rows(read, signature)))

    def dtype(self, model: Any) -> str:
        """The type of its variables."""
        from keraunos.learners.keras_variables import layout_of

        return layout_of(model).dtype

    def known_inputs(self, model: Any) -> tuple[Port, ...]:
        """The inputs of a functional model, or of a built Sequential."""
        return signature_of(model).inputs if model.built and hasattr(model, "inputs") else ()

    def checked_labels(
        self, model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature
    ) -> tuple[Slot, ...]:
        """The label slots with their numbers of classes; refuses what the loss does not take."""
        return fitting.checked_labels(model, slots, specs, signature)

    def check_unlabelled(self, model: Any, read: Read | None = None) -> None:
        """Refuse a model that adds no loss itself."""
        from keraunos.ml.keras.existing import symbolic_inputs

        fitting.check_unlabelled(model, lambda: symbolic_inputs(model) if read is None else fitting.examples_of(read))

    def check_measurable(self, model: Any, *, labelled: bool) -> None:
        """Refuse a model that was never compiled."""
        from keraunos.learners.keras_archive import check_trainable
        from keraunos.learners.metric_states import check_mergeable

        if not model.compiled:
            raise ModelError(
                f"The model {model.name!r} must be compiled to be evaluated: its loss and metrics say what is "
                "measured. Received: a model that was never compiled. Call `model.compile(loss=..., metrics=...)` "
                "before `of`."
            )
        check_trainable(model, labelled=labelled)
        check_mergeable(model)

    def has_schedule(self, model: Any) -> bool:
        """Whether its optimizer's learning rate is a schedule."""
        from keraunos.learners.keras_variables import has_schedule

        return has_schedule(model)

    def check_rate_setters(self, callbacks: Sequence[Any], why: str) -> None:
        """Refuse Keras's callbacks that set the learning rate."""
        keras = import_keras()
        setters = (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau)
        names = [type(each).__name__ for each in callbacks if isinstance(each, setters)]
        if names:
            raise PlanError(
                f"`callbacks` must not set the learning rate where {why}. Received: {names!r}. Give the rule a "
                "schedule as its learning_rate, as in "
                "rule=keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 1000))."
            )

    def warn_of_padding(self, model: Any) -> None:
        """Warn where no layer of the model makes a mask."""
        warn_of_zeros(model)

    def identity(self, model: Any) -> Mapping[str, Any]:
        """How it was compiled; the learning rate left out, unless it is a schedule: a training may have changed it."""
        from keraunos.learners.keras_home import compiled_identity

        told = compiled_identity(model)
        if not isinstance(told["optimizer"].get("learning_rate"), Mapping):
            told["optimizer"].pop("learning_rate", None)
        return told
