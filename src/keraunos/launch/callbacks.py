"""Real Keras callbacks, run on the driver at the ends of epochs. Runs on the driver.

Callbacks see a model of the driver's: its weights are set to the trained ones before each hook that may read them,
and a `stop_training` or a learning rate that a callback sets on it is told to the workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keraunos.errors import JobError
from keraunos.learners.keras_variables import learning_rate_variable, write_vector
from keraunos.parameters import Vector

_BATCH_HOOKS = tuple(
    f"on_{prefix}batch_{moment}" for prefix in ("", "train_", "test_", "predict_") for moment in ("begin", "end")
)


def check_callbacks(callbacks: Sequence[Any]) -> None:
    """Refuse what would not work here, by name: batches end on the workers, where callbacks do not run."""
    for callback in callbacks:
        name = type(callback).__name__
        if not isinstance(callback, keras.callbacks.Callback):
            raise JobError(f"`callbacks` must be Keras callbacks. Received: {callback!r}.")
        if isinstance(callback, keras.callbacks.SwapEMAWeights):
            raise JobError(
                f"The callback {name} swaps the optimizer's variables, which live on the workers. "
                "Compile the model with `use_ema=True` in its optimizer instead."
            )
        hooks = _batch_hooks_in_use(callback)
        if hooks:
            raise JobError(
                f"The callback {name} has batch hooks ({', '.join(hooks)}), but batches end on the workers, where "
                "callbacks do not run. Use its epoch hooks (on_epoch_begin, on_epoch_end), or, for ModelCheckpoint, "
                "save_freq='epoch'."
            )


class DriverCallbacks:
    """The callbacks of one fit and the model they see."""

    def __init__(self, model: Any, callbacks: Sequence[Any], *, epochs: int) -> None:
        self.model = model
        self._list = keras.callbacks.CallbackList(
            list(callbacks), add_history=False, add_progbar=False, model=model, epochs=epochs, verbose=0, steps=None
        )
        self._any = bool(callbacks)

    def __bool__(self) -> bool:
        return self._any

    @property
    def learning_rate(self) -> float | None:
        """The learning rate the callbacks left on the model; `None` where a schedule decides."""
        variable = learning_rate_variable(self.model)
        return None if variable is None else float(np.asarray(variable.value))

    def begin(self) -> None:
        """Training and its first epoch begin."""
        self.model.stop_training = False
        self._list.on_train_begin()
        self._list.on_epoch_begin(0)

    def end_epoch(self, epoch: int, parameters: Vector | None, logs: Mapping[str, float]) -> bool:
        """An epoch ended; whether training is to stop now."""
        if parameters is not None:
            write_vector(self.model, parameters)
        self._list.on_epoch_end(epoch, dict(logs))
        return bool(self.model.stop_training)

    def begin_epoch(self, epoch: int) -> None:
        """The next epoch begins."""
        self._list.on_epoch_begin(epoch)

    def end(self, logs: Mapping[str, float]) -> None:
        """Training ended; a callback may still restore earlier weights."""
        self._list.on_train_end(dict(logs))


def _batch_hooks_in_use(callback: Any) -> list[str]:
    kind = type(callback)
    if kind is keras.callbacks.ModelCheckpoint and callback.save_freq == "epoch":
        return []
    if kind is keras.callbacks.TensorBoard and callback.update_freq == "epoch" and not callback.profile_batch:
        return []
    if kind in (keras.callbacks.LambdaCallback, keras.callbacks.History):
        return [hook for hook in _BATCH_HOOKS if hook in vars(callback)]
    base = keras.callbacks.Callback
    return [hook for hook in _BATCH_HOOKS if getattr(kind, hook) is not getattr(base, hook) or hook in vars(callback)]
