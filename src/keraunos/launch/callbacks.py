"""Real Keras callbacks, run on the driver at the ends of epochs. Runs on the driver.

Callbacks see a model of the driver's: its weights are set to the trained ones before each hook that may read them,
and a `stop_training` or a learning rate that a callback sets on it is told to the workers. Keras is imported only
where there are callbacks: a job that needs none may run where Keras must not be touched.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from keraunos.errors import JobError
from keraunos.launch import interrupts
from keraunos.launch.hooks import Hooks, Lap
from keraunos.learners.home_model import HomeModel
from keraunos.parameters import Vector
from keraunos.telemetry.charts import VALIDATION

if TYPE_CHECKING:
    from keraunos.learners.keras_home import KerasHome

logger = logging.getLogger(__name__)


class KerasCallbacks(Hooks):
    """The Keras callbacks of one fit, as hooks. They are asked after all other hooks."""

    def __init__(self, callbacks: Sequence[Any], *, epochs: int | None, goes_on: bool = False) -> None:
        self._callbacks = list(callbacks)
        self._epochs = epochs
        self._goes_on = goes_on
        self._at_begin: list[dict[str, Any]] = []
        self._logs: dict[str, float] = {}
        self._told_others = False
        self.first_epoch = 0
        self._set_last: Vector | None = None

    def begin(self, home: HomeModel) -> None:
        """Training and its first epoch begin."""
        import keras

        self._home = _keras_home(home)
        self._list = keras.callbacks.CallbackList(
            self._callbacks,
            add_history=False,
            add_progbar=False,
            model=self._home.model,
            epochs=self._epochs,
            verbose=0,
            steps=None,
        )
        self._home.model.stop_training = False
        self._iterations = self._home.iterations
        self._begin_training()
        self._at_begin = [_plain_attributes(callback) for callback in self._callbacks]
        if not self._goes_on and not self.is_over:
            with interrupts.allowed():
                self._list.on_epoch_begin(self.first_epoch)

    @property
    def is_over(self) -> bool:
        """Whether a callback has restored a training of which no epoch is left."""
        return self._epochs is not None and self.first_epoch >= self._epochs

    def _begin_training(self) -> None:
        import keras

        model = self._home.model
        restoring = [each for each in self._callbacks if isinstance(each, keras.callbacks.BackupAndRestore)]
        if restoring and not model.optimizer.built:
            # It saves and restores the learning rate with the optimizer's other variables, or none of them.
            model.optimizer.build(model.trainable_variables)
        model._initial_epoch = None
        with interrupts.allowed():
            self._list.on_train_begin()
        done = int(getattr(model, "_initial_epoch", None) or 0)
        model._initial_epoch = None
        if not done or self._goes_on:
            return
        if self._epochs is None:
            raise JobError(
                f"A callback says that {done} epochs are done, but this training is counted in steps. Expected: a "
                "training of epochs. Leave out BackupAndRestore, or whatever callback sets `model._initial_epoch`."
            )
        self.first_epoch = done
        logger.warning(
            "A callback has restored a training after %d epoch(s), and it goes on from there. The optimizers of the "
            "workers begin anew; with `checkpointDir` they would go on, too.", done,
        )  # fmt: skip

    def keep(self) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
        """What has changed in the callbacks since training began: numbers, texts, arrays, and lists of them."""
        arrays: list[npt.NDArray[Any]] = []
        changed = []
        for callback, before in zip(self._callbacks, self._at_begin, strict=True):
            now = _plain_attributes(callback)
            moved = {name: value for name, value in now.items() if name not in before or not _same(value, before[name])}
            changed.append({name: _packed(value, arrays) for name, value in moved.items()})
        return {"callbacks": changed, "logs": self._logs}, arrays

    def go_on_from(self, facts: Mapping[str, Any], arrays: Sequence[npt.NDArray[Any]], epoch: int) -> None:
        """Give the callbacks what they had, and begin the epoch."""
        if len(facts["callbacks"]) == len(self._callbacks):
            for callback, changed in zip(self._callbacks, facts["callbacks"], strict=True):
                for name, value in changed.items():
                    if _may_change(callback, name):
                        setattr(callback, name, _unpacked(value, arrays))
        else:
            logger.warning(
                "The training was saved with %d callback(s) and goes on with %d, which begin afresh.",
                len(facts["callbacks"]), len(self._callbacks),
            )  # fmt: skip
        self._logs = {str(name): float(value) for name, value in facts["logs"].items()}
        with interrupts.allowed():
            self._list.on_epoch_begin(epoch)

    def end_lap(self, lap: Lap) -> bool:
        """Where an epoch ends, or training ends within one, the epoch's hooks run; whether one asked to stop."""
        if not lap.ends_epoch and not lap.last:
            return False
        self._home.write(lap.parameters())
        self._home.iterations = lap.step
        self._test(lap.epoch_logs)
        # As in Keras, a callback sees what those before it have put into the logs, and all of it is in the history.
        logs: dict[str, Any] = dict(lap.epoch_logs)
        setters = self._call("on_epoch_end", lap.epoch, logs)
        self._logs = self._numbers(logs)
        lap.epoch_logs.clear()
        lap.epoch_logs.update(self._logs)
        stop = bool(self._home.model.stop_training)
        if stop or lap.last:
            self._set_last = self._home.read() if setters else None
            return stop
        setters += self._call("on_epoch_begin", lap.epoch + 1, {})
        if setters:
            raise JobError(
                f"The callback {setters[0]} has set the model's weights at the end of an epoch, but the workers hold "
                "the weights while they train. Expected: weights that are set when training begins, when it ends, or "
                "at the end of its last epoch. Train one epoch per fit where weights must be set in between."
            )
        return False

    def end(self) -> None:
        """Training ended; a callback may still restore earlier weights."""
        if self._set_last is not None:
            self._home.write(self._set_last)
        with interrupts.allowed():
            self._list.on_train_end(self._logs)
        self._home.iterations = self._iterations

    def _call(self, hook: str, epoch: int, logs: dict[str, Any]) -> list[str]:
        """Call a hook of every callback, with the same logs; the names of those that have set the model's weights."""
        setters = []
        for callback in self._list.callbacks:
            # Of Keras's own callbacks none sets weights there, except where a user's function does.
            suspect = not type(callback).__module__.startswith("keras.") or hook in vars(callback)
            before = self._home.read() if suspect else None
            with interrupts.allowed():
                getattr(callback, hook)(epoch, logs)
            if before is not None and not np.array_equal(before, self._home.read(), equal_nan=True):
                setters.append(type(callback).__name__)
        return setters

    def _test(self, logs: Mapping[str, float]) -> None:
        """Tell callbacks of the validation that the epoch ended with, as `fit` of Keras does."""
        measured = {name.removeprefix(VALIDATION): value for name, value in logs.items() if name.startswith(VALIDATION)}
        if measured:
            with interrupts.allowed():
                self._list.on_test_begin()
                self._list.on_test_end(measured)

    def _numbers(self, logs: Mapping[str, Any]) -> dict[str, float]:
        """What callbacks have left in the logs, as far as a history can hold it."""
        numbers, others = {}, []
        for name, value in logs.items():
            try:
                numbers[str(name)] = float(value)
            except (TypeError, ValueError):
                others.append(str(name))
        if others and not self._told_others:
            self._told_others = True
            logger.warning(
                "A callback has put %s into the logs. The history holds single numbers only, and leaves it out.",
                ", ".join(map(repr, others)),
            )
        return numbers


