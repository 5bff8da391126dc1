"""`zoo.pipeline.api.keras.layers.normalization`. Runs on the driver; its layer on workers, too."""

from __future__ import annotations

from typing import Any, Self

from keraunos.batch import Array
from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.compat.zoo.own_layers.running import RunningNormalization
from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, initializer, noted, ordering
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import JobError, ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["BatchNormalization"]


@keras.saving.register_keras_serializable(PACKAGE)
class BatchNormalization(RunningNormalization):
    """Outputs of mean 0 and variance 1 over a batch, channel by channel, then scaled and shifted.

    As Analytics Zoo handed it to BigDL, `momentum` is the share of the new batch in the statistics that predictions
    use, and not, as in Keras, that of those before.
    """

    def __init__(
        self,
        epsilon: float = 0.001,
        mode: int = 0,
        axis: int | None = None,
        momentum: float = 0.99,
        beta_init: Any = "zero",
        gamma_init: Any = "one",
        dim_ordering: str = "th",
        input_shape: Shape = None,
        bigdl_type: str = "float",
        **named: Any,
    ) -> None:
        first = ordering(dim_ordering) == "channels_first"
        if mode != 0:
            raise JobError(f"`mode` of BatchNormalization must be 0. Received: {mode!r}.")
        if axis not in ({None, 1} if first else {None, -1, 3}):
            raise JobError(
                f"`axis` of BatchNormalization must be {'1' if first else '-1 or 3'} with "
                f"dim_ordering={dim_ordering!r}. Received: {axis!r}."
            )
        if bigdl_type != "float":
            raise JobError(f"`bigdl_type` must be 'float'. Received: {bigdl_type!r}.")
        super().__init__(
            axis=1 if first else -1,
            momentum=1.0 - float(momentum),
            epsilon=float(epsilon),
            beta_initializer=initializer(beta_init),
            gamma_initializer=initializer(gamma_init),
            **named,
        )
        self._dim_ordering, self._share = dim_ordering, float(momentum)
        noted(self, input_shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **{name: value for name, value in super().get_config().items() if name in {"name", "trainable", "dtype"}},
            "epsilon": self.epsilon,
            "momentum": self._share,
            "beta_init": keras.initializers.serialize(self.beta_initializer),
            "gamma_init": keras.initializers.serialize(self.gamma_initializer),
            "dim_ordering": self._dim_ordering,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the layer that was made with the arguments."""
        inits = {name: keras.initializers.deserialize(config[name]) for name in ("beta_init", "gamma_init")}
        return cls(**{**config, **inits})

    @in_tensorflow_2
    def set_running_mean(self, running_mean: Array) -> Self:
        """Set the mean of all batches so far."""
        self._built().moving_mean.assign(running_mean)
        return self

    @in_tensorflow_2
    def set_running_std(self, running_std: Array) -> Self:
        """Set the variance of all batches so far."""
        self._built().moving_variance.assign(running_std)
        return self

    @in_tensorflow_2
    def get_running_mean(self) -> Array:
        """Returns the mean of all batches so far."""
        found: Array = keras.ops.convert_to_numpy(self._built().moving_mean)
        return found

    @in_tensorflow_2
    def get_running_std(self) -> Array:
        """Returns the variance of all batches so far."""
        found: Array = keras.ops.convert_to_numpy(self._built().moving_variance)
        return found

    def _built(self) -> Self:
        shape = getattr(self, "zoo_input_shape", None)
        if not self.built and shape is not None:
            self.build((None, *shape))
        if not self.built:
            raise ModelError(
                "A BatchNormalization must be a layer of a model, or have an `input_shape`, before its statistics are "
                "read or set. Received: one without a shape."
            )
        return self
