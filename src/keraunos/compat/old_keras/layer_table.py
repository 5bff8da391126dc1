"""Layers of Keras 0 and 1: the order of their arguments, and what each is called today. Plain data.

An entry's `order` is how arguments without a name were counted, from the signatures of Keras 1.2.2. An argument that is
not in `renamed` has its name today. What all layers took, the shape of the input and initial weights, is done in
`layers`. `first` has the orders of releases before 0.2, where a layer had an argument for the size of its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LayerSignature:
    """One layer as it was called.

    Attributes:
        today: its class in `keras.layers`, or `module:Class` of Keraunos.
        order: the names of its arguments, in the order of that day.
        renamed: arguments with another name today; those in `joined` are not among them.
        joined: a new argument that is made of several old ones.
        defaults: old defaults that are not today's, by today's names.
        refused: unsupported arguments, each with its only allowed value, the reason, and what to do.
        first: the order before Keras 0.2, and how many leading numbers identify it.
    """

    today: str
    order: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    first: tuple[str, int] | None = None


KERNEL = {
    "init": "kernel_initializer",
    "W_regularizer": "kernel_regularizer",
    "b_regularizer": "bias_regularizer",
    "W_constraint": "kernel_constraint",
    "b_constraint": "bias_constraint",
    "bias": "use_bias",
}
IMAGE = {"dim_ordering": "data_format"}
CONVOLUTION = {**KERNEL, **IMAGE, "nb_filter": "filters", "border_mode": "padding", "subsample": "strides"}
RECURRENT = {
    **KERNEL,
    "output_dim": "units",
    "inner_init": "recurrent_initializer",
    "inner_activation": "recurrent_activation",
    "U_regularizer": "recurrent_regularizer",
    "dropout_W": "dropout",
    "dropout_U": "recurrent_dropout",
}
POOLING = {**IMAGE, "border_mode": "padding", "poolsize": "pool_size", "stride": "strides", "pool_length": "pool_size"}
_ACTIVITY = (None, "Today the penalty is divided by the rows of a batch, then it was not. Use W_regularizer.")
_NO_ACTIVITY = {"activity_regularizer": _ACTIVITY}
_BORDER = {"ignore_border": (True, "Today's pooling leaves rows and columns out that fill no window.")}
_TRUNCATED = {"truncate_gradient": (-1, "Gradients go through all steps. Cut the sequences.")}

_W = "W_regularizer b_regularizer activity_regularizer W_constraint b_constraint"
_CONV = f"init activation weights border_mode subsample dim_ordering {_W} bias"
_CONV1 = f"init activation weights border_mode subsample_length {_W} bias input_dim input_length"
_POOL = "pool_size strides border_mode dim_ordering"
_DENSE = f"init activation weights {_W} bias input_dim"
_GATES = "W_regularizer U_regularizer b_regularizer dropout_W dropout_U"
_FIRST_RNN = "input_dim output_dim init inner_init activation"
_FIRST_LSTM = "input_dim output_dim init inner_init forget_bias_init activation inner_activation"
_ROWS = {"kernel_size": ("nb_row", "nb_col")}
_CUBE = {"kernel_size": ("kernel_dim1", "kernel_dim2", "kernel_dim3")}
_LENGTH = {"filter_length": "kernel_size", "subsample_length": "strides"}

LAYERS: Mapping[str, LayerSignature] = {
    "Dense": LayerSignature(
        "Dense",
        f"output_dim {_DENSE}",
        {**KERNEL, "output_dim": "units"},
        refused=_NO_ACTIVITY,
        first=(f"input_dim output_dim init activation weights name {_W}", 2),
    ),
    # A Dense layer works on the last axis of whatever it is given.
    "TimeDistributedDense": LayerSignature(
        "Dense",
        f"output_dim {_DENSE} input_length",
        {**KERNEL, "output_dim": "units"},
        refused=_NO_ACTIVITY,
        first=(f"input_dim output_dim init activation weights {_W}", 2),
    ),
    "MaxoutDense": LayerSignature(
        "keraunos.compat.old_keras.own_layers:MaxoutDense",
        f"output_dim nb_feature init weights {_W} bias input_dim",
        {**KERNEL, "output_dim": "units", "nb_feature": "features"},
        refused=_NO_ACTIVITY,
        first=(f"input_dim output_dim nb_feature init weights {_W}", 2),
    ),
    "Highway": LayerSignature(
        "keraunos.compat.old_keras.own_layers:Highway",
        f"init activation weights {_W} bias input_dim",
        {**KERNEL, "transform_bias": "transform_bias"},
        refused=_NO_ACTIVITY,
    ),
    "Activation": LayerSignature("Activation", "activation"),
    "Dropout": LayerSignature("Dropout", "p noise_shape seed", {"p": "rate"}),
    "SpatialDropout1D": LayerSignature("SpatialDropout1D", "p", {"p": "rate"}),
    "SpatialDropout2D": LayerSignature("SpatialDropout2D", "p dim_ordering", {**IMAGE, "p": "rate"}),
    "SpatialDropout3D": LayerSignature("SpatialDropout3D", "p dim_ordering", {**IMAGE, "p": "rate"}),
    "GaussianNoise": LayerSignature("GaussianNoise", "sigma", {"sigma": "stddev"}),
    "GaussianDropout": LayerSignature("GaussianDropout", "p", {"p": "rate"}),
    "Masking": LayerSignature("Masking", "mask_value"),
    # Today's would move the channels to the end where they come first; the old one left them where they were.
    "Flatten": LayerSignature("Flatten", "", defaults={"data_format": "channels_last"}),
    "Reshape": LayerSignature("Reshape", "target_shape", {"dims": "target_shape"}),
    "Permute": LayerSignature("Permute", "dims"),
    "RepeatVector": LayerSignature("RepeatVector", "n"),
    "Lambda": LayerSignature("Lambda", "function output_shape arguments"),
    "Embedding": LayerSignature(
        "Embedding",
        "input_dim output_dim init input_length W_regularizer activity_regularizer W_constraint mask_zero weights "
        "dropout",
        {
            "init": "embeddings_initializer",
            "W_regularizer": "embeddings_regularizer",
            "W_constraint": "embeddings_constraint",
        },
        defaults={"embeddings_initializer": "uniform"},
        refused={**_NO_ACTIVITY, "dropout": (0.0, "Today's Embedding drops no words. Add a SpatialDropout1D.")},
    ),
    "Convolution1D": LayerSignature(
        "Conv1D",
        f"nb_filter filter_length {_CONV1}",
        {**CONVOLUTION, **_LENGTH},
        refused=_NO_ACTIVITY,
        first=(f"input_dim nb_filter filter_length init activation weights border_mode subsample_length {_W}", 3),
    ),
    "AtrousConvolution1D": LayerSignature(
        "Conv1D",
        f"nb_filter filter_length init activation weights border_mode subsample_length atrous_rate {_W} bias",
        {**CONVOLUTION, **_LENGTH, "atrous_rate": "dilation_rate"},
        refused=_NO_ACTIVITY,
    ),
    "Convolution2D": LayerSignature(
        "Conv2D",
        f"nb_filter nb_row nb_col {_CONV}",
        CONVOLUTION,
        _ROWS,
        refused=_NO_ACTIVITY,
        first=(f"nb_filter stack_size nb_row nb_col init activation weights border_mode subsample {_W}", 4),
    ),
    "AtrousConvolution2D": LayerSignature(
        "Conv2D",
        f"nb_filter nb_row nb_col init activation weights border_mode subsample atrous_rate dim_ordering {_W} bias",
        {**CONVOLUTION, "atrous_rate": "dilation_rate"},
        _ROWS,
        refused=_NO_ACTIVITY,
    ),
    "Deconvolution2D": LayerSignature(
        "Conv2DTranspose", f"nb_filter nb_row nb_col output_shape {_CONV}", CONVOLUTION, _ROWS, refused=_NO_ACTIVITY
    ),
    "SeparableConvolution2D": LayerSignature(
        "SeparableConv2D",
        "nb_filter nb_row nb_col init activation weights border_mode subsample depth_multiplier dim_ordering "
        "depthwise_regularizer pointwise_regularizer b_regularizer activity_regularizer depthwise_constraint "
        "pointwise_constraint b_constraint bias",
        {**CONVOLUTION, "init": "depthwise_initializer pointwise_initializer"},
        _ROWS,
        refused=_NO_ACTIVITY,
    ),
    "Convolution3D": LayerSignature(
        "Conv3D", f"nb_filter kernel_dim1 kernel_dim2 kernel_dim3 {_CONV}", CONVOLUTION, _CUBE, refused=_NO_ACTIVITY
    ),
    "ConvLSTM2D": LayerSignature(
        "ConvLSTM2D",
        "nb_filter nb_row nb_col init inner_init forget_bias_init activation inner_activation dim_ordering border_mode "
        f"subsample {_GATES}",
        {**RECURRENT, **CONVOLUTION},
        _ROWS,
        defaults={"recurrent_activation": "hard_sigmoid", "recurrent_initializer": "orthogonal"},
    ),
    "MaxPooling1D": LayerSignature("MaxPooling1D", "pool_length stride border_mode", POOLING, refused=_BORDER),
    "AveragePooling1D": LayerSignature("AveragePooling1D", "pool_length stride border_mode", POOLING),
    "MaxPooling2D": LayerSignature("MaxPooling2D", _POOL, POOLING, refused=_BORDER),
    "AveragePooling2D": LayerSignature("AveragePooling2D", _POOL, POOLING),
    "MaxPooling3D": LayerSignature("MaxPooling3D", _POOL, POOLING),
    "AveragePooling3D": LayerSignature("AveragePooling3D", _POOL, POOLING),
    "GlobalMaxPooling1D": LayerSignature("GlobalMaxPooling1D"),
    "GlobalAveragePooling1D": LayerSignature("GlobalAveragePooling1D"),
    "GlobalMaxPooling2D": LayerSignature("GlobalMaxPooling2D", "dim_ordering", IMAGE),
    "GlobalAveragePooling2D": LayerSignature("GlobalAveragePooling2D", "dim_ordering", IMAGE),
    "GlobalMaxPooling3D": LayerSignature("GlobalMaxPooling3D", "dim_ordering", IMAGE),
    "GlobalAveragePooling3D": LayerSignature("GlobalAveragePooling3D", "dim_ordering", IMAGE),
    "UpSampling1D": LayerSignature("UpSampling1D", "length", {"length": "size"}),
    "UpSampling2D": LayerSignature("UpSampling2D", "size dim_ordering", IMAGE),
    "UpSampling3D": LayerSignature("UpSampling3D", "size dim_ordering", IMAGE),
    "ZeroPadding1D": LayerSignature("ZeroPadding1D", "padding"),
    "ZeroPadding2D": LayerSignature("ZeroPadding2D", "padding dim_ordering", {**IMAGE, "width": "padding"}),
    "ZeroPadding3D": LayerSignature("ZeroPadding3D", "padding dim_ordering", IMAGE),
    "Cropping1D": LayerSignature("Cropping1D", "cropping"),
    "Cropping2D": LayerSignature("Cropping2D", "cropping dim_ordering", IMAGE),
    "Cropping3D": LayerSignature("Cropping3D", "cropping dim_ordering", IMAGE),
    "SimpleRNN": LayerSignature(
        "SimpleRNN",
        f"output_dim init inner_init activation {_GATES}",
        RECURRENT,
        defaults={"recurrent_initializer": "orthogonal"},
        refused=_TRUNCATED,
        first=(f"{_FIRST_RNN} weights truncate_gradient return_sequences", 2),
    ),
    "GRU": LayerSignature(
        "GRU",
        f"output_dim init inner_init activation inner_activation {_GATES}",
        RECURRENT,
        # Without this, today's reset gate is applied after the product with the recurrent weights.
        defaults={
            "reset_after": False,
            "recurrent_activation": "hard_sigmoid",
            "recurrent_initializer": "orthogonal",
        },
        refused=_TRUNCATED,
        first=(f"{_FIRST_RNN} inner_activation weights truncate_gradient return_sequences", 2),
    ),
    "LSTM": LayerSignature(
        "LSTM",
        f"output_dim init inner_init forget_bias_init activation inner_activation {_GATES}",
        RECURRENT,
        defaults={"recurrent_activation": "hard_sigmoid", "recurrent_initializer": "orthogonal"},
        refused=_TRUNCATED,
        first=(f"{_FIRST_LSTM} weights truncate_gradient return_sequences", 2),
    ),
    "BatchNormalization": LayerSignature(
        "BatchNormalization",
        "epsilon mode axis momentum weights beta_init gamma_init gamma_regularizer beta_regularizer",
        {"beta_init": "beta_initializer", "gamma_init": "gamma_initializer"},
        refused={
            "mode": (0, "1 and 2 normalize by a row or by each batch, also when predicting. Use LayerNormalization.")
        },
    ),
    "LeakyReLU": LayerSignature("LeakyReLU", "alpha", {"alpha": "negative_slope"}),
    "PReLU": LayerSignature("PReLU", "init weights shared_axes", {"init": "alpha_initializer"}),
    "ELU": LayerSignature("ELU", "alpha"),
    "ThresholdedReLU": LayerSignature("ReLU", "theta", {"theta": "threshold"}, defaults={"threshold": 1.0}),
    "Bidirectional": LayerSignature("Bidirectional", "layer merge_mode weights"),
    "TimeDistributed": LayerSignature("TimeDistributed", "layer"),
}

# Layers that there is nothing for today, with what comes nearest.
REFUSED_LAYERS: Mapping[str, str] = {
    "ActivityRegularization": "Today its penalty is divided by the rows of a batch; use a W_regularizer.",
    "AutoEncoder": "Join encoder and decoder in one Sequential.",
    "Graph": "Write it with Input and Model, as Keras 1 had them.",
    "JZS1": "Use GRU.",
    "JZS2": "Use GRU.",
    "JZS3": "Use GRU.",
    "LRN2D": "Use BatchNormalization.",
    "LambdaMerge": "Use merge and Lambda on tensors.",
    "LocallyConnected1D": "Keras 3 has no unshared convolutions; use Convolution1D.",
    "LocallyConnected2D": "Keras 3 has no unshared convolutions; use Convolution2D.",
    "ParametricSoftplus": "Use PReLU.",
    "SReLU": "Use PReLU.",
    "Siamese": "Call one layer on several tensors.",
    "SimpleDeepRNN": "Use SimpleRNN.",
    "ThresholdedLinear": "Use ThresholdedReLU.",
    "TimeDistributedMerge": "Use Lambda with keras.ops.sum or mean over axis 1.",
    "WordContextProduct": "Use two Embeddings and merge them with mode='dot'.",
}
# Keras 2's own, which Keras 3 dropped.
REFUSED_LAYERS_2: Mapping[str, str] = {
    "ConvRecurrent2D": "Use ConvLSTM2D.",
    "CuDNNGRU": "Use GRU with reset_after=True, which takes cuDNN where there is one.",
    "CuDNNLSTM": "Use LSTM with recurrent_activation='sigmoid', which takes cuDNN where there is one.",
    "LocallyConnected1D": REFUSED_LAYERS["LocallyConnected1D"],
    "LocallyConnected2D": REFUSED_LAYERS["LocallyConnected2D"],
}
