"""Callbacks of Keras 0, 1 and 2 as they decided, on today's. Runs on the driver.

What they count and compare is of that day: when patience ends, which quantities grow, how epochs are numbered in the
names of files, and which kind of file each name may have.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from keraunos.compat.old_keras import files, own_metrics
from keraunos.compat.old_keras.days import Day
from keraunos.errors import JobError

logger = logging.getLogger(__name__)


class _Watching(keras.callbacks.Callback):  # type: ignore[misc]  # Keras is used untyped
    """Base class of callbacks that compare a quantity with its best value."""

    monitor: str
    mode: str
    best: float

    def watch(self, monitor: str, mode: str, min_delta: float) -> None:
        """Take the arguments; 'acc' in the name of a quantity meant that it grows, and nothing else did."""
        self.monitor = monitor
        self.mode = mode
        self.grows = mode == "max" or (mode != "min" and ("acc" in monitor or monitor.startswith("fmeasure")))
        self.min_delta = abs(float(min_delta))
        self.forget()

    def forget(self) -> None:
        """Nothing has been seen yet."""
        self.best = -math.inf if self.grows else math.inf

    def improved(self, current: float) -> bool:
        """Returns whether a value is better than the best."""
        if self.grows:
            return bool(current - self.min_delta > self.best)
        return bool(current + self.min_delta < self.best)

    def current(self, logs: Mapping[str, Any] | None) -> float | None:
        """Returns the quantity, if it is in the epoch's logs."""
        found = (logs or {}).get(self.monitor)
        if found is None:
            logger.warning(
                "%s watches %r, which is not among the epoch's quantities: %s.",
                type(self).__name__,
                self.monitor,
                ", ".join(logs or {}),
            )
        return None if found is None else float(found)


class EarlyStopping(_Watching, keras.callbacks.EarlyStopping):  # type: ignore[misc]  # Keras is used untyped
    """Ends the training when a quantity has not improved for as many epochs as that day counted.

    Args:
        day: until Keras 2.0.8 the wait was one epoch longer than `patience`.
        named: its arguments.
    """

    def __init__(self, day: Day, **named: Any) -> None:
        keras.callbacks.EarlyStopping.__init__(self, **named)
        self.day = day
        self.watch(self.monitor, self.mode, self.min_delta)

    def on_train_begin(self, logs: Any = None) -> None:
        """Reset the state, which Keras 0 did not."""
        if self.day.name != "0":
            self.wait = 0
            self.forget()
        self.stopped_epoch = 0
        if self.baseline is not None:
            self.best = self.baseline

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compare, and stop if there was no improvement for long."""
        current = self.current(logs)
        if current is None:
            return
        if self.improved(current):
            self.best, self.wait = current, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        waited = self.wait if self.day.waits_longer else self.wait + 1
        self.wait += 1
        if waited >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.restore_best_weights and self.best_weights is not None:
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: Any = None) -> None:
        """Say where it stopped; weights are restored only if it did."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")  # noqa: T201 - what verbose asks for


