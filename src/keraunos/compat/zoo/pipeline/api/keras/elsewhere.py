"""Analytics Zoo's layers that are not here, and what does the same. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping

# `Sequential.add` takes any layer of Keras.
ELSEWHERE: Mapping[str, str] = {
    "AtrousConvolution1D": "keras.layers.Conv1D(dilation_rate=…)",
    "AtrousConvolution2D": "keras.layers.Conv2D(dilation_rate=…)",
    "AveragePooling3D": "keras.layers.AveragePooling3D",
    "BERT": "a Keras model of it",
    "ConvLSTM2D": "keras.layers.ConvLSTM2D",
    "ConvLSTM3D": "keras.layers.ConvLSTM3D",
    "Convolution3D": "keras.layers.Conv3D",
    "Cropping1D": "keras.layers.Cropping1D",
    "Cropping2D": "keras.layers.Cropping2D",
    "Cropping3D": "keras.layers.Cropping3D",
    "Deconvolution2D": "keras.layers.Conv2DTranspose",
    "GaussianDropout": "keras.layers.GaussianDropout",
    "GlobalAveragePooling3D": "keras.layers.GlobalAveragePooling3D",
    "GlobalMaxPooling3D": "keras.layers.GlobalMaxPooling3D",
    "Highway": "a Dense gate in a Model",
    "LocallyConnected1D": "Convolution1D",
    "LocallyConnected2D": "Convolution2D",
    "MaxPooling3D": "keras.layers.MaxPooling3D",
    "MaxoutDense": "several Dense layers and merge(mode='max')",
    "PReLU": "keras.layers.PReLU",
    "SReLU": "keras.layers.PReLU",
    "SeparableConvolution2D": "keras.layers.SeparableConv2D",
    "SpatialDropout1D": "keras.layers.SpatialDropout1D",
    "SpatialDropout2D": "keras.layers.SpatialDropout2D",
    "SpatialDropout3D": "keras.layers.SpatialDropout3D",
    "ThresholdedReLU": "keras.layers.ReLU(threshold=…)",
    "TransformerLayer": "keras.layers.MultiHeadAttention",
    "UpSampling1D": "keras.layers.UpSampling1D",
    "UpSampling3D": "keras.layers.UpSampling3D",
    "WordEmbedding": "Embedding",
    "ZeroPadding1D": "keras.layers.ZeroPadding1D",
    "ZeroPadding3D": "keras.layers.ZeroPadding3D",
}
