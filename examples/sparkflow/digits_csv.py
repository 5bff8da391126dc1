"""Handwritten digits in the form of MNIST's CSV: the class, then 28 by 28 pixels from 0 to 255."""

from pathlib import Path

from keraunos.data.digits import load_digits

import numpy as np


def mnist_csv(path):
    """Returns the path of an existing CSV, or writes one with the digits and returns its path."""
    if not Path(path).exists():
        digits = load_digits()
        enlarged = np.pad(np.kron(digits.images, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2)))
        pixels = np.rint(enlarged * 255 / 16).reshape(len(enlarged), -1)
        np.savetxt(path, np.column_stack([digits.target, pixels]), fmt="%d", delimiter=",")
    return str(path)
