"""The programs of Analytics Zoo's document: training, and inference in another process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keraunos.telemetry.tensorboard import read_scalars

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENVIRONMENT = {"MASTER": "local[2]"}
SEEDS = Path(__file__).resolve().parents[3] / "examples" / "seeds"

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


def run(name, more, folder):
    """Run a program in a folder of its own, which is also where it finds what the document has below /tmp."""
    text = (SEEDS / name).read_text()
    assert '"/tmp/lenet' in text
    (folder / name).write_text(text.replace('"/tmp/', f'"{folder}/') + more)
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "zoo", name],
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_what_the_training_saved_the_inference_restores_and_predicts(tmp_path):
    for module in ("digit_files.py", "lenet.py"):
        (tmp_path / module).write_text((SEEDS / module).read_text())
    run("zoo_training.py", KEEP_VALUES, tmp_path)
    losses = read_scalars(tmp_path / "az_lenet" / "lenet" / "train", "Loss")
    assert len(losses) == 5 * 47
    assert losses[-47:, 1].mean() < 0.5 * losses[:47, 1].mean()
    printed = run("zoo_inference.py", COMPARE, tmp_path)
    assert float(re.search(r"accuracy ([\d.]+)", printed).group(1)) > 0.85
    assert "restored True 8" in printed
    assert float(re.search(r"difference ([\d.e-]+)", printed).group(1)) < 1e-4
