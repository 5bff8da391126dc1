"""What a user sees when something is wrong: one clear error, before work is spent where the schema can tell."""

import re

import keras
import numpy as np
import pyarrow as pa
import pytest
from keras import layers

from keraunos import KerasClassifier
from keraunos.errors import ClusterError, ColumnError, DataError, JobError, ModelError, PlanError

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def frame(spark):
    random = np.random.default_rng(0)
    rows = {
        "features": pa.FixedSizeListArray.from_arrays(pa.array(random.normal(size=120)), 3),
        "label": pa.array(random.integers(0, 3, 40)),
        "name": pa.array(["x"] * 40),
    }
    return spark.createDataFrame(pa.table(rows)).repartition(2).cache()


def model(units=3, loss="sparse_categorical_crossentropy", compiled=True, extra=()):
    built = keras.Sequential([keras.Input((3,)), *extra, layers.Dense(units, activation="softmax")])
    if compiled:
        built.compile("sgd", loss)
    return built


def fit(frame, **params):
    given = {"model": model(), "verbose": 0, "batchSize": 8, **params}
    return KerasClassifier(**given).fit(frame)


def test_missing_column(frame):
    with pytest.raises(ColumnError, match=r"(?s)featurs.*(Did you mean 'features'|features, label)"):
        fit(frame, featuresCol="featurs")


def test_wrong_type(frame):
    with pytest.raises(ColumnError, match=r"(?s)'name'.*string"):
        fit(frame, featuresCol="name")


def test_ragged_array(frame):
    ragged = frame.selectExpr("if(label = 1, slice(features, 1, 2), features) as features", "label")
    with pytest.raises(DataError, match=r"(?s)'features'.*3.*2|'features'.*2.*3"):
        fit(ragged)


def test_null(frame):
    with pytest.raises(DataError, match=r"(?s)'features'.*null"):
        fit(frame.selectExpr("if(label = 1, null, features) as features", "label"))


def test_nan(frame):
    dirty = frame.selectExpr("if(label = 1, array(1d, double('NaN'), 2d), features) as features", "label")
    with pytest.raises(DataError, match=r"(?s)'features'.*NaN"):
        fit(dirty)
    assert fit(dirty, allowNaN=True).history["loss"]


def test_label_out_of_range(frame):
    with pytest.raises(DataError, match=r"(?s)'label'.*out of range.*from 0 to 1\. Received: 2"):
        fit(frame, model=model(units=2))


def test_model_not_compiled(frame):
    with pytest.raises(ModelError, match=r"(?s)must be compiled.*model\.compile"):
        fit(frame, model=model(compiled=False))


def test_output_that_does_not_match_the_label(frame):
    with pytest.raises(ColumnError, match=r"(?s)labelCol.*categorical_crossentropy.*sparse_categorical_crossentropy"):
        fit(frame, model=model(loss="categorical_crossentropy"))


def test_input_that_does_not_match_the_features(frame):
    wider = keras.Sequential([keras.Input((5,)), layers.Dense(3, activation="softmax")])
    wider.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises((ColumnError, DataError), match=r"(?s)features.*5.*3"):
        fit(frame, model=wider)


def test_no_rows(frame):
    with pytest.raises(DataError, match="no rows"):
        fit(frame.filter("label > 7"))


def test_batch_size_of_zero(frame):
    with pytest.raises((JobError, ValueError), match=r"(?s)batchSize.*at least 1.*0"):
        fit(frame, batchSize=0)


def test_more_workers_than_slots(frame):
    with pytest.raises(ClusterError, match=r"numWorkers=64 is above the 2 task slot"):
        fit(frame, numWorkers=64)


def test_unknown_exchange(frame):
    with pytest.raises(PlanError, match=r"'allreduce', 'averaging', 'downpour'.*Received: 'allreduse'.*Did you mean"):
        fit(frame, exchange="allreduse")


class Local(layers.Layer):
    """Cannot be rebuilt: its constructor needs what its config does not hold."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def call(self, inputs):
        return inputs


def test_layer_that_cannot_be_rebuilt(frame):
    with pytest.raises(ModelError, match=r"(?s)Local.*(get_config|customObjects)"):
        fit(frame, model=model(extra=[Local({1: 2})]))


def test_saving_onto_an_existing_path(frame, tmp_path):
    fitted = fit(frame)
    fitted.save(str(tmp_path / "model"))
    with pytest.raises(Exception, match=r"(?s)exist.*overwrite"):
        fitted.save(str(tmp_path / "model"))
    fitted.write().overwrite().save(str(tmp_path / "model"))


def test_a_backend_that_is_not_installed_is_said_before_any_task(frame, jobs_run):
    expected = r"'torch' is not installed.*Installed: jax.*pip install 'keraunos\[torch\]'"
    with pytest.raises(ClusterError, match=expected):
        fit(frame, backend="torch")
    assert not jobs_run()


def test_a_fitted_model_says_what_it_is_and_refuses_a_backend_that_is_not_installed(frame):
    fitted = fit(frame)
    last = fitted.history["loss"][-1]
    assert repr(fitted) == str(fitted)
    assert re.fullmatch(
        rf"KerasClassificationModel\(uid='{fitted.uid}', model=Sequential 'sequential\w*' on \w+, "
        rf"\w+\(3\) -> \w+\(3\), 1 epoch: loss={last:.4g}\)",
        repr(fitted),
    )
    assert "model" not in fitted._live  # Keras's own model was not loaded for it
    with pytest.raises(ClusterError, match="'torch' is not installed"):
        fitted.setBackend("torch").transform(frame)
