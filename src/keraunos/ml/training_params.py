"""The Params that only estimators have: what to train on, for how long and how. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, TypedDict

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.ml import conversion
from keraunos.ml.attendance_params import HasAttendance
from keraunos.ml.checkpoint_params import HasCheckpoints
from keraunos.ml.continuation_params import HasInitialModel
from keraunos.ml.conversion import Columns
from keraunos.ml.declaration import param
from keraunos.ml.divergence_params import HasDivergence
from keraunos.ml.exchange_params import HasExchange
from keraunos.ml.label_params import HasLabels
from keraunos.ml.params import HasAllowNaN, HasPadding, HasServing, Settings


class HasTrainingColumns(HasLabels):
    """Which further columns a fit reads."""

    validationIndicatorCol, getValidationIndicatorCol, setValidationIndicatorCol = param(
        "A boolean column that is true for rows to validate on instead of training on them.",
        conversion.column_name("validationIndicatorCol"),
        read=conversion.if_named,
    )
    validationSplit, getValidationSplit, setValidationSplit = param(
        "The fraction of the rows, chosen at random by `seed`, to validate on instead of training on them.",
        conversion.fraction("validationSplit"),
        default=0.0,
    )

    validationData, getValidationData, setValidationData = param(
        "A DataFrame with the same columns, of the same types, to validate on. It is a live object, and not saved. In "
        "place of `validationSplit` and `validationIndicatorCol`.",
        conversion.data_frame("validationData"),
    )


class HasSchedule(Settings):
    """How long, in what portions and in what order a fit trains."""

    epochs, getEpochs, setEpochs = param(
        "How often the training passes over all rows. A callback may end it earlier.",
        conversion.whole_number("epochs", at_least=1),
        default=1,
    )
    batchSize, getBatchSize, setBatchSize = param(
        "Rows per worker per step. With n workers a step of the default exchange covers n times as many rows.",
        conversion.whole_number("batchSize", at_least=1),
        default=32,
    )
    learningRate, getLearningRate, setLearningRate = param(
        "The learning rate to use instead of the one the model was compiled with. Refused where that is a schedule, "
        "and where workers send gradients that an optimizer on the servers applies: that one has a rate of its own.",
        conversion.positive_number("learningRate"),
    )
    classWeight, getClassWeight, setClassWeight = param(
        "A dict from class number to the factor on the weight of its rows, to balance rare classes. Multiplied with "
        "`weightCol` where both are given. 'balanced': the number of rows to train on, divided by the number of "
        "classes and the rows of the class, as it is then in the DataFrame.",
        conversion.class_weights("classWeight"),
        empty={},
        read=copy,
    )
    seed, getSeed, setSeed = param(
        "The random seed of the rows' order, of the validation split, of random layers such as dropout, and of the "
        "initial weights of a model that is not built yet. A built model starts from the weights it has.",
        conversion.whole_number("seed"),
        default=0,
    )
    shuffle, getShuffle, setShuffle = param(
        "Whether each epoch sees the rows in a new order. False: every epoch has the same order. It follows from the "
        "content of each worker's rows, not from the order of the DataFrame: Spark keeps no order when it moves rows.",
        conversion.boolean("shuffle"),
        default=True,
    )


class HasCluster(Settings):
    """How many workers train, and what a user sees of it."""

    numWorkers, getNumWorkers, setNumWorkers = param(
        "How many Spark tasks train together. Not set: all task slots that the cluster has, less those of `servers`.",
        conversion.whole_number("numWorkers", at_least=1),
    )
    memoryBudget, getMemoryBudget, setMemoryBudget = param(
        "Bytes of rows that a worker keeps in memory; what is beyond goes to Spark's local directory on disk. Not "
        "set: derived from the memory that the executor has.",
        conversion.whole_number("memoryBudget", at_least=1),
    )
    listeners, getListeners, setListeners = param(
        "Objects that are told on the driver what happens in a fit, such as keraunos.JsonlLog. They never disturb it.",
        conversion.listener_list("listeners"),
        empty=[],
        read=copy,
    )
    verbose, getVerbose, setVerbose = param(
        "What a fit shows: 0 nothing, 1 a progress bar, 2 a line for each epoch, 'auto' what suits the terminal.",
        conversion.verbosity("verbose"),
        default="auto",
    )


class TrainingParams(
    HasInitialModel,
    HasTrainingColumns,
    HasAllowNaN,
    HasPadding,
    HasSchedule,
    HasDivergence,
    HasExchange,
    HasAttendance,
    HasCluster,
    HasCheckpoints,
    HasServing,
):
    """Every Param that the estimators of any format share."""


class TrainingOptions(TypedDict, total=False):
    """The same Params as keywords of a constructor, for editors and type checkers."""

    allowNaN: bool
    backend: str | None
    batchSize: int
    checkpointDir: str | None
    checkpointEvery: int | str
    checkpointKeep: int
    classWeight: Mapping[int, float] | str | None
    compression: str | None
    customObjects: Mapping[str, Any] | None
    epochs: int
    every: int | str | None
    exchange: str | ExchangePlan
    featuresCol: Columns
    inferenceBatchSize: int
    initialModel: Any
    labelCol: Columns | None
    learningRate: float | None
    listeners: Sequence[Any] | None
    maxLength: int | None
    meet: str | None
    memoryBudget: int | None
    numWorkers: int | None
    onDivergence: str
    onWorkerLost: str
    pad: bool
    pixels: Mapping[str, Any] | None
    rule: Any
    saveOptimizer: bool
    scale: float | str | None
    seed: int
    serverPorts: tuple[int, int] | None
    servers: str | int
    shuffle: bool
    stallReportAfter: float
    stateEvery: int | None
    trustedModules: Sequence[str] | None
    validationData: Any
    validationIndicatorCol: str | None
    validationSplit: float
    verbose: int | str
    weightCol: str | None
    workerPatience: float
    driverPatience: float
