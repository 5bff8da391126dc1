"""Elephas's settings as one of Keraunos's own estimators, which does the training. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keraunos.compat.elephas.ml.network import Served, head_of
from keraunos.compat.elephas.utils.model_utils import LossModelTypeMapper, ModelType
from keraunos.errors import ColumnError, JobError, ModelError
from keraunos.job.columns import Slot
from keraunos.ml.keras import losses
from keraunos.ml.keras.fitter import KerasFitter
from keraunos.ml.model import Trained
from keraunos.ml.preparation import Labels
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Signature


@dataclass(frozen=True)
class Reading:
    """The kinds of labels and predictions.

    Attributes:
        categorical: whether labels that are single numbers are class numbers.
        nb_classes: the number of classes, if given.
        predict_classes: whether a classifier predicts one class per row.
    """

    categorical: bool
    nb_classes: int | None
    predict_classes: bool


class ElephasFitter(KerasFitter):
    """The estimator under an `ElephasEstimator`."""

    def __init__(self, reading: Reading, **params: Any) -> None:
        super().__init__()
        self._reading = reading
        self.setParams(**params)

    def _check(self, model: Any, signature: Signature) -> None:
        shapes = [port.shape for port in signature.outputs]
        if self._reading.predict_classes and (len(shapes) != 1 or len(shapes[0]) > 1) and not _is_regression(model):
            raise ModelError(
                "A class can be predicted by a model with one output, one score for each class. Received: outputs of "
                f"shape {[(None, *shape) for shape in shapes]!r}. Set predict_classes=False to get them as arrays."
            )

    def _head(self, model: Any, signature: Signature) -> Mapping[str, Any]:
        name = signature.outputs[0].name
        logits = losses.from_logits(losses.loss_for(model, name, 0))
        return head_of(_model_type(model), logits=logits)

    def _fitted(self, trained: Trained) -> Served:
        return Served(trained)

    def _encoded(self, model: Any, signature: Signature, labels: Labels) -> Labels:
        made = []
        for slot, spec in zip(*labels, strict=True):
            port = _port_of(slot, signature)
            # An unknown name is reported by the code that matches labels with outputs.
            made.append((slot, spec) if port is None else self._read(slot, spec, port, model, signature))
        return tuple(slot for slot, _ in made), tuple(spec for _, spec in made)

    def _read(self, slot: Slot, spec: SlotSpec, port: Port, model: Any, signature: Signature) -> tuple[Slot, SlotSpec]:
        """Returns a label unchanged, or as a class number to be one-hot encoded."""
        name = losses.loss_name(losses.loss_for(model, port.name, signature.outputs.index(port)))
        width = port.shape[-1] if port.shape else 1
        if spec.shape != () or name in losses.SPARSE or width == 1:
            return slot, spec
        if not self._reading.categorical:
            if name in losses.ONE_HOT:
                raise ColumnError(
                    f"`labelCol` holds single numbers, but the loss {name!r} takes one-hot labels. Received: column "
                    f"{slot.columns[0]!r} with categorical=False. Set categorical=True for class numbers, or compile "
                    "the model with sparse_categorical_crossentropy."
                )
            return slot, spec
        classes = self._classes(width)
        return replace(slot, classes=classes, one_hot=True), SlotSpec((classes,), "float64")

    def _classes(self, width: int | None) -> int:
        given = self._reading.nb_classes
        if given is None and width is None:
            raise JobError(
                "`nb_classes` must be given with categorical=True where the model does not tell how many classes there "
                "are. Received: None, for a model whose output has any width."
            )
        if given is not None and width is not None and given != width:
            raise JobError(
                f"`nb_classes` must be the number of the model's outputs, {width}. Received: {given!r}. Leave it out, "
                "or give the model as many outputs as there are classes."
            )
        return int(given or width or 0)


def _port_of(slot: Slot, signature: Signature) -> Port | None:
    if slot.name is None:
        return signature.outputs[0] if len(signature.outputs) == 1 else None
    return next((port for port in signature.outputs if port.name == slot.name), None)


def _model_type(model: Any) -> ModelType | None:
    mapper = LossModelTypeMapper()
    kinds = {mapper.get_model_type(loss) for loss in _all_losses(model.loss)}
    return kinds.pop() if len(kinds) == 1 else None


def _is_regression(model: Any) -> bool:
    return _model_type(model) is ModelType.REGRESSION


def _all_losses(loss: Any) -> list[Any]:
    if isinstance(loss, Mapping):
        return list(loss.values())
    return list(loss) if isinstance(loss, list | tuple) else [loss]
