"""What each term of a compiled loss was averaged over, noted while Keras computes it. Runs on workers.

A mean over the rows of one worker is not the mean over the rows of all: workers' gradients add up only after each
part of the loss is multiplied by its own denominator. Keras settles the denominator inside `Loss.__call__`, so that
is where it is noted: the rows, the unmasked elements, or the sum of the sample weights. A loss whose reduction is
`sum` has none.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras

from keraunos.learners.instance_patch import replaced

ROWS = "rows"
SUM = "sum"

# `Loss.__call__` is replaced for the whole process; one computation at a time may do so.
_replacing = threading.RLock()


@dataclass(frozen=True)
class Term:
    """One compiled loss: the part it belongs to, its value, and the part's denominator unless rows or a sum."""

    part: str
    value: Any
    denominator: Any = None


@dataclass
class LossTerms:
    """The terms of one loss computation, in the order in which Keras computed them.

    `additional` says that losses of layers (regularisers, `add_loss`) were added; they count as means over rows.
    """

    terms: list[Term] = field(default_factory=list)
    additional: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the loss, rows first."""
        rows = [ROWS] if self.additional or not self.terms else []
        names = dict.fromkeys([*rows, *(term.part for term in self.terms)])
        return tuple(sorted(names, key=lambda name: name != ROWS))

    def denominator(self, part: str) -> Any:
        """The denominator of a part that is neither `ROWS` nor `SUM`."""
        return next(term.denominator for term in self.terms if term.part == part)


def has_own_loss(model: Any) -> bool:
    """Whether the model computes its loss or its steps in its own way, so that its terms cannot be told apart."""
    return overrides(model, ("train_step", "compute_loss", "compute_loss_and_updates"))


def overrides(model: Any, methods: tuple[str, ...]) -> bool:
    """Whether one of these methods of the model is not Keras's own."""
    defined = [getattr(type(model), name) for name in methods if hasattr(type(model), name)]
    return any(not method.__module__.startswith("keras.") for method in defined)


def given_metrics(model: Any) -> list[Any]:
    """What `compile` was given as metrics and as weighted metrics, where it was given some."""
    # There is no public way to ask for them.
    names = ("_user_metrics", "_user_weighted_metrics")
    given = [getattr(metric, name, None) for metric in model.metrics for name in names]
    return [each for each in given if each]


def adds_loss(model: Any, inputs: Any) -> bool:
    """Whether a built model adds a loss of its own when it is called; nothing is computed."""
    added = bool(model.losses)
    original = keras.layers.Layer.add_loss

    def add_loss(layer: Any, loss: Any) -> None:
        nonlocal added
        added = True
        original(layer, loss)

    with _replacing:
        keras.layers.Layer.add_loss = add_loss
        try:
            # What a model does to shapes when it is really called; there is no public way.
            keras.src.backend.compute_output_spec(lambda given: model(given, training=True), inputs)
        finally:
            keras.layers.Layer.add_loss = original
    return added


@contextlib.contextmanager
def noting(model: Any, change: Callable[[Term], Any] | None = None) -> Iterator[LossTerms]:
    """Note the terms of the loss that the model computes in this context.

    `change` may put another value in a term's place, such as one that no gradient flows through.
    """
    noted = LossTerms()
    original = model.compute_loss

    def compute_loss(*args: Any, **kwargs: Any) -> Any:
        noted.terms.clear()
        with _noting_calls(noted, change):
            total = original(*args, **kwargs)
        noted.additional = bool(model.losses)
        return total

    with replaced(model, compute_loss=compute_loss):
        yield noted


@contextlib.contextmanager
def _noting_calls(noted: LossTerms, change: Callable[[Term], Any] | None) -> Iterator[None]:
    original = keras.losses.Loss.__call__
    owner = threading.get_ident()
    inside = False
    averaged_over: list[tuple[Any, Any]] = []

    def call(loss: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        nonlocal inside
        if inside or threading.get_ident() != owner:
            return original(loss, y_true, y_pred, sample_weight)
        inside = True
        try:
            value, values = _with_values(original, loss, y_true, y_pred, sample_weight)
        finally:
            inside = False
        mask = _joint_mask(y_pred, values)
        term = Term(*_part(loss, value, values, mask, sample_weight, averaged_over))
        noted.terms.append(term)
        return value if change is None else change(term)

    with _replacing:
        keras.losses.Loss.__call__ = call
        try:
            yield
        finally:
            keras.losses.Loss.__call__ = original


def _with_values(original: Any, loss: Any, y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Any]:
    """A loss and the values, one a row or finer, that it is the reduction of."""
    kept: list[Any] = []
    per_row = loss.call

    def call(*args: Any, **kwargs: Any) -> Any:
        kept.append(per_row(*args, **kwargs))
        return kept[-1]

    with replaced(loss, call=call):
        value = original(loss, y_true, y_pred, sample_weight)
    return value, kept[-1]


def _joint_mask(y_pred: Any, values: Any) -> Any:
    masks = [mask for mask in (_mask_of(y_pred), _mask_of(values)) if mask is not None]
    return masks[0] & masks[1] if len(masks) == 2 else next(iter(masks), None)


def _mask_of(tensor: Any) -> Any:
    # Keras offers no public way to the mask of a tensor; releases before 3.6 keep it in the attribute alone.
    try:
        masking = importlib.import_module("keras.src.backend.common.masking")
    except ImportError:
        return getattr(tensor, "_keras_mask", None)
    return masking.get_keras_mask(tensor)


def _part(
    loss: Any, value: Any, values: Any, mask: Any, weights: Any, averaged_over: list[tuple[Any, Any]]
) -> tuple[str, Any, Any]:
    if len(values.shape) == 0:
        return ROWS, value, None
    if loss.reduction == "sum":
        return SUM, value, None
    weights = weights if loss.reduction == "mean_with_sample_weight" else None
    if mask is None and weights is None:
        return ROWS, value, None
    index = next((i for i, seen in enumerate(averaged_over) if seen[0] is mask and seen[1] is weights), None)
    if index is None:
        index = len(averaged_over)
        averaged_over.append((mask, weights))
    return f"elements {index}", value, _elements(mask, weights)


def _elements(mask: Any, weights: Any) -> Any:
    ops = keras.ops
    factors = [ops.cast(factor, "float32") for factor in (mask, weights) if factor is not None]
    if len(factors) == 1:
        return ops.sum(factors[0])
    low, high = sorted(factors, key=lambda factor: len(factor.shape))
    # As Keras does: a last dimension of one does not count as a difference.
    if len(high.shape) == len(low.shape) + 1 and high.shape[-1] == 1:
        high = ops.squeeze(high, axis=-1)
    return ops.sum(low * high)
