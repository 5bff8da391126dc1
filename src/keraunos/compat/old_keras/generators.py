"""`fit_generator` and its kin: batches from a Python generator. Runs on the driver.

Keras 0 and 1 counted an epoch in rows: it ended with the batch that reached them, whatever sizes the batches had. Keras
2 counts batches, which today's `fit` expects.
"""

from __future__ import annotations

import contextlib
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keraunos.compat.old_keras import fitting
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.model_calls import OF_QUEUES
from keraunos.errors import DataError, JobError

logger = logging.getLogger(__name__)


def fit_generator(model: Any, day: Day, given: dict[str, Any]) -> Any:
    """Train on batches."""
    _say_queues(given)
    batches = given.pop("generator")
    rows, steps = given.pop("samples_per_epoch", None), _whole(given.pop("steps_per_epoch", None))
    named = {name: given.pop(name) for name in list(given) if name in _OF_FIT and given[name] is not None}
    held = given.pop("validation_data", None)
    held_rows, held_steps = given.pop("nb_val_samples", None), _whole(given.pop("validation_steps", None))
    _nothing_left("fit_generator", given)
    if rows is None and held_rows is not None:
        raise JobError("`validation_steps` must be given with `steps_per_epoch`. Received: `nb_val_samples`.")
    drawn = None
    if isinstance(held, (list, tuple)):
        named["validation_data"] = tuple(held)
    elif held is not None and held_rows is not None:
        drawn = _endless(held)
    elif held is not None:
        if held_steps is None and not _has_length(held):
            raise JobError("`validation_steps` must be given with a generator to validate on. Received: None.")
        named["validation_data"] = _stream(held, held_steps)
        named["validation_steps"] = held_steps
    named = fitting.prepared(model, day, named)
    if rows is not None:
        named["shuffle"] = False
        return _fit_by_rows(model, _weighed(_endless(batches), named), rows, drawn, held_rows, named)
    if steps is None and not _has_length(batches):
        raise JobError("`steps_per_epoch` must be given with a generator. Received: None.")
    found = _stream(batches, steps)
    if found is not batches:
        named["shuffle"] = False  # batches come as the generator returns them
        found = _weighed(found, named)
    return keras.Model.fit(model, found, steps_per_epoch=steps, **named)


