from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml.linalg import DenseVector, VectorUDT
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from keraunos import ExchangePlan, KerasClassifier, KerasEstimator, KerasRegressor, TrainingJob
from keraunos.errors import ColumnError, DataError, JobError, ModelError, PlanError
from keraunos.job.columns import Slot
from keraunos.ml.preparation import prepare
from tests.ml.models import mlp, two_inputs, two_outputs, unbuilt

FLOATS = ArrayType(FloatType())


def schema(**columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


SIMPLE = schema(features=FLOATS, label=DoubleType(), w=FloatType(), held=BooleanType(), name=StringType())


def prepared(estimator, columns=SIMPLE, row=None, **kwargs):
    return prepare(estimator, columns, workers=2, first_row=lambda: row, check=estimator._check, **kwargs)


def test_a_job_from_params_and_a_schema():
    classifier = KerasClassifier(
        model=mlp(),
        epochs=3,
        batchSize=16,
        learningRate=0.5,
        classWeight={1: 2.0},
        weightCol="w",
        validationIndicatorCol="held",
        exchange="averaging",
        every=7,
        seed=5,
        shuffle=False,
        memoryBudget=1000,
        allowNaN=True,
        backend="tensorflow",
    )
    job = prepared(classifier).job
    assert job.schedule.epochs == 3
    assert job.schedule.batch_size == 16
    assert job.schedule.learning_rate == 0.5
    assert job.schedule.class_weight == {1: 2.0}
    assert (job.schedule.seed, job.schedule.shuffle) == (5, False)
    assert job.exchange == ExchangePlan.named("averaging", every=7)
    assert job.columns.features == (Slot(None, ("features",), shape=(3,)),)
    assert (job.columns.weight, job.columns.validation, job.columns.allow_nan) == ("w", "held", True)
    assert (job.workers, job.memory_budget, job.model.backend) == (2, 1000, "tensorflow")
    assert TrainingJob.from_bytes(job.to_bytes()) == job


def test_the_number_of_workers_goes_before_the_slots_and_the_backend_is_the_drivers():
    job = prepared(KerasClassifier(model=mlp(), numWorkers=5)).job
    assert job.workers == 5
    assert job.model.backend == keras.config.backend()


def test_column_names_are_found_as_spark_finds_them():
    columns = prepared(KerasClassifier(model=mlp(), featuresCol="FEATURES", labelCol="Label")).job.columns
    assert columns.names == ("features", "label")
    with pytest.raises(ColumnError, match="FEATURES"):
        prepared(KerasClassifier(model=mlp(), featuresCol="FEATURES"), case_sensitive=True)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"featuresCol": "feature"}, ColumnError, "Expected one of 'features', 'label'.*Did you mean 'features'"),
        ({"labelCol": "y"}, ColumnError, "`labelCol` names a column that the DataFrame does not have"),
        ({"featuresCol": "name"}, ColumnError, "'name', which holds strings.*takes numbers.*StringIndexer.*TextVec"),
        ({"featuresCol": ["name", "w"]}, ColumnError, "'name', which has a type that no model reads.*Received: string"),
        ({"labelCol": "name"}, ColumnError, "StringIndexer"),
        ({"featuresCol": ["label", "features"]}, ColumnError, "each must hold one number a row.*'features'"),
        (
            {"weightCol": "held"},
            ColumnError,
            "`weightCol` must name a column of numbers. Received: 'held' of type bool",
        ),
        ({"validationIndicatorCol": "w"}, ColumnError, "`validationIndicatorCol` must name a boolean column"),
        ({"validationIndicatorCol": "held", "validationSplit": 0.5}, JobError, "Leave one unset"),
        ({"exchange": "averaging", "meet": "asynchronous"}, PlanError, "rule='add', which is scaled by 1/workers"),
        ({"featuresCol": ["w", "label"]}, ColumnError, r"Expected rows of shape \(3\). Received: columns 'w', 'label'"),
        ({"featuresCol": {"left": "features"}}, ColumnError, "names an input that the model does not have"),
        ({"labelCol": {"right": "label"}}, ColumnError, "names an output that the model does not have"),
        ({"labelCol": "features"}, ColumnError, "one-hot"),
    ],
)
def test_what_a_schema_shows_to_be_wrong_is_refused(params, error, message):
    with pytest.raises(error, match=message):
        prepared(KerasClassifier(model=mlp(), **params))


