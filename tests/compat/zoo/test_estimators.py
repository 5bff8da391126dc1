"""Estimators on Spark and in a process: a program of its day, and what it found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("estimators_program.py")


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimators")
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "zoo", str(PROGRAM), str(folder)],
        cwd=folder,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "facts.json").read_text())


def fact(facts, name):
    assert "failed" not in facts[name], facts[name]["failed"]
    return facts[name]


def test_a_model_function_learns_on_spark_from_checkpoint_to_checkpoint(facts):
    found = fact(facts, "last_form")
    assert found["chained"]
    assert found["checkpoints"] == ["model-20", "model-45"]
    assert found["results"]["acc Top1Accuracy"] > 0.9
    assert found["results"]["loss"] < 0.8 * found["before"]["loss"]
    assert found["both names"] == [found["results"]["acc Top1Accuracy"]] * 2
    assert found["at the first"]["acc Top1Accuracy"] <= found["results"]["acc Top1Accuracy"]
    assert found["went on here"] == "45"  # the model function does not count


def test_what_is_measured_and_predicted_is_the_same_everywhere(facts):
    found = fact(facts, "last_form")
    accuracy = found["results"]["acc Top1Accuracy"]
    assert found["here"]["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert found["here"]["loss"] == pytest.approx(found["results"]["loss"], rel=1e-5)
    assert found["same rows"] == pytest.approx(accuracy)
    assert (found["keys"], found["asked"]) == (["class_ids", "logits"], ["class_ids"])
    assert 0 <= found["single"]["acc Top1Accuracy"] <= 1


def test_checkpoints_lie_on_any_file_system_of_hadoop(facts):
    found = fact(facts, "far_away")
    assert found["estimator"] == ["viewfs://far/data/far/estimator/model-6", ["global_step", "w"]]
    kept = [f"viewfs://far/data/far/saver/kept-{number}" for number in (1, 2)]
    assert found["saved"] == [kept[1], kept[1], *kept]
    endings = ("data-00000-of-00001", "index", "meta")
    assert found["files"] == ["checkpoint", *(f"kept-{number}.{ending}" for number in (1, 2) for ending in endings)]
    assert found["exist"] == [False, True, True]
    assert found["restored"] == 2
    assert "viewfs://far/data/far/saver/other" in found["missing"]


def test_images_are_measured_and_predicted_for(facts):
    found = fact(facts, "of_images")
    assert found["measured"] == {"acc Top1Accuracy": 1.0, "loss": pytest.approx(111, abs=0.1)}
    assert found["predicted"] == [["bright", True]] * 3 + [["dark", False]] * 3


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no batch", "The batch_size of TFDataset must be specified when used for training."),
        ("no steps", "`steps` must be a whole number"),
        ("metric", "Received: 'f1'"),
        ("no optimizer", "ZooOptimizer(tf.train.AdamOptimizer()).minimize(loss)"),
        ("wrong key", "Received: 'classes'"),
    ],
)
def test_what_an_estimator_refuses(facts, name, words):
    assert words in fact(facts, "last_form")[name]


def test_the_older_form_clips_the_gradient_of_all_workers(facts):
    found = fact(facts, "older_form")
    assert found["tensorflow"] == pytest.approx(found["expected"], rel=1e-4)
    assert found["bigdl"] == pytest.approx(found["expected"], rel=1e-4)
    assert found["tensorflow mae"]["mae MAE"] == pytest.approx(found["bigdl mae"]["mae MAE"], rel=1e-4)
    assert "optimizer should be set" in found["no optimizer"]


@pytest.mark.parametrize("name", ["linear", "network"])
def test_ready_made_estimators_train_on_feature_columns(facts, name):
    found = fact(facts, "ready_made")[name]
    assert found["spark"] > 0.9
    assert found["here"] == pytest.approx(found["spark"], abs=1e-6)
    assert found["ids"] == pytest.approx(found["spark"], abs=1e-6)
    assert found["first"] in ("b'0'", "b'1'")
    assert "probabilities" in facts["ready_made"]["served"]


def test_two_networks_move_in_turns(facts):
    found = fact(facts, "networks")
    (made, judged), (made_next, judged_next), (last, _) = found["seen"]
    assert made == 0
    assert judged != 0
    assert made_next != 0
    assert judged_next == judged
    assert 2 < last < 4
    assert found["steps"] == 243
    assert "should be a ZooOptimizer" in found["refused"]


def test_what_star_imports_brought(facts):
    found = fact(facts, "star_imports")
    assert (found["counted"], found["logged"], found["machines"]) == (9, True, [1, 2])
    expected = [[0.15434049, 0.16711557, 0.12783694], [0.14120464, 0.14245176, 0.15263824]]
    assert found["random"] == [pytest.approx(row, abs=1e-6) for row in expected]
    assert found["sparse"] == [[1, 0, 0, 3], [0, 0, 2, 0], [0, 4, 0, 0]]
    assert found["records"] == 4
    assert "BigDL's Scala code is not part of Keraunos" in found["jvm"]
    assert "train-images-idx3-ubyte.gz" in found["mnist"]
