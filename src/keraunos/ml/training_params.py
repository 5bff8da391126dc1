"""The Params that only estimators have: what to train, on what, for how long and how. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypedDict

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.ml import conversion
from keraunos.ml.attendance_params import HasAttendance
from keraunos.ml.checkpoint_params import HasCheckpoints
from keraunos.ml.continuation_params import HasInitialModel
from keraunos.ml.divergence_params import HasDivergence
from keraunos.ml.exchange_params import HasExchange
from keraunos.ml.label_params import HasLabels
from keraunos.ml.params import Columns, HasAllowNaN, HasPadding, HasServing, Settings, param

VERBOSITIES = ("auto", 0, 1, 2)


class HasModel(Settings):
    """What is trained."""

    model = param(
        "model",
        "The compiled Keras model to train. `fit` works on a copy and leaves this one as it is.",
        conversion.keras_model("model"),
    )

    def getModel(self) -> Any:
        """The Keras model to train."""
        return self._get("model")

    def setModel(self, value: Any) -> Self:
        """Set the Keras model to train."""
        return self.setParams(model=value)


class HasTrainingColumns(HasLabels):
    """Which further columns a fit reads."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"validationSplit": 0.0}

    validationIndicatorCol = param(
        "validationIndicatorCol",
        "A boolean column that is true for rows to validate on instead of training on them.",
        conversion.column_name("validationIndicatorCol"),
    )
    validationSplit = param(
        "validationSplit",
        "The fraction of the rows, chosen at random by `seed`, to validate on instead of training on them.",
        conversion.fraction("validationSplit"),
    )

    validationData = param(
        "validationData",
        "A DataFrame with the same columns, of the same types, to validate on. It is a live object, and not saved. In "
        "place of `validationSplit` and `validationIndicatorCol`.",
        conversion.data_frame("validationData"),
    )

    def getValidationData(self) -> Any:
        """The DataFrame to validate on; `None` where there is none."""
        return self._get("validationData")

    def setValidationData(self, value: Any) -> Self:
        """Set the DataFrame to validate on."""
        return self.setParams(validationData=value)

    def getValidationIndicatorCol(self) -> str | None:
        """The column that marks rows to validate on."""
        return str(self._get("validationIndicatorCol") or "") or None

    def setValidationIndicatorCol(self, value: str) -> Self:
        """Set the column that marks rows to validate on."""
        return self.setParams(validationIndicatorCol=value)

    def getValidationSplit(self) -> float:
        """The fraction of the rows to validate on."""
        return float(self._get("validationSplit"))

    def setValidationSplit(self, value: float) -> Self:
        """Set the fraction of the rows to validate on."""
        return self.setParams(validationSplit=value)


