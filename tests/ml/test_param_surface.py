"""What users see of the Params is what it was: a change of it is one of `param_surface.json`, too."""

from __future__ import annotations

import inspect
import pickle
import pydoc
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark import cloudpickle
from pyspark.ml.param import Param
from pyspark.ml.tuning import ParamGridBuilder

from keraunos import KerasClassifier, KerasModel
from keraunos.errors import KeraunosError
from tests.ml.param_surface import accessors, load, params_of, surface, written

WRITTEN = written(Path(__file__).with_name("param_surface.json"))


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_users_see_of_the_params_stays(kind):
    assert surface(load(kind)) == WRITTEN[kind]


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_setter_and_getter_tells_what_it_is_for(kind):
    for name, method in accessors(load(kind)).items():
        assert inspect.isfunction(method)
        assert method.__name__ == name
        assert len(method.__doc__) > 10
        assert name in pydoc.render_doc(method)
        assert pickle.loads(pickle.dumps(method)) is method


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_param_is_one_of_spark_ml(kind):
    for name, param in params_of(load(kind)).items():
        assert type(param) is Param
        assert param.name == name
        assert param.parent == "undefined"


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_a_param_does_not_take_is_refused_by_its_own_name(kind):
    for name, param in params_of(load(kind)).items():
        with pytest.raises((KeraunosError, TypeError), match=f"`{name}`"):
            param.typeConverter(object())


def test_params_setters_and_getters_are_offered_by_tab_completion():
    assert {"epochs", "setEpochs", "getEpochs"} <= set(dir(KerasClassifier())) & set(dir(KerasClassifier))


def test_a_setter_takes_its_value_by_name_too():
    assert KerasClassifier().setEpochs(value=5).getEpochs() == 5
    with pytest.raises(TypeError, match=r"setEpochs\(\) missing 1 required positional argument: 'value'"):
        KerasClassifier().setEpochs()


def test_help_shows_what_a_setter_takes():
    text = pydoc.render_doc(KerasClassifier.setEpochs, renderer=pydoc.plaintext)
    assert "setEpochs(self, value: " in text
    assert (
        "How often the training passes over all rows" in text or "how often the training passes over all rows" in text
    )


def test_an_estimator_travels_with_its_params():
    classifier = KerasClassifier(epochs=3, labelCol="y")
    restored = cloudpickle.loads(cloudpickle.dumps(classifier))
    assert restored.uid == classifier.uid
    assert restored.getEpochs() == 3
    assert restored.epochs == classifier.epochs


def test_param_maps_are_copied_and_explained():
    classifier = KerasClassifier(epochs=3)
    (grid,) = ParamGridBuilder().addGrid(classifier.epochs, [7]).build()
    assert classifier.copy(grid).getEpochs() == 7
    assert classifier.getEpochs() == 3
    assert "(default: 1, current: 3)" in classifier.explainParam("epochs")
    assert classifier.explainParams().count("\n") == len(classifier.params) - 1


def test_what_getters_give_is_the_users_own():
    classifier = KerasClassifier(customObjects={"f": len}, thresholds=[0.5, 0.5], featuresCol=["a", "b"])
    classifier.getCustomObjects().clear()
    classifier.getThresholds().clear()
    classifier.getFeaturesCol().clear()
    classifier.getTrustedModules().append("x")
    classifier.getCallbacks().append("x")
    classifier.getClassWeight()[0] = 1.0
    assert classifier.getCustomObjects() == {"f": len}
    assert classifier.getThresholds() == [0.5, 0.5]
    assert classifier.getFeaturesCol() == ["a", "b"]
    assert classifier.getTrustedModules() == classifier.getCallbacks() == []
    assert classifier.getClassWeight() == {}


def test_a_class_of_ones_own_may_change_defaults_and_accessors():
    class Patient(KerasClassifier):
        _DEFAULTS: ClassVar = {"epochs": 100}

        def setEpochs(self, value):
            return super().setEpochs(value * 2)

    assert Patient().getEpochs() == 100
    assert Patient().setEpochs(4).getEpochs() == 8
    assert Patient(epochs=4).getEpochs() == 4
    assert inspect.signature(Patient).parameters["epochs"].default == 100
    assert KerasClassifier().getEpochs() == 1
    assert KerasModel.getSaveOptimizer is KerasClassifier.getSaveOptimizer
