from __future__ import annotations

import inspect
from pathlib import Path

import keras
import numpy as np
import pytest
from pyspark.ml.tuning import ParamGridBuilder
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from keraunos import ExchangePlan, KerasClassifier, KerasEstimator, KerasRegressor, Listener
from keraunos.errors import ColumnError, JobError, ModelError, PlanError
from tests.ml.models import mlp

ESTIMATORS = [KerasClassifier, KerasEstimator, KerasRegressor]
VALUES = {
    "allowNaN": True,
    "backend": "tensorflow",
    "batchSize": 7,
    "callbacks": [keras.callbacks.TerminateOnNaN()],
    "checkpointDir": "hdfs://somewhere/saved",
    "checkpointEvery": "90 seconds",
    "checkpointKeep": 5,
    "classWeight": {0: 1.0, 1: 2.5},
    "compression": "int8",
    "customObjects": {"f": len},
    "epochs": 9,
    "every": "epoch",
    "exchange": "averaging",
    "featuresCol": ["a", "b"],
    "inferenceBatchSize": 64,
    "initialModel": "models/earlier",
    "labelCol": "y",
    "learningRate": 0.25,
    "listeners": [Listener()],
    "maxLength": 12,
    "meet": "bounded(3)",
    "memoryBudget": 1 << 20,
    "model": mlp(),
    "numWorkers": 3,
    "onDivergence": "skip",
    "onWorkerLost": "continue",
    "pad": True,
    "pixels": {"scale": 1.0, "mean": [1.0, 2.0, 3.0], "order": "BGR", "layout": "CHW"},
    "predictionCol": "p",
    "probabilityCol": "q",
    "rawPredictionCol": "r",
    "rule": "elastic(0.1)",
    "saveOptimizer": False,
    "scale": 0.5,
    "seed": -4,
    "serverPorts": (40000, 40010),
    "servers": "workers",
    "shuffle": False,
    "stallReportAfter": 60.0,
    "stateEvery": 0,
    "trustedModules": ["my_layers", "my_package.layers"],
    "thresholds": [0.5, 0.0, 2.0],
    "validationData": object.__new__(ClassicDataFrame),
    "validationIndicatorCol": "v",
    "validationSplit": 0.5,
    "verbose": 2,
    "weightCol": "w",
    "workerPatience": 20.0,
    "driverPatience": 90.0,
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_param_has_a_setter_a_getter_and_a_text(kind):
    estimator = kind()
    for param in estimator.params:
        name = param.name[0].upper() + param.name[1:]
        assert getattr(estimator, f"set{name}")(VALUES[param.name]) is estimator
        assert getattr(estimator, f"get{name}")() == VALUES[param.name]
        assert len(param.doc) > 25
        assert param.doc.endswith(".")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_constructor_takes_every_param_by_keyword_and_shows_the_defaults(kind):
    names = {param.name for param in kind().params}
    estimator = kind(**{name: value for name, value in VALUES.items() if name in names})
    assert {param.name for param in estimator.params if estimator.isSet(param)} == names
    shown = inspect.signature(kind).parameters
    assert set(shown) == names
    assert shown["batchSize"].default == 32
    assert shown["epochs"].default == 1
    with pytest.raises(TypeError):
        kind("model")


def test_a_param_that_was_not_set_reads_as_none_and_none_leaves_a_param_alone():
    classifier = KerasClassifier(numWorkers=None, epochs=4)
    assert classifier.getNumWorkers() is None
    assert classifier.getWeightCol() is None
    assert classifier.setParams(epochs=None).getEpochs() == 4


def test_an_unknown_keyword_names_the_nearest_param():
    with pytest.raises(TypeError, match="no Param 'epoch'. Did you mean 'epochs'"):
        KerasClassifier(epoch=3)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("batchSize", 0, JobError, r"`batchSize` must be a whole number of at least 1. Received: 0\."),
        ("batchSize", "32", JobError, "Received: '32'"),
        ("epochs", True, JobError, "Received: True"),
        ("epochs", 2.5, JobError, "Received: 2.5"),
        ("numWorkers", 0, JobError, "`numWorkers` must be a whole number of at least 1"),
        ("learningRate", 0, JobError, "`learningRate` must be a number above 0"),
        ("learningRate", float("nan"), JobError, "Received: nan"),
        ("validationSplit", 1.0, JobError, "`validationSplit` must be a fraction"),
        ("exchange", "allreduc", PlanError, "Did you mean 'allreduce'"),
        ("exchange", 3, PlanError, "`exchange` must be one of 'allreduce', 'averaging', .*'diloco'. Received: 3"),
        ("every", "batch", JobError, "`every` must be a whole number of steps of at least 1, or 'epoch'"),
        ("every", 0, JobError, "`every` must be"),
        ("backend", "mxnet", JobError, "`backend` must be one of 'jax', 'tensorflow', 'torch'. Received: 'mxnet'"),
        ("verbose", 3, JobError, "`verbose` must be one of 'auto', 0, 1, 2. Received: 3"),
        ("verbose", True, JobError, "Received: True"),
        ("pixels", {"order": "bgr"}, ColumnError, "`order` must be one of 'RGB', 'BGR'. Received: 'bgr'"),
        ("shuffle", 1, JobError, "`shuffle` must be True or False"),
        ("classWeight", {0: -1.0}, JobError, "`classWeight` must be a dict from class number"),
        ("classWeight", "balance", JobError, "or .balanced.. Received: .balance."),
        ("model", "a.keras", ModelError, r"Received: the path 'a.keras'. Load it first: keras.saving.load_model\('a.k"),
        ("model", Path("a.keras"), ModelError, r"Received: the path 'a.keras'. Load it first: keras.saving.load_model"),
        ("model", mlp, ModelError, "`model` must be a Keras 3 model .*Received: <class 'function'>.*tf_keras"),
        ("callbacks", ["EarlyStopping"], JobError, "`callbacks` must be a list of Keras callbacks"),
        ("listeners", [print], JobError, r"`listeners` must be objects with `on_event\(event\)` and `close\(\)`"),
        ("customObjects", {"a": 3}, JobError, "`customObjects` must be a dict from name to class"),
        ("featuresCol", [], ColumnError, "`featuresCol` must be a column name"),
        ("weightCol", 3, ColumnError, "`weightCol` must be the name of a column"),
    ],
)
def test_a_wrong_value_is_refused_where_it_is_set(name, value, error, message):
    with pytest.raises(error, match=message):
        KerasClassifier(**{name: value})


