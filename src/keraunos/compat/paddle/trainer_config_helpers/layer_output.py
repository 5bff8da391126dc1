"""The result of a layer function, and the names of layer types and sequence levels. On the driver."""

from __future__ import annotations

from collections.abc import Iterable

from keraunos.compat.paddle.trainer_config_helpers.activations import BaseActivation
from keraunos.errors import ModelError

__all__ = ["AggregateLevel", "ExpandLevel", "LayerOutput", "LayerType"]


class LayerType:
    """The raw language's type of each layer function."""

    DATA = "data"
    MIXED_LAYER = "mixed"
    LSTMEMORY = "lstmemory"
    GRUMEMORY = "gated_recurrent"
    SEQUENCE_LAST_INSTANCE = "seqlastins"
    SEQUENCE_FIRST_INSTANCE = "seqfirstins"
    SEQUENCE_RESHAPE = "seqreshape"
    POOLING_MAX = "max"
    POOLING_AVG = "average"
    FC_LAYER = "fc"
    COST = "cost"
    COSINE_SIM_VEC = "cos_vm"
    COSINE_SIM = "cos"
    HSIGMOID = "hsigmoid"
    CONV_LAYER = "conv"
    CONVTRANS_LAYER = "convt"
    EXCONV_LAYER = "exconv"
    EXCONVTRANS_LAYER = "exconvt"
    CUDNNCONV_LAYER = "cudnn_conv"
    POOL_LAYER = "pool"
    BATCH_NORM_LAYER = "batch_norm"
    NORM_LAYER = "norm"
    SUM_TO_ONE_NORM_LAYER = "sum_to_one_norm"
    ADDTO_LAYER = "addto"
    CONCAT_LAYER = "concat"
    CONCAT_PROJ_LAYER = "concat2"
    SEQUENCE_CONCAT_LAYER = "seqconcat"
    GET_OUTPUT_LAYER = "get_output"
    EXPAND_LAYER = "expand"
    INTERPOLATION_LAYER = "interpolation"
    BILINEAR_INTERP_LAYER = "bilinear_interp"
    POWER_LAYER = "power"
    SCALING_LAYER = "scaling"
    TRANS_LAYER = "trans"
    ROTATE_LAYER = "rotate"
    OUT_PROD_LAYER = "out_prod"
    FEATURE_MAP_EXPAND_LAYER = "featmap_expand"
    MAXID_LAYER = "maxid"
    EOSID_LAYER = "eos_id"
    RECURRENT_LAYER = "recurrent"
    CONV_SHIFT_LAYER = "conv_shift"
    TENSOR_LAYER = "tensor"
    SEL_FC_LAYER = "selective_fc"
    SAMPLING_ID_LAYER = "sampling_id"
    SLOPE_INTERCEPT_LAYER = "slope_intercept"
    LINEAR_COMBINATION_LAYER = "convex_comb"
    BLOCK_EXPAND = "blockexpand"
    MAXOUT = "maxout"
    SPP_LAYER = "spp"
    PAD_LAYER = "pad"
    MULTIPLEX_LAYER = "multiplex"
    PRELU = "prelu"
    PRINT_LAYER = "print"
    CTC_LAYER = "ctc"
    WARP_CTC_LAYER = "warp_ctc"
    CRF_LAYER = "crf"
    CRF_DECODING_LAYER = "crf_decoding"
    NCE_LAYER = "nce"
    RANK_COST = "rank-cost"
    LAMBDA_COST = "lambda_cost"
    HUBER = "huber"
    CROSS_ENTROPY = "multi-class-cross-entropy"
    CROSS_ENTROPY_WITH_SELFNORM = "multi_class_cross_entropy_with_selfnorm"
    SOFT_BIN_CLASS_CROSS_ENTROPY = "soft_binary_class_cross_entropy"
    MULTI_BIN_LABEL_CROSS_ENTROPY = "multi_binary_label_cross_entropy"
    SUM_COST = "sum_cost"


