"""Images in a list on the driver, or in an RDD. Runs on the driver; what is done to distributed images on executors."""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from keraunos.compat.zoo.bigdl.transform.vision.image_feature import (
    BYTES,
    LABEL,
    READ_SIZE,
    URI,
    ImageFeature,
)
from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step
from keraunos.errors import DataError, JobError
from keraunos.session.session import Session


class Images:
    """Images in their order; nothing is done to distributed ones before they are needed."""

    def __init__(self, features: Any) -> None:
        self.features = features
        self.is_local = not hasattr(features, "mapPartitions")

    @classmethod
    def of_arrays(cls, images: Any, labels: Any = None) -> Images:
        """Arrays of pixels, in a list or an RDD, and their labels."""
        if not hasattr(images, "mapPartitions"):
            return cls([ImageFeature(*each) for each in _pairs(images, labels)])
        both = images.map(_alone) if labels is None else images.zip(labels)
        return cls(both.mapPartitions(_features, preservesPartitioning=True))

    def through(self, step: Any) -> Images:
        """Returns the images after a step."""
        checked = checked_step(step, "transformer")
        if self.is_local:
            return Images(list(checked.apply(iter(self.features))))
        return Images(self.features.mapPartitions(functools.partial(_applied, checked), preservesPartitioning=True))

    def values(self, function: Callable[[ImageFeature], Any]) -> Any:
        """Returns the result of a function for each image: a list, or an RDD."""
        return list(map(function, self.features)) if self.is_local else self.features.map(function)

    def spread(self, session: Session) -> Any:
        """Returns the images as an RDD."""
        if not self.is_local:
            return self.features
        return session.parallelize(self.features, max(1, min(len(self.features), session.parallelism)))


def read_local(path: str, sized: tuple[int, int] | None) -> list[ImageFeature]:
    """The files under a folder at any depth, or those that a path with wildcards names, in the order of their names."""
    place = urlparse(path)
    plain = unquote(place.path) if place.scheme == "file" else path
    if place.scheme not in {"", "file"}:
        raise JobError(f"`path` must be on this machine where no SparkContext is given. Received: {path!r}. Give `sc`.")
    found = [plain] if Path(plain).exists() else sorted(glob.glob(plain))  # noqa: PTH207 - a path with wildcards from its root on
    files = [file for each in found for file in _files(each)]
    if not files:
        raise DataError(f"`path` must lead to image files. Received: {path!r}, where there are none.")
    return [_file_feature(sized, os.path.abspath(file), Path(file).read_bytes()) for file in files]  # noqa: PTH100 - resolve() would follow links


def read_distributed(session: Session, path: str, partitions: int, sized: tuple[int, int] | None) -> Any:
    """Returns the files of folders, or those that paths with wildcards name, on any Hadoop file system, as an RDD."""
    files = session.binary_files(path, partitions)
    return files.mapPartitions(functools.partial(_file_features, sized), preservesPartitioning=True)


def labelled(classes: Mapping[str, int], root: str, feature: ImageFeature) -> ImageFeature:
    """Returns the image with the number of the folder below `root` that it is in."""
    # Hadoop's paths are written without a URL's escapes.
    plain = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?", "", str(feature.uri))
    made = feature.copy()
    made[LABEL] = ImageFeature(label=classes[plain[len(root) :].lstrip("/").split("/")[0]])[LABEL]
    return made


def class_folders(path: str, session: Session | None) -> tuple[str, list[str]]:
    """Returns the folder's own path, and the names of the folders in it, in their order."""
    if session is None:
        root = Path(path).absolute()
        found = sorted(each.name for each in root.iterdir() if each.is_dir()) if root.is_dir() else []
        base = str(root)
    else:
        folder = session.folder(path)
        base, found = folder.path, folder.folders()
    if not found:
        raise DataError(f"`path` must be a folder with a folder for each class. Received: {path!r}, which has none.")
    return base, found


def _files(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (os.path.join(folder, name) for name in sorted(names))  # noqa: PTH118 - os.walk gives strings


def _file_features(sized: tuple[int, int] | None, files: Iterable[tuple[str, bytes]]) -> Iterator[ImageFeature]:
    return (_file_feature(sized, path, content) for path, content in files)


def _file_feature(sized: tuple[int, int] | None, path: str, content: bytes) -> ImageFeature:
    made = ImageFeature(path=path)
    made[BYTES] = bytes(content)
    made[URI] = path
    if sized is not None:
        made[READ_SIZE] = sized
    return made


def _applied(step: Preprocessing, features: Iterator[Any]) -> Iterator[Any]:
    return step.apply(features)


def _features(pairs: Iterable[tuple[Any, Any]]) -> Iterator[ImageFeature]:
    return (ImageFeature(image, label) for image, label in pairs)


def _alone(image: Any) -> tuple[Any, None]:
    return image, None


def _pairs(images: Sequence[Any], labels: Sequence[Any] | None) -> Iterator[tuple[Any, Any]]:
    return zip(images, [None] * len(images) if labels is None else labels, strict=True)
