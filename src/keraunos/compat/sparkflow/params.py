"""The Params of SparkFlow's estimator and model, with SparkFlow's names and defaults. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pyspark.ml.param.shared import HasInputCol, HasLabelCol, HasPredictionCol

from keraunos.compat.sparkflow.optimizers import check_name, read_options
from keraunos.errors import JobError
from keraunos.ml import conversion
from keraunos.ml.params import Settings, param

DEFAULT_OUTPUT = "out/Sigmoid:0"


def tensor_name(name: str) -> conversion.Converter:
    """The name of a tensor; that of an operation stands for its first output."""

    def convert(value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise JobError(f"`{name}` must be the name of a tensor, such as 'x:0'. Received: {value!r}.")
        return value if ":" in value else f"{value}:0"

    return convert


def text(name: str) -> conversion.Converter:
    """A string."""

    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise JobError(f"`{name}` must be a string. Received: {type(value)!r}.")
        return value

    return convert


def _options(value: Any) -> str:
    read_options(value)
    if not isinstance(value, str):
        raise JobError(f"`optimizerOptions` must be a string of JSON. Received: {value!r}. Use json.dumps.")
    return value


def _port(value: Any) -> int:
    number: int = conversion.whole_number("port", at_least=1)(value)
    if number > 65535:
        raise JobError(f"`port` must be a port from 1 to 65535. Received: {value!r}.")
    return number


class HasServing(Settings, HasInputCol, HasPredictionCol):  # type: ignore[misc]  # pyspark is used untyped
    """What the estimator and its model share: the columns, and which tensors predict."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"toKeepDropout": False, "tfDropout": None, "predictionCol": "predicted"}

    inputCol = param(
        "inputCol",
        "The column with the features: a vector, an array, or a number.",
        conversion.column_name("inputCol"),
    )
    predictionCol = param(
        "predictionCol",
        "The column that `transform` adds: a number where the output tensor has one element a row, else a vector.",
        conversion.column_name("predictionCol"),
    )
    tfInput = param("tfInput", "The name of the placeholder for the features.", tensor_name("tfInput"))
    tfOutput = param("tfOutput", "The name of the tensor that predicts.", tensor_name("tfOutput"))
    tfDropout = param(
        "tfDropout",
        "The name of the placeholder for dropout, made with tf.placeholder_with_default: training uses its default, "
        "prediction lets nothing drop out.",
        tensor_name("tfDropout"),
    )
    toKeepDropout = param(
        "toKeepDropout",
        "What the dropout placeholder means: True for the fraction that is kept (predictions feed 1.0), False for the "
        "fraction that is dropped (predictions feed 0.0).",
        conversion.boolean("toKeepDropout"),
    )

    def setInputCol(self, value: str) -> Self:
        """Set the column with the features."""
        return self.setParams(inputCol=value)

    def setPredictionCol(self, value: str) -> Self:
        """Set the column that `transform` adds."""
        return self.setParams(predictionCol=value)

    def getTfInput(self) -> str | None:
        """The name of the placeholder for the features."""
        return self._get_text("tfInput")

    def getTfOutput(self) -> str | None:
        """The name of the tensor that predicts."""
        return self._get_text("tfOutput")

    def getTfDropout(self) -> str | None:
        """The name of the placeholder for dropout."""
        return self._get_text("tfDropout")

    def getToKeepDropout(self) -> bool:
        """Whether the dropout placeholder is the fraction that is kept."""
        return bool(self._get("toKeepDropout"))

    def _get_text(self, name: str) -> str | None:
        value = self._get(name)
        return None if value is None else str(value)