def test_a_torch_module_is_told_the_way():
    module = type("Module", (), {"__module__": "torch.nn.modules.module"})  # what users' modules derive from
    network = type("Network", (module,), {"__module__": "__main__"})()
    with pytest.raises(ModelError, match=r"Received: <class '__main__.Network'>.*keras.layers.TorchModuleWrapper"):
        KerasClassifier(model=network)


def test_numbers_of_numpy_are_taken():
    classifier = KerasClassifier(epochs=np.int64(3), learningRate=np.float32(0.5), validationSplit=np.float64(0.25))
    assert type(classifier.getEpochs()) is int
    assert classifier.getLearningRate() == 0.5


def test_explain_params_shows_a_model_by_its_name():
    model = mlp()
    told = KerasClassifier(model=model, epochs=3).explainParams()
    line = next(line for line in told.splitlines() if line.startswith("model:"))
    assert model.name in line
    assert len(line) < 250
    assert "epochs: How often the training passes over all rows" in told
    assert "content of each worker's rows, not from the order of the DataFrame" in told
    assert "(default: 1, current: 3)" in told


def test_a_copy_keeps_the_model_and_shares_no_container():
    model = mlp()
    weights = {0: 1.0}
    classifier = KerasClassifier(model=model, classWeight=weights, featuresCol={"a": ["x", "y"]})
    weights[1] = 9.0
    copied = classifier.copy({classifier.epochs: 5})
    assert copied.getModel() is model
    assert copied.uid == classifier.uid
    assert (copied.getEpochs(), classifier.getEpochs()) == (5, 1)
    copied.getClassWeight()[0] = 3.0
    copied.getFeaturesCol()["a"].append("z")
    copied._paramMap[copied.classWeight][0] = 4.0
    copied._paramMap[copied.featuresCol]["a"].append("z")
    assert classifier.getClassWeight() == {0: 1.0}
    assert classifier.getFeaturesCol() == {"a": ["x", "y"]}


def test_a_param_grid_over_our_params():
    classifier = KerasClassifier(model=mlp())
    grid = (
        ParamGridBuilder()
        .addGrid(classifier.learningRate, [0.1, 0.01])
        .addGrid(classifier.batchSize, [8, 16])
        .addGrid(classifier.exchange, ["allreduce", ExchangePlan.named("averaging", every=3)])
        .build()
    )
    copies = [classifier.copy(each) for each in grid]
    assert len(copies) == 8
    assert {copy.getBatchSize() for copy in copies} == {8, 16}
    with pytest.raises(JobError, match="batchSize"):
        classifier.copy({classifier.batchSize: 0})


def test_a_subclass_with_its_own_constructor_keeps_its_own_signature():
    class Mine(KerasClassifier):
        def __init__(self, depth=2):
            super().__init__(epochs=depth)

    assert list(inspect.signature(Mine).parameters) == ["depth"]
    assert Mine().getEpochs() == 2
