"""`bigdl.nn.layer`: every module that a program imports from there. Runs on the driver."""

import sys  # a star import exported it, too, among other unused names
from collections.abc import Callable
from typing import NoReturn

import numpy as np  # the same

from keraunos.compat.zoo.bigdl.nn.containers import *
from keraunos.compat.zoo.bigdl.nn.element_modules import *
from keraunos.compat.zoo.bigdl.nn.module import Layer, Node
from keraunos.compat.zoo.bigdl.nn.shape_modules import *
from keraunos.compat.zoo.bigdl.nn.weighted_modules import *
from keraunos.compat.zoo.bigdl.optim.regularizers import L1L2Regularizer, L1Regularizer, L2Regularizer
from keraunos.compat.zoo.bigdl.util.common import (
    DOUBLEMAX,
    INTMAX,
    INTMIN,
    JavaValue,
    JTensor,
    callBigDlFunc,
    callJavaFunc,
    get_spark_context,
    long,
    to_list,
    unicode,
)
from keraunos.errors import JobError

_ELSEWHERE = (
    "ActivityRegularization",
    "Attention",
    "BiRecurrent",
    "BifurcateSplitTable",
    "Bilinear",
    "BinaryThreshold",
    "BinaryTreeLSTM",
    "Bottle",
    "ConvLSTMPeephole",
    "ConvLSTMPeephole3D",
    "Cosine",
    "CosineDistance",
    "Cropping2D",
    "Cropping3D",
    "CrossProduct",
    "DenseToSparse",
    "DetectionOutputFrcnn",
    "DetectionOutputSSD",
    "Echo",
    "Euclidean",
    "ExpandSize",
    "FPN",
    "FeedForwardNetwork",
    "Gemm",
    "GradientReversal",
    "Highway",
    "Index",
    "L1Penalty",
    "LSTMPeephole",
    "LayerNormalization",
    "LocallyConnected1D",
    "LocallyConnected2D",
    "LookupTableSparse",
    "MV",
    "MapTable",
    "MaskedSelect",
    "Maxout",
    "MixtureTable",
    "MultiRNNCell",
    "NarrowTable",
    "NegativeEntropyPenalty",
    "NormalizeScale",
    "Pack",
    "Padding",
    "PairwiseDistance",
    "Pooler",
    "PriorBox",
    "Proposal",
    "RecurrentDecoder",
    "ResizeBilinear",
    "RoiAlign",
    "RoiPooling",
    "SReLU",
    "SequenceBeamSearch",
    "SparseJoinTable",
    "SparseLinear",
    "SpatialContrastiveNormalization",
    "SpatialConvolutionMap",
    "SpatialDilatedConvolution",
    "SpatialDivisiveNormalization",
    "SpatialDropout1D",
    "SpatialDropout3D",
    "SpatialFullConvolution",
    "SpatialSeparableConvolution",
    "SpatialShareConvolution",
    "SpatialSubtractiveNormalization",
    "SpatialWithinChannelLRN",
    "TableOperation",
    "Tile",
    "Transformer",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "VolumetricAveragePooling",
    "VolumetricConvolution",
    "VolumetricFullConvolution",
    "VolumetricMaxPooling",
)


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*_given: object, **_named: object) -> NoReturn:
        raise JobError(
            f"The module {name!r} is not among bigdl.nn.layer here. Received: a call of it. The layers of "
            "zoo.pipeline.api.keras.layers, which a Sequential or a Model of zoo.pipeline.api.keras.models takes, are "
            "more."
        )

    return refuse


# A star import finds them; creating one raises an error.
globals().update({name: _refused(name) for name in _ELSEWHERE})
