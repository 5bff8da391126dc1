"""`bigdl.nn.layer`: every module that a program imports from there. Runs on the driver."""

import sys  # a star import brought it, too
from typing import NoReturn

import numpy as np  # the same

from keraunos.compat.zoo.bigdl.nn.containers import *
from keraunos.compat.zoo.bigdl.nn.element_modules import *
from keraunos.compat.zoo.bigdl.nn.module import Layer, Node
from keraunos.compat.zoo.bigdl.nn.shape_modules import *
from keraunos.compat.zoo.bigdl.nn.weighted_modules import *
from keraunos.errors import JobError

_ELSEWHERE = [
    "BiRecurrent",
    "Bilinear",
    "BinaryTreeLSTM",
    "BinaryThreshold",
    "Bottle",
    "CosineDistance",
    "Cosine",
    "ConvLSTMPeephole",
    "ConvLSTMPeephole3D",
    "CrossProduct",
    "DenseToSparse",
    "Euclidean",
    "Echo",
    "Highway",
    "Index",
    "L1Penalty",
    "LocallyConnected1D",
    "LocallyConnected2D",
    "LookupTableSparse",
    "LSTMPeephole",
    "MV",
    "MapTable",
    "MaskedSelect",
    "Maxout",
    "MixtureTable",
    "MultiRNNCell",
    "NarrowTable",
    "Pack",
    "Padding",
    "PairwiseDistance",
    "RecurrentDecoder",
    "ResizeBilinear",
    "RoiPooling",
    "SReLU",
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
    "SparseJoinTable",
    "SparseLinear",
    "Tile",
    "Transformer",
    "TreeLSTM",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "VolumetricAveragePooling",
    "VolumetricConvolution",
    "VolumetricFullConvolution",
    "VolumetricMaxPooling",
    "Cropping2D",
    "Cropping3D",
    "Attention",
    "FeedForwardNetwork",
    "Gradient",
    "Const",
    "Proposal",
    "NormalizeScale",
    "PriorBox",
    "ActivityRegularization",
]


def __getattr__(name: str) -> NoReturn:
    if name in _ELSEWHERE:
        raise JobError(
            f"The module {name!r} is not among bigdl.nn.layer here. Received: an import of it. The layers of "
            "zoo.pipeline.api.keras.layers, which a Sequential or a Model of zoo.pipeline.api.keras.models takes, are "
            "more."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