class TrainingParams(HasServing, HasLabelCol):  # type: ignore[misc]  # pyspark is used untyped
    """The Params that only the estimator has."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "inputCol": "transformed",
        "tensorflowGraph": "",
        "tfInput": "x:0",
        "tfLabel": None,
        "tfOutput": DEFAULT_OUTPUT,
        "tfOptimizer": "adam",
        "tfLearningRate": 0.01,
        "iters": 1000,
        "partitions": 5,
        "miniBatchSize": 128,
        "miniStochasticIters": -1,
        "acquireLock": False,
        "shufflePerIter": True,
        "verbose": 0,
        "labelCol": None,
        "partitionShuffles": 1,
        "optimizerOptions": None,
        "port": 5000,
    }

    labelCol = param(
        "labelCol",
        "The column with the labels. Not set, as tfLabel: the model learns from the features alone.",
        conversion.column_name("labelCol"),
    )
    tensorflowGraph = param(
        "tensorflowGraph",
        "The TensorFlow graph, as graph_utils.build_graph gives it: its MetaGraphDef in JSON.",
        text("tensorflowGraph"),
    )
    tfLabel = param("tfLabel", "The name of the placeholder for the labels.", tensor_name("tfLabel"))
    tfOptimizer = param(
        "tfOptimizer",
        "The optimizer that the parameter server applies gradients with: adam, rmsprop, momentum, adadelta, adagrad, "
        "gradient_descent, adagrad_da, ftrl, proximal_adagrad or proximal_gradient_descent.",
        check_name,
    )
    tfLearningRate = param(
        "tfLearningRate",
        "The optimizer's learning rate; one in optimizerOptions goes before it.",
        conversion.positive_number("tfLearningRate"),
    )
    iters = param(
        "iters",
        "How many times a worker goes through its rows; with miniStochasticIters, how many times it draws batches.",
        conversion.whole_number("iters", at_least=1),
    )
    partitions = param(
        "partitions",
        "The most workers, each with a partition of its own. There are never more than the DataFrame has partitions, "
        "or than Spark can run at once.",
        conversion.whole_number("partitions", at_least=1),
    )
    miniBatchSize = param(
        "miniBatchSize",
        "Rows a step on each worker. Below 1: all rows of its partition.",
        conversion.whole_number("miniBatchSize"),
    )
    miniStochasticIters = param(
        "miniStochasticIters",
        "How many batches, each drawn at random, make an iteration. Below 1: an iteration goes through every row once.",
        conversion.whole_number("miniStochasticIters"),
    )
    acquireLock = param(
        "acquireLock",
        "Whether the server applies one worker's gradients after the other's. Otherwise it applies them all at once, "
        "without locks (Hogwild).",
        conversion.boolean("acquireLock"),
    )
    shufflePerIter = param(
        "shufflePerIter",
        "Whether each iteration takes the rows in another order.",
        conversion.boolean("shufflePerIter"),
    )
    verbose = param(
        "verbose",
        "Above 0: the driver prints each iteration's loss on each partition.",
        conversion.whole_number("verbose", at_least=0),
    )
    partitionShuffles = param(
        "partitionShuffles",
        "How many times to train for `iters` iterations, with the rows dealt out anew in between.",
        conversion.whole_number("partitionShuffles", at_least=1),
    )
    optimizerOptions = param(
        "optimizerOptions",
        "Options of the optimizer as JSON with TensorFlow's names; graph_utils has a helper for each optimizer.",
        _options,
    )
    port = param(
        "port",
        "The port that the parameter server listens on. Not set: 5000, or the next free one.",
        _port,
    )

    def setLabelCol(self, value: str) -> Self:
        """Set the column with the labels."""
        return self.setParams(labelCol=value)

    def getTensorflowGraph(self) -> str:
        """The TensorFlow graph in JSON."""
        return str(self._get("tensorflowGraph"))

    def getTfLabel(self) -> str | None:
        """The name of the placeholder for the labels."""
        return self._get_text("tfLabel")

    def getTfOptimizer(self) -> str:
        """The optimizer's name."""
        return str(self._get("tfOptimizer"))

    def getTfLearningRate(self) -> float:
        """The optimizer's learning rate."""
        return float(self._get("tfLearningRate"))

    def getIters(self) -> int:
        """How many times a worker goes through its rows."""
        return int(self._get("iters"))

    def getPartitions(self) -> int:
        """The most workers."""
        return int(self._get("partitions"))

    def getMiniBatchSize(self) -> int:
        """Rows a step on each worker."""
        return int(self._get("miniBatchSize"))

    def getMiniStochasticIters(self) -> int:
        """How many batches are drawn in an iteration."""
        return int(self._get("miniStochasticIters"))

    def getVerbose(self) -> int:
        """Whether each iteration's loss is printed."""
        return int(self._get("verbose"))

    def getAcquireLock(self) -> bool:
        """Whether gradients are applied one after the other."""
        return bool(self._get("acquireLock"))

    def getAqcuireLock(self) -> bool:
        """The same, as SparkFlow spells it."""
        return self.getAcquireLock()

    def getShufflePerIter(self) -> bool:
        """Whether each iteration takes the rows in another order."""
        return bool(self._get("shufflePerIter"))

    def getPartitionShuffles(self) -> int:
        """How many times to train, with the rows dealt out anew in between."""
        return int(self._get("partitionShuffles"))

    def getOptimizerOptions(self) -> str | None:
        """The optimizer's options in JSON."""
        return self._get_text("optimizerOptions")

    def getPort(self) -> int:
        """The port that the parameter server listens on."""
        return int(self._get("port"))
