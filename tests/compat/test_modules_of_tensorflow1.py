"""`tensorflow.examples`, `tf.contrib.lookup` and HParams, as a program under `keraunos run --as` finds them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat.tensorspark.idx import write_digits

PROGRAM = Path(__file__).with_name("modules_of_tensorflow1.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    write_digits(folder / "MNIST_data", packed=True)
    (folder / "empty").mkdir()
    command = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "tensorspark", str(PROGRAM)]
    done = subprocess.run(
        [*command, "MNIST_data", "empty"],
        cwd=folder,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def fact(found, name):
    assert "failed" not in found[name], found[name]["failed"]
    return found[name]


def test_mnist_is_read_from_a_folder(found):
    mnist = fact(found, "mnist")
    assert mnist["sizes"] == [1400, 100, 297]
    assert mnist["images"] == [[1400, 784], "float32", 1.0]
    assert mnist["labels"] == [[1400], "uint8"]
    assert mnist["hot"] == [[297, 28, 28, 1], "uint8", [297, 10]]
    assert mnist["hot sums"] == 1
    assert mnist["validation"]
    assert mnist["raw"] == [[297], [297, 28, 28, 1]]
    assert mnist["same"]


def test_batches_go_round_and_can_be_repeated(found):
    mnist = fact(found, "mnist")
    assert mnist["epochs"] == 1
    assert mnist["repeated"]
    assert mnist["in order"]
    assert mnist["batch"] == [[4, 784], [4]]
    assert mnist["fake"] == [784, 10]


def test_a_missing_file_says_which_files_to_put_where(found):
    mnist = fact(found, "mnist")
    for name, received in (("missing", "a folder with []"), ("nowhere", "no such folder")):
        assert "The images of MNIST's 'train' part are missing in 'empty" in mnist[name]
        assert "'train-images-idx3-ubyte', plain or .gz" in mnist[name]
        assert f"Received: {received}. Put the four files there (train-images-idx3, train-labels-idx1" in mnist[name]
    assert "between 0 and the number of training images, 1500. Received: 5000" in mnist["validation_size"]
    assert mnist["other"].endswith("tensorflow.examples.tutorials.mnist has no 'mnist' here. There is: input_data.")


def test_parts_of_contrib_that_programs_used(found):
    contrib = fact(found, "contrib")
    assert contrib["shape"] == [2, 2, 3]
    assert contrib["same"]
    assert contrib["repeated"]
    assert (contrib["decoded"], contrib["flat"]) == (7, [1, 2, 3])
    assert "vocab_size=None and embed_dim=None" in contrib["no size"]
    assert contrib["rnn"].endswith(
        "tf.contrib.rnn has no attribute 'NoSuchCell' here. It is looked up in tf.nn.rnn_cell, tf.nn."
    )


def test_hyperparameters_keep_their_types(found):
    hparams = fact(found, "hparams")
    expected = {"rate": 1.0, "layers": [1, 9, 3], "name": "other", "deep": False, "steps": 7, "more": 2}
    assert hparams["values"] == hparams["json"] == expected
    assert isinstance(hparams["values"]["rate"], float)
    assert hparams["get"] == [1.0, 5, True, False]
    assert hparams["override"] == 4
    said = ["must be of type float", "no hyperparameter 'unknown'", "must be a list", "must be of type int"]
    said += ["which is taken", "written as 'name=value", "neither `hparam_def` nor `model_structure`"]
    assert all(word in message for word, message in zip(said, hparams["refused"], strict=True)), hparams["refused"]


def test_tables_look_words_up(found):
    lookup = fact(found, "lookup")
    assert lookup["indices"] == [1, 2, 0]
    assert lookup["strings"] == ["b", "?"]
    assert lookup["hashed"] == [6, -7]
    assert lookup["mutable"] == [3, -1]
    assert "takes no `shared_name` here" in lookup["shared"]
    assert "There are: FastHashSpec, HashTable" in lookup["unknown"]
