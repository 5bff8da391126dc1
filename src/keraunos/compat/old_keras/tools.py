"""The functions of `keras.utils`, `keras.callbacks`, `keras.datasets` and `keras.preprocessing`. Runs on the driver."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keraunos.compat.old_keras import own_callbacks, undecided, values
from keraunos.compat.old_keras.days import Day
from keraunos.errors import JobError, one_of

_CHECKPOINT_MODE = 4  # the place of `mode` in Keras 0


def to_categorical(y: Any, nb_classes: int | None = None, num_classes: int | None = None) -> Any:
    """Class numbers as rows that are one-hot."""
    return keras.utils.to_categorical(np.asarray(y, dtype="int"), nb_classes if num_classes is None else num_classes)


def normalize(a: Any, axis: int = -1, order: int = 2) -> Any:
    """Returns the array with a norm of 1 along an axis."""
    return keras.utils.normalize(a, axis=axis, order=order)


def probas_to_classes(y_pred: Any) -> Any:
    """Returns the predicted class of each row."""
    found = np.asarray(y_pred)
    if found.ndim > 1 and found.shape[1] > 1:
        return found.argmax(axis=1)
    return np.array([1 if each > 0.5 else 0 for each in found])


def categorical_probas_to_classes(p: Any) -> Any:
    """Returns the class with the largest output in each row."""
    return np.argmax(p, axis=1)


def accuracy(p: Any, y: Any) -> float:
    """Returns the share of entries that are equal."""
    return float(np.mean(np.equal(p, y)))


def slice_X(X: Any, start: Any = None, stop: Any = None) -> Any:
    """Returns rows of an array, or of each array in a list, from one to another or by their numbers."""
    arrays = X if isinstance(X, list) else [X]
    rows = start if hasattr(start, "__len__") else slice(start, stop)
    found = [each[rows] for each in arrays]
    return found if isinstance(X, list) else found[0]


def early_stopping(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Its arguments changed their order within Keras 1."""
    given = dict(named)
    if len(arguments) > 1 and day.name == "1":
        raise JobError(
            "EarlyStopping must be given its arguments by name but the first: the second was `patience` before "
            f"Keras 1.2 and `min_delta` from then on. Received: {arguments!r}. Write patience=... or min_delta=...."
        )
    order = "monitor patience verbose mode" if day.name == "0" else "monitor min_delta patience verbose mode"
    given.update(zip(order.split(), arguments, strict=False))
    if day.name == "2":
        undecided.warn_once(
            "EarlyStopping of Keras 2 stopped an epoch later until 2.0.8 than from 2.0.9 on, which is taken. Add 1 to "
            "`patience` if the program is of an earlier release."
        )
    return keras.callbacks.EarlyStopping(**given) if day.name == "tf2" else own_callbacks.EarlyStopping(day, **given)


def model_checkpoint(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Its arguments moved: `monitor` came in 0.1.2, `save_weights_only` stands before `mode` since Keras 1.0."""
    order = ["filepath", "monitor", "verbose", "save_best_only", "save_weights_only", "mode", "period"]
    if not day.speaks_keras_2 and len(arguments) > _CHECKPOINT_MODE and isinstance(arguments[_CHECKPOINT_MODE], str):
        order.remove("save_weights_only")
    given = {**dict(zip(order, arguments, strict=False)), **named}
    if not isinstance(given.get("monitor", ""), str):
        raise JobError(
            f"`monitor` of ModelCheckpoint must be a name. Received: {given['monitor']!r}. Before Keras 0.1.2 "
            "`verbose` stood in its place; give verbose= and save_best_only= by name."
        )
    if day.name == "tf2":
        if given.pop("period", 1) != 1:
            raise JobError("`period` of ModelCheckpoint must be 1 on today's Keras. Received: another.")
        return keras.callbacks.ModelCheckpoint(**given)
    for name in given:
        if name not in {*order, "save_weights_only"}:
            raise JobError(one_of("argument of ModelCheckpoint", name, order))
    if day.name == "2" and "{epoch" in str(given.get("filepath")):
        undecided.warn_once(
            "Epochs in the names of ModelCheckpoint's files were counted from 0 until Keras 2.0.8 and are from 1 in "
            "2.0.9 and on, which is taken."
        )
    return own_callbacks.ModelCheckpoint(day, **given)


def scheduler(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns the function was given the epoch alone until Keras 2.1.3."""
    made = own_callbacks.LearningRateScheduler(
        day, **dict(zip(("schedule", "verbose"), arguments, strict=False)), **named
    )
    if day.name == "2" and _takes_two(made.schedule):
        undecided.warn_once(
            "The function of LearningRateScheduler was given the epoch alone until Keras 2.1.3, and the rate as its "
            "second argument from 2.2 on, which is taken. Take the second argument away if the program is of an "
            "earlier release."
        )
    return made


def _takes_two(function: Any) -> bool:
    try:
        return len(inspect.signature(function).parameters) > 1
    except (TypeError, ValueError):
        return False


def reduce_on_plateau(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """`epsilon` is `min_delta` today."""
    order = ["monitor", "factor", "patience", "verbose", "mode", "min_delta", "cooldown", "min_lr"]
    given = {**dict(zip(order, arguments, strict=False)), **named}
    if "epsilon" in given:
        given["min_delta"] = given.pop("epsilon")
    if day.name == "2":
        undecided.warn_once(
            "ReduceLROnPlateau of Keras 2 waited an epoch longer until 2.1.5 than from 2.1.6 on, which is taken. Add 1 "
            "to `patience` if the program is of an earlier release."
        )
    if day.name == "tf2":
        return keras.callbacks.ReduceLROnPlateau(**given)
    return own_callbacks.ReduceLROnPlateau(day, **given)


def word_lists(name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """`load_data` of a dataset of texts, if `nb_words` is `num_words` today."""
    order = ["path", "nb_words", "skip_top", "maxlen"]
    given = {**dict(zip(order, arguments, strict=False)), **named}
    for each in given:
        if each not in {*order, "num_words", "seed", "start_char", "oov_char", "index_from", "test_split"}:
            raise JobError(one_of(f"argument of {name}.load_data", each, order))
    if "nb_words" in given:
        given["num_words"] = given.pop("nb_words")
    if str(given.get("path", "")).endswith(".pkl"):
        raise JobError(f"`path` of {name}.load_data must name an .npz file. Received: {given['path']!r}.")
    return getattr(keras.datasets, name).load_data(**given)


def pictures(name: str, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """`load_data` of a dataset of pictures, with the channels where the day has them."""
    wanted = values.data_format(None, day)
    found = getattr(keras.datasets, name).load_data(*arguments, **named)
    if wanted == keras.config.image_data_format():
        return found
    axes = (0, 3, 1, 2) if wanted == "channels_first" else (0, 2, 3, 1)
    return tuple((x.transpose(axes), y) for x, y in found)