# What a callback is told of anew with every fit.
_NOT_ITS_OWN = {"model", "_model", "params", "validation_data"}


def _plain_attributes(callback: Any) -> dict[str, Any]:
    """Copies of what a callback remembers, as far as it is plain data."""
    found = {name: value for name, value in vars(callback).items() if name not in _NOT_ITS_OWN}
    return {name: copy.deepcopy(value) for name, value in found.items() if _is_plain(value)}


def _may_change(callback: Any, name: str) -> bool:
    """Whether a checkpoint may set this: what the callback remembers, but not what it does, nor where it writes."""
    now = vars(callback).get(name)
    is_place = isinstance(now, os.PathLike) or (isinstance(now, str) and os.sep in now)
    known = name.isidentifier() and name not in _NOT_ITS_OWN and not name.startswith("__")
    return known and _is_plain(now) and not is_place and not hasattr(type(callback), name)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(each) for each in value)
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(each) for name, each in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return value is None or isinstance(value, (bool, int, float, str, np.integer, np.floating))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(each, other[name]) for name, each in one.items())
    return type(one) is type(other) and bool(one == other)


def _packed(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """A value for JSON, each array in it by its place among the arrays."""
    if isinstance(value, (np.ndarray, np.integer, np.floating)):
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1, "scalar": not isinstance(value, np.ndarray)}
    if isinstance(value, (list, tuple)):
        return {"list": [_packed(each, arrays) for each in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"dict": {name: _packed(each, arrays) for name, each in value.items()}}
    return {"value": value}


def _unpacked(packed: Mapping[str, Any], arrays: Sequence[npt.NDArray[Any]]) -> Any:
    if "array" in packed:
        array = arrays[packed["array"]]
        return array[()] if packed["scalar"] else array
    if "list" in packed:
        values = [_unpacked(each, arrays) for each in packed["list"]]
        return tuple(values) if packed["tuple"] else values
    if "dict" in packed:
        return {name: _unpacked(each, arrays) for name, each in packed["dict"].items()}
    return packed["value"]


def _keras_home(home: HomeModel) -> KerasHome:
    if not home.takes_callbacks:
        raise JobError(
            "`callbacks` must be left out for a model that is not a Keras model. Received: callbacks for "
            f"{type(home).__name__}. Use `hooks`."
        )
    return cast("KerasHome", home)
