"""A DataFrame with text, on Spark: fit, predict, save, load."""

import numpy as np
import pytest

from keraunos import KerasClassificationModel, KerasClassifier
from keraunos.errors import DataError
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.learners.keras_front import parted
from tests.conformance import text_models as models

pytestmark = pytest.mark.spark


def frame_of(spark, count=60):
    lines, labels = models.texts(count)
    return spark.createDataFrame(list(zip(lines.tolist(), labels.tolist(), strict=True)), "text string, label long")


def check_predictions(fitted, frame, inputs_of):
    """What `transform` gives is what the two parts of the model give in plain Keras, row by row."""
    rows = fitted.transform(frame).collect()
    rest, front = parted(from_archive(to_archive(fitted.model)))
    expected = rest.predict(front(inputs_of(rows)), verbose=0)
    np.testing.assert_allclose([row.probability.toArray() for row in rows], expected, rtol=1e-4, atol=1e-6)


def texts_of(rows):
    return models.as_bytes([row.text for row in rows])


def passengers_of(rows):
    numbers = {name: np.array([row[name] for row in rows]) for name in ("age", "deck")}
    return numbers | {"city": models.as_bytes([row.city for row in rows])}


@pytest.mark.slow
def test_text_in_a_dataframe_from_the_first_fit_to_a_loaded_model(spark, tmp_path):
    frame = frame_of(spark).repartition(2)
    estimator = KerasClassifier(model=models.unbuilt(), featuresCol="text", epochs=3, batchSize=8, verbose=0)
    fitted = estimator.fit(frame)
    assert fitted.model.inputs[0].dtype == "string"
    check_predictions(fitted, frame, texts_of)

    fitted.write().overwrite().save(str(tmp_path / "fitted"))
    loaded = KerasClassificationModel.load(str(tmp_path / "fitted"))
    check_predictions(loaded, frame, texts_of)

    rest, front = parted(from_archive(to_archive(loaded.model)))
    rows = frame.collect()
    alone = rest.evaluate(front(texts_of(rows)), np.array([row.label for row in rows]), verbose=0, return_dict=True)
    assert loaded.evaluate(frame) == pytest.approx(alone, rel=1e-4)

    existing = KerasClassificationModel.of(loaded.model, featuresCol="text")
    check_predictions(existing, frame, texts_of)

    gaps = spark.createDataFrame([("good great",), (None,), ("",)], "text string")
    served = loaded.transform(gaps).collect()
    assert [row.prediction is None for row in served] == [False, True, False]
    with pytest.raises(DataError, match="Column 'text' holds a null"):
        estimator.fit(spark.createDataFrame([("good", 1), (None, 0)], "text string, label long").coalesce(1))


@pytest.mark.slow
@pytest.mark.extended
def test_a_feature_space_on_a_column_per_feature(spark):
    rows = models.passenger_rows()
    listed = list(zip(*(rows[name].tolist() for name in ("age", "city", "deck", "y")), strict=True))
    frame = spark.createDataFrame(listed, "age float, city string, deck long, y long").repartition(2)
    model = models.feature_space(rows)
    features = {name: name for name in ("age", "city", "deck")}
    estimator = KerasClassifier(model=model, featuresCol=features, labelCol="y", epochs=2, batchSize=8, verbose=0)
    fitted = estimator.fit(frame)
    check_predictions(fitted, frame, passengers_of)
    assert np.abs(fitted.model.get_weights()[-2] - model.get_weights()[-2]).max() > 0