class AggregateLevel:
    """The result of pooling a sequence: one row of all of it, or one row for each inner sequence."""

    TO_NO_SEQUENCE = "non-seq"
    TO_SEQUENCE = "seq"
    EACH_TIMESTEP = TO_NO_SEQUENCE
    EACH_SEQUENCE = TO_SEQUENCE


class ExpandLevel:
    """The input to expand over a sequence: one row, or one row for each inner sequence."""

    FROM_NO_SEQUENCE = AggregateLevel.TO_NO_SEQUENCE
    FROM_SEQUENCE = AggregateLevel.TO_SEQUENCE
    FROM_TIMESTEP = FROM_NO_SEQUENCE


class LayerOutput:
    """A defined layer: an input for others, with `+`, `-` and `*` between them and with numbers.

    Attributes:
        name: the layer's.
        layer_type: the raw language's type of it.
        parents: the layers that it reads.
        activation: what it ends with.
        num_filters: channels of its output image, if known.
        size: the width of its rows.
        outputs: its outputs by name; the first is the one others read.
        reverse: whether it runs from the end of a sequence, for the recurrent ones.
    """

    def __init__(
        self,
        name: str,
        layer_type: str,
        parents: LayerOutput | Iterable[LayerOutput] | None = None,
        activation: BaseActivation | None = None,
        num_filters: int | None = None,
        img_norm_type: str | None = None,
        size: int = 0,
        outputs: list[str] | None = None,
        reverse: bool | None = None,
    ) -> None:
        self.name = name
        self.layer_type = layer_type
        self.parents = [parents] if isinstance(parents, LayerOutput) else list(parents or ())
        self.activation = activation
        self.num_filters = num_filters
        self.img_norm_type = img_norm_type
        self.size = size
        self.outputs = ["default"] if outputs is None else outputs
        self.reverse = reverse

    def __repr__(self) -> str:
        return f"<layer {self.name!r}, {self.layer_type}, size {self.size}>"

    def __add__(self, other: LayerOutput | float) -> LayerOutput:
        from keraunos.compat.paddle.trainer_config_helpers import layer_math

        return layer_math.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: LayerOutput | float) -> LayerOutput:
        from keraunos.compat.paddle.trainer_config_helpers import layer_math

        return layer_math.sub(self, other)

    def __rsub__(self, other: LayerOutput | float) -> LayerOutput:
        from keraunos.compat.paddle.trainer_config_helpers import layer_math

        return layer_math.rsub(self, other)

    def __mul__(self, other: LayerOutput | float) -> LayerOutput:
        from keraunos.compat.paddle.trainer_config_helpers import layer_math

        return layer_math.mul(self, other)

    __rmul__ = __mul__


def a_layer(value: object, function: str, argument: str = "input") -> LayerOutput:
    """Returns the value. Raises an error that names function and argument if it is not a defined layer."""
    if isinstance(value, LayerOutput):
        return value
    raise ModelError(
        f"`{argument}` of `{function}` must be a layer, as the layer functions give it back. Received: {value!r}."
        + (" Give the layer itself instead of its name." if isinstance(value, str) else "")
    )


def some_layers(value: object, function: str, argument: str = "input") -> list[LayerOutput]:
    """Returns one layer or several, as a list of at least one."""
    if isinstance(value, list | tuple) and value:
        return [a_layer(each, function, argument) for each in value]
    return [a_layer(value, function, argument)]


def an_activation(value: BaseActivation | None, default: BaseActivation, function: str) -> BaseActivation:
    """Returns the activation that is meant: the given one, or the default."""
    if value is None:
        return default
    if isinstance(value, BaseActivation):
        return value
    hint = f" Did you mean {value.__name__}()?" if isinstance(value, type) else " Write, say, ReluActivation()."
    raise ModelError(f"`act` of `{function}` must be an activation. Received: {value!r}.{hint}")
