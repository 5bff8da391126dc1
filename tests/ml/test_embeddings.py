"""Ids that an Embedding looks up: which elements of a row they are, and what happens to those out of range."""

from __future__ import annotations

from dataclasses import replace

import keras
import numpy as np
import pyarrow as pa
import pytest
from keras import layers, ops
from pyspark.sql.types import ArrayType, DoubleType, FloatType, IntegerType, LongType, StructField, StructType

from keraunos import KerasEstimator, TrainingJob
from keraunos.data.shard import ShardBuilder
from keraunos.errors import DataError
from keraunos.job.columns import Columns, Slot
from keraunos.job.id_range import IdRange
from keraunos.launch import local
from keraunos.launch.divergence import advice
from keraunos.ml.inference import Serving, predictions
from keraunos.ml.preparation import prepare
from keraunos.ml.rendering import ArrayColumns
from tests.extended import extended

LONGS, INTS = ArrayType(LongType()), ArrayType(IntegerType())


def prepared(model, kind=LONGS, row=None, features="x", **params):
    model.compile("sgd", "mse")
    kinds = kind if isinstance(kind, dict) else {"x": kind}
    columns = StructType([StructField(name, each) for name, each in {**kinds, "y": FloatType()}.items()])
    estimator = KerasEstimator(model=model, featuresCol=features, labelCol="y", **params)
    return prepare(estimator, columns, workers=1, first_row=lambda: row, check=estimator._check)


def slots(model, *args, **kwargs):
    job = prepared(model, *args, **kwargs).job
    assert TrainingJob.from_bytes(job.to_bytes()) == job
    return job.columns.features


def ids_of(slot):
    return [(each.size, each.positions, each.period) for each in slot.ids]


def read(features, **columns):
    """Let a worker read these columns."""
    columns_read = Columns(features=features, labels=(Slot(None, ("y",)),))
    with ShardBuilder(columns_read, budget=1 << 20, spool_dir=None) as builder:
        builder.add({**columns, "y": pa.array([0.0] * len(next(iter(columns.values()))), type=pa.float32())})
        return builder.build(seed=0, rank=0)


def text_model(*first):
    return keras.Sequential(
        [*first, layers.Embedding(10, 3, name="words"), layers.GlobalAveragePooling1D(), layers.Dense(1)]
    )


def test_an_unbuilt_sequential_gets_whole_numbers_and_its_ids_are_known():
    made = prepared(text_model(), row={"x": [1, 2, 3, 4]})
    assert made.signature.inputs[0].dtype == "int32"
    (slot,) = made.job.columns.features
    assert slot.ids == (IdRange("words", 10),)
    assert slot.dtype == "int32"
    with pytest.raises(DataError, match=r"'x' holds an id that is out of range for the Embedding 'words': it has 10 "
                       r"rows, so ids must be whole numbers from 0 to 9. Received: 10 in row 1."):  # fmt: skip
        read((slot,), x=pa.array([[1, 2, 3, 9], [1, 0, 10, 4]]))
    with pytest.raises(DataError, match="Received: -1 in row 0"):
        read((slot,), x=pa.array([[1, 2, 3, -1]]))
    assert read((slot,), x=pa.array([[0, 2, 3, 9]])).rows == 1


def test_an_input_of_int64_is_one_of_int32_on_jax():
    model = keras.Sequential([keras.Input((4,), dtype="int64"), layers.Rescaling(0.5), layers.Dense(1)])
    assert slots(model, backend="tensorflow")[0].dtype == "int64"
    (slot,) = slots(model)
    with pytest.raises(DataError, match="'x' holds a number that the model's input cannot represent.*int32"):
        read((slot,), x=pa.array([[1, 2, 3, 1 << 32]]))


def test_a_built_sequential_whose_input_is_floats():
    (slot,) = slots(text_model(keras.Input((4,))))
    assert (ids_of(slot), slot.dtype) == ([(10, (0,), 1)], "float32")
    with pytest.raises(DataError, match="Received: 11 in row 0"):
        read((slot,), x=pa.array([[1, 2, 3, 11]]))
    with pytest.raises(DataError, match="Received: 1.5 in row 0"):
        read((slot,), x=pa.array([[1.0, 2.0, 1.5, 3.0]]))


def test_an_input_of_any_length():
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layers.Dense(1)(layers.LSTM(2)(layers.Embedding(5, 2, mask_zero=True)(inputs))))
    assert ids_of(*slots(model)) == [(5, (0,), 1)]