def evaluate_generator(given: dict[str, Any], evaluate: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Returns the loss and the metrics over batches."""
    _say_queues(given)
    batches, steps = _batches(given)
    verbose = given.pop("verbose", 0)
    _nothing_left("evaluate_generator", given)
    with _quietly():
        return evaluate({"x": batches, "steps": steps, "verbose": verbose})


def predict_generator(model: Any, given: dict[str, Any]) -> Any:
    """Returns the model's outputs for the rows of batches."""
    _say_queues(given)
    batches, steps = _batches(given, (tuple,))
    verbose = given.pop("verbose", 0)
    _nothing_left("predict_generator", given)
    with _quietly():
        return keras.Model.predict(model, batches, steps=steps, verbose=verbose)


class _Once(keras.callbacks.CallbackList):  # type: ignore[misc] # Keras has no types
    """Callbacks of a training that is many calls of `fit`: it begins and ends once."""

    begun = False

    def on_train_begin(self, logs: Any = None) -> None:
        """Only the first time."""
        if not self.begun:
            self.begun = True
            super().on_train_begin(logs)

    def on_train_end(self, logs: Any = None) -> None:
        """Kept for the end of the last epoch."""
        self.last = logs

    def end(self) -> None:
        """The end of the training."""
        super().on_train_end(self.last)


def _fit_by_rows(
    model: Any,
    batches: Iterator[Any],
    rows: float,
    held: Iterator[Any] | None,
    held_rows: float | None,
    named: dict[str, Any],
) -> Any:
    """Train epochs of this many rows, each of as many batches as they take."""
    first, epochs = named.pop("initial_epoch", 0), named.pop("epochs", 1)
    verbose = named.pop("verbose", 1)
    callbacks = _Once(
        named.pop("callbacks", None),
        add_history=True,
        add_progbar=verbose != 0,
        verbose=verbose,
        epochs=epochs,
        steps=None,
        model=model,
    )
    for epoch in range(first, epochs):
        if held is not None:
            named["validation_data"] = _taken(held, held_rows, "nb_val_samples")
        with _quietly():
            taken = _taken(batches, rows, "samples_per_epoch")
            keras.Model.fit(
                model, taken, initial_epoch=epoch, epochs=epoch + 1, callbacks=callbacks, verbose=verbose, **named
            )
        if model.stop_training:
            break
    if callbacks.begun:
        callbacks.end()
    return model.history


def _taken(batches: Iterator[Any], rows: Any, name: str) -> Iterator[Any]:
    """Yields the next batches, until they are as many rows."""
    seen = 0
    while seen < rows:
        batch = next(batches, None)
        if batch is None:
            if seen == 0:
                raise DataError(f"The generator must give batches. Received: none, with {name}={rows!r}.")
            return
        seen += _rows_of(batch)
        yield batch


def _endless(batches: Any, kinds: tuple[type, ...] = (list, tuple)) -> Iterator[Any]:
    """Batches as tuples: those of a generator once, those of a sequence repeatedly.

    A batch of one of the kinds has parts: inputs, targets and weights of rows.
    """
    if hasattr(batches, "__next__") or not _has_length(batches):
        source = batches if hasattr(batches, "__next__") else iter(batches)
        while True:
            try:
                batch = next(source)
            except StopIteration:
                return
            yield _tuple(batch, kinds)
    while True:
        for number in range(len(batches)):
            yield _tuple(batches[number], kinds)
        if hasattr(batches, "on_epoch_end"):
            batches.on_epoch_end()


def _tuple(batch: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    parts: Any = batch if isinstance(batch, kinds) else [batch]
    return tuple(parts)


def _stream(batches: Any, steps: int | None, kinds: tuple[type, ...] = (list, tuple)) -> Any:
    """Returns the data for Keras: a sequence that is long enough, otherwise endless batches."""
    if _has_length(batches) and (steps is None or (steps <= len(batches) and not hasattr(batches, "__next__"))):
        return batches
    return _endless(batches, kinds)


def _weighed(batches: Iterator[Any], named: dict[str, Any]) -> Iterator[Any]:
    """Batches with the weights of their rows' classes."""
    weights = named.pop("class_weight", None)
    if weights is None:
        return batches
    if any(isinstance(each, Mapping) for each in weights.values()):
        raise JobError(f"`class_weight` of fit_generator must be numbers by class. Received: {weights!r}.")
    return (_with_weights(batch, weights) for batch in batches)


def _with_weights(batch: tuple[Any, ...], weights: Mapping[Any, float]) -> tuple[Any, ...]:
    x, y, *given = batch
    labels = np.asarray(y)
    classes = labels.argmax(-1) if labels.ndim > 1 and labels.shape[-1] > 1 else labels.reshape(-1)
    found = np.array([weights.get(int(each), 1.0) for each in classes], "float32")
    return x, y, found * np.asarray(given[0]) if given and given[0] is not None else found


def _rows_of(batch: Any) -> int:
    part = batch[0] if isinstance(batch, (tuple, list)) else batch
    while isinstance(part, (list, tuple, Mapping)):
        part = next(iter(part.values())) if isinstance(part, Mapping) else part[0]
    return len(np.asarray(part))


def _batches(given: dict[str, Any], kinds: tuple[type, ...] = (list, tuple)) -> tuple[Any, int | None]:
    batches, rows = given.pop("generator"), given.pop("val_samples", None)
    steps = _whole(given.pop("steps", None))
    if rows is not None:
        return _taken(_endless(batches, kinds), rows, "val_samples"), None
    if steps is None and not _has_length(batches):
        raise JobError("`steps` must be given with a generator. Received: None.")
    return _stream(batches, steps, kinds), steps


def _whole(steps: Any) -> int | None:
    """Returns a number of batches; a share of one was one more, as in `len(x) / 32`."""
    return None if steps is None else math.ceil(steps)


def _has_length(batches: Any) -> bool:
    return hasattr(batches, "__len__")


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress Keras's warning that batches end, which is the normal end of an epoch of this many rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


def _say_queues(given: dict[str, Any]) -> None:
    asked = {name: given.pop(name) for name in OF_QUEUES if name in given}
    more = {name: value for name, value in asked.items() if value not in {None, False, 1, 10}}
    if more:
        logger.warning("Batches of a generator are made one after the other here, whatever %s says.", more)


def _nothing_left(call: str, given: Mapping[str, Any]) -> None:
    if given:
        raise JobError(f"`{call}` has no argument {next(iter(given))!r}. Received: {dict(given)!r}.")


_OF_FIT = ("epochs", "verbose", "callbacks", "class_weight", "initial_epoch", "shuffle")
