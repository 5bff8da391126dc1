"""Real Keras callbacks, run on the driver at the ends of epochs. Runs on the driver.

Callbacks see a model of the driver's: its weights are set to the trained ones before each hook that may read them,
and a `stop_training` or a learning rate that a callback sets on it is told to the workers. Keras is imported only
where there are callbacks: a job that needs none may run where Keras must not be touched.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import JobError
from keraunos.launch.hooks import Hooks, Lap
from keraunos.learners.home_model import HomeModel

if TYPE_CHECKING:
    from keraunos.learners.keras_home import KerasHome

logger = logging.getLogger(__name__)

_BATCH_HOOKS = tuple(
    f"on_{prefix}batch_{moment}" for prefix in ("", "train_", "test_", "predict_") for moment in ("begin", "end")
)


def check_callbacks(callbacks: Sequence[Any]) -> None:
    """Refuse what would not work here, by name: batches end on the workers, where callbacks do not run."""
    if not callbacks:
        return
    import keras

    for callback in callbacks:
        name = type(callback).__name__
        if not isinstance(callback, keras.callbacks.Callback):
            raise JobError(f"`callbacks` must be Keras callbacks. Received: {callback!r}.")
        if isinstance(callback, keras.callbacks.SwapEMAWeights):
            raise JobError(
                f"The callback {name} swaps the optimizer's variables, which live on the workers. "
                "Compile the model with `use_ema=True` in its optimizer instead."
            )
        if getattr(callback, "raise_error", False) and isinstance(callback, keras.callbacks.TerminateOnNaN):
            raise JobError(
                "The callback TerminateOnNaN must be left to end a training without an error. Received: "
                "raise_error=True. Leave that out, and look at `history.ended` after the fit."
            )
        hooks = _batch_hooks_in_use(callback)
        if hooks:
            raise JobError(
                f"The callback {name} has batch hooks ({', '.join(hooks)}), but batches end on the workers, where "
                "callbacks do not run. Use its epoch hooks (on_epoch_begin, on_epoch_end), or, for ModelCheckpoint, "
                "save_freq='epoch'."
            )


def check_divergence(callbacks: Sequence[Any], on_divergence: str) -> None:
    """Refuse a TerminateOnNaN where the job says something else; where it does not, the workers do its work."""
    if any(type(each).__name__ == "TerminateOnNaN" for each in callbacks) and on_divergence != "stop":
        raise JobError(
            "The callback TerminateOnNaN needs onDivergence='stop', which is what it asks for. Received: "
            f"{on_divergence!r}. Leave one of them out."
        )


class KerasCallbacks(Hooks):
    """The Keras callbacks of one fit, as hooks. They are asked after all other hooks."""

    def __init__(self, callbacks: Sequence[Any], *, epochs: int | None, goes_on: bool = False) -> None:
        self._callbacks = list(callbacks)
        self._epochs = epochs
        self._goes_on = goes_on
        self._at_begin: list[dict[str, Any]] = []
        self._logs: dict[str, float] = {}

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
        self._list.on_train_begin()
        self._at_begin = [_plain_attributes(callback) for callback in self._callbacks]
        if not self._goes_on:
            self._list.on_epoch_begin(0)

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
                    setattr(callback, name, _unpacked(value, arrays))
        else:
            logger.warning(
                "The training was saved with %d callback(s) and goes on with %d, which begin afresh.",
                len(facts["callbacks"]), len(self._callbacks),
            )  # fmt: skip
        self._logs = {str(name): float(value) for name, value in facts["logs"].items()}
        self._list.on_epoch_begin(epoch)

    def end_lap(self, lap: Lap) -> bool:
        """Where an epoch ends, or training ends within one, the epoch's hooks run; whether one asked to stop."""
        if not lap.ends_epoch and not lap.last:
            return False
        self._home.write(lap.parameters())
        self._logs = dict(lap.epoch_logs)
        self._list.on_epoch_end(lap.epoch, dict(self._logs))
        stop = bool(self._home.model.stop_training)
        if not stop and not lap.last:
            self._list.on_epoch_begin(lap.epoch + 1)
        return stop

    def on_losses(
        self, rank: int, first_step: int, losses: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
    ) -> None:
        """Callbacks know no single steps."""

    def end(self) -> None:
        """Training ended; a callback may still restore earlier weights."""
        self._list.on_train_end(self._logs)


# What a callback is told of anew with every fit.
_NOT_ITS_OWN = {"model", "_model", "params", "validation_data"}


def _plain_attributes(callback: Any) -> dict[str, Any]:
    """Copies of what a callback remembers, as far as it is plain data."""
    found = {name: value for name, value in vars(callback).items() if name not in _NOT_ITS_OWN}
    return {name: copy.deepcopy(value) for name, value in found.items() if _is_plain(value)}


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
    from keraunos.learners.keras_home import KerasHome

    if not isinstance(home, KerasHome):
        raise JobError(
            "`callbacks` must be left out for a model that is not a Keras model. Received: callbacks for "
            f"{type(home).__name__}. Use `hooks`."
        )
    return home


def _batch_hooks_in_use(callback: Any) -> list[str]:
    import keras

    kind = type(callback)
    if kind is keras.callbacks.TerminateOnNaN:
        # A loss that is not finite ends the training where it was computed: see `check_divergence`.
        return []
    if kind is keras.callbacks.ModelCheckpoint and callback.save_freq == "epoch":
        return []
    if kind is keras.callbacks.TensorBoard and callback.update_freq == "epoch" and not callback.profile_batch:
        return []
    if kind in (keras.callbacks.LambdaCallback, keras.callbacks.History):
        return [hook for hook in _BATCH_HOOKS if hook in vars(callback)]
    base = keras.callbacks.Callback
    return [hook for hook in _BATCH_HOOKS if getattr(kind, hook) is not getattr(base, hook) or hook in vars(callback)]
