"""What stands behind a layer's function: dropout, clipped errors, a cost's factor; and statistics that move."""

from __future__ import annotations

from dataclasses import asdict, replace

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from keraunos.compat.paddle.lowering.call import Call, Value, layer_type
from keraunos.compat.paddle.lowering.keras_layers import PaddleLayer
from keraunos.compat.paddle.lowering.output import finished
from keraunos.compat.paddle.model_config import InputConfig, LayerConfig, ParameterConfig, layer_to_json
from tests.compat.paddle.lowering.batch_calls import called, gradients
from tests.compat.paddle.lowering.image_cases import batch_norm_case

IDENTITY = LayerConfig("out", "addto", 2000, (InputConfig("in"),))


def given(layer, x, *, training):
    """What a layer without parameters gives of one input."""
    kind = layer_type(layer.type)
    random = keras.random.SeedGenerator(3) if layer.drop_rate else None
    call = Call(layer, [Value(keras.ops.convert_to_tensor(each)) for each in x], {}, training, random)
    return finished(call, kind.function(call), kind).tensor


def test_dropout_zeroes_in_training_and_scales_outside_of_it():
    x = np.random.default_rng(0).uniform(1, 2, size=(10, 2000)).astype(np.float32)
    layer = replace(IDENTITY, drop_rate=0.3)
    trained = keras.ops.convert_to_numpy(given(layer, [x], training=True))
    kept = trained != 0
    assert_allclose(trained[kept], x[kept])
    assert abs(kept.mean() - 0.7) < 0.01
    assert_allclose(keras.ops.convert_to_numpy(given(layer, [x], training=False)), 0.7 * x, rtol=1e-6)


def test_dropout_stands_behind_the_activation():
    x = np.full((1, 2000), -1.0, np.float32)
    layer = replace(IDENTITY, drop_rate=0.5, active_type="exponential")
    trained = keras.ops.convert_to_numpy(given(layer, [x], training=True))
    assert {f"{each:.4f}" for each in np.unique(trained)} == {"0.0000", f"{np.exp(-1):.4f}"}


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_errors_are_clipped_on_their_way_back_and_values_are_not(threshold):
    x, weights = np.array([[3.0, -2.0, 0.1]], np.float32), np.array([[2.0, -0.7, 0.2]], np.float32)
    layer = LayerConfig("out", "slope_intercept", 3, (InputConfig("in"),), attributes={"slope": 10.0, "intercept": 0.0},
                        error_clipping_threshold=threshold)  # fmt: skip

    def total(arrays):
        return keras.ops.sum(given(layer, [arrays["x"]], training=True) * keras.ops.convert_to_tensor(weights))

    assert_allclose(float(total({"x": keras.ops.convert_to_tensor(x)})), float((10 * x * weights).sum()), rtol=1e-6)
    expected = 10 * (np.clip(weights, -threshold, threshold) if threshold else weights)
    assert_allclose(gradients(lambda arrays: (total(arrays),) * 2, {"x": x})[1]["x"], expected, rtol=1e-6)


def test_coeff_scales_the_gradient_and_not_the_cost():
    x = np.array([[1.0, 2.0]], np.float32)
    layer = LayerConfig("cost", "sum_cost", 1, (InputConfig("in"),), coeff=0.25)

    def total(arrays):
        return keras.ops.sum(given(layer, [arrays["x"]], training=True))

    assert float(total({"x": keras.ops.convert_to_tensor(x)})) == 3.0
    assert_allclose(gradients(lambda arrays: (total(arrays),) * 2, {"x": x})[1]["x"], [[0.25, 0.25]])


def test_training_moves_the_statistics_of_a_batch_norm():
    case = batch_norm_case("norm", 2, (1, 2), rows=3)
    x = case.inputs[0].array.reshape(3, 2, 2)
    mean, variance = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    _, call = called(case, case.arrays)
    for name, batch in (("w1", mean), ("w2", variance)):
        moved = keras.ops.convert_to_numpy(call.moved[name])
        assert_allclose(moved, 0.9 * case.parameters[name] + 0.1 * batch, rtol=1e-5)
    assert not called(replace(case, training=False), case.arrays)[1].moved


def test_a_batch_norm_in_a_model_starts_from_zero_and_keeps_what_it_saw():
    case = batch_norm_case("norm", 2, (1, 1), rows=4)
    parameters = [
        ParameterConfig("w0", 2, initial_mean=1.0, initial_std=0.0),
        ParameterConfig("w1", 2, (1, 2), initial_std=0.0, is_static=True),
        ParameterConfig("w2", 2, (1, 2), initial_std=0.0, is_static=True),
        ParameterConfig("bias", 2, (1, 2), initial_std=0.0),
    ]
    layer = PaddleLayer(layer_to_json(case.layer), [asdict(each) for each in parameters], [], [("dense", False)] * 3)
    x = case.inputs[0].array.astype(np.float32)
    layer([x, x, x], training=True)
    state = {each.name: keras.ops.convert_to_numpy(each.value).ravel() for each in layer.weights}
    assert_allclose(state["w1"], 0.1 * x.mean(axis=0), rtol=1e-5)
    assert_allclose(state["w2"], 0.1 * x.var(axis=0), rtol=1e-5)
    seen = keras.ops.convert_to_numpy(layer([x, x, x], training=False))
    assert_allclose(seen, (x - state["w1"]) / np.sqrt(state["w2"] + 1e-5), rtol=1e-4)


def test_steps_that_are_not_there_do_not_count_for_a_batch_norm():
    case = batch_norm_case("norm", 2, (1, 1), rows=2)
    steps = np.random.default_rng(1).normal(size=(2, 3, 2))
    lengths = (1, 3)
    inputs = [replace(each, array=steps, lengths=lengths) for each in case.inputs]
    inputs[1:] = [replace(each, settings={}) for each in inputs[1:]]
    case = replace(case, inputs=inputs)
    there = np.concatenate([steps[0, :1], steps[1]])
    value, call = called(case, case.arrays)
    expected = (there - there.mean(0)) / np.sqrt(there.var(0) + 1e-5) * case.parameters["w0"] + case.parameters["bias"]
    found = keras.ops.convert_to_numpy(value.tensor)
    assert_allclose(np.concatenate([found[0, :1], found[1]]), expected, rtol=1e-4, atol=1e-5)
    moved = keras.ops.convert_to_numpy(call.moved["w1"])
    assert_allclose(moved, 0.9 * case.parameters["w1"] + 0.1 * there.mean(0), rtol=1e-4)
