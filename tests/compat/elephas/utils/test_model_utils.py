"""What kind of model a loss makes."""

import json

import keras
import pytest

from keraunos.compat.elephas.utils.functional_utils import (
    add_params,
    average_and_subtract,
    divide_by,
    get_neutral,
    subtract_params,
)
from keraunos.compat.elephas.utils.model_utils import (
    LossModelTypeMapper,
    ModelType,
    ModelTypeEncoder,
    as_enum,
    is_multiple_input_model,
    is_multiple_output_model,
)
from keraunos.compat.elephas.utils.serialization import dict_to_model, model_to_dict
from keraunos.errors import JobError
from tests.compat.elephas import models


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("mse", ModelType.REGRESSION),
        ("mean_absolute_error", ModelType.REGRESSION),
        ("logcosh", ModelType.REGRESSION),
        ("cosine_proximity", ModelType.REGRESSION),
        (keras.losses.Huber(), ModelType.REGRESSION),
        ("categorical_crossentropy", ModelType.CLASSIFICATION),
        ("sparse_categorical_crossentropy", ModelType.CLASSIFICATION),
        (keras.losses.BinaryCrossentropy(), ModelType.CLASSIFICATION),
        ("a_loss_of_somebody", None),
    ],
)
def test_the_kind_of_a_loss(loss, kind):
    assert LossModelTypeMapper().get_model_type(loss) == kind


def test_a_loss_of_ones_own():
    def shifted_loss(true, predicted):
        return keras.ops.mean(true - predicted)

    LossModelTypeMapper().register_loss(shifted_loss, ModelType.REGRESSION)
    assert LossModelTypeMapper().get_model_type(shifted_loss) == ModelType.REGRESSION
    assert LossModelTypeMapper().get_model_type("shifted_loss") == ModelType.REGRESSION
    with pytest.raises(JobError, match="must be a ModelType"):
        LossModelTypeMapper().register_loss("x", "regression")


def test_a_kind_goes_through_json():
    text = json.dumps({"kind": ModelType.REGRESSION}, cls=ModelTypeEncoder)
    assert json.loads(text, object_hook=as_enum) == {"kind": ModelType.REGRESSION}


def test_several_inputs_and_outputs():
    several, one = models.two_inputs(), models.classifier()
    assert is_multiple_input_model(several)
    assert is_multiple_output_model(several)
    assert not is_multiple_input_model(one)
    assert not is_multiple_output_model(one)


def test_arithmetic_on_weights():
    weights = models.classifier().get_weights()
    twice = add_params(weights, weights)
    for each, double, half, zero in zip(weights, twice, divide_by(twice, 2), get_neutral(weights), strict=True):
        assert (double == 2 * each).all()
        assert (half == each).all()
        assert not zero.any()
    for each, mean in zip(weights, average_and_subtract(weights, [weights, get_neutral(weights)]), strict=True):
        assert mean == pytest.approx(each / 2)
    assert not any(each.any() for each in subtract_params(weights, weights))


def test_a_model_as_a_dict():
    model = models.classifier()
    again = dict_to_model(model_to_dict(model))
    assert all((ours == theirs).all() for ours, theirs in zip(again.get_weights(), model.get_weights(), strict=True))
