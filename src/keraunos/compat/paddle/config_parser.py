"""Paddle's configuration language: `from config_parser import *`. Runs on the driver.

A configuration is a function or a file that calls `Settings`, `Inputs`, `Outputs` and `Layer`; `parse_config` runs it
and returns a `TrainerConfig` with all sizes computed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from keraunos.compat.paddle.language_calls import (
    Evaluator,
    Generator,
    Import,
    Inputs,
    Layer,
    LayerClass,
    Memory,
    MultiData,
    Outputs,
    Parameter,
    ProtoData,
    PyData,
    RecurrentLayerGroupBegin,
    RecurrentLayerGroupEnd,
    RecurrentLayerGroupSetGenerator,
    RecurrentLayerGroupSetOutLink,
    RecurrentLayerGroupWithoutOutLinksBegin,
    Settings,
    SimpleData,
    SubModelBegin,
    SubModelEnd,
    TestData,
    TrainData,
    cluster_config,
    default_compact_func,
    default_decay_rate,
    default_device,
    default_gradient_clipping_threshold,
    default_initial_mean,
    default_initial_smart,
    default_initial_std,
    default_initial_strategy,
    default_momentum,
    default_num_batches_regularization,
    default_update_hooks,
    get_config_arg,
    model_type,
)
from keraunos.compat.paddle.language_projections import (
    ContextProjection,
    ConvOperator,
    ConvProjection,
    ConvTransOperator,
    ConvTransProjection,
    DotMulOperator,
    DotMulProjection,
    FullMatrixProjection,
    IdentityOffsetProjection,
    IdentityProjection,
    Operator,
    Projection,
    ScalingProjection,
    TableProjection,
    TransposedFullMatrixProjection,
)
from keraunos.compat.paddle.language_run import parse
from keraunos.compat.paddle.language_values import (
    Bias,
    BilinearInterp,
    BlockExpand,
    Conv,
    ConvTrans,
    Image,
    Input,
    MaxOut,
    Norm,
    Pad,
    Pool,
    SpatialPyramidPool,
)
from keraunos.compat.paddle.layer_types.layer_type import all_types
from keraunos.compat.paddle.model_config import TrainerConfig

LAYER_CLASSES = {about.class_name: LayerClass(about) for about in all_types().values()}
globals().update(LAYER_CLASSES)

__all__ = [
    "Bias", "BilinearInterp", "BlockExpand", "ContextProjection", "Conv", "ConvOperator", "ConvProjection",
    "ConvTrans", "ConvTransOperator", "ConvTransProjection", "DotMulOperator", "DotMulProjection", "Evaluator",
    "FullMatrixProjection", "Generator", "IdentityOffsetProjection", "IdentityProjection", "Image", "Import",
    "Input", "Inputs", "Layer", "MaxOut", "Memory", "MultiData", "Norm", "Operator", "Outputs", "Pad", "Paddle",
    "Parameter", "Pool", "Projection", "ProtoData", "PyData", "RecurrentLayerGroupBegin", "RecurrentLayerGroupEnd",
    "RecurrentLayerGroupSetGenerator", "RecurrentLayerGroupSetOutLink", "RecurrentLayerGroupWithoutOutLinksBegin",
    "ScalingProjection", "Settings", "SimpleData", "SpatialPyramidPool", "SubModelBegin", "SubModelEnd",
    "TableProjection", "TestData", "TrainData", "TransposedFullMatrixProjection", "cluster_config",
    "default_compact_func", "default_decay_rate", "default_device", "default_gradient_clipping_threshold",
    "default_initial_mean", "default_initial_smart", "default_initial_std", "default_initial_strategy",
    "default_momentum", "default_num_batches_regularization", "default_update_hooks", "get_config_arg",
    "model_type", "parse_config",
]  # fmt: skip

LANGUAGE = tuple(name for name in (*__all__, *LAYER_CLASSES) if name not in ("Paddle", "parse_config"))
__all__ += list(LAYER_CLASSES)


def parse_config(trainer_config: Any, config_arg_str: str = "") -> TrainerConfig:
    """Run a configuration. Returns what it describes.

    Args:
        trainer_config: a function without arguments, or the path of a file. Both find every name of the language; the
            globals of a function are afterwards as they were.
        config_arg_str: what `get_config_arg` reads, as "k=v,k2=v2".
    """
    return parse(trainer_config, config_arg_str, {name: globals()[name] for name in LANGUAGE})


class _WhenUsed(type):
    """Stands for the estimator, so that a configuration can be parsed if nothing of Spark is loaded."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        return _estimator()(*arguments, **keywords)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_estimator(), name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _estimator())


class Paddle(metaclass=_WhenUsed):
    """The estimator, `keraunos.compat.paddle.estimator.Paddle`."""


def _estimator() -> Any:
    return import_module("keraunos.compat.paddle.estimator").Paddle
