"""The network of Paddle on Spark's document, written in Paddle's language and in Keras, trained on a table of images.

    python benchmarks/paddle.py [--images N] [--passes N]

Both train with two workers, batches of 32 and a synchronous exchange on one embedded Spark, on the same images; the
time of a pass is what more passes take longer. Prints samples a second and their ratio; the goal is 0.9.
"""

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import keras
from pyspark.sql import SparkSession

from keraunos import KerasClassifier
from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.estimator import Paddle
from keraunos.data.images import read_images

SEEDS = Path(__file__).resolve().parents[1] / "examples" / "seeds"
WORKERS, BATCH, CLASSES = 2, 32, 4


def document_config():
    """The configuration in the document's program, with as many classes as there are."""
    text = (SEEDS / "paddle_on_spark.py").read_text()
    text = text[text.index("def configs") : text.index("# new a paddle")].replace("size=1000", f"size={CLASSES}")
    namespace = {}
    exec(f"from keraunos.compat.paddle.config_parser import *\n{text}", namespace)
    return parse_config(namespace["configs"], "")


def keras_twin():
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((224, 224, 3)),
            layers.Conv2D(16, 7, strides=2, activation="relu"),
            layers.ZeroPadding2D(((0, 3), (0, 3))),
            layers.MaxPooling2D(32, strides=8),
            layers.Flatten(),
            layers.Dense(16, activation="relu"),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.005, momentum=0.9), "sparse_categorical_crossentropy")
    return model


def write_images(folder, each):
    spec = importlib.util.spec_from_file_location("image_folders", SEEDS / "image_folders.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_images(folder, each=each)


def seconds(fit, passes):
    start = time.perf_counter()
    fit(passes)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--passes", type=int, default=4)
    given = parser.parse_args()
    session = (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        table = read_images(session, write_images(folder, given.images // CLASSES), 224).repartition(WORKERS).cache()
        rows = table.count()
        config = document_config()

        def paddle(passes):
            Paddle(config=config, featuresCol="image", trainerNum=WORKERS, numPasses=passes, verbose=0).fit(table)

        def directly(passes):
            KerasClassifier(
                model=keras_twin(),
                featuresCol="image",
                exchange="allreduce",
                numWorkers=WORKERS,
                batchSize=BATCH,
                epochs=passes,
                verbose=0,
            ).fit(table)

        speeds = {}
        for name, fit in (("Paddle's language", paddle), ("Keras", directly)):
            seconds(fit, 1)
            short = seconds(fit, 1)
            long = seconds(fit, 1 + given.passes)
            speeds[name] = rows * given.passes / (long - short)
            print(f"{name:20} {speeds[name]:8.0f} samples a second")
        lowered, written = speeds.values()
        print(f"{'ratio':20} {lowered / written:8.2f}  (goal 0.9)")
    session.stop()


if __name__ == "__main__":
    main()
