"""What the engine promises, on every backend: equality with one process, exact metrics, exact epochs.

A test class inherits `EngineSuite`; the process must run Keras on the backend it is for.
"""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance import engine, keras_features
from tests.conformance import learner_models as models

ROWS = 130
UNEVEN = {1: [130], 2: [97, 33], 3: [70, 60, 0]}


def digits(rows=ROWS, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, models.FEATURES)).astype("float32")
    return engine.table(x=x, y=(x[:, 0] > 0).astype("int64") + (x[:, 1] > 0), weight=random.uniform(0.1, 3, rows))


def sequences(rows=ROWS):
    random = np.random.default_rng(1)
    x = random.integers(1, 7, size=(rows, 5))
    x[np.arange(5) >= random.integers(1, 6, size=rows)[:, None]] = 0
    return engine.table(x=x.astype("int32"), y=x % 3)


def summed():
    model = models.dense("sgd")
    loss = keras.losses.SparseCategoricalCrossentropy(reduction="sum")
    model.compile(keras.optimizers.SGD(0.002), loss)
    return model


def dense_sgd():
    return models.dense("sgd")


def dense_adam():
    return models.dense("adam")


def masked():
    return models.masked_sequence()[0]


class EngineSuite:
    @pytest.mark.paired
    @pytest.mark.parametrize("workers", [1, 2, 3])
    @pytest.mark.parametrize(
        ("make", "rows", "options", "tolerance"),
        [
            (dense_sgd, digits, {}, 1e-4),
            (dense_adam, digits, {}, 1e-3),
            (dense_sgd, digits, {"weight": "weight", "class_weight": {1: 3.0}}, 1e-4),
            (masked, sequences, {}, 1e-4),
            (summed, digits, {}, 1e-4),
        ],
        ids=["sgd", "adam", "weighted", "masked", "sum"],
    )
    def test_allreduce_equals_one_process_on_the_same_global_batches(self, make, rows, options, tolerance, workers):
        parts = engine.partitions(rows(), UNEVEN[workers])
        steps = -(-max(UNEVEN[workers]) // 8)
        job = engine.job_of(make(), workers, batch_size=8, epochs=-(-50 // steps), seed=3, **options)
        trained, _ = engine.train(job, parts)
        assert engine.difference(trained, engine.plain_keras(job, parts)) < tolerance

    @pytest.mark.paired
    @pytest.mark.parametrize("exchange", ["allreduce", "averaging"])
    @pytest.mark.parametrize("name", ["`use_ema`", "LoRA on a Dense layer", "one frozen variable"])
    def test_a_feature_of_keras_holds_on_this_backend(self, name, exchange):
        (feature,) = [each for each in keras_features.FEATURES_OF_KERAS if each.name == name]
        assert keras_features.difference(feature, 2, exchange) < 1e-4

    def test_two_runs_are_equal_to_the_bit_however_rows_arrive(self):
        rows = digits()
        job = engine.job_of(models.dense("adam"), 2, batch_size=8, epochs=3, seed=5)
        first = engine.partitions(rows, [97, 33])
        order = np.random.default_rng(2)
        shuffled = [part.take(order.permutation(part.num_rows)) for part in first]
        (ours, _), (theirs, _) = engine.train(job, first), engine.train(job, shuffled, share_memory=False)
        assert engine.difference(ours, theirs) == 0.0

    @pytest.mark.parametrize("exchange", ["allreduce", "averaging"])
    def test_metrics_are_those_of_one_process_on_the_same_weights(self, exchange):
        random = np.random.default_rng(0)
        x = random.normal(size=(300, models.FEATURES)).astype("float32")
        y = (x.sum(axis=1) + random.normal(size=300) > 0).astype("int64")
        rows = engine.table(x=x, y=y, held_out=np.arange(300) % 3 == 0)
        job = engine.job_of(models.binary(), 3, exchange=exchange, validation="held_out", batch_size=16, epochs=2)
        trained, history = engine.train(job, engine.partitions(rows, [150, 50, 100]))
        held_out = np.arange(300) % 3 == 0
        expected = trained.evaluate(x[held_out], y[held_out], batch_size=300, verbose=0, return_dict=True)
        for name in ("loss", "accuracy", "auc"):
            assert history[f"val_{name}"][-1] == pytest.approx(expected[name], rel=1e-5)

    def test_averaging_learns_and_moves_batch_statistics(self):
        parts = engine.partitions(digits(600), [400, 200])
        job = engine.job_of(models.batch_norm(), 2, exchange="averaging", every=5, batch_size=16, epochs=12)
        trained, history = engine.train(job, parts)
        assert history["accuracy"][-1] > 0.65
        means, variances = trained.layers[1].get_weights()[2:]
        assert np.abs(means).max() > 0.01
        assert np.abs(variances - 1).max() > 0.01

    def test_downpour_learns_with_workers_that_never_wait(self):
        parts = engine.partitions(digits(600), [400, 150, 50])
        job = engine.job_of(models.dense("adam"), 3, exchange="downpour", batch_size=16, epochs=15, learning_rate=0.02)
        _, history = engine.train(job, parts)
        assert len(history["loss"]) == 15
        assert history["accuracy"][-1] > 0.85

    @settings(max_examples=5)
    @given(st.lists(st.sampled_from([0, 1, 7, 33, 100]), min_size=1, max_size=4).filter(any), st.integers(1, 40))
    def test_every_row_is_used_once_an_epoch(self, sizes, batch_size):
        parts = engine.partitions(digits(sum(sizes)), sizes)
        job = engine.job_of(counting_model(), len(sizes), batch_size=batch_size, epochs=2)
        _, history = engine.train(job, parts)
        assert history["counted"] == [sum(sizes), sum(sizes)]


def counting_model():
    model = models.dense("sgd")
    model.compile(keras.optimizers.SGD(0.0001), "sparse_categorical_crossentropy", metrics=[RowCount(name="counted")])
    return model


@keras.saving.register_keras_serializable("engine_suite")
class RowCount(keras.metrics.Metric):
    """How many rows it was shown; says how states of several workers come together."""

    def __init__(self, name="counted", **options):
        super().__init__(name=name, **options)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(keras.ops.cast(keras.ops.shape(y_pred)[0], "float32"))

    def result(self):
        return keras.ops.convert_to_tensor(self.total)

    def merge_state(self, metrics):
        for metric in metrics:
            self.total.assign_add(metric.total)