class ReduceLROnPlateau(_Watching, keras.callbacks.ReduceLROnPlateau):  # type: ignore[misc]  # Keras is used untyped
    """Makes the learning rate smaller when a quantity has not improved for as many epochs as that day counted.

    Args:
        day: until Keras 2.1.5 the first wait was one epoch longer than `patience`.
        named: its arguments.
    """

    def __init__(self, day: Day, **named: Any) -> None:
        keras.callbacks.ReduceLROnPlateau.__init__(self, **named)
        self.day = day
        self.watch(self.monitor, self.mode, self.min_delta)

    def on_train_begin(self, logs: Any = None) -> None:
        """Reset the state."""
        self.forget()
        self.wait = self.cooldown_counter = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compare, and make the rate smaller if there was no improvement for long."""
        rate = self.model.optimizer.lr
        if logs is not None:
            logs["lr"] = _number(rate)
        current = self.current(logs)
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.improved(current):
            self.best, self.wait = current, 0
        elif not self.in_cooldown():
            late = self.day.waits_longer
            self.wait += 0 if late else 1
            if self.wait >= self.patience and _number(rate) > self.min_lr * (1.0001 if late else 1.0):
                rate.assign(max(_number(rate) * self.factor, self.min_lr))
                self.cooldown_counter, self.wait = self.cooldown, 0
                if self.verbose > 0:
                    print(f"\nEpoch {epoch:05d}: reducing learning rate to {_number(rate)}.")  # noqa: T201 - the same
            self.wait += 1 if late else 0


class LearningRateScheduler(keras.callbacks.LearningRateScheduler):  # type: ignore[misc]  # Keras is used untyped
    """Sets the learning rate, before `decay`, to a function of the epoch and, since Keras 2.1.4, of the rate.

    Args:
        day: whether the function is given the rate.
        schedule: the function.
        verbose: whether to print the rate.
    """

    def __init__(self, day: Day, schedule: Callable[..., Any], verbose: int = 0) -> None:
        super().__init__(schedule, verbose)
        self.day = day

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Ask the function."""
        variable = self.model.optimizer.lr
        rate = None
        if self.day.speaks_keras_2:
            try:
                rate = self.schedule(epoch, _number(variable))
            except TypeError:
                rate = None  # it takes the epoch alone
        rate = self.schedule(epoch) if rate is None else rate
        if not isinstance(rate, (float, np.floating)):
            raise JobError(f"The function of LearningRateScheduler must return a float. Received: {rate!r}.")
        variable.assign(rate)
        if self.verbose > 0:
            print(f"\nEpoch {epoch + 1:05d}: LearningRateScheduler sets the rate to {rate}.")  # noqa: T201 - the same

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Note the rate, as Keras 2 did."""
        if logs is not None and self.day.speaks_keras_2:
            logs["lr"] = _number(self.model.optimizer.lr)


class ModelCheckpoint(_Watching, keras.callbacks.ModelCheckpoint):  # type: ignore[misc]  # Keras is used untyped
    """Saves the model, or its weights alone, after epochs, into a file of any name.

    Args:
        day: epochs in names are counted from 0 until Keras 2.0.8; Keras 0 saved weights alone.
        filepath: the name, with places for `epoch` and for quantities.
        monitor: the quantity that determines the best epoch.
        verbose: whether to print what is saved.
        save_best_only: whether only a better one is saved.
        save_weights_only: whether the weights alone are.
        mode: whether the quantity grows.
        period: after how many epochs.
    """

    def __init__(
        self,
        day: Day,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        period: int = 1,
    ) -> None:
        keras.callbacks.Callback.__init__(self)  # today's refuses names that it does not write itself
        self.day, self.filepath, self.verbose, self.period = day, str(filepath), verbose, int(period)
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only or day.name == "0"
        self.save_freq = "epoch"
        self._since = 0
        self.watch(monitor, mode, 0.0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Nothing: epochs were what counted."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save, if it is due and the quantity has improved."""
        self._since += 1
        if self._since < self.period:
            return
        self._since = 0
        if self.save_best_only:
            current = self.current(logs)
            if current is None or not self.improved(current):
                return
            self.best = current
        path = self.filepath.format(epoch=epoch if self.day.waits_longer else epoch + 1, **(logs or {}))
        if self.verbose > 0:
            print(f"\nEpoch {epoch:05d}: saving model to {path}")  # noqa: T201 - the same
        (files.save_weights if self.save_weights_only else files.save_model)(self.model, path)


class EachBatch(keras.callbacks.Callback):  # type: ignore[misc]  # Keras is used untyped
    """Gives callbacks behind it the loss and metrics of each batch; today's are means since the epoch began."""

    def __init__(self) -> None:
        super().__init__()
        self._before: list[Any] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Count from here."""
        model = self.model
        self._before = [np.array(variable) for variable in model.metrics_variables]
        model.reset_metrics()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Add the previous values and the size of the batch."""
        model = self.model
        if logs is not None:
            logs.update(batch=batch, size=int(_number(model.metrics[0].count)))
        for variable, before in zip(model.metrics_variables, self._before, strict=True):
            variable.assign(variable + before)

    @staticmethod
    def fits(model: Any) -> bool:
        """Returns whether the model's metrics are sums, so that those of batches add up."""
        inner = [each for metric in model.metrics for each in getattr(metric, "metrics", [metric])]
        return all(isinstance(each, (keras.metrics.Mean, own_metrics.BatchMetric)) for each in inner)


class AfterBatch(keras.callbacks.Callback):  # type: ignore[misc]  # Keras is used untyped
    """Gives Keras's own callbacks, behind it, the means that they expect."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Put them in place of the batch's."""
        if logs is not None:
            logs.clear()
            logs.update({name: float(np.asarray(value)) for name, value in self.model.get_metrics_result().items()})


def _number(variable: Any) -> float:
    return float(np.asarray(keras.ops.convert_to_numpy(variable)))