def test_a_model_is_needed_and_must_be_compiled():
    with pytest.raises(ModelError, match="`model` must be set before `fit`"):
        prepared(KerasClassifier())
    with pytest.raises(ModelError, match="must be compiled"):
        prepared(KerasClassifier(model=keras.Sequential([keras.Input((3,)), layers.Dense(2)])))


def test_a_learning_rate_over_a_schedule_is_refused():
    optimizer = keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9))
    with pytest.raises(JobError, match="`learningRate` cannot replace a schedule"):
        prepared(KerasClassifier(model=mlp(optimizer=optimizer), learningRate=0.5))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mlp(units=1, activation=None, loss="mse"), "Received: loss 'mean_squared_error'. Use KerasRegressor"),
        (mlp(units=1, loss="sparse_categorical_crossentropy"), "one output unit for each class"),
        (mlp(units=3, activation="sigmoid", loss="binary_crossentropy"), "predicts one class a row"),
        (two_outputs(), r"a model with one output. Received: outputs \['pair', 'single'\]"),
    ],
)
def test_models_that_are_no_classifiers(model, message):
    with pytest.raises(ModelError, match=message):
        prepared(KerasClassifier(model=model))


def test_labels_and_losses():
    one_hot = mlp(loss="categorical_crossentropy")
    with pytest.raises(ColumnError, match="sparse_categorical_crossentropy"):
        prepared(KerasClassifier(model=one_hot))
    prepared(KerasClassifier(model=one_hot, labelCol="features"))
    with pytest.raises(ColumnError, match=r"Expected rows of shape \(4\). Received: columns 'w', 'label'"):
        prepared(KerasClassifier(model=one_hot, labelCol=["w", "label"]))
    with pytest.raises(ColumnError, match="Give the model as many output units"):
        prepared(KerasEstimator(model=mlp(units=4, loss="mse")))


def test_a_regressor_wants_one_unit():
    prepared(KerasRegressor(model=mlp(units=1, activation=None, loss="mse")))
    with pytest.raises(ModelError, match="Use KerasEstimator"):
        prepared(KerasRegressor(model=mlp(units=2, activation=None, loss="mse")))


def test_inputs_and_outputs_by_name():
    columns = schema(features=FLOATS, a=DoubleType(), b=LongType(), y=DoubleType(), z=FLOATS)
    job = prepared(
        KerasEstimator(model=two_inputs(), featuresCol={"right": ["a", "b"], "left": "features"}, labelCol="y"), columns
    ).job
    assert job.columns.features == (
        Slot("right", ("a", "b"), stacked=True, shape=(2,)),
        Slot("left", ("features",), shape=(3,)),
    )
    with pytest.raises(ColumnError, match="without 'right'"):
        prepared(KerasEstimator(model=two_inputs(), featuresCol={"left": "features"}, labelCol="y"), columns)
    with pytest.raises(ColumnError, match=r"`featuresCol` must be a dict, since the model has several inputs"):
        prepared(KerasEstimator(model=two_inputs(), labelCol="y"), columns)
    with pytest.raises(ColumnError, match="`labelCol` must be a dict, since the model has several outputs"):
        prepared(KerasEstimator(model=two_outputs(), labelCol="y"), columns)
    with pytest.raises(ModelError, match=r"names outputs that the model does not have.*Received: 'triple'"):
        prepared(
            KerasEstimator(model=two_outputs(), labelCol={"pair": "z", "single": "y"}, predictionCol={"triple": "t"}),
            columns,
        )


def vector_field(name, size):
    return StructField(name, VectorUDT(), metadata={"ml_attr": {"num_attrs": size}})


