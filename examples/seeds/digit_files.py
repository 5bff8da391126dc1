"""Handwritten digits, enlarged to 28 by 28, as one PGM file each, and how such a file is read."""

from pathlib import Path

from keraunos.data.digits import load_digits

import numpy as np


def write_digits(folder):
    """Write the files and give their paths; a file's name ends with the digit that it shows."""
    digits = load_digits()
    images = np.pad(np.kron(digits.images / 16, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2)))
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [Path(folder, f"{at:04d}-{digit}.pgm").resolve() for at, digit in enumerate(digits.target)]
    for path, image in zip(paths, images, strict=True):
        path.write_bytes(b"P5 28 28 255\n" + (255 * image).astype(np.uint8).tobytes())
    return [str(path) for path in paths]


def read_image_and_label(path):
    return Path(path).read_bytes(), int(Path(path).stem[-1])


def decode_to_ndarrays(image_label):
    image, label = image_label
    pixels = np.frombuffer(image.partition(b"\n")[2], dtype=np.uint8).reshape(28, 28, 1)
    return [pixels.astype(np.float32) / 255, np.array([label], dtype=np.int32)]
