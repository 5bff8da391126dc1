"""Whole networks over sequences: built, trained, saved and read back; padding and company do not matter."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from keraunos.compat.paddle.lowering.keras_layers import Reported, SummedCost
from keraunos.compat.paddle.lowering.network import lower
from keraunos.learners.keras_archive import from_archive, to_archive
from tests.compat.paddle.lowering.sequence_networks import LENGTHS, NETWORKS, batch, parsed
from tests.extended import extended

# What the others are made of is tested layer by layer in `test_sequence_layers.py` and `test_structured_costs.py`.
PAIRED = {"attention", "next_word", "ranker"}


@pytest.mark.parametrize("name", [name if name in PAIRED else extended(name) for name in NETWORKS if name != "tagger"])
def test_networks_learn(name):
    trained, fed = lower(parsed(name)).trainer(), batch(name)
    trained.compile(keras.optimizers.Adam(0.05), SummedCost(), metrics=[Reported(0, "cost")])
    costs = trained.fit(fed, np.zeros(4), batch_size=4, epochs=8, verbose=0).history["cost"]
    # What a ranking reports grows as it gets better.
    assert costs[-1] > costs[0] + 0.05 if name == "ranker" else costs[-1] < 0.9 * costs[0]


def test_network_comes_back_from_its_archive():
    model, fed = lower(parsed("text_classifier")).trainer(), batch("text_classifier")
    again = from_archive(to_archive(model))
    assert_allclose(again.predict_on_batch(fed), model.predict_on_batch(fed), rtol=1e-6)


@pytest.mark.parametrize("name", ["tagger", "attention"])
def test_rows_cost_the_same_alone_and_without_padding(name):
    model, fed = lower(parsed(name)).trainer(), batch(name)
    alone = {key: _cut(value[:1], LENGTHS[0]) for key, value in fed.items()}
    assert_allclose(model.predict_on_batch(alone)[0], model.predict_on_batch(fed)[0], rtol=1e-5)


def test_chain_finds_the_labels_that_it_has_learned():
    fed = batch("tagger")
    network = lower(parsed("tagger"))
    trained = network.trainer()
    trained.compile(keras.optimizers.Adam(0.1), SummedCost())
    trained.fit(fed, np.zeros(4), batch_size=4, epochs=60, verbose=0)
    found = network.predictor("found").predict(fed["words"], verbose=0)
    wrong = network.predictor("wrong").predict({key: fed[key] for key in ("words", "tags")}, verbose=0)
    present = fed["tags"] >= 0
    assert np.array_equal(found[present], fed["tags"][present])
    assert not np.any(wrong)


def _cut(value, steps):
    return value if value.ndim == 1 else value[:, :steps]
