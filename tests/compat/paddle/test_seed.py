"""The program of Paddle on Spark's document, in a process of its own: it learns, shows, saves; another one loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keraunos.compat.paddle.estimator import PaddleModel
from keraunos.compat.paddle.image_table import load_image_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEEDS = Path(__file__).resolve().parents[3] / "examples" / "seeds"

RATE = "lr = 0.01 / 128.0"

# As the seed says, with fewer pictures, of two kinds.
FEW = """
import image_folders_of_the_seed
image_folders_of_the_seed.KINDS = ("frames", "stripes")

def write_images(folder):
    return image_folders_of_the_seed.write_images(folder, each=12)
"""


def run(program, folder):
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "paddle", program],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "MASTER"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_documents_program_trains_on_a_folder_of_images(tmp_path, spark):
    (tmp_path / "image_folders_of_the_seed.py").write_text((SEEDS / "image_folders.py").read_text())
    (tmp_path / "image_folders.py").write_text(FEW)
    text = (SEEDS / "paddle_on_spark.py").read_text()
    # A hundred updates of a few pictures each have to go further than those of the document's hundreds.
    assert RATE in text
    (tmp_path / "seed.py").write_text(text.replace(RATE, "lr = 0.01 / 8.0"))
    printed = run("seed.py", tmp_path)
    assert re.search(r"\|predict\|", printed)
    assert float(re.search(r"accuracy ([\d.]+)", printed).group(1)) > 0.7
    # In another process, which runs under no alias.
    model = PaddleModel.load(str(tmp_path / "images" / "cnn.model"))
    predicted = model.transform(load_image_table(spark, str(tmp_path / "images" / "train"), 224))
    assert all(row.predict is not None for row in predicted.select("predict").collect())
    assert sum(each.size for each in model.parameters().values()) == 50360
