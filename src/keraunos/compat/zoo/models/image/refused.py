"""The error for Analytics Zoo's own image models. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.errors import JobError


class RefusedModel:
    """A model of BigDL's."""

    instead = "KerasNet.predict_image"

    def __init__(self, *_: Any, **__: Any) -> None:
        raise self.refusal()

    @classmethod
    def load_model(cls, *_: Any, **__: Any) -> Any:
        """Refused."""
        raise cls.refusal()

    @classmethod
    def refusal(cls) -> JobError:
        """Returns the error."""
        return JobError(
            f"{cls.__name__} is not here: its models are files of BigDL's JVM. Expected: a model of Keras, or a frozen "
            f"TensorFlow graph. Received: {cls.__name__}. Use TFNet(path, inputs, outputs).predict_image, or "
            f"{cls.instead}."
        )


def refused_step(module: str, name: str) -> JobError:
    """Returns the error for a step on what such a model returns."""
    return JobError(
        f"{module}.{name} is not here: it reads what BigDL's models give. Received: {name}. Map over get_predict()."
    )
