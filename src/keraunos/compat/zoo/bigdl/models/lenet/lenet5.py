"""`bigdl.models.lenet.lenet5`: the model. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.zoo.bigdl.nn.layer import (
    Linear,
    LogSoftMax,
    Reshape,
    Sequential,
    SpatialConvolution,
    SpatialMaxPooling,
    Tanh,
)

__all__ = ["build_model"]


def build_model(class_num: int) -> Sequential:
    """LeNet-5, for images of 28 rows and columns; its outputs are logarithms of shares."""
    model = Sequential().add(Reshape([1, 28, 28]))
    for inputs, outputs in ((1, 6), (6, 12)):
        model.add(SpatialConvolution(inputs, outputs, 5, 5)).add(Tanh()).add(SpatialMaxPooling(2, 2, 2, 2))
    model.add(Reshape([12 * 4 * 4])).add(Linear(12 * 4 * 4, 100)).add(Tanh())
    return model.add(Linear(100, class_num)).add(LogSoftMax())
