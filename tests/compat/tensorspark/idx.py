"""Files in MNIST's format, written from scikit-learn's digits enlarged to 28 by 28."""

import gzip
import struct

import numpy as np
from sklearn.datasets import load_digits


def enlarged_digits():
    """Images of 28 by 28 bytes, a digit of 8 by 8 pixels magnified three times and framed, and their labels."""
    digits = load_digits()
    images = np.kron(digits.images * (255 / 16), np.ones((3, 3))).astype(np.uint8)
    return np.pad(images, ((0, 0), (2, 2), (2, 2))), digits.target.astype(np.uint8)


def encoded(array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_digits(folder, *, images="idx3", packed=False, test_rows=297):
    """The four files of a data set in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures, labels = enlarged_digits()
    for part, rows in (("train", slice(test_rows, None)), ("t10k", slice(test_rows))):
        for name, array in ((f"images-{images}", pictures[rows]), ("labels-idx1", labels[rows])):
            content = encoded(array)
            file = folder / f"{part}-{name}-ubyte{'.gz' if packed else ''}"
            file.write_bytes(gzip.compress(content, 1) if packed else content)