def test_two_embeddings_that_are_fed_by_slices():
    inputs = keras.Input((3,), dtype="int32")
    user, item = layers.Embedding(5, 2, name="users"), layers.Embedding(7, 2, name="items")
    joined = layers.Concatenate()([user(inputs[:, 0]), item(inputs[:, 2]), ops.cast(inputs[:, 1:2], "float32")])
    (slot,) = slots(keras.Model(inputs, layers.Dense(1)(joined)), dict.fromkeys("abc", LongType()), None, list("abc"))
    assert sorted(ids_of(slot)) == [(5, (0,), 0), (7, (2,), 0)]
    good = {"a": pa.array([4, 0]), "b": pa.array([99, -1]), "c": pa.array([6, 0])}
    assert read((slot,), **good).rows == 2
    with pytest.raises(DataError, match="Column 'c' holds an id that is out of range for the Embedding 'items'.*: 7 "):
        read((slot,), **{**good, "c": pa.array([6, 7])})


def test_inputs_by_name_each_with_its_embedding():
    left, right = keras.Input((1,), name="left", dtype="int32"), keras.Input((), name="right", dtype="int64")
    first = layers.Flatten()(layers.Embedding(5, 2)(left))
    model = keras.Model({"left": left, "right": right}, layers.Dense(1)(layers.Concatenate()(
        [first, layers.Embedding(7, 2)(right)])))  # fmt: skip
    found = slots(model, {"a": LongType(), "b": LongType()}, None, {"right": "b", "left": "a"})
    assert [(slot.name, ids_of(slot)) for slot in found] == [("right", [(7, (0,), 1)]), ("left", [(5, (0,), 1)])]
    with pytest.raises(DataError, match="Column 'b', which is for 'right', holds an id.*Received: 8 in row 0"):
        read(found, a=pa.array([4]), b=pa.array([8]))


def test_what_only_moves_elements_is_followed():
    inputs = keras.Input((None, 3))
    masked = layers.Masking()(inputs)
    third = ops.squeeze(ops.cast(masked, "int32")[:, :, 2:], axis=-1)
    vectors = keras.Sequential([layers.Identity(), layers.Embedding(9, 2)])(third)
    model = keras.Model(inputs, layers.Dense(1)(layers.GlobalMaxPooling1D()(vectors)))
    assert ids_of(*slots(model, ArrayType(LONGS))) == [(9, (2,), 3)]
    inputs = keras.Input((6,))
    turned = layers.Permute((2, 1))(layers.Reshape((2, 3))(inputs))
    model = keras.Model(inputs, layers.Dense(1)(layers.Flatten()(layers.Embedding(9, 2)(turned[:, 0]))))
    assert ids_of(*slots(model)) == [(9, (0, 3), 0)]


def test_what_computes_is_not_followed_and_named_where_training_breaks():
    inputs = keras.Input((4,), dtype="int32")
    model = keras.Model(inputs, layers.Dense(1)(layers.Flatten()(layers.Embedding(9, 2, name="hashed")(inputs % 9))))
    made = prepared(model)
    assert made.job.columns.features[0].ids == ()
    assert made.job.columns.unchecked_ids == ("hashed",)
    assert "Ids outside the range of an Embedding lead to such values too; those of 'hashed' could" in advice(
        ["hashed"]
    )
    assert "Embedding" not in advice([])


