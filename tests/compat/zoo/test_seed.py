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


# A tf.keras model of 1.x on an RDD, in the forms that programs of 2019 have.
KERAS = """
import sys
import tensorflow as tf
import numpy as np
from zoo import init_nncontext
from zoo.tfpark import KerasModel, TFDataset
from zoo.util.triggers import MaxEpoch, SeveralIteration, TriggerOr
from sklearn.datasets import load_digits

def get_data_rdd(kind, sc):
    images, labels = load_digits(return_X_y=True)
    rows = slice(None, 1400) if kind == "train" else slice(1400, None)
    image_rdd = sc.parallelize(images[rows].reshape(-1, 8, 8, 1))
    labels_rdd = sc.parallelize(labels[rows].astype(np.int))
    return image_rdd.zip(labels_rdd).map(lambda pair: (pair[0] / np.float(16), np.array(pair[1])))

def main(max_epoch):
    sc = init_nncontext()
    training_rdd, testing_rdd = get_data_rdd("train", sc), get_data_rdd("test", sc)
    dataset = TFDataset.from_rdd(training_rdd, features=(tf.float32, [8, 8, 1]), labels=(tf.int32, []), batch_size=40,
                                 val_rdd=testing_rdd)
    model = tf.keras.Sequential([
        tf.keras.layers.Flatten(input_shape=(8, 8, 1)),
        tf.keras.layers.Dense(48, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer=tf.train.AdamOptimizer(0.005), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    keras_model = KerasModel(model)
    keras_model.fit(dataset, epochs=max_epoch, distributed=True)
    eval_dataset = TFDataset.from_rdd(testing_rdd, features=(tf.float32, [8, 8, 1]), labels=(tf.int32, []),
                                      batch_per_thread=80)
    result = keras_model.evaluate(eval_dataset)
    images, labels = load_digits(return_X_y=True)
    here = keras_model.evaluate(images[1400:].reshape(-1, 8, 8, 1) / 16, labels[1400:])
    assert abs(here["acc"] - result["acc Top1Accuracy"]) < 1e-6 and abs(here["loss"] - result["loss"]) < 1e-5
    keras_model.save_weights("weights.h5")
    first = keras_model.get_weights()
    keras_model.train_on_batch(images[:20].reshape(-1, 8, 8, 1), labels[:20])
    assert not np.allclose(keras_model.get_weights()[0], first[0])
    keras_model.load_weights("weights.h5")
    assert np.allclose(keras_model.get_weights()[0], first[0])
    print("accuracy", result["acc Top1Accuracy"])

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
"""


def run(name, more, folder):
    """Run a program in a folder of its own, which is also where it finds what the document has below /tmp."""
    text = (SEEDS / name).read_text()
    assert '"/tmp/lenet' in text
    (folder / name).write_text(text.replace('"/tmp/', f'"{folder}/') + more)
    return ran(name, folder)


def ran(name, folder):
    """What a program printed."""
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


def test_a_keras_model_on_an_rdd(tmp_path):
    (tmp_path / "keras_dataset.py").write_text(KERAS)
    printed = ran("keras_dataset.py", tmp_path)
    assert float(re.search(r"^accuracy ([\d.]+)", printed, re.MULTILINE).group(1)) > 0.9
