"""An estimator whose format the package does not know: trained on Spark, served, saved, loaded and gone on from."""

import subprocess
import sys

import numpy as np
import pytest

from keraunos import KerasEstimator, KerasModel
from keraunos.errors import JobError, ModelError
from tests.formats.linear import LinearModel
from tests.formats.linear_estimator import LinearEstimator, LinearFitted

pytestmark = pytest.mark.spark

TRUE = np.array([[1.0], [-2.0], [0.5]])


def halved(inputs):
    return inputs / 2


@pytest.fixture(scope="module")
def rows(spark):
    random = np.random.default_rng(5)
    x = random.normal(size=(60, 3))
    y = (x @ TRUE)[:, 0] + 0.25
    return spark.createDataFrame(
        [([float(v) for v in row], float(label)) for row, label in zip(x, y)], "x array<float>, y double"
    )


def untrained(code=None):
    return LinearModel(np.zeros((3, 1), np.float32), np.zeros(1, np.float32), 0.2, code)


def estimator(**params):
    options = {
        "model": untrained(),
        "featuresCol": "x",
        "labelCol": "y",
        "epochs": 30,
        "batchSize": 10,
        "numWorkers": 2,
        "verbose": 0,
    }
    return LinearEstimator(**{**options, **params})


@pytest.fixture(scope="module")
def fitted(rows):
    return estimator().fit(rows)


def predicted(model, rows):
    return np.array([row.prediction for row in model.transform(rows).collect()]).reshape(-1)


def labels(rows):
    return np.array([row.y for row in rows.collect()])


def test_it_is_trained_and_transforms(fitted, rows):
    assert isinstance(fitted, LinearFitted)
    np.testing.assert_allclose(fitted.model.weights, TRUE, atol=1e-3)
    np.testing.assert_allclose(predicted(fitted, rows), labels(rows), atol=1e-2)
    assert fitted.history["loss"][-1] < 1e-3 < fitted.history["loss"][0]
    assert "model=linear (3, 1) on numpy" in repr(fitted)


def test_what_is_saved_is_loaded(fitted, rows, tmp_path):
    fitted.save(f"{tmp_path}/model")
    names = {each.name for each in (tmp_path / "model").iterdir() if not each.name.startswith(".")}
    assert names == {"model.linear", "history.json", "metadata"}
    loaded = LinearFitted.load(f"{tmp_path}/model")
    np.testing.assert_array_equal(predicted(loaded, rows), predicted(fitted, rows))
    assert loaded.history["loss"] == fitted.history["loss"]
    with pytest.raises(JobError, match="does not hold a KerasModel"):
        KerasModel.load(f"{tmp_path}/model")


def test_an_estimator_is_saved_with_its_model(rows, tmp_path):
    estimator().save(f"{tmp_path}/estimator")
    loaded = LinearEstimator.load(f"{tmp_path}/estimator")
    np.testing.assert_array_equal(loaded.getModel().weights, untrained().weights)
    assert loaded.getEpochs() == 30


def test_a_training_goes_on_from_a_fitted_model(fitted, rows):
    again = estimator(initialModel=fitted, epochs=1).fit(rows)
    np.testing.assert_allclose(again.model.weights, TRUE, atol=1e-3)
    with pytest.raises(
        JobError, match="must be a fitted model of the format 'keras'.*Received: .*'linear_of_the_tests'"
    ):
        KerasEstimator(featuresCol="x", labelCol="y", initialModel=fitted).fit(rows)


def test_a_saved_model_names_code_only_with_trust(rows, tmp_path):
    fitted = estimator(model=untrained(halved), epochs=1).fit(rows)
    path = f"{tmp_path}/model"
    fitted.save(path)
    with pytest.raises(ModelError, match="is not trusted"):
        LinearFitted.load(path)


def test_a_model_is_needed(rows):
    with pytest.raises(ModelError, match="Expected a linear model. Received: None"):
        LinearEstimator(featuresCol="x", labelCol="y").fit(rows)


def test_no_framework_is_loaded_for_it():
    program = (
        "import sys; from tests.formats.linear_estimator import LinearEstimator, LinearFitted; "
        "print(*sorted({'keras', 'jax', 'tensorflow', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
