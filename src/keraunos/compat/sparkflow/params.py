"""The Params of SparkFlow's estimator and model, with SparkFlow's names and defaults. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.ml.param.shared import HasInputCol, HasLabelCol, HasPredictionCol

from keraunos.compat.sparkflow.optimizers import check_name, read_options
from keraunos.errors import JobError
from keraunos.ml import conversion
from keraunos.ml.declaration import readable_param, writable_param
from keraunos.ml.params import Settings

DEFAULT_OUTPUT = "out/Sigmoid:0"


def tensor_name(name: str) -> conversion.Converter[str, str]:
    """Returns the name of a tensor; that of an operation means its first output."""

    def convert(value: str) -> str:
        if not isinstance(value, str) or not value:
            raise JobError(f"`{name}` must be the name of a tensor, such as 'x:0'. Received: {value!r}.")
        return value if ":" in value else f"{value}:0"

    return convert


def text(name: str) -> conversion.Converter[str, str]:
    """Returns a string."""

    def convert(value: str) -> str:
        if not isinstance(value, str):
            raise JobError(f"`{name}` must be a string. Received: {type(value)!r}.")
        return value

    return convert


def _options(value: str) -> str:
    read_options(value)
    if not isinstance(value, str):
        raise JobError(f"`optimizerOptions` must be a string of JSON. Received: {value!r}. Use json.dumps.")
    return value


def _port(value: int) -> int:
    number: int = conversion.whole_number("port", at_least=1)(value)
    if number > 65535:
        raise JobError(f"`port` must be a port from 1 to 65535. Received: {value!r}.")
    return number


class HasGraphServing(Settings, HasInputCol, HasPredictionCol):  # type: ignore[misc]  # pyspark is used untyped
    """Params of both the estimator and its model: the columns, and the tensors for prediction."""

    inputCol, setInputCol = writable_param(
        "The column with the features: a vector, an array, or a number.", conversion.column_name("inputCol")
    )
    predictionCol, setPredictionCol = writable_param(
        "The column that `transform` adds: a number where the output tensor has one element a row, else a vector.",
        conversion.column_name("predictionCol"),
        default="predicted",
    )
    tfInput, getTfInput = readable_param("The name of the placeholder for the features.", tensor_name("tfInput"))
    tfOutput, getTfOutput = readable_param("The name of the tensor that predicts.", tensor_name("tfOutput"))
    tfDropout, getTfDropout = readable_param(
        "The name of the placeholder for dropout, made with tf.placeholder_with_default: training uses its default, "
        "prediction lets nothing drop out.",
        tensor_name("tfDropout"),
        default=None,
    )
    toKeepDropout, getToKeepDropout = readable_param(
        "What the dropout placeholder means: True for the fraction that is kept (predictions feed 1.0), False for the "
        "fraction that is dropped (predictions feed 0.0).",
        conversion.boolean("toKeepDropout"),
        default=False,
    )


class GraphTrainingParams(HasGraphServing, HasLabelCol):  # type: ignore[misc]  # pyspark is used untyped
    """The Params that only the estimator has."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"inputCol": "transformed", "tfInput": "x:0", "tfOutput": DEFAULT_OUTPUT}

    labelCol, setLabelCol = writable_param(
        "The column with the labels. Not set, as tfLabel: the model learns from the features alone.",
        conversion.column_name("labelCol"),
        default=None,
    )
    tensorflowGraph, getTensorflowGraph = readable_param(
        "The TensorFlow graph, as graph_utils.build_graph gives it: its MetaGraphDef in JSON.",
        text("tensorflowGraph"),
        default="",
    )
    tfLabel, getTfLabel = readable_param(
        "The name of the placeholder for the labels.", tensor_name("tfLabel"), default=None
    )
    tfOptimizer, getTfOptimizer = readable_param(
        "The optimizer that the parameter server applies gradients with: adam, rmsprop, momentum, adadelta, adagrad, "
        "gradient_descent, adagrad_da, ftrl, proximal_adagrad or proximal_gradient_descent.",
        check_name,
        default="adam",
    )
    tfLearningRate, getTfLearningRate = readable_param(
        "The optimizer's learning rate; one in optimizerOptions goes before it.",
        conversion.positive_number("tfLearningRate"),
        default=0.01,
    )
    iters, getIters = readable_param(
        "How many times a worker goes through its rows; with miniStochasticIters, how many times it draws batches.",
        conversion.whole_number("iters", at_least=1),
        default=1000,
    )
    partitions, getPartitions = readable_param(
        "The most workers, each with a partition of its own. There are never more than the DataFrame has partitions, "
        "or than Spark can run at once.",
        conversion.whole_number("partitions", at_least=1),
        default=5,
    )
    miniBatchSize, getMiniBatchSize = readable_param(
        "Rows a step on each worker. Below 1: all rows of its partition.",
        conversion.whole_number("miniBatchSize"),
        default=128,
    )
    miniStochasticIters, getMiniStochasticIters = readable_param(
        "How many batches, each drawn at random, make an iteration. Below 1: an iteration goes through every row once.",
        conversion.whole_number("miniStochasticIters"),
        default=-1,
    )
    acquireLock, getAcquireLock = readable_param(
        "Whether the server applies one worker's gradients after the other's. Otherwise it applies them all at once, "
        "without locks (Hogwild).",
        conversion.boolean("acquireLock"),
        default=False,
    )
    shufflePerIter, getShufflePerIter = readable_param(
        "Whether each iteration takes the rows in another order.", conversion.boolean("shufflePerIter"), default=True
    )
    verbose, getVerbose = readable_param(
        "Above 0: the driver prints each iteration's loss on each partition.",
        conversion.whole_number("verbose", at_least=0),
        default=0,
    )
    partitionShuffles, getPartitionShuffles = readable_param(
        "How many times to train for `iters` iterations, with the rows redistributed in between.",
        conversion.whole_number("partitionShuffles", at_least=1),
        default=1,
    )
    optimizerOptions, getOptimizerOptions = readable_param(
        "Options of the optimizer as JSON with TensorFlow's names; graph_utils has a helper for each optimizer.",
        _options,
        default=None,
    )
    port, getPort = readable_param(
        "The port that the parameter server listens on. Not set: 5000, or the next free one.", _port, default=5000
    )

    def getAqcuireLock(self) -> bool:
        """Returns the same, as SparkFlow spells it."""
        return self.getAcquireLock()
