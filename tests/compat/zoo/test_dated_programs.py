"""Programs of Analytics Zoo's days, run as a user would, one after the other in one process."""

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
LENET = Path(__file__).resolve().parents[3] / "examples" / "seeds" / "lenet.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The data sets, the network, the programs; and what they wrote and printed."""
    folder = tmp_path_factory.mktemp("zoo")
    write_digits(folder / "mnist", packed=True)
    (folder / "models").mkdir()
    (folder / "models" / "lenet.py").write_text(LENET.read_text())
    (folder / "images").mkdir()
    for number, (image, label) in enumerate(zip(*(each[:40] for each in enlarged_digits()), strict=True)):
        Image.fromarray(image).convert("RGB").save(folder / "images" / f"{number}-{label}.png")
    (folder / "all.py").write_text(RUNNER)
    for name, source in PROGRAMS.items():
        (folder / name).write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "zoo", "all.py", *PROGRAMS],
        cwd=folder,
        env=os.environ | {"MASTER": "local[2]", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "printed").write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder


@pytest.mark.parametrize(
    "program", ["evaluate_lenet.py", "evaluate_mnist_keras.py", "keras_ndarray.py", "evaluate.py", "predict_images.py"]
)
def test_what_a_program_trained_is_right_of_most_digits(folder, program):
    printed = dict(each.split("\n", 1) for each in (folder / "printed").read_text().split("## ")[1:])
    accuracy = re.search(r"^predict accuracy is \[?([\d.]+)\]?$", printed[program], re.MULTILINE)
    assert float(accuracy.group(1)) > REACHED


@pytest.mark.parametrize(("log", "name"), [("az_lenet", "lenet"), ("mnist_log", "mnist")])
def test_summaries_show_training_and_validation(folder, log, name):
    losses = read_scalars(folder / log / name / "train", "Loss")[:, 1]
    assert losses[-38:].mean() < 0.5 * losses[:38].mean()
    scores = read_scalars(folder / log / name / "validation", "Top1Accuracy")[:, 1]
    assert len(scores) == 5
    assert scores[-1] > REACHED