class HasSchedule(Settings):
    """How long, in what portions and in what order a fit trains."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"batchSize": 32, "epochs": 1, "seed": 0, "shuffle": True}

    epochs = param(
        "epochs",
        "How often the training passes over all rows. A callback may end it earlier.",
        conversion.whole_number("epochs", at_least=1),
    )
    batchSize = param(
        "batchSize",
        "Rows per worker per step. With n workers a step of the default exchange covers n times as many rows.",
        conversion.whole_number("batchSize", at_least=1),
    )
    learningRate = param(
        "learningRate",
        "The learning rate to use instead of the one the model was compiled with. Refused where that is a schedule, "
        "and where workers send gradients that an optimizer on the servers applies: that one has a rate of its own.",
        conversion.positive_number("learningRate"),
    )
    classWeight = param(
        "classWeight",
        "A dict from class number to the factor on the weight of its rows, to balance rare classes. Multiplied with "
        "`weightCol` where both are given. 'balanced': the number of rows to train on, divided by the number of "
        "classes and the rows of the class, as it is then in the DataFrame.",
        conversion.class_weights("classWeight"),
    )
    seed = param(
        "seed",
        "The random seed of the rows' order, of the validation split, of random layers such as dropout, and of the "
        "initial weights of a model that is not built yet. A built model starts from the weights it has.",
        conversion.whole_number("seed"),
    )
    shuffle = param(
        "shuffle",
        "Whether each epoch sees the rows in a new order. False: every epoch has the same order. It follows from the "
        "content of each worker's rows, not from the order of the DataFrame: Spark keeps no order when it moves rows.",
        conversion.boolean("shuffle"),
    )

    def getEpochs(self) -> int:
        """How often the training passes over all rows."""
        return int(self._get("epochs"))

    def setEpochs(self, value: int) -> Self:
        """Set how often the training passes over all rows."""
        return self.setParams(epochs=value)

    def getBatchSize(self) -> int:
        """Rows per worker per step."""
        return int(self._get("batchSize"))

    def setBatchSize(self, value: int) -> Self:
        """Set the rows per worker per step."""
        return self.setParams(batchSize=value)

    def getLearningRate(self) -> float | None:
        """The learning rate over the compiled one."""
        value = self._get("learningRate")
        return None if value is None else float(value)

    def setLearningRate(self, value: float) -> Self:
        """Set the learning rate over the compiled one."""
        return self.setParams(learningRate=value)

    def getClassWeight(self) -> dict[int, float] | str:
        """The factor on each class's rows, or 'balanced'; empty where there is none."""
        value = self._get("classWeight") or {}
        return value if isinstance(value, str) else dict(value)

    def setClassWeight(self, value: Mapping[int, float] | str) -> Self:
        """Set the factor on each class's rows, or 'balanced'."""
        return self.setParams(classWeight=value)

    def getSeed(self) -> int:
        """The random seed."""
        return int(self._get("seed"))

    def setSeed(self, value: int) -> Self:
        """Set the random seed."""
        return self.setParams(seed=value)

    def getShuffle(self) -> bool:
        """Whether each epoch sees the rows in a new order; without it, one that follows from their content."""
        return bool(self._get("shuffle"))

    def setShuffle(self, value: bool) -> Self:
        """Set whether each epoch sees the rows in a new order."""
        return self.setParams(shuffle=value)


class HasCluster(Settings):
    """How many workers train, and what a user sees of it."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"verbose": "auto"}

    numWorkers = param(
        "numWorkers",
        "How many Spark tasks train together. Not set: all task slots that the cluster has, less those of `servers`.",
        conversion.whole_number("numWorkers", at_least=1),
    )
    memoryBudget = param(
        "memoryBudget",
        "Bytes of rows that a worker keeps in memory; what is beyond goes to Spark's local directory on disk. Not "
        "set: derived from the memory that the executor has.",
        conversion.whole_number("memoryBudget", at_least=1),
    )
    callbacks = param(
        "callbacks",
        "Keras callbacks with hooks of the training or of its epochs, such as EarlyStopping. They run on the driver.",
        conversion.callback_list("callbacks"),
    )
    verbose = param(
        "verbose",
        "What a fit shows: 0 nothing, 1 a progress bar, 2 a line for each epoch, 'auto' what suits the terminal.",
        conversion.choice("verbose", VERBOSITIES),
    )

    def getNumWorkers(self) -> int | None:
        """How many Spark tasks train together; `None` stands for all slots."""
        value = self._get("numWorkers")
        return None if value is None else int(value)

    def setNumWorkers(self, value: int) -> Self:
        """Set how many Spark tasks train together."""
        return self.setParams(numWorkers=value)

    def getMemoryBudget(self) -> int | None:
        """Bytes of rows that a worker keeps in memory."""
        value = self._get("memoryBudget")
        return None if value is None else int(value)

    def setMemoryBudget(self, value: int) -> Self:
        """Set the bytes of rows that a worker keeps in memory."""
        return self.setParams(memoryBudget=value)

    def getCallbacks(self) -> list[Any]:
        """The Keras callbacks that follow the fit."""
        return list(self._get("callbacks") or [])

    def setCallbacks(self, value: Sequence[Any]) -> Self:
        """Set the Keras callbacks that follow the fit."""
        return self.setParams(callbacks=value)

    def getVerbose(self) -> int | str:
        """What a fit shows."""
        value: int | str = self._get("verbose")
        return value

    def setVerbose(self, value: int | str) -> Self:
        """Set what a fit shows."""
        return self.setParams(verbose=value)


class TrainingParams(
    HasModel,
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
    """Every Param that the estimators share."""


class TrainingOptions(TypedDict, total=False):
    """The same Params as keywords of a constructor, for editors and type checkers."""

    allowNaN: bool
    backend: str | None
    batchSize: int
    callbacks: Sequence[Any] | None
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
    maxLength: int | None
    meet: str | None
    memoryBudget: int | None
    model: Any
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
