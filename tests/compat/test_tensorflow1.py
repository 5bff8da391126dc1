import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("tensorflow1_facts.py")


@pytest.fixture(scope="module")
def facts():
    """Everything the program found out; each fact is looked at by a test of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_USE_LEGACY_KERAS"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout) | {"stderr": done.stderr}


def fact(facts, name):
    assert "failed" not in facts[name], facts[name]["failed"]
    return facts[name]


def test_it_looks_like_the_last_1_x(facts):
    found = fact(facts, "surroundings")
    assert found["version"].startswith("1.15")
    assert found["eager"] is False
    assert found["names"]
    assert found["contrib"]
    assert found["slim"]
    assert found["name"] == "keraunos.compat.tensorflow1"
    assert found["insides"] == "tensorflow.python"
    assert found["moved"]


def test_tensorflow_gives_no_advice_to_move_on(facts):
    assert "deprecated" not in facts["stderr"]


def test_the_model_of_the_tensorspark_document_trains(facts):
    found = fact(facts, "document_of_tensorspark")
    assert found["before"] == pytest.approx(2.302585, abs=1e-5)
    assert found["after"] < 1
    assert found["names"] == ["Placeholder:0", "Variable:0"]


def test_a_network_in_slims_arg_scopes(facts):
    found = fact(facts, "lenet")
    layers = ("conv1", "fc3", "fc4")
    assert found["variables"] == [f"LeNet/{layer}/{part}" for layer in layers for part in ("weights", "biases")]
    assert found["losses"] == 1
    assert found["regularization"] == 3


@pytest.mark.parametrize(
    ("name", "updates"),
    [
        ("batch_norm of images", 2),
        ("batch_norm of rows", 2),
        ("batch_norm of rows in place", 0),
        ("batch_norm of sequences", 2),
        ("batch_norm not fused", 2),
        ("batch_norm channels first", 2),
        ("batch_norm by a placeholder", 2),
        ("batch_norm of rows by a placeholder", 0),
    ],
)
def test_batch_norm_is_what_numpy_says(facts, name, updates):
    found = fact(facts, name)
    assert found["output"] < 1e-3
    assert found["mean"] < 1e-4
    assert found["variance"] < 1e-3
    assert found["served"] < 1e-4
    assert found["served by the placeholder"] < 1e-4
    assert found["unmoved"] == 0
    assert found["updates"] == updates
    assert found["variables"] == ["bn/beta", "bn/gamma", "bn/moving_mean", "bn/moving_variance"]
    assert found["trainable"] == ["bn/beta", "bn/gamma"]


def test_a_network_learns_through_batch_norms(facts):
    found = fact(facts, "batch_norm_in_layers")
    assert found["last"] < 0.5 * found["first"]
    assert len(found["moved"]) == 2
    assert all(moved > 0 for moved in found["moved"])


def test_batch_norm_weighs_rows(facts):
    found = fact(facts, "batch_norm_with_weights")
    assert found["mean"] < 1e-6
    assert found["regularization"] == 1


def test_batch_norm_corrects_its_first_averages(facts):
    assert fact(facts, "batch_norm_without_bias")["mean"] < 1e-4


def test_the_networks_of_tf_slim_find_the_batch_norm(facts):
    found = fact(facts, "residual_network")
    assert found["shape"] == [None, 1, 1, 5]
    assert found["updates"] == 10  # five batch norms: the root's, the shortcut's and three in the unit


def test_names_and_argument_orders_before_1_0(facts):
    found = fact(facts, "names_before_1_0")
    assert found == {
        "mul": [[3, 10]],
        "sub": [[-2, -3]],
        "neg": [[-1, -2]],
        "pack": [2, 1, 2],
        "concat": [[1, 2], [3, 5]],
        "concat of 1.x": [[1, 2], [3, 5]],
        "concat by name": [[1, 2, 3, 5]],
        "split": [[[1]], [[2]]],
        "split of 1.x": [[[1]], [[2]]],
        "batch_matmul": [[13]],
        "keep_dims": [[3]],
        "argmax": [1],
        "summary": "string",
        "merged": "string",
        "writer": True,
    }


def test_layers_cells_and_keras_2(facts):
    found = fact(facts, "layers_of_tensorflow")
    assert found["dense"] == [None, 5]
    assert found["rnn"] == [None, 5, 3]
    assert found["keras"] == [None, 2]
    assert found["value"] == 5
    assert found["step"] == "global_step"
    assert "RefVariable" in found["kinds"]


def test_what_tf_slim_lost_besides_batch_norm(facts):
    assert fact(facts, "optimized") == {"steps": 2, "kept": 3, "auc": []}


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("cross entropy", "ValueError", ["labels=…, logits=…", "Received: 2 without a name"]),
        ("sparse", "ValueError", ["labels=…, logits=…"]),
        ("contrib", "AttributeError", ["tf.contrib.seq2seq", "Use tf.nn.dynamic_rnn", "framework, layers"]),
        ("unknown contrib", "AttributeError", ["tf.contrib.bayesflow", "there are: framework, layers"]),
        ("layers", "AttributeError", ["tf.contrib.layers has no attribute 'real_valued_column'", "tf_slim.layers"]),
        ("estimator", "AttributeError", ["tf.estimator.BoostedTreesClassifier", "tf.estimator.Estimator"]),
        ("unknown", "AttributeError", ["'no_such_thing'"]),
        ("renorm", "ValueError", ["renorm=True", "tf.layers.batch_normalization"]),
        ("channels", "ValueError", ["how many channels", "shape=(?, ?)"]),
        ("format", "ValueError", ["'NHWC' or 'NCHW'. Received: 'CHWN'"]),
    ],
)
def test_what_is_not_there_says_so(facts, name, kind, words):
    found = fact(facts, "errors")[name]
    assert found["kind"] == kind
    assert all(word in found["message"] for word in words), found["message"]
