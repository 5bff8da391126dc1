"""The same softmax regression in one process, without Spark: what the distributed one is compared with.

Runs on the driver: `python -m keraunos.compat.tensorspark.example.mnist MNIST_data`.
"""

from __future__ import annotations

import sys

import numpy as np

from keraunos.compat.tensorspark import idx_files
from keraunos.compat.tensorspark.example.softmax_regression import SoftmaxRegression


def train(data_dir: str = "MNIST_data", steps: int = 1000, batch_size: int = 100) -> float:
    """Train on the idx files in a local folder; prints and returns the accuracy on the test images."""
    folder = idx_files.IdxFolder(data_dir)
    (images, labels), (test_images, test_labels) = (folder.arrays(part) for part in idx_files.PARTS)
    model = SoftmaxRegression()
    random = np.random.default_rng(0)
    with model.session:
        for _ in range(steps):
            chosen = random.choice(len(images), min(batch_size, len(images)), replace=False)
            model.step(idx_files.pixels(images[chosen]), idx_files.one_hot(labels[chosen]))
        accuracy = model.accuracy(idx_files.pixels(test_images), idx_files.one_hot(test_labels))
    print(f"test accuracy {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    train(sys.argv[1] if len(sys.argv) > 1 else "MNIST_data")
