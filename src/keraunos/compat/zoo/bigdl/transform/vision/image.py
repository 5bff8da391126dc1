"""BigDL's `bigdl.transform.vision.image` by its names. Runs on the driver and on executors."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.transform.vision.colours import (
    Brightness,
    ChannelNormalize,
    ChannelOrder,
    ChannelScaledNormalizer,
    ColorJitter,
    Contrast,
    Expand,
    Filler,
    FixExpand,
    Hue,
    PixelNormalize,
    RandomCropper,
    Saturation,
    elsewhere,
)
from keraunos.compat.zoo.bigdl.transform.vision.frames import DistributedImageFrame, ImageFrame, LocalImageFrame
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import ImageFeature
from keraunos.compat.zoo.bigdl.transform.vision.steps import (
    AspectScale,
    BytesToMat,
    CenterCrop,
    FeatureTransformer,
    FixedCrop,
    HFlip,
    ImageFrameToSample,
    MatToFloats,
    MatToTensor,
    Pipeline,
    PixelBytesToMat,
    RandomAspectScale,
    RandomCrop,
    RandomResize,
    RandomTransformer,
    Resize,
)
from keraunos.compat.zoo.bigdl.util import common as _bigdl

__all__ = [
    "AspectScale",
    "Brightness",
    "BytesToMat",
    "CenterCrop",
    "ChannelNormalize",
    "ChannelOrder",
    "ChannelScaledNormalizer",
    "ColorJitter",
    "Contrast",
    "DistributedImageFrame",
    "Expand",
    "FeatureTransformer",
    "Filler",
    "FixExpand",
    "FixedCrop",
    "HFlip",
    "Hue",
    "ImageFeature",
    "ImageFrame",
    "ImageFrameToSample",
    "LocalImageFrame",
    "MatToFloats",
    "MatToTensor",
    "Pipeline",
    "PixelBytesToMat",
    "PixelNormalize",
    "RandomAspectScale",
    "RandomCrop",
    "RandomCropper",
    "RandomResize",
    "RandomTransformer",
    "Resize",
    "Saturation",
]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__

_ELSEWHERE = {
    "DetectionCrop",
    "RandomAlterAspect",
    "RandomSampler",
    "RoiHFlip",
    "RoiNormalize",
    "RoiProject",
    "RoiResize",
    "SeqFileFolder",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise elsewhere(name)
    return _bigdl.passed_on("bigdl.transform.vision.image", name)
