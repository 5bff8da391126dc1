"""Everything that Keras can be told of a model holds under `allreduce` and `averaging`, to float tolerance."""

import os
from pathlib import Path

import pytest

from tests.conformance import keras_features

if os.environ["KERAS_BACKEND"] == "jax":

    @pytest.mark.paired
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("exchange", ["allreduce", "averaging"])
    @pytest.mark.parametrize("feature", keras_features.FEATURES_OF_KERAS, ids=lambda feature: feature.name)
    def test_a_feature_of_keras_holds(feature, exchange, workers):
        assert keras_features.difference(feature, workers, exchange) <= feature.tolerance


def test_the_document_has_every_feature():
    document = (Path(__file__).parents[2] / "docs" / "keras_features.md").read_text()
    table = document[document.index("| Keras |") :].partition("\n\n")[0].splitlines()[2:]
    told = [line.split(" | ")[0].removeprefix("| ") for line in table]
    assert told == [feature.name for feature in keras_features.FEATURES_OF_KERAS]
