"""Which Keras callbacks can work here, and which of their hooks are called. Runs on the driver.

Callbacks run on the driver, at the ends of epochs. Batches end on the workers, where callbacks do not run: hooks of
batches are not called, and a callback that needs them is refused by name.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from keraunos.errors import JobError

logger = logging.getLogger(__name__)

_BATCH_HOOKS = tuple(
    f"on_{prefix}batch_{moment}" for prefix in ("", "train_", "test_", "predict_") for moment in ("begin", "end")
)
_EPOCH_HOOKS = tuple(f"on_{stretch}_{moment}" for stretch in ("train", "epoch") for moment in ("begin", "end"))


def check_callbacks(callbacks: Sequence[Any]) -> None:
    """Refuse by name what cannot work here; say once which callbacks have hooks that are not called."""
    if not callbacks:
        return
    import keras

    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise JobError(f"`callbacks` must be Keras callbacks. Received: {callback!r}.")
        _check_of_keras(callback)
    hooks = {id(callback): _batch_hooks(callback) for callback in callbacks}
    for callback in callbacks:
        if hooks[id(callback)] and not _own_hooks(callback, _EPOCH_HOOKS):
            raise JobError(
                f"The callback {type(callback).__name__} has batch hooks ({', '.join(hooks[id(callback)])}) and no "
                "others, but batches end on the workers, where callbacks do not run. Use epoch hooks (on_epoch_begin, "
                "on_epoch_end)."
            )
    partly = [callback for callback in callbacks if hooks[id(callback)]]
    if partly:
        logger.warning(
            "Batch hooks of the callback(s) %s are not called, because batches end on the workers: %s. Their other "
            "hooks are called.",
            ", ".join(dict.fromkeys(type(each).__name__ for each in partly)),
            ", ".join(dict.fromkeys(hook for each in partly for hook in hooks[id(each)])),
        )


def check_divergence(callbacks: Sequence[Any], on_divergence: str) -> None:
    """Refuse a TerminateOnNaN where the job says something else; where it does not, the workers do its work."""
    if any(type(each).__name__ == "TerminateOnNaN" for each in callbacks) and on_divergence != "stop":
        raise JobError(
            "The callback TerminateOnNaN needs onDivergence='stop', which is what it asks for. Received: "
            f"{on_divergence!r}. Leave one of them out."
        )


def _check_of_keras(callback: Any) -> None:
    """Refuse the callbacks of Keras that, as they are set, cannot do their work from the driver."""
    import keras

    name = type(callback).__name__
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
    saves = isinstance(callback, (keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore))
    if saves and callback.save_freq != "epoch":
        _refuse_batches(name, "save_freq", "epoch", callback.save_freq)
    if isinstance(callback, keras.callbacks.TensorBoard):
        if callback.update_freq != "epoch":
            _refuse_batches(name, "update_freq", "epoch", callback.update_freq)
        if getattr(callback, "_should_trace", False):
            _refuse_batches(name, "profile_batch", 0, (callback._start_batch, callback._stop_batch))
        missing = [each for each in ("tensorflow", "tensorboard") if importlib.util.find_spec(each) is None]
        if missing:
            raise JobError(
                f"The callback {name} of Keras writes with tensorflow and tensorboard, of which the driver "
                f"lacks {' and '.join(missing)}. Install what is missing, or use keras.callbacks.CSVLogger."
            )


def _refuse_batches(name: str, option: str, expected: str | int, received: Any) -> None:
    raise JobError(
        f"The callback {name} counts batches, but batches end on the workers, where callbacks do not run. Expected: "
        f"{option}={expected!r}. Received: {option}={received!r}."
    )


def _batch_hooks(callback: Any) -> list[str]:
    """The batch hooks that would do something if they were called."""
    import keras

    idle = [keras.callbacks.Callback]
    # A loss that is not finite ends the training where it was computed: see `check_divergence`.
    of_keras = ["TerminateOnNaN", "ModelCheckpoint", "BackupAndRestore", "History"]
    if not getattr(callback, "write_steps_per_second", False):
        of_keras.append("TensorBoard")
    idle += [getattr(keras.callbacks, name) for name in of_keras]
    return _own_hooks(callback, _BATCH_HOOKS, idle)


def _own_hooks(callback: Any, hooks: Iterable[str], idle: Sequence[type] = ()) -> list[str]:
    """Those of the hooks that neither the base class defines nor one whose hooks have nothing to do."""
    import keras

    kind = type(callback)
    without = [keras.callbacks.Callback, *(each for each in idle if isinstance(callback, each))]
    return [
        hook
        for hook in hooks
        # A LambdaCallback has its hooks as attributes.
        if hook in vars(callback) or all(getattr(kind, hook) is not getattr(each, hook) for each in without)
    ]
