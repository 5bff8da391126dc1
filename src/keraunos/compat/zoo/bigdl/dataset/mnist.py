"""`bigdl.dataset.mnist`: MNIST from its four idx files in a folder. Runs on the driver."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat import idx_format
from keraunos.compat.zoo.bigdl.dataset import base
from keraunos.compat.zoo.bigdl.dataset.transformer import normalizer
from keraunos.errors import DataError, JobError

SOURCE_URL = "http://yann.lecun.com/exdb/mnist/"

TRAIN_MEAN = 0.13066047740239506 * 255
TRAIN_STD = 0.3081078 * 255
TEST_MEAN = 0.13251460696903547 * 255
TEST_STD = 0.31048024 * 255

Bytes = npt.NDArray[np.uint8]


def extract_images(f: Any) -> Bytes:
    """Returns the images in an open idx file, gzipped or plain, as an array of n x rows x columns x 1."""
    return _with_dimensions(idx_format.parse(f.read(), str(f.name)), 3, str(f.name))[..., np.newaxis]


def extract_labels(f: Any) -> Bytes:
    """Returns the labels in an open idx file, gzipped or plain."""
    return _with_dimensions(idx_format.parse(f.read(), str(f.name)), 1, str(f.name))


def read_data_sets(train_dir: str, data_type: str = "train") -> tuple[Bytes, Bytes]:
    """Images from 0 to 255 and labels from 0 to 9, of the part `train` or `test`."""
    if data_type not in ("train", "test"):
        raise JobError(f"`data_type` must be 'train' or 'test'. Received: {data_type!r}.")
    part = idx_format.PARTS[data_type == "test"]
    images, labels = (_read(train_dir, part, kind, dimensions) for kind, dimensions in (("images", 3), ("labels", 1)))
    return images[..., np.newaxis], labels


def load_data(location: str = "/tmp/mnist") -> tuple[tuple[Any, Any], tuple[Any, Any]]:  # noqa: S108 - BigDL's default
    """Normalized images and labels from 1 to 10, for training and for testing."""
    train_images, train_labels = read_data_sets(location, "train")
    test_images, test_labels = read_data_sets(location, "test")
    return (
        (normalizer(train_images, TRAIN_MEAN, TRAIN_STD), train_labels + 1),
        (normalizer(test_images, TRAIN_MEAN, TRAIN_STD), test_labels + 1),
    )


def _read(folder: str, part: str, kind: str, dimensions: int) -> Bytes:
    from pathlib import Path

    files = idx_format.LocalFiles(Path(folder))
    name = next((each for each in idx_format.names_of(part, kind) if files.has(each)), None)
    if name is None:
        wanted = f"{part}-{kind}-idx{dimensions}-ubyte.gz"
        # As the programs know it, with the archive's name; a plain file would do as well.
        name = base.maybe_download(wanted, folder, SOURCE_URL + wanted)
    return _with_dimensions(idx_format.parse(files.read(name), name), dimensions, name)


def _with_dimensions(array: Bytes, dimensions: int, name: str) -> Bytes:
    if array.ndim != dimensions:
        raise DataError(
            f"The file {name!r} must hold an array of {dimensions} dimension(s), as MNIST's "
            f"{'images' if dimensions == 3 else 'labels'} are. Received: one of {array.ndim}."
        )
    return array
