"""Programs of Analytics Zoo's days, of its document and with its estimators: most of them in one process, one after the
other; the document's inference in a process of its own, as a user would run it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from keraunos.telemetry.tensorboard import read_scalars
from tests.compat.tensorspark.idx import enlarged_digits, write_digits
from tests.compat.zoo.dated_programs import PROGRAMS
from tests.docs.one_process import RUNNER

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Five epochs of 1,500 small digits; LeNet is validated as it is trained, with dropout.
REACHED = 0.85
SEEDS = Path(__file__).resolve().parents[3] / "examples" / "seeds"
ESTIMATORS = Path(__file__).with_name("estimators_program.py")
# The last one stops Spark.
ORDER = [*PROGRAMS, "zoo_training.py", "estimators.py"]

KEEP_VALUES = """
import numpy as np
values = {each.op.name: optimizer.sess.run(each) for each in tf.trainable_variables()}
np.savez("trained.npz", **values)
"""

COMPARE = """
with np.load("trained.npz") as trained:
    same = [np.array_equal(sess.run(each), trained[each.op.name]) for each in tf.trainable_variables()]
print("restored", all(same), len(same))
rows = np.stack([decode_to_ndarrays(read_image_and_label(path))[0] for path in file_list])
print("difference", np.abs(sess.run(logits, {images: rows}) - predictions).max())
"""


def run_as_zoo(folder, *programs):
    """What `keraunos run` printed."""
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "zoo", *programs],
        cwd=folder,
        env=os.environ | {"MASTER": "local[2]", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def write_seed(name, more, folder):
    """Write a program of the document, which finds in a folder beside it what the document has below /tmp."""
    text = (SEEDS / name).read_text()
    assert '"/tmp/lenet' in text
    (folder / name).write_text(text.replace('"/tmp/', f'"{folder}/tmp/') + more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The data sets, the network, the programs; and what they wrote."""
    folder = tmp_path_factory.mktemp("zoo")
    write_digits(folder / "mnist", packed=True)
    (folder / "models").mkdir()
    (folder / "models" / "lenet.py").write_text((SEEDS / "lenet.py").read_text())
    (folder / "images").mkdir()
    for number, (image, label) in enumerate(zip(*(each[:40] for each in enlarged_digits()), strict=True)):
        Image.fromarray(image).convert("RGB").save(folder / "images" / f"{number}-{label}.png")
    for name, source in PROGRAMS.items():
        (folder / name).write_text(source)
    for name in ("digit_files.py", "lenet.py"):
        (folder / name).write_text((SEEDS / name).read_text())
    (folder / "tmp").mkdir()
    write_seed("zoo_training.py", KEEP_VALUES, folder)
    write_seed("zoo_inference.py", COMPARE, folder)
    (folder / "estimators.py").write_text(ESTIMATORS.read_text())
    (folder / "all.py").write_text(RUNNER)
    return folder


@pytest.fixture(scope="module")
def printed(folder):
    """What each program printed, by its name."""
    return dict(each.split("\n", 1) for each in run_as_zoo(folder, "all.py", *ORDER).split("## ")[1:])


@pytest.mark.parametrize(
    "program", ["evaluate_lenet.py", "evaluate_mnist_keras.py", "keras_ndarray.py", "evaluate.py", "predict_images.py"]
)
def test_what_a_program_trained_is_right_of_most_digits(printed, program):
    accuracy = re.search(r"^predict accuracy is \[?([\d.]+)\]?$", printed[program], re.MULTILINE)
    assert float(accuracy.group(1)) > REACHED


@pytest.mark.parametrize(("log", "name"), [("az_lenet", "lenet"), ("mnist_log", "mnist")])
def test_summaries_show_training_and_validation(printed, folder, log, name):
    losses = read_scalars(folder / log / name / "train", "Loss")[:, 1]
    assert losses[-38:].mean() < 0.5 * losses[:38].mean()
    scores = read_scalars(folder / log / name / "validation", "Top1Accuracy")[:, 1]
    assert len(scores) == 5
    assert scores[-1] > REACHED


def test_a_keras_model_on_an_rdd(printed):
    accuracy = re.search(r"^accuracy ([\d.]+)", printed["keras_dataset.py"], re.MULTILINE)
    assert float(accuracy.group(1)) > 0.9


def test_what_the_training_saved_the_inference_restores_and_predicts(printed, folder):
    losses = read_scalars(folder / "tmp" / "az_lenet" / "lenet" / "train", "Loss")
    assert len(losses) == 5 * 47
    assert losses[-47:, 1].mean() < 0.5 * losses[:47, 1].mean()
    told = run_as_zoo(folder, "zoo_inference.py")
    assert float(re.search(r"accuracy ([\d.]+)", told).group(1)) > 0.85
    assert "restored True 8" in told
    assert float(re.search(r"difference ([\d.e-]+)", told).group(1)) < 1e-4


# Estimators on Spark and in a process


@pytest.fixture(scope="module")
def facts(printed, folder):
    return json.loads((folder / "estimators" / "facts.json").read_text())


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
