"""BigDL's `ImageFrame`: images that are transformed and predicted for. Runs on the driver."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from keraunos.compat.zoo.bigdl.transform.vision.collection import Images, read_distributed, read_local
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import (
    FLOATS,
    LABEL,
    PREDICT,
    SAMPLE,
    URI,
    ImageFeature,
)
from keraunos.compat.zoo.bigdl.transform.vision.steps import BytesToMat
from keraunos.errors import JobError
from keraunos.session.registry import session_of


class ImageFrame:
    """Images, local or distributed; `transform` changes the frame itself."""

    def __init__(self, images: Images, bigdl_type: str = "float") -> None:
        self.images = images
        self.bigdl_type = bigdl_type

    @classmethod
    def read(cls, path: str, sc: Any = None, min_partitions: int = 1, bigdl_type: str = "float") -> ImageFrame:
        """Returns the images under a path, decoded: on the driver, or with a SparkContext on executors."""
        del bigdl_type
        files = read_local(path, None) if sc is None else read_distributed(session_of(sc), path, min_partitions, None)
        return frame_of(Images(files).through(BytesToMat()))

    @classmethod
    def read_parquet(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: BigDL's own Parquet files are not read."""
        raise _parquet("read_parquet")

    @classmethod
    def write_parquet(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: BigDL's own Parquet files are not written."""
        raise _parquet("write_parquet")

    @property
    def image_frame(self) -> ImageFrame:
        """The frame itself."""
        return self

    def is_local(self) -> bool:
        """Returns whether the images are on the driver."""
        return self.images.is_local

    def is_distributed(self) -> bool:
        """Returns whether the images are in an RDD."""
        return not self.images.is_local

    def transform(self, transformer: Any, bigdl_type: str = "float") -> ImageFrame:
        """Take the images through a step."""
        del bigdl_type
        self.images = self.images.through(transformer)
        return self

    def get_image(self, float_key: str = FLOATS, to_chw: bool = True) -> Any:
        """Returns the images as arrays of floats."""
        return self.images.values(functools.partial(ImageFeature.get_image, float_key=float_key, to_chw=to_chw))

    def get_label(self) -> Any:
        """Returns the labels as arrays; -1 if there is none."""
        return self.images.values(ImageFeature.get_label)

    def get_predict(self, key: str = PREDICT) -> Any:
        """Returns the origin of each image with its prediction, or `None`."""
        return self.images.values(functools.partial(_predicted, key))

    def get_sample(self, key: str = SAMPLE) -> Any:
        """Returns the records, or `None`."""
        return self.images.values(functools.partial(_value, key))

    def get_uri(self, key: str = URI) -> Any:
        """Returns where the images are from."""
        return self.images.values(functools.partial(_value, key))

    def set_label(self, label: Mapping[str, float], bigdl_type: str = "float") -> None:
        """Give labels to the images whose path is a key."""
        del bigdl_type
        found = self.images.values(functools.partial(_with_label, dict(label)))
        self.images = Images(found)

    def random_split(self, weights: Sequence[float]) -> list[ImageFrame]:
        """Distributed images in parts that are drawn."""
        if self.images.is_local:
            raise JobError("A local ImageFrame cannot be split. Received: random_split. Read it with a SparkContext.")
        return [frame_of(Images(each)) for each in self.images.features.randomSplit(list(weights), seed=0)]


class LocalImageFrame(ImageFrame):
    """Images on the driver, from arrays."""

    def __init__(self, image_list: Any = None, label_list: Any = None, bigdl_type: str = "float") -> None:
        super().__init__(Images.of_arrays(list(image_list or []), label_list), bigdl_type)


class DistributedImageFrame(ImageFrame):
    """Images in an RDD, from RDDs of arrays."""

    def __init__(self, image_rdd: Any = None, label_rdd: Any = None, bigdl_type: str = "float") -> None:
        super().__init__(Images.of_arrays(image_rdd, label_rdd), bigdl_type)


def frame_of(images: Images) -> ImageFrame:
    """Returns the frame of images."""
    kind = LocalImageFrame if images.is_local else DistributedImageFrame
    made: ImageFrame = kind.__new__(kind)
    ImageFrame.__init__(made, images)
    return made


def _value(key: str, feature: ImageFeature) -> Any:
    return feature.get(key)


def _predicted(key: str, feature: ImageFeature) -> tuple[str | None, Any]:
    return feature.uri, feature.get(key)


def _with_label(labels: Mapping[str, float], feature: ImageFeature) -> ImageFeature:
    if feature.uri not in labels:
        return feature
    made = feature.copy()
    made[LABEL] = ImageFeature(label=labels[str(feature.uri)])[LABEL]
    return made


def _parquet(name: str) -> JobError:
    return JobError(
        f"ImageFrame.{name} is not here: its files are BigDL's own. Expected: image files. Received: a Parquet file. "
        "Read folders with ImageFrame.read, and keep DataFrames of images as Parquet with NNImageReader.readImages."
    )
