"""Optimizers with what today's have not, as registered classes. Runs on the driver and on workers.

Two things: a rate `lr / (1 + decay * steps)` whose `lr` can be read and set, where a schedule of today's cannot; and
`clipnorm` together with `clipvalue`, the norm first. Whatever needs neither is a plain optimizer of today's.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keraunos.compat.old_keras.own_layers import PACKAGE


def _old(base: Any) -> Any:
    """Returns the class of today's with both, under its name, registered."""

    class Old(base):  # type: ignore[misc]  # Keras is used untyped
        """Today's optimizer, with a decay of its rate and with both ways of clipping.

        Args:
            decay: the rate is divided by 1 and this, times the steps.
            global_clipnorm: how long the gradient may be.
            clipvalue: how large each of its entries may be after that.
            named: the arguments of today's.
        """

        def __init__(
            self,
            *arguments: Any,
            decay: float = 0.0,
            global_clipnorm: float | None = None,
            clipvalue: float | None = None,
            **named: Any,
        ) -> None:
            # Keras takes no `decay`, and one way of clipping.
            super().__init__(*arguments, **named)
            self.decay = float(decay)
            self.global_clipnorm, self.clipvalue = global_clipnorm, clipvalue
            if self.decay:
                # What looks for the rate by this name means to set what is used.
                self._learning_rate._name = "rate_before_decay"

        def _get_current_learning_rate(self) -> Any:
            rate = super()._get_current_learning_rate()
            if not self.decay:
                return rate
            steps = ops.cast(self.iterations, "float32")
            return ops.convert_to_tensor(rate) / (1.0 + self.decay * steps)

        def _clip_gradients(self, grads: Any) -> Any:
            clipped, most = super()._clip_gradients(grads), self.clipvalue
            return [each if each is None else ops.clip(each, -most, most) for each in clipped] if most else clipped

        def get_config(self) -> dict[str, Any]:
            """Returns the arguments, from which the optimizer is made again."""
            return {**super().get_config(), "decay": self.decay}

    Old.__name__ = Old.__qualname__ = base.__name__
    return keras.saving.register_keras_serializable(PACKAGE)(Old)


SGD = _old(keras.optimizers.SGD)
RMSprop = _old(keras.optimizers.RMSprop)
Adagrad = _old(keras.optimizers.Adagrad)
Adadelta = _old(keras.optimizers.Adadelta)
Adam = _old(keras.optimizers.Adam)
Adamax = _old(keras.optimizers.Adamax)
