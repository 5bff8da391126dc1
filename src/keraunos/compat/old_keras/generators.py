"""`fit_generator` and its kin: batches from a Python generator. Runs on the driver.

Keras 0 and 1 counted an epoch in rows, Keras 2 in batches, which is what today's `fit` is told.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keraunos.compat.old_keras.model_calls import OF_QUEUES
from keraunos.errors import DataError, JobError

logger = logging.getLogger(__name__)


def fit_generator(given: dict[str, Any], fit: Callable[..., Any]) -> Any:
    """Train on batches."""
    _say_queues(given)
    batches = given.pop("generator")
    rows, steps = given.pop("samples_per_epoch", None), given.pop("steps_per_epoch", None)
    if rows is not None:
        batches, steps = counted(batches, rows, "samples_per_epoch")
    named = {"steps_per_epoch": steps, **{name: given.pop(name) for name in list(given) if name in _OF_FIT}}
    if not hasattr(batches, "__len__"):
        named["shuffle"] = False  # batches come as the generator gives them
    held = given.pop("validation_data", None)
    held_rows, held_steps = given.pop("nb_val_samples", None), given.pop("validation_steps", None)
    if held is not None and not isinstance(held, (tuple, list)):
        if held_rows is not None:
            held, held_steps = counted(held, held_rows, "nb_val_samples")
        if held_steps is None and not hasattr(held, "__len__"):
            raise JobError("`validation_steps` must be given with a generator to validate on. Received: None.")
        named["validation_steps"] = held_steps
    if held is not None:
        named["validation_data"] = tuple(held) if isinstance(held, list) else held
    _nothing_left("fit_generator", given)
    return fit(batches, **{name: value for name, value in named.items() if value is not None})


def evaluate_generator(given: dict[str, Any], evaluate: Callable[[Mapping[str, Any]], Any]) -> Any:
    """The loss and the metrics over batches."""
    _say_queues(given)
    batches, steps = _batches(given)
    verbose = given.pop("verbose", 0)
    _nothing_left("evaluate_generator", given)
    return evaluate({"x": batches, "steps": steps, "verbose": verbose})


def predict_generator(model: Any, given: dict[str, Any]) -> Any:
    """What the model gives for the rows of batches."""
    _say_queues(given)
    batches, steps = _batches(given)
    verbose = given.pop("verbose", 0)
    _nothing_left("predict_generator", given)
    return keras.Model.predict(model, batches, steps=steps, verbose=verbose)


def counted(batches: Any, rows: int, name: str) -> tuple[Iterator[Any], int]:
    """The batches, and how many of them are as many rows; one that is of another size than it should be is refused."""
    source = iter(batches)
    first = next(source, None)
    if first is None:
        raise DataError(f"The generator must give batches. Received: none, with {name}={rows!r}.")
    size = _rows_of(first)
    steps = -(-int(rows) // size)
    return _checked(itertools.chain([first], source), size, int(rows), steps, name), steps


def _checked(batches: Iterator[Any], size: int, rows: int, steps: int, name: str) -> Iterator[Any]:
    """Batches of one size, of which the last of an epoch may be as small as the rows that are left."""
    for number, batch in enumerate(batches):
        found = _rows_of(batch)
        last = (number + 1) % steps == 0
        if found != size and not (last and found >= rows - size * (steps - 1)):
            raise DataError(
                f"Batches of a generator must have {size} rows, as the first had, because `{name}`={rows} is counted "
                f"by them. Received: batch {number} with {found}. Give the number of batches instead, as Keras 2 did."
            )
        yield batch


def _rows_of(batch: Any) -> int:
    part = batch[0] if isinstance(batch, (tuple, list)) else batch
    while isinstance(part, (list, tuple, Mapping)):
        part = next(iter(part.values())) if isinstance(part, Mapping) else part[0]
    return len(np.asarray(part))


def _batches(given: dict[str, Any]) -> tuple[Any, int | None]:
    batches, rows, steps = given.pop("generator"), given.pop("val_samples", None), given.pop("steps", None)
    if rows is not None:
        return counted(batches, rows, "val_samples")
    return batches, steps


def _say_queues(given: dict[str, Any]) -> None:
    asked = {name: given.pop(name) for name in OF_QUEUES if name in given}
    more = {name: value for name, value in asked.items() if value not in {None, False, 1, 10}}
    if more:
        logger.warning("Batches of a generator are made one after the other here, whatever %s says.", more)


def _nothing_left(call: str, given: Mapping[str, Any]) -> None:
    if given:
        raise JobError(f"`{call}` has no argument {next(iter(given))!r}. Received: {dict(given)!r}.")


_OF_FIT = ("epochs", "verbose", "callbacks", "class_weight", "initial_epoch", "shuffle")
