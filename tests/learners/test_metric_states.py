"""Metric states of several workers, read as one."""

import keras
import numpy as np
import pytest

from keraunos.batch import ArraySpec, BatchSpec
from keraunos.errors import ModelError
from keraunos.learners.metric_states import MetricReader, check_mergeable

SPEC = BatchSpec(ArraySpec((3,), "float32"), ArraySpec((1,), "float32"), weighted=False)


class Largest(keras.metrics.Metric):
    """The largest error: a state that does not add up."""

    def __init__(self, name="largest", **kwargs):
        super().__init__(name=name, **kwargs)
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.seen.assign(keras.ops.maximum(self.seen, keras.ops.max(keras.ops.abs(y_true - y_pred))))

    def result(self):
        return self.seen.value


class MergingLargest(Largest):
    def merge_state(self, metrics):
        for metric in metrics:
            self.seen.assign(keras.ops.maximum(self.seen, metric.seen))


class Renamed(keras.metrics.MeanAbsoluteError):
    """A subclass that leaves the state to Keras."""

    def result(self):
        return 2 * super().result()


def model_with(*metrics):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=list(metrics))
    return model


def test_sums_are_added_in_double_precision():
    reader = MetricReader(model_with("mae"), SPEC)
    exact = 2.0**24
    states = [[np.array(value) for value in (exact, 1.0, 3.0, 1.0)]] * 3
    merged = reader.merge([*states, [np.array(1.0), np.array(0.0), np.array(0.0), np.array(0.0)]])
    assert merged[0] == 3 * exact + 1
    logs = reader.read(states)
    assert logs == {"loss": pytest.approx(exact), "mae": pytest.approx(3.0)}


def test_a_state_of_its_own_is_refused_by_name():
    with pytest.raises(ModelError, match=r"metric 'largest'.*merge_state"):
        MetricReader(model_with(Largest()), SPEC)


def test_a_metric_that_says_how_to_merge_is_merged_that_way():
    reader = MetricReader(model_with(MergingLargest(), "mae"), SPEC)
    states = [[np.array(v) for v in (4.0, 2.0, largest, 6.0, 2.0)] for largest in (3.0, 7.0, 5.0)]
    for _ in range(2):
        assert reader.read(states) == {"loss": 2.0, "largest": 7.0, "mae": 3.0}
    assert [float(value) for value in reader.merge(states)] == [12.0, 6.0, 7.0, 18.0, 6.0]


def test_a_subclass_that_leaves_the_state_alone_adds_up():
    reader = MetricReader(model_with(Renamed(name="twice")), SPEC)
    assert reader.read([[np.array(v) for v in (1.0, 1.0, 3.0, 2.0)]] * 2) == {"loss": 1.0, "twice": 3.0}


def test_a_result_a_class_gets_a_name_each():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "categorical_crossentropy", metrics=[keras.metrics.F1Score(name="f1")])
    model.evaluate(np.eye(3, dtype="float32"), np.eye(2, dtype="float32")[[0, 1, 0]], verbose=0)
    state = [np.array(keras.ops.convert_to_numpy(each)) for each in model.metrics_variables]
    logs = MetricReader(model).read([state])
    assert list(logs) == ["loss", "f1_0", "f1_1"]


def test_metrics_that_exist_are_checked_without_a_spec():
    class WithMetric(keras.Sequential):
        pass

    model = WithMetric([keras.Input((3,)), keras.layers.Dense(1)])
    model.own = Largest()
    model.compile("sgd", "mse")
    with pytest.raises(ModelError, match="largest"):
        check_mergeable(model)


@pytest.mark.parametrize(
    "metrics",
    [
        {"metrics": [Largest()]},
        {"metrics": [Largest]},
        {"metrics": ["mae", ["acc", Largest()]]},
        {"weighted_metrics": [Largest()]},
        {"metrics": {"out": ["mae", Largest()]}},
    ],
)
def test_compiled_metrics_are_checked_before_they_exist(metrics):
    model = keras.Sequential([keras.layers.Dense(1, name="out")])
    model.compile("sgd", "mse", **metrics)
    with pytest.raises(ModelError, match=r"metric 'largest'.*merge_state"):
        check_mergeable(model)


def test_a_name_that_keras_does_not_know_is_refused():
    with pytest.raises(ModelError, match="Received: 'acuracy'"):
        check_mergeable(model_with("acuracy"))


def test_what_can_be_merged_passes_before_it_exists():
    def error(y_true, y_pred):
        return y_true - y_pred

    config = {"class_name": "MeanAbsoluteError", "config": {"name": "by_config"}}
    model = model_with("accuracy", "ACC", error, MergingLargest(), Renamed(), keras.metrics.AUC, config, ["mse"])
    check_mergeable(model)
    assert not any(metric.variables for metric in model.metrics if metric.name == "compile_metrics")


def test_no_states_give_no_results():
    assert MetricReader(model_with("mae"), SPEC).read([]) == {}
