"""What is said of parameters and of layers besides their arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.compat.paddle import config_parser as raw
from keraunos.errors import ModelError
from tests.compat.paddle.trainer_config_helpers.comparison import model_of


def parameter_with(attr):
    """The weight of a layer of 4 inputs that has those attributes."""

    def configs():
        tch.fc_layer(tch.data_layer("x", 4), 9, param_attr=attr, bias_attr=False)

    (made,) = model_of(configs).parameters
    return made


def test_without_a_start_it_is_by_the_shape():
    made = parameter_with(tch.ParamAttr())
    assert made.initial_smart
    assert (made.initial_mean, made.initial_std) == (0.0, 0.5)


def test_a_mean_alone_leaves_the_deviation_to_the_parser():
    made = parameter_with(tch.ParamAttr(initial_mean=2))
    assert (made.initial_mean, made.initial_std, made.initial_strategy, made.initial_smart) == (2.0, 0.01, 0, False)


@given(
    st.floats(-100, 100).flatmap(lambda low: st.tuples(st.just(low), st.floats(low + 0.5, low + 50))),
)
def test_a_uniform_start_lies_between_its_bounds(bounds):
    low, high = bounds
    told = tch.ParamAttr(initial_min=low, initial_max=high).attr
    assert told["initial_strategy"] == 1
    assert told["initial_mean"] - told["initial_std"] == pytest.approx(low, abs=1e-9)
    assert told["initial_mean"] + told["initial_std"] == pytest.approx(high, abs=1e-9)


def test_everything_that_is_said_arrives():
    made = parameter_with(
        tch.ParamAttr(
            name="w", l2_rate=0.1, learning_rate=2, momentum=0.5, gradient_clipping_threshold=3, sparse_update=True
        )
    )
    assert (made.name, made.decay_rate, made.learning_rate, made.momentum) == ("w", 0.1, 2.0, 0.5)
    assert (made.gradient_clipping_threshold, made.sparse_update, made.sparse_remote_update) == (3.0, True, True)


def test_a_static_parameter_still_starts_by_its_shape_and_has_no_l1():
    made = parameter_with(tch.ParamAttr(is_static=True, l1_rate=0.1))
    assert (made.is_static, made.initial_smart, made.decay_rate_l1) == (True, True, 0.0)


def test_l1_belongs_to_the_parameter():
    assert parameter_with(tch.ParamAttr(l1_rate=0.1)).decay_rate_l1 == 0.1


def test_the_same_attributes_may_serve_several_layers():
    shared = tch.ParamAttr(learning_rate=2)

    def configs():
        image = tch.img_conv_layer(tch.data_layer("image", 36), 3, 1, num_channels=1, param_attr=shared)
        tch.fc_layer(image, 2, param_attr=shared, bias_attr=False)

    weights = [each for each in model_of(configs).parameters if each.name.endswith("w0")]
    assert [each.initial_smart for each in weights] == [False, True]
    assert [each.learning_rate for each in weights] == [2.0, 2.0]


def test_a_bias_is_attributes_or_nothing():
    assert tch.ParamAttr.to_bias(tch.ParamAttr(learning_rate=2)) == raw.Bias(learning_rate=2.0, initial_smart=True)
    assert tch.ParamAttr.to_bias(False) is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"initial_max": 1}, "both `initial_max` and `initial_min`"),
        ({"initial_max": 0, "initial_min": 1}, "the first above the second"),
        ({"initial_max": 1, "initial_min": 0, "initial_std": 1}, "not both"),
        ({"learning_rate": "fast"}, "`learning_rate` must be a number. Received: 'fast'"),
    ],
)
def test_attributes_that_contradict_each_other_are_refused(arguments, words):
    with pytest.raises(ModelError, match=words):
        tch.ParamAttr(**arguments)


@pytest.mark.parametrize("arguments", [{"drop_rate": 1.5}, {"error_clipping_threshold": -1}])
def test_extra_attributes_out_of_range_are_refused(arguments):
    with pytest.raises(ModelError, match=next(iter(arguments))):
        tch.ExtraAttr(**arguments)


def test_a_layer_that_runs_somewhere_else_is_the_same_layer(caplog):
    def configs():
        tch.fc_layer(tch.data_layer("x", 4), 9, layer_attr=tch.ExtraAttr(device=1))

    with caplog.at_level("INFO"):
        assert model_of(configs).layers[-1].attributes == {}
    assert "device" in caplog.text
