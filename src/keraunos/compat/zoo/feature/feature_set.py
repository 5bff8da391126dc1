"""Analytics Zoo's `FeatureSet`: elements to train on, with the steps that they go through. Runs on the driver."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NoReturn

from keraunos.compat.zoo.bigdl.transform.vision.collection import Images
from keraunos.compat.zoo.bigdl.transform.vision.frames import ImageFrame
from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step
from keraunos.errors import JobError
from keraunos.session.registry import started_session


class FeatureSet:
    """Elements in an RDD, and how they are stored. Made by one of its functions; nothing runs before a training."""

    def __init__(
        self,
        elements: Any,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
        draws: bool = False,
    ) -> None:
        self.elements = elements
        self.memory_type = memory_type
        self.sequential_order = sequential_order
        self.shuffle = shuffle
        self.draws = draws

    @classmethod
    def image_frame(
        cls,
        image_frame: Any,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
        bigdl_type: str = "float",
    ) -> FeatureSet:
        """Returns the images of an `ImageFrame`."""
        del bigdl_type
        if not isinstance(image_frame, ImageFrame):
            raise JobError(f"`image_frame` must be an ImageFrame. Received: {type(image_frame).__name__}.")
        return cls(spread(image_frame.images), memory_type, sequential_order, shuffle)

    @classmethod
    def image_set(
        cls,
        imageset: Any,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
        bigdl_type: str = "float",
    ) -> FeatureSet:
        """Returns the images of an `ImageSet`."""
        return cls.image_frame(imageset.to_image_frame(), memory_type, sequential_order, shuffle, bigdl_type)

    @classmethod
    def rdd(
        cls,
        rdd: Any,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
        bigdl_type: str = "float",
    ) -> FeatureSet:
        """Returns the elements of an RDD."""
        del bigdl_type
        if not hasattr(rdd, "mapPartitions"):
            raise JobError(f"`rdd` must be an RDD. Received: {type(rdd).__name__}.")
        return cls(rdd, memory_type, sequential_order, shuffle)

    @classmethod
    def sample_rdd(
        cls,
        rdd: Any,
        memory_type: str = "DRAM",
        sequential_order: bool = False,
        shuffle: bool = True,
        bigdl_type: str = "float",
    ) -> FeatureSet:
        """Returns the records of an RDD of `Sample`s."""
        return cls.rdd(rdd, memory_type, sequential_order, shuffle, bigdl_type)

    @classmethod
    def tf_dataset(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: `TFDataset` takes pipelines itself."""
        raise JobError(
            "FeatureSet.tf_dataset must be replaced: a tf.data pipeline needs no FeatureSet here. Received: a "
            "function. Call it, and give its result to TFDataset.from_tf_data_dataset."
        )

    @classmethod
    def pytorch_dataloader(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: PyTorch's loaders are not here."""
        raise JobError(
            "FeatureSet.pytorch_dataloader must be replaced: there are no PyTorch loaders here. Received: a loader. "
            "Put the records into an RDD, and give that to FeatureSet.rdd."
        )

    def transform(self, transformer: Any) -> FeatureSet:
        """Returns the elements after a step."""
        step = checked_step(transformer, "transformer")
        through = self.elements.mapPartitions(functools.partial(_applied, step), preservesPartitioning=True)
        return FeatureSet(through, self.memory_type, self.sequential_order, self.shuffle, self.draws or step.draws)

    def to_dataset(self) -> FeatureSet:
        """Returns the set itself."""
        return self


def spread(images: Images) -> Any:
    """Images as an RDD."""
    if not images.is_local:
        return images.features
    return images.spread(started_session())


def _applied(step: Preprocessing, elements: Iterator[Any]) -> Iterator[Any]:
    return step.apply(elements)
