"""`tensorflow.examples.tutorials.mnist.input_data`: MNIST from its four idx files in a folder. Runs on the driver.

Nothing is downloaded: a missing file raises an error that says which files to put where.
"""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np

from keraunos.compat import idx_format
from keraunos.compat.idx_format import Bytes
from keraunos.errors import DataError, JobError

DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
SOURCE_URL = DEFAULT_SOURCE_URL

Datasets = namedtuple("Datasets", ["train", "validation", "test"])  # noqa: PYI024 - as TensorFlow has it

_PIXELS = 784
_CLASSES = 10


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """Returns the data sets `train`, `validation` and `test` of MNIST.

    Args:
        train_dir: the folder with the four idx files, plain or gzipped, by the names that they usually have.
        fake_data: return generated rows, and read no file.
        one_hot: labels as rows that are 1 at the label, instead of numbers.
        dtype: of the images: float32, from 0 to 1, or uint8, from 0 to 255.
        reshape: images as rows of 784 pixels, instead of 28 x 28 x 1.
        validation_size: how many of the first training images are for validation instead.
        seed: makes the batches' order repeatable.
        source_url: where TensorFlow would download from; only named if a file is missing.
    """
    if fake_data:
        fake = [DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed) for _ in range(3)]
        return Datasets(*fake)
    folder = Path(train_dir)
    images, test_images = (_read(folder, part, "images", source_url)[..., np.newaxis] for part in idx_format.PARTS)
    labels, test_labels = (_read(folder, part, "labels", source_url) for part in idx_format.PARTS)
    if one_hot:
        labels, test_labels = (dense_to_one_hot(each, _CLASSES) for each in (labels, test_labels))
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"`validation_size` must be between 0 and the number of training images, {len(images)}. "
            f"Received: {validation_size!r}."
        )
    options: dict[str, Any] = {"dtype": dtype, "reshape": reshape, "seed": seed}
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **options),
        validation=DataSet(images[:validation_size], labels[:validation_size], **options),
        test=DataSet(test_images, test_labels, **options),
    )


def extract_images(f: Any) -> Bytes:
    """Returns the images in an open idx file, gzipped or plain, as an array of n x rows x columns x 1."""
    images = idx_format.parse(f.read(), _name_of(f))
    return _with_dimensions(images, 3, "images", _name_of(f))[..., np.newaxis]


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = _CLASSES) -> Any:
    """Returns the labels in an open idx file, gzipped or plain."""
    labels = _with_dimensions(idx_format.parse(f.read(), _name_of(f)), 1, "labels", _name_of(f))
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: Any, num_classes: int) -> Any:
    """Labels as rows that are 1 at the label and 0 elsewhere."""
    labels = np.asarray(labels_dense).ravel()
    if labels.size and labels.max() >= num_classes:
        raise DataError(f"A label must be a number from 0 to {num_classes - 1}. Received: {int(labels.max())}.")
    return np.eye(num_classes)[labels]


class DataSet:
    """Images and labels that are taken in batches."""

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        kind = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if kind not in (np.dtype(np.uint8), np.dtype(np.float32)):
            raise TypeError(f"`dtype` of images must be uint8 or float32. Received: {dtype!r}.")
        self._fake = fake_data
        self.one_hot = one_hot
        self._random = np.random.RandomState(seed)
        self._epochs_completed = 0
        self._at = 0
        if fake_data:
            self._num_examples = 10000
            return
        if len(images) != len(labels):
            raise DataError(
                f"There must be a label for each image. Received: {len(images)} images and {len(labels)} labels."
            )
        self._num_examples = len(images)
        if reshape:
            images = images.reshape(len(images), -1)
        self._images = images.astype(np.float32) * np.float32(1 / 255) if kind == np.float32 else images
        self._labels = labels

    @property
    def images(self) -> Any:
        """The images."""
        return self._images

    @property
    def labels(self) -> Any:
        """Their labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many there are."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """How often all of them were taken."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """Returns the next images and labels; after the last one the first ones again, in another order."""
        if fake_data or self._fake:
            label: Any = [1] + [0] * (_CLASSES - 1) if self.one_hot else 0
            return [[1] * _PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]
        if batch_size > self._num_examples:
            raise ValueError(
                f"`batch_size` must be at most the number of images, {self._num_examples}. Received: {batch_size!r}."
            )
        if self._at == 0 and self._epochs_completed == 0 and shuffle:
            self._shuffle()
        start, end = self._at, self._at + batch_size
        if end <= self._num_examples:
            self._at = end
            return self._images[start:end], self._labels[start:end]
        rest = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._at = end - self._num_examples
        return (
            np.concatenate((rest[0], self._images[: self._at])),
            np.concatenate((rest[1], self._labels[: self._at])),
        )

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        self._random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def _read(folder: Path, part: str, kind: str, source_url: str) -> Bytes:
    files = idx_format.LocalFiles(folder)
    name = next((name for name in idx_format.names_of(part, kind) if files.has(name)), None)
    if name is None:
        there = sorted(path.name for path in folder.iterdir())[:8] if folder.is_dir() else None
        wanted = ", ".join(f"{each}-{what}" for each in idx_format.PARTS for what in ("images-idx3", "labels-idx1"))
        raise JobError(
            f"The {kind} of MNIST's {part!r} part are missing in {str(folder)!r}. Expected: the file "
            f"'{part}-{kind}-idx{3 if kind == 'images' else 1}-ubyte', plain or .gz. Received: "
            f"{'no such folder' if there is None else f'a folder with {there}'}. Put the four files there ({wanted}, "
            f"each with -ubyte or -ubyte.gz); they are not downloaded from {source_url}."
        )
    return _with_dimensions(idx_format.parse(files.read(name), name), 3 if kind == "images" else 1, kind, name)


def _with_dimensions(array: Bytes, dimensions: int, kind: str, name: str) -> Bytes:
    if array.ndim != dimensions:
        raise DataError(
            f"The file {name!r} must hold {kind}, an array of {dimensions} dimension(s). Received: one of {array.ndim}."
        )
    return array


def _name_of(file: Any) -> str:
    return str(getattr(file, "name", "an open file"))
