"""Analytics Zoo's `ImageSet`: images that are transformed, trained with and predicted for. Runs on the driver."""

from __future__ import annotations

import functools
from typing import Any

from keraunos.compat.zoo.bigdl.transform.vision.collection import (
    Images,
    class_folders,
    labelled,
    read_distributed,
    read_local,
)
from keraunos.compat.zoo.bigdl.transform.vision.frames import ImageFrame, frame_of
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import FLOATS, PREDICT, ImageFeature
from keraunos.compat.zoo.bigdl.util import common as _bigdl
from keraunos.compat.zoo.feature.image.imagePreprocessing import ImageBytesToMat
from keraunos.errors import JobError
from keraunos.session.registry import session_of

__all__ = ["DistributedImageSet", "ImageSet", "LocalImageSet"]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__


def __getattr__(name: str) -> Any:
    return _bigdl.passed_on("zoo.feature.image.imageset", name)


class ImageSet:
    """Images, local or distributed; `transform` changes the set itself, as in Analytics Zoo."""

    def __init__(self, images: Images, label_map: dict[str, int] | None = None) -> None:
        self.images = images
        self._label_map = label_map

    @classmethod
    def read(
        cls,
        path: str,
        sc: Any = None,
        min_partitions: int = 1,
        resize_height: int = -1,
        resize_width: int = -1,
        image_codec: int = -1,
        with_label: bool = False,
        one_based_label: bool = True,
        bigdl_type: str = "float",
    ) -> ImageSet:
        """Returns the images under a path, decoded: on the driver, or with a SparkContext on executors.

        Args:
            path: a folder, a file, or a path with wildcards; with a SparkContext on any Hadoop file system, where a
                folder's own files are read and several paths are separated by commas.
            sc: a SparkContext.
            min_partitions: how many partitions there are at least, where there are as many files.
            resize_height: what the images are resized to; -1 for no change.
            resize_width: the same.
            image_codec: above 0 for three channels, 0 for one, -1 for as many as each file has.
            with_label: `path` has a folder for each class; classes are numbered in the order of their names.
            one_based_label: whether they are numbered from 1.
            bigdl_type: has no effect.
        """
        del bigdl_type
        sized = None if -1 in {resize_height, resize_width} else (int(resize_height), int(resize_width))
        session = None if sc is None else session_of(sc)
        if not with_label:
            files = (
                read_local(path, sized) if session is None else read_distributed(session, path, min_partitions, sized)
            )
            return set_of(Images(files).through(ImageBytesToMat(image_codec=image_codec)))
        root, folders = class_folders(path, session)
        classes = {name: number for number, name in enumerate(folders, 1 if one_based_label else 0)}
        if session is None:
            read = Images([feature for name in folders for feature in read_local(f"{root}/{name}", sized)])
        else:
            read = Images(read_distributed(session, f"{path.rstrip('/')}/*/*", min_partitions, sized))
        found = Images(read.values(functools.partial(labelled, classes, root)))
        return set_of(found.through(ImageBytesToMat(image_codec=image_codec)), classes)

    @classmethod
    def from_image_frame(cls, image_frame: Any, bigdl_type: str = "float") -> ImageSet:
        """Returns the images of an `ImageFrame`."""
        del bigdl_type
        if not isinstance(image_frame, ImageFrame):
            raise JobError(f"`image_frame` must be an ImageFrame. Received: {type(image_frame).__name__}.")
        return set_of(image_frame.images)

    @classmethod
    def from_rdds(cls, image_rdd: Any, label_rdd: Any = None, bigdl_type: str = "float") -> ImageSet:
        """Arrays of height, width and channels, in an RDD, with another of labels."""
        del bigdl_type
        return set_of(Images.of_arrays(image_rdd, label_rdd))

    @property
    def image_set(self) -> ImageSet:
        """The set itself."""
        return self

    @property
    def label_map(self) -> dict[str, int] | None:
        """The number of each class that was read, or `None`."""
        return self._label_map

    def is_local(self) -> bool:
        """Returns whether the images are on the driver."""
        return self.images.is_local

    def is_distributed(self) -> bool:
        """Returns whether the images are in an RDD."""
        return not self.images.is_local

    def transform(self, transformer: Any) -> ImageSet:
        """Take the images through a step."""
        self.images = self.images.through(transformer)
        return self

    def get_image(self, key: str = FLOATS, to_chw: bool = True) -> Any:
        """Returns the images as arrays of floats: a list, or an RDD."""
        return self.images.values(functools.partial(ImageFeature.get_image, float_key=key, to_chw=to_chw))

    def get_label(self) -> Any:
        """Returns the labels as arrays, -1 if there is none: a list, or an RDD."""
        return self.images.values(ImageFeature.get_label)

    def get_predict(self, key: str = PREDICT) -> Any:
        """Returns the origin of each image with the list of its predictions, or `None`: a list, or an RDD."""
        return self.images.values(functools.partial(_predicted, key))

    def to_image_frame(self, bigdl_type: str = "float") -> ImageFrame:
        """Returns the images as an `ImageFrame`."""
        del bigdl_type
        return frame_of(self.images)


class LocalImageSet(ImageSet):
    """Images on the driver, from arrays."""

    def __init__(self, image_list: Any = None, label_list: Any = None, bigdl_type: str = "float") -> None:
        del bigdl_type
        super().__init__(Images.of_arrays(list(image_list or []), label_list))


class DistributedImageSet(ImageSet):
    """Images in an RDD, from RDDs of arrays."""

    def __init__(self, image_rdd: Any = None, label_rdd: Any = None, bigdl_type: str = "float") -> None:
        del bigdl_type
        super().__init__(Images.of_arrays(image_rdd, label_rdd))


def set_of(images: Images, label_map: dict[str, int] | None = None) -> ImageSet:
    """Returns the set of images."""
    kind = LocalImageSet if images.is_local else DistributedImageSet
    made: ImageSet = kind.__new__(kind)
    ImageSet.__init__(made, images, label_map)
    return made


def _predicted(key: str, feature: ImageFeature) -> tuple[str | None, list[Any] | None]:
    found = feature.get(key)
    return feature.uri, None if found is None else found if isinstance(found, list) else [found]
