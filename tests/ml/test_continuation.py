"""A fitted model has its optimizer's state, and a later fit goes on from there."""

import keras
import numpy as np
import pytest
from pyspark.ml import Pipeline

from keraunos import KerasClassificationModel, KerasClassifier, KerasRegressor
from keraunos.errors import JobError

pytestmark = pytest.mark.spark

ROWS = 60
BATCH = 10


@pytest.fixture(scope="module")
def df(spark):
    random = np.random.default_rng(0)
    points = random.normal(size=(ROWS, 3))
    rows = [(point.tolist(), int(point.sum() > 0)) for point in points]
    return spark.createDataFrame(rows, "features array<double>, label int").repartition(2).cache()


def compiled(optimizer):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(2, "softmax")])
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return model


def scheduled():
    return compiled(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.05, 12)))


def estimator(model=None, **params):
    options = {"batchSize": BATCH, "shuffle": False, "numWorkers": 2, "verbose": 0, "seed": 1, **params}
    return KerasClassifier(model=model, **options)


def weights(fitted):
    return np.concatenate([each.ravel() for each in fitted.model.get_weights()])


@pytest.fixture(scope="module")
def halfway(df):
    """A fit of two epochs with Adam and a schedule."""
    return estimator(scheduled(), epochs=2).fit(df)


@pytest.fixture(scope="module")
def whole(df):
    """The same training in one go."""
    return estimator(scheduled(), epochs=4).fit(df)


def test_the_fitted_model_has_its_optimizers_state_and_step_count(halfway):
    optimizer = halfway.model.optimizer
    # A global batch is what both workers take in a step.
    assert int(optimizer.iterations) == 2 * max(3, 3)
    assert all(np.abs(np.asarray(each.value)).max() > 0 for each in optimizer.variables)


def test_a_fit_goes_on_from_it_and_its_schedule_too(df, halfway, whole):
    continued = estimator(initialModel=halfway, epochs=2).fit(df)
    np.testing.assert_array_equal(weights(continued), weights(whole))
    assert int(continued.model.optimizer.iterations) == int(whole.model.optimizer.iterations)


def test_the_model_it_went_on_from_stays_as_it_was(df, halfway):
    before = weights(halfway).copy()
    estimator(initialModel=halfway).fit(df)
    np.testing.assert_array_equal(weights(halfway), before)


def test_a_saved_model_and_a_saved_pipeline_are_gone_on_from(df, whole, tmp_path):
    pipeline = Pipeline(stages=[estimator(scheduled(), epochs=2)]).fit(df)
    pipeline.save(str(tmp_path / "pipeline"))
    pipeline.stages[0].save(str(tmp_path / "alone"))
    for name in ("pipeline", "alone"):
        continued = estimator(initialModel=tmp_path / name, epochs=2).fit(df)
        np.testing.assert_array_equal(weights(continued), weights(whole))


def test_what_is_saved_can_do_without_the_optimizers_state(halfway, tmp_path):
    halfway.save(str(tmp_path / "with"))
    halfway.copy({halfway.saveOptimizer: False}).save(str(tmp_path / "without"))
    sizes = {name: (tmp_path / name / "model.keras").stat().st_size for name in ("with", "without")}
    assert sizes["without"] < sizes["with"]
    loaded = KerasClassificationModel.load(str(tmp_path / "without"))
    np.testing.assert_array_equal(weights(loaded), weights(halfway))
    assert int(loaded.model.optimizer.iterations) == 0


def test_what_serves_predictions_travels_without_the_optimizers_state(df, halfway):
    assert halfway.transform(df).count() == ROWS
    served = halfway._live["broadcast"].value
    assert len(served) < len(halfway._trained.archive)


def test_a_rule_on_the_server_goes_on_with_what_it_remembers(df, tmp_path):
    plan = {"exchange": "allreduce", "rule": "adam(learning_rate=0.05)"}
    first = estimator(compiled("sgd"), epochs=2, **plan).fit(df)
    whole = estimator(compiled("sgd"), epochs=4, **plan).fit(df)
    first.save(str(tmp_path / "first"))
    for initial in (first, str(tmp_path / "first")):
        continued = estimator(initialModel=initial, epochs=2, **plan).fit(df)
        np.testing.assert_array_equal(weights(continued), weights(whole))


def test_a_rule_that_cannot_go_on_says_so(df, halfway, caplog):
    rule = {"exchange": "allreduce", "rule": "adam(learning_rate=0.05)"}
    estimator(initialModel=halfway, **rule).plan_fit(df)
    estimator(initialModel=halfway, servers="workers", **rule).plan_fit(df)
    told = [each for each in caplog.messages if "begins anew behind `initialModel`" in each]
    assert ["no state of a rule" in told[0], "servers='driver'" in told[1]] == [True, True]


def test_another_way_to_compile_is_refused_before_any_job(df, halfway, jobs_run):
    with pytest.raises(JobError, match=r"`model` and `initialModel` must .* another optimizer"):
        estimator(compiled("sgd"), initialModel=halfway).fit(df)
    assert not jobs_run()


def test_the_same_model_may_stay_beside_it(df, halfway, whole):
    continued = estimator(scheduled(), initialModel=halfway, epochs=2).fit(df)
    np.testing.assert_array_equal(weights(continued), weights(whole))


def test_what_is_no_fitted_model_is_refused(halfway):
    with pytest.raises(JobError, match=r"Hand a Keras model over in `model`"):
        KerasRegressor(initialModel=halfway.model)
    with pytest.raises(JobError, match=r"`initialModel` cannot be saved with an estimator"):
        estimator(initialModel=halfway).write().save("nowhere")