@pytest.mark.parametrize(
    ("columns", "features", "row", "width"),
    [
        (StructType([vector_field("x", 6), StructField("label", IntegerType())]), "x", None, 6),
        (schema(a=DoubleType(), b=DecimalType(), label=IntegerType()), ["a", "b"], None, 2),
        (schema(x=FLOATS, label=IntegerType()), "x", {"x": [1.0, 2.0, 3.0, 4.0]}, 4),
        (schema(x=VectorUDT(), label=IntegerType()), "x", {"x": DenseVector([1.0] * 5)}, 5),
    ],
)
def test_an_unbuilt_model_is_built_from_what_the_columns_are(columns, features, row, width):
    model = unbuilt()
    made = prepared(KerasClassifier(model=model, featuresCol=features), columns, row)
    assert made.signature.inputs[0].shape == (width,)
    assert not model.built


def test_an_unbuilt_model_and_no_rows():
    with pytest.raises(DataError, match="no rows"):
        prepared(KerasClassifier(model=unbuilt()))


@keras.saving.register_keras_serializable(package="tests")
class Subclassed(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2, activation="softmax")

    def call(self, inputs):
        return self.dense(inputs)


def test_a_subclassed_model_is_built_too():
    model = Subclassed()
    model.compile("sgd", "sparse_categorical_crossentropy")
    made = prepared(
        KerasClassifier(model=model, customObjects={"Subclassed": Subclassed}), row={"features": [1.0, 2.0]}
    )
    assert made.signature.outputs[0].shape == (2,)
    assert not model.built


def test_a_vector_of_the_wrong_size_is_seen_in_the_schema():
    columns = StructType([vector_field("features", 6), StructField("label", IntegerType())])
    with pytest.raises(ColumnError, match=r"Expected rows of shape \(3\). Received: column 'features'.*\(6\)"):
        prepared(KerasClassifier(model=mlp()), columns)


def test_flat_features_for_an_image_model():
    model = keras.Sequential([keras.Input((4, 4, 1)), layers.Flatten(), layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ColumnError, match="Reshape"):
        prepared(KerasClassifier(model=model))
    prepared(KerasClassifier(model=model), schema(features=ArrayType(ArrayType(FLOATS)), label=LongType()))


def test_custom_code_that_workers_cannot_find_travels_with_the_job():
    class Twice(layers.Layer):
        def call(self, inputs):
            return 2 * inputs

    Twice.__module__ = "__main__"
    model = keras.Sequential([keras.Input((3,)), Twice(), layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    assert prepared(KerasClassifier(model=model)).custom_objects == {"Twice": Twice}
    assert prepared(KerasClassifier(model=model, customObjects={"Twice": Twice})).custom_objects == {"Twice": Twice}


class Importable(keras.Model):
    """Not registered: another process finds it by its module."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2, activation="softmax")

    def call(self, inputs):
        return self.dense(inputs)


def test_a_model_without_shapes_of_an_importable_class_is_built():
    model = Importable()
    model.compile("sgd", "sparse_categorical_crossentropy")
    made = prepared(KerasClassifier(model=model), row={"features": [1.0, 2.0]})
    assert made.signature.outputs[0].shape == (2,)
    assert made.custom_objects == {}


def test_a_lambda_is_refused():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="softmax")])
    model.compile("sgd", lambda labels, outputs: keras.ops.mean(outputs, axis=-1))
    with pytest.raises(ModelError, match="lambda"):
        prepared(KerasClassifier(model=model))


def test_an_unserialisable_layer():
    class Needy(layers.Layer):
        def __init__(self, knife):
            super().__init__()
            self.knife = knife

        def call(self, inputs):
            return inputs

    model = keras.Sequential([keras.Input((3,)), Needy(object()), layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ModelError, match="get_config"):
        prepared(KerasClassifier(model=model, customObjects={"Needy": Needy}))


def test_preparing_leaves_the_model_as_it_is():
    model = mlp(optimizer="adam")
    before = [np.array(variable) for variable in model.variables]
    prepared(KerasClassifier(model=model, learningRate=0.5))
    for old, new in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(old, np.array(new))
    assert float(model.optimizer.learning_rate) == pytest.approx(0.001)
    assert model.loss == "sparse_categorical_crossentropy"
