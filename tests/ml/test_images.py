"""Columns of images in the estimators: what the driver checks, and a fit from files to predictions."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers
from PIL import Image
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from keraunos import KerasClassificationModel, KerasClassifier, KerasEstimator, KerasModel
from keraunos.data.images import read_images
from keraunos.errors import ColumnError, DataError
from keraunos.job.pixels import Pixels
from keraunos.ml.preparation import prepare
from keraunos.ml.schema import find_slots

SIZE = 16
COLOURS = {"blue": (30, 40, 220), "green": (20, 200, 60), "red": (220, 30, 30)}


def network(shape=(SIZE, SIZE, 3), dtype=None, classes=3):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input(shape, dtype=dtype),
            layers.Conv2D(4, 5, strides=4, activation="tanh"),
            layers.Flatten(),
            layers.Dense(classes, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def flat_network():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((SIZE * SIZE * 3,)), layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def image_schema(metadata=None):
    numbers = [StructField(name, IntegerType()) for name in ("height", "width", "nChannels", "mode")]
    struct = StructType([StructField("origin", StringType()), *numbers, StructField("data", BinaryType())])
    return StructType([StructField("image", struct, metadata=metadata), StructField("label", DoubleType())])


def prepared(model, first_row=None, metadata=None, **params):
    estimator = KerasClassifier(model=model, featuresCol="image", **params)
    return prepare(estimator, image_schema(metadata), workers=1, first_row=lambda: first_row).job.columns.features[0]


def size_of(height, width, channels):
    return {"image": {"height": height, "width": width, "nChannels": channels}}


def test_an_image_column_is_a_slot_of_images():
    (slot,), (spec,) = find_slots(image_schema(), "image", "featuresCol")
    assert (slot.kind, slot.columns, slot.pixels) == ("image", ("image",), Pixels())
    assert spec.shape == (None, None, None)
    (_,), (spec,) = find_slots(image_schema(size_of(4, 6, 3)), "image", "featuresCol", pixels={"layout": "CHW"})
    assert spec.shape == (3, 4, 6)


def test_the_options_reach_the_job():
    slot = prepared(network(), pixels={"order": "BGR", "scale": 1.0, "mean": [104, 117, 123]})
    assert slot.pixels == Pixels(1.0, (104.0, 117.0, 123.0), "BGR")
    assert slot.shape == (SIZE, SIZE, 3)


def test_a_model_that_takes_bytes_gets_bytes():
    assert prepared(network(dtype="uint8")).pixels.scale is None
    with pytest.raises(ColumnError, match="`pixels`.*whole numbers, uint8.*scale=2.0"):
        prepared(network(dtype="uint8"), pixels={"scale": 2.0})


def test_a_flat_model_takes_images_flat():
    assert prepared(flat_network()).shape == (SIZE * SIZE * 3,)
    assert prepared(flat_network(), metadata=size_of(SIZE, SIZE, 3)).shape == (SIZE * SIZE * 3,)
    with pytest.raises(ColumnError, match="(?s)`featuresCol` does not fit.*8, 8, 3"):
        prepared(flat_network(), metadata=size_of(8, 8, 3))


def test_a_size_that_the_schema_tells_is_held_against_the_model():
    with pytest.raises(ColumnError, match=r"rows of shape \(16, 16, 3\).*\(8, 8, 3\).*another `size`"):
        prepared(network(), metadata=size_of(8, 8, 3))


def test_an_unbuilt_model_gets_the_size_of_the_images():
    model = keras.Sequential([layers.Flatten(), layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    assert prepared(model, metadata=size_of(4, 5, 3)).shape == (4, 5, 3)
    row = {"image": {"height": 6, "width": 7, "nChannels": 1}, "label": 0.0}
    assert prepared(model, row, pixels={"layout": "CHW"}).shape == (1, 6, 7)
    with pytest.raises(DataError, match="must hold an image in its first row"):
        prepared(model, {"image": None, "label": 0.0})


def test_pixels_need_images():
    estimator = KerasClassifier(model=flat_network(), featuresCol="x", pixels={"order": "BGR"})
    schema = StructType([StructField("x", ArrayType(DoubleType())), StructField("label", DoubleType())])
    with pytest.raises(ColumnError, match="`pixels`.*Received: 'x'"):
        prepare(estimator, schema, workers=1, first_row=lambda: None)


def test_an_image_is_not_stacked_with_numbers():
    with pytest.raises(ColumnError, match="'image'.*has a type that no model reads|each must hold one number"):
        find_slots(image_schema(), ["image", "label"], "featuresCol")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Noise around a colour a class, none of the files square."""
    root = tmp_path_factory.mktemp("colours")
    random = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (root / name).mkdir()
        for number in range(16):
            noise = np.clip(random.normal(colour, 25, (20, 24 + number, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noise).save(root / name / f"{number}.png")
    return root


def rows_of(frame):
    """The images as RGB from 0 to 1, their labels and what was predicted, row by row."""
    rows = frame.collect()
    images = np.stack([np.frombuffer(row.image.data, np.uint8).reshape(SIZE, SIZE, 3) for row in rows])
    return images[..., ::-1] / 255.0, rows


@pytest.mark.spark
@pytest.mark.slow
def test_from_files_to_predictions(spark, folder, tmp_path):
    frame = read_images(spark, str(folder), SIZE, partitions=2)
    train, test = frame.randomSplit([0.7, 0.3], 1)
    classifier = KerasClassifier(model=network(), featuresCol="image", epochs=12, batchSize=8, verbose=0, numWorkers=2)
    fitted = classifier.fit(train)
    served = fitted.transform(test).cache()
    images, rows = rows_of(served)
    assert len(rows) > 5
    assert np.mean([row.prediction == row.label for row in rows]) > 0.9
    expected = np.asarray(fitted.model.predict_on_batch(images.astype(np.float32)))
    np.testing.assert_allclose([row.probability.toArray() for row in rows], expected, atol=1e-5)

    fitted.save(str(tmp_path / "model"))
    again = KerasClassificationModel.load(str(tmp_path / "model")).transform(test.select("image"))
    found = {row.image.origin: row.prediction for row in again.collect()}
    assert found == {row.image.origin: row.prediction for row in rows}


@pytest.mark.spark
@pytest.mark.slow
def test_pixels_are_kept_with_a_fitted_model(spark, folder, tmp_path):
    frame = read_images(spark, str(folder), SIZE, on_corrupt="null").limit(12)
    nulls = frame.selectExpr("if(label < 1, null, image) as image", "label")
    pixels = {"order": "BGR", "scale": 1.0, "mean": [100, 110, 120], "layout": "CHW"}
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((3, SIZE, SIZE)), layers.Flatten(), layers.Dense(3)])
    model.compile(keras.optimizers.SGD(1e-6), "mse")
    estimator = KerasEstimator(model=model, featuresCol="image", pixels=pixels, verbose=0, numWorkers=1)
    target = frame.selectExpr("image", "array(label, label, label) as label")
    estimator.fit(target).save(str(tmp_path / "model"))
    fitted = KerasModel.load(str(tmp_path / "model"))
    assert fitted.getPixels() == pixels
    served = fitted.transform(nulls).collect()
    for row in served:
        if row.image is None:
            assert row.prediction is None
            continue
        bgr = np.frombuffer(row.image.data, np.uint8).reshape(1, SIZE, SIZE, 3)
        inputs = (bgr - np.array([100, 110, 120])).transpose(0, 3, 1, 2).astype(np.float32)
        expected = np.asarray(fitted.model.predict_on_batch(inputs))[0]
        np.testing.assert_allclose(row.prediction, expected, rtol=1e-4, atol=1e-3)
