"""Arrays of different lengths: trained on and served as the arrays that Keras's own `pad_sequences` makes."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import layers
from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructField, StructType

from keraunos import KerasEstimator, KerasRegressionModel, KerasRegressor, TrainingJob
from keraunos.data.arrow_batches import ArrowReader
from keraunos.errors import DataError, JobError
from keraunos.job.columns import Slot
from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive
from keraunos.ml.inference import Serving, predictions
from keraunos.ml.keras.padding import warn_of_zeros
from keraunos.ml.padding import served_slots
from keraunos.ml.preparation import prepare
from keraunos.ml.rendering import NumberColumn
from keraunos.ml.schema import SlotSpec
from tests.extended import extended

WORDS = [[1, 2, 3], [4], [2, 2, 5, 1, 3], [], [3, 1]] * 4
LABELS = [float(sum(row)) for row in WORDS]
FIRST, REST = slice(0, 7), slice(7, 20)


def reader_model(length=None, *, mask=True, built=True):
    keras.utils.set_random_seed(3)
    first = [keras.Input((length,), dtype="int32")] if built else []
    model = keras.Sequential([*first, layers.Embedding(6, 4, mask_zero=mask), layers.LSTM(3), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    return model


def prepared(model, kind=IntegerType(), longest=5, row=None, **params):  # noqa: B008 - a type, which does not change
    schema = StructType([StructField("x", ArrayType(kind)), StructField("y", FloatType())])
    options = {"pad": True, "batchSize": 5, "shuffle": False, "numWorkers": 2, **params}
    regressor = KerasRegressor(model=model, featuresCol="x", labelCol="y", **options)
    asked = []

    def find(columns):
        asked.extend(columns)
        return dict.fromkeys(columns, longest)

    made = prepare(regressor, schema, workers=2, first_row=lambda: row, check=regressor._check, longest=find)
    assert TrainingJob.from_bytes(made.job.to_bytes()) == made.job
    return made, asked


def slot_of(*args, **kwargs):
    made, asked = prepared(*args, **kwargs)
    (slot,) = made.job.columns.features
    return (slot.length, slot.cut, slot.shape), asked


def padded(rows, length, **options):
    return keras.utils.pad_sequences(rows, maxlen=length, padding="post", truncating="post", **options)


def test_how_long_rows_become():
    assert slot_of(reader_model()) == ((5, None, (None,)), ["x"])
    assert slot_of(reader_model(), maxLength=3) == ((3, 3, (None,)), [])
    assert slot_of(reader_model(7)) == ((7, None, (7,)), [])
    assert slot_of(reader_model(7), maxLength=4) == ((7, 4, (7,)), [])
    assert slot_of(reader_model(built=False), row={"x": [1, 2]}) == ((5, None, (5,)), ["x"])


def test_what_cannot_be_padded_is_refused():
    with pytest.raises(JobError, match="`maxLength` cuts arrays that are padded. Received: 3 without pad=True"):
        prepared(reader_model(), pad=False, maxLength=3)
    with pytest.raises(DataError, match="no rows"):
        prepared(reader_model(), longest=None)
    dense = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    dense.compile("sgd", "mse")
    schema = StructType([StructField("x", FloatType()), StructField("y", FloatType())])
    regressor = KerasRegressor(model=dense, featuresCol="x", labelCol="y", pad=True)
    with pytest.raises(JobError, match="`pad` is for arrays of different lengths.*Received: 'x', of which none is one"):
        prepare(regressor, schema, workers=1, first_row=lambda: None)


@given(st.lists(st.lists(st.integers(1, 9), max_size=7), min_size=1, max_size=6), st.integers(1, 7))
def test_rows_are_those_of_keras(rows, length):
    slot = Slot(None, ("x",), length=length, cut=length)
    (block,) = ArrowReader([slot]).read({"x": pa.array(rows, type=pa.list_(pa.int32()))})
    np.testing.assert_array_equal(block, padded(rows, length))
    longest = max(map(len, rows))
    grown = Slot(None, ("x",), length=1, grows=True)
    (block,) = ArrowReader([grown]).read({"x": pa.array(rows, type=pa.list_(pa.int32()))})
    np.testing.assert_array_equal(block, padded(rows, max(1, longest)))


def test_sequences_of_vectors():
    rows = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], []]
    (block,) = ArrowReader([Slot(None, ("x",), shape=(None, 2), length=3)]).read({"x": pa.array(rows)})
    np.testing.assert_array_equal(block[:2], padded(rows[:2], 3, dtype="float32"))
    assert block.shape == (3, 3, 2)
    assert block.dtype == np.float32
    with pytest.raises(DataError, match="'x' is ragged below the first.*length 2 at depth 2.*: length 1 in row 1"):
        ArrowReader([Slot(None, ("x",), length=3)]).read({"x": pa.array([[[1.0, 2.0]], [[1.0, 2.0], [3.0]]])})


def test_a_row_that_is_too_long_and_the_way_out_of_ragged_ones():
    with pytest.raises(DataError, match="longer than the model's input. Expected at most 2.*: 3 in row 1.*maxLength=2"):
        ArrowReader([Slot(None, ("x",), length=2)]).read({"x": pa.array([[1], [1, 2, 3]])})
    with pytest.raises(DataError, match="'x' is ragged.*Set pad=True"):
        ArrowReader([Slot(None, ("x",))]).read({"x": pa.array([[1], [1, 2, 3]])})


@pytest.mark.parametrize("length", [None, extended(3)])
def test_training_is_that_of_keras_on_padded_rows(length):
    model = reader_model()
    made, _ = prepared(model, maxLength=length, batchSize=10)
    table = pa.table({"x": pa.array(WORDS, type=pa.list_(pa.int32())), "y": pa.array(LABELS, type=pa.float32())})
    result = local.fit(made.job, [table.slice(0, 10), table.slice(10)], verbose=0)
    rows = padded(WORDS, length or 5)
    history = model.fit(rows, np.array(LABELS), batch_size=20, epochs=1, shuffle=False, verbose=0).history
    for ours, theirs in zip(from_archive(result.archive).get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert result.history["loss"] == pytest.approx(history["loss"], rel=1e-5)
    assert result.history["mae"] == pytest.approx(history["mae"], rel=1e-5)


@pytest.mark.parametrize("length", [extended(None), 5])
def test_masked_outputs_are_measured_as_keras_measures_them(length):
    keras.utils.set_random_seed(3)
    inputs = keras.Input((length,), dtype="int32")
    hidden = layers.Embedding(6, 4, mask_zero=True)(inputs)
    model = keras.Model(inputs, layers.Dense(1)(layers.LSTM(3, return_sequences=True)(hidden)))
    model.compile(keras.optimizers.SGD(0.1), "mse", weighted_metrics=["mae"])
    targets = np.random.default_rng(0).normal(size=(20, 5, 1)).astype("float32")
    deep = ArrayType(ArrayType(FloatType()))
    schema = StructType([StructField("x", ArrayType(IntegerType())), StructField("y", deep)])
    estimator = KerasEstimator(model=model, featuresCol="x", labelCol="y", pad=True, batchSize=13, numWorkers=2)
    made = prepare(estimator, schema, workers=2, first_row=lambda: None, longest=lambda names: dict.fromkeys(names, 5))
    nested = pa.array(targets.tolist(), type=pa.list_(pa.list_(pa.float32())))
    table = pa.table({"x": pa.array(WORDS, type=pa.list_(pa.int32())), "y": nested})
    result = local.fit(made.job, [table.slice(0, 7), table.slice(7)], verbose=0)
    rows = padded(WORDS, 5)
    parts = [float(model.evaluate(rows[part], targets[part], batch_size=20, verbose=0)[0]) for part in (FIRST, REST)]
    history = model.fit(rows, targets, batch_size=20, epochs=1, shuffle=False, verbose=0).history
    for ours, theirs in zip(from_archive(result.archive).get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    # Of several batches Keras reports the mean by their rows, masked or not.
    assert result.history["loss"] == pytest.approx([(7 * parts[0] + 13 * parts[1]) / 20], rel=1e-5)
    assert result.history["mae"] == pytest.approx(history["mae"], rel=1e-5)


def serve(model, slot, batches):
    made, _ = prepared(model)
    serving = Serving(
        key=f"pad-{slot}",
        backend="jax",
        floatx="float32",
        slots=(slot,),
        columns=("x",),
        inputs=made.signature.inputs,
        batch_rows=4,
        rendering=NumberColumn("p"),
    )
    arrays = [(pa.array(rows, type=pa.list_(pa.int32())),) for rows in batches]
    served = pa.chunked_array(list(predictions(arrays, serving, lambda: made.job.model.archive, {})))
    return [row["f0"] for row in served.to_pylist()]


def test_serving_is_that_of_keras_on_padded_rows():
    model = reader_model()
    slots, specs = (Slot(None, ("x",)),), (SlotSpec((None,), "int32", is_array=True),)
    batches = [[[1, 2], [3]], [[4, 5, 1, 2, 3, 1, 2], [1]], [[2, 2, 2]]]
    flat = [row for batch in batches for row in batch]
    made, _ = prepared(model)
    (open_slot,) = served_slots(slots, specs, made.signature.inputs, None, {"": 5})
    expected = np.asarray(model.predict_on_batch(padded(flat, 7)))[:, 0]
    np.testing.assert_allclose(serve(model, open_slot, batches), expected, rtol=1e-5)
    (cut_slot,) = served_slots(slots, specs, made.signature.inputs, 5, {"": 5})
    expected = np.asarray(model.predict_on_batch(padded(flat, 5)))[:, 0]
    np.testing.assert_allclose(serve(model, cut_slot, batches), expected, rtol=1e-5)


def test_zeros_that_count_are_told(caplog):
    warn_of_zeros(reader_model())
    masking = keras.Sequential([keras.Input((None, 2)), layers.Masking(), layers.LSTM(2)])
    warn_of_zeros(masking)
    assert not caplog.messages
    warn_of_zeros(reader_model(mask=False))
    (told,) = caplog.messages
    assert "mask_zero=True" in told
    assert "Masking()" in told


@pytest.mark.spark
@pytest.mark.slow
def test_from_a_data_frame_to_predictions_after_a_reload(spark, tmp_path, caplog):
    rows = list(zip(WORDS, LABELS, strict=True))
    frame = spark.createDataFrame(rows, "x array<int>, y float").coalesce(1)
    regressor = KerasRegressor(
        model=reader_model(mask=False), featuresCol="x", labelCol="y", pad=True, numWorkers=1, verbose=0
    )
    with caplog.at_level(logging.WARNING):
        fitted = regressor.fit(frame)
    assert len([each for each in caplog.messages if "padded with zeros" in each]) == 1
    fitted.write().save(str(tmp_path / "model"))
    loaded = KerasRegressionModel.load(str(tmp_path / "model"))
    assert (loaded.getPad(), loaded.getMaxLength()) == (True, None)
    # Shorter rows alone are still as long as in training, which matters where nothing is masked.
    short = frame.filter("size(x) < 3")
    expected = np.asarray(fitted.model.predict_on_batch(padded([row.x for row in short.collect()], 5)))[:, 0]
    np.testing.assert_allclose([row.prediction for row in loaded.transform(short).collect()], expected, rtol=1e-4)

    # Rows to validate on may be longer than any to train on; all are padded alike, also when measured by themselves.
    longer = spark.createDataFrame([([1, 2, 3, 4, 5, 1, 2], 18.0), ([3], 3.0)], "x array<int>, y float")
    again = regressor.copy({regressor.validationData: longer}).fit(frame)
    (loss,) = again.history["val_loss"]
    assert again.evaluate(longer)["loss"] == pytest.approx(loss, rel=1e-5)
