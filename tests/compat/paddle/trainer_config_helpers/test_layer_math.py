"""Arithmetic between layers and numbers."""

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.errors import ModelError
from tests.compat.paddle.trainer_config_helpers.comparison import model_of


def layers_of(formula):
    """The layers that a formula of x, y (both 3 wide) and one (1 wide) defines."""

    def configs():
        formula(*(tch.data_layer(name, size) for name, size in (("x", 3), ("y", 3), ("one", 1))))

    return model_of(configs).layers[3:]


@pytest.mark.parametrize(
    ("formula", "slope", "intercept"),
    [
        pytest.param(lambda x, y, one: x + 2, 1.0, 2.0, id="x + 2"),
        pytest.param(lambda x, y, one: 2 + x, 1.0, 2.0, id="2 + x"),
        pytest.param(lambda x, y, one: x - 2, 1.0, -2.0, id="x - 2"),
        pytest.param(lambda x, y, one: x * 3, 3.0, 0.0, id="x * 3"),
        pytest.param(lambda x, y, one: 0.5 * x, 0.5, 0.0, id="0.5 * x"),
    ],
)
def test_a_number_is_a_slope_or_an_intercept(formula, slope, intercept):
    (layer,) = layers_of(formula)
    assert layer.type == "slope_intercept"
    assert (layer.attributes["slope"], layer.attributes["intercept"]) == (slope, intercept)


@pytest.mark.parametrize(
    ("formula", "types"),
    [
        pytest.param(lambda x, y, one: x + y, ["mixed"], id="x + y"),
        pytest.param(lambda x, y, one: x - y, ["slope_intercept", "mixed"], id="x - y"),
        pytest.param(lambda x, y, one: 1 - x, ["slope_intercept", "slope_intercept"], id="1 - x"),
        pytest.param(lambda x, y, one: x + one, ["featmap_expand", "mixed"], id="x + one"),
        pytest.param(lambda x, y, one: one + x, ["featmap_expand", "mixed"], id="one + x"),
        pytest.param(lambda x, y, one: x * one, ["scaling"], id="x * one"),
        pytest.param(lambda x, y, one: one * x, ["scaling"], id="one * x"),
    ],
)
def test_layers_are_joined(formula, types):
    made = layers_of(formula)
    assert [layer.type for layer in made] == types
    assert made[-1].size == 3


def test_a_layer_less_itself_negates_the_second():
    negated, total = layers_of(lambda x, y, one: x - y)
    assert (negated.inputs[0].layer, negated.attributes["slope"]) == ("y", -1.0)
    assert [each.layer for each in total.inputs] == ["x", negated.name]


def test_scaling_takes_the_layer_that_is_one_wide_as_the_weight():
    (layer,) = layers_of(lambda x, y, one: one * x)
    assert [each.layer for each in layer.inputs] == ["one", "x"]


@pytest.mark.parametrize(
    ("name", "active_type"),
    [
        ("exp", "exponential"),
        ("log", "log"),
        ("abs", "abs"),
        ("sigmoid", "sigmoid"),
        ("tanh", "tanh"),
        ("square", "square"),
        ("relu", "relu"),
    ],
)
def test_a_function_is_an_activation(name, active_type):
    (layer,) = layers_of(lambda x, y, one: getattr(tch.layer_math, name)(x))
    assert (layer.type, layer.active_type, layer.inputs[0].settings["proj"]["type"]) == (
        "mixed",
        active_type,
        "identity",
    )


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        (lambda x, y, one: x * y, "dotmul_operator"),
        (lambda x, y, one: x + tch.data_layer("z", 2), "sizes are equal or one of them is 1"),
        (lambda x, y, one: x + "y", "must be a layer"),
    ],
)
def test_what_does_not_fit_is_refused(formula, words):
    with pytest.raises(ModelError, match=words):
        layers_of(formula)