@keras.saving.register_keras_serializable(package="tests")
class Hidden(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.lookup = layers.Embedding(4, 2, name="hidden")
        self.dense = layers.Dense(1)

    def call(self, inputs):
        return self.dense(ops.mean(self.lookup(inputs), axis=1))


def test_the_embedding_of_a_subclassed_model_is_named_where_training_breaks(caplog):
    made = prepared(Hidden(), row={"x": [1, 2]}, customObjects={"Hidden": Hidden})
    assert made.job.columns.unchecked_ids == ("hidden",)
    table = pa.table({"x": [[1, 2], [1, 900]] * 4, "y": pa.array([1.0, 2.0] * 4, type=pa.float32())})
    result = local.fit(made.job, [table], custom_objects={"Hidden": Hidden}, verbose=0)
    assert result.history.ended
    assert "those of 'hidden' could not be checked" in caplog.text


def test_whole_numbers_that_the_input_has_no_place_for():
    model = keras.Sequential([keras.Input((2,), dtype="int32"), layers.Rescaling(0.5), layers.Dense(1)])
    (slot,) = slots(model)
    with pytest.raises(DataError, match=r"'x' holds a number that the model's input cannot represent: it is read as "
                       r"int32, from -2147483648 to 2147483647. Received: 3000000000 in row 0"):  # fmt: skip
        read((slot,), x=pa.array([[1, 3_000_000_000]]))
    assert read((slot,), x=pa.array([[1, -2_147_483_648]])).rows == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_ids_that_a_float_cannot_hold(kind):
    slot = Slot(None, ("x",), shape=(1,), dtype="float32", ids=(IdRange("words", 1 << 30),))
    assert read((slot,), x=pa.array([[1 << 24]], type=pa.list_(kind))).rows == 1
    with pytest.raises(DataError, match=r"'x' holds an id that float32 cannot hold exactly.*dtype='int32'"):
        read((slot,), x=pa.array([[(1 << 24) + 2]], type=pa.list_(kind)))


def test_the_same_sentence_in_transform():
    made = prepared(text_model(), row={"x": [1, 2]})
    source = made.job.model
    serving = Serving(
        key="ids",
        backend="jax",
        floatx="float32",
        slots=made.job.columns.features,
        columns=("x",),
        inputs=made.signature.inputs,
        batch_rows=4,
        rendering=ArrayColumns(made.signature.outputs, ("p",)),
    )
    batch = (pa.array([[1, 2], None, [3, 10]]),)
    with pytest.raises(DataError, match="'x' holds an id that is out of range for the Embedding 'words'.*10 in row 2"):
        list(predictions([batch], serving, lambda: source.archive, {}))


def test_old_descriptions_are_read():
    slot = Slot(None, ("x",), ids=(IdRange("words", 10),), dtype="int32")
    plain = slot.to_json()
    assert Slot.from_json(plain) == slot
    del plain["ids"], plain["dtype"]
    assert Slot.from_json(plain) == replace(slot, ids=(), dtype=None)


@keras.saving.register_keras_serializable(package="tests")
class FloatsOnly(layers.Layer):
    def call(self, inputs):
        if "int" in str(inputs.dtype):
            raise TypeError("No whole numbers.")
        return inputs


COMPUTING = {
    "dense": lambda: [layers.Dense(2)],
    "convolution": lambda: [layers.Reshape((4, 1)), layers.Conv1D(2, 2), layers.Flatten()],
    "norm": lambda: [layers.BatchNormalization()],
    "normalization": lambda: [layers.Normalization(mean=0.0, variance=1.0)],
    "rescaling": lambda: [layers.Rescaling(0.1)],
    "custom": lambda: [FloatsOnly()],
}


FIRST = [*COMPUTING, "embedding"]


def job_for(name, backend):
    """A job whose rows are whole numbers; the model's first layer has this name."""
    model = text_model() if name == "embedding" else keras.Sequential([*COMPUTING[name](), layers.Dense(1)])
    custom = {"FloatsOnly": FloatsOnly} if name == "custom" else {}
    return prepared(model, row={"x": [1, 2, 3, 4]}, backend=backend, numWorkers=1, customObjects=custom, batchSize=4)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
@pytest.mark.parametrize("name", FIRST)
def test_whole_numbers_are_floats_for_every_first_layer_but_an_embedding(name, backend):
    assert job_for(name, backend).signature.inputs[0].dtype == ("int32" if name == "embedding" else "float32")


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("dense", "jax"),
        extended("convolution", "jax"),
        extended("norm", "jax"),
        extended("normalization", "jax"),
        extended("rescaling", "jax"),
        ("custom", "jax"),
        extended("embedding", "jax"),
        # The others get floats there too.
        extended("dense", "tensorflow"),
        ("embedding", "tensorflow"),
    ],
)
def test_whole_numbers_train_whatever_the_first_layer_is(name, backend):
    table = pa.table({"x": [[1, 2, 3, 4], [3, 1, 0, 2]] * 4, "y": pa.array([1.0, 2.0] * 4, type=pa.float32())})
    custom = {"FloatsOnly": FloatsOnly} if name == "custom" else {}
    result = local.fit(job_for(name, backend).job, [table], custom_objects=custom, verbose=0)
    assert np.isfinite(result.history["loss"]).all()


def test_a_column_of_numbers_into_an_unbuilt_dense():
    made = prepared(keras.Sequential([layers.Dense(2), layers.Dense(1)]), DoubleType())
    assert made.signature.inputs[0].shape == (1,)
    table = pa.table({"x": pa.array([0.5, 1.5] * 4), "y": pa.array([1.0, 2.0] * 4, type=pa.float32())})
    assert np.isfinite(local.fit(made.job, [table], verbose=0).history["loss"]).all()


def test_a_column_of_ids_into_an_unbuilt_embedding():
    made = prepared(keras.Sequential([layers.Embedding(4, 2), layers.Dense(1)]), IntegerType())
    assert (made.signature.inputs[0].shape, made.signature.outputs[0].shape) == ((), (1,))
