import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.paddle.config_parser import (
    BilinearInterp,
    BlockExpand,
    ContextProjection,
    Conv,
    ConvOperator,
    ConvProjection,
    ConvTransOperator,
    ConvTransProjection,
    DotMulOperator,
    DotMulProjection,
    FullMatrixProjection,
    IdentityOffsetProjection,
    IdentityProjection,
    Image,
    Input,
    Layer,
    MaxOut,
    Norm,
    Outputs,
    Pad,
    Pool,
    ScalingProjection,
    Settings,
    SpatialPyramidPool,
    TableProjection,
    TransposedFullMatrixProjection,
    parse_config,
)
from keraunos.compat.paddle.layer_types.geometry import context_padding
from keraunos.compat.paddle.layer_types.layer_type import all_types
from keraunos.errors import ModelError

sides = st.integers(1, 40)
SQUARE = Conv(filter_size=3, channels=2, padding=1, stride=1, groups=1)


def model(*layers, data=None, args=""):
    """The model of these layers, each a dictionary; `data` gives the widths of the data layers before them."""

    def config():
        Settings(batch_size=1)
        for name, size in (data or {"x": 12}).items():
            Layer(name=name, type="data", **({"size": size} if isinstance(size, int) else size))
        for each in layers:
            Layer(**{"name": "out", **each})
        Outputs("out")

    return parse_config(config, args).model_config


def parameters(found):
    return {each.name.removeprefix("_out."): (each.size, each.dims) for each in found.parameters}


def windows_that_fit(side, window, padding, stride):
    """How many windows lie inside the padded side, by trying."""
    return sum(1 for start in range(0, side + 2 * padding, stride) if start + window <= side + 2 * padding)


def windows_until_covered(side, window, padding, stride):
    """How many windows it takes until one reaches the end of the padded side, by trying."""
    starts = itertools.takewhile(lambda start: start == 0 or start - stride + window < side + 2 * padding,
                                 itertools.count(0, stride))  # fmt: skip
    return len(list(starts))


@given(st.tuples(sides, sides), st.integers(1, 7), st.integers(0, 3), st.integers(1, 5), st.booleans())
def test_convolutions_have_as_many_places_as_windows(shape, window, padding, stride, floor):
    height, width = shape
    conv = Conv(filter_size=window, channels=2, padding=padding, stride=stride, groups=1, caffe_mode=floor)
    layer = {"type": "exconv", "num_filters": 4, "inputs": Input("x", conv=conv)}
    data = {"x": {"size": 2 * height * width, "height": height, "width": width}}
    if window > min(shape) + 2 * padding:
        return
    found = model(layer, data=data).layer("out")
    count = windows_that_fit if floor else windows_until_covered
    settings = found.inputs[0].settings["conv"]
    assert settings["output_y"] == count(height, window, padding, stride)
    assert settings["output_x"] == count(width, window, padding, stride)
    assert found.size == 4 * settings["output_x"] * settings["output_y"]


@given(sides, st.integers(1, 7), st.integers(0, 3), st.integers(1, 5), st.booleans())
def test_poolings_take_a_last_window_over_the_edge(side, window, padding, stride, ceil):
    if window > side or padding >= window or stride > window:
        return
    pool = Pool("max-projection", channels=3, size_x=window, stride=stride, padding=padding)
    layer = {"type": "pool", "inputs": Input("x", pool=pool), "ceil_mode": ceil}
    count = windows_until_covered if ceil else windows_that_fit
    try:
        found = model(layer, data={"x": 3 * side * side}).layer("out")
    except ModelError:
        assert (count(side, window, padding, stride) - 1) * stride - padding >= side
    else:
        assert found.size == 3 * count(side, window, padding, stride) ** 2


@given(sides, st.integers(1, 7), st.integers(0, 7), st.integers(1, 5))
def test_a_pooling_may_start_inside_the_image(side, window, start, stride):
    if window > side - start or stride > window:
        return
    pool = Pool("avg-projection", channels=1, size_x=window, start=start, stride=stride)
    found = model({"type": "pool", "inputs": Input("x", pool=pool)}, data={"x": side * side}).layer("out")
    assert found.size == windows_until_covered(side - start, window, 0, stride) ** 2


@given(sides, st.integers(1, 7), st.integers(0, 3), st.integers(1, 5))
def test_a_transposed_convolution_undoes_the_size_of_a_convolution(side, window, padding, stride):
    conv = Conv(filter_size=window, channels=3, padding=padding, stride=stride, groups=1)
    if (side - 1) * stride + window - 2 * padding < 1:
        return
    layer = {"type": "exconvt", "num_filters": 2, "inputs": Input("x", conv=conv)}
    settings = model(layer, data={"x": 3 * side * side}).layer("out").inputs[0].settings["conv"]
    assert settings["output_x"] == side
    assert windows_that_fit(settings["img_size"], window, padding, stride) == side


@given(st.integers(-4, 4), st.integers(1, 6))
def test_a_context_is_padded_by_the_steps_that_it_reaches_beyond(start, length):
    steps = 20
    reached = {at + offset for at in range(steps) for offset in range(start, start + length)}
    assert context_padding(start, length) == len(reached - set(range(steps)))


@given(st.integers(1, 4), st.integers(8, 12), st.integers(1, 5))
def test_a_pyramid_has_a_column_for_each_cell(levels, side, channels):
    spp = SpatialPyramidPool("max-projection", levels, channels)
    found = model({"type": "spp", "inputs": Input("x", spp=spp)}, data={"x": channels * side * side})
    assert found.layer("out").size == channels * sum(4**level for level in range(levels))


TWO = {"a": 12, "b": 12}
LABELLED = {"x": 12, "label": 1}

TYPES = [
    ({"type": "data_norm", "inputs": "x"}, None, 12, {"w0": (60, (5, 12))}),
    ({"type": "fc", "inputs": ["a", "b"], "size": 5}, TWO, 5,
     {"w0": (60, (12, 5)), "w1": (60, (12, 5)), "wbias": (5, (1, 5))}),
    ({"type": "selective_fc", "inputs": ["x", "chosen"], "size": 5}, {"x": 12, "chosen": 5}, 5,
     {"w0": (60, (5, 12)), "wbias": (5, (1, 5))}),
    ({"type": "selective_fc", "inputs": "x", "size": 5, "has_selected_colums": False}, None, 5,
     {"w0": (60, (5, 12)), "wbias": (5, (1, 5))}),
    ({"type": "addto", "inputs": ["a", "b"]}, TWO, 12, {"wbias": (12, (1, 12))}),
    ({"type": "concat", "inputs": ["a", "b"]}, TWO, 24, {}),
    ({"type": "prelu", "inputs": "x", "partial_sum": 4}, None, 12, {"w0": (3, (1, 3))}),
    ({"type": "trans", "inputs": "x"}, None, 12, {}),
    ({"type": "resize", "inputs": "x", "size": 6}, None, 6, {}),
    ({"type": "featmap_expand", "inputs": "x", "num_filters": 3}, None, 36, {}),
    ({"type": "exconv", "inputs": Input("x", conv=SQUARE), "num_filters": 4}, {"x": 18}, 36,
     {"w0": (72, ()), "wbias": (36, (36, 1))}),
    ({"type": "conv", "inputs": Input("x", conv=SQUARE), "num_filters": 4, "shared_biases": True}, {"x": 18}, 36,
     {"w0": (72, ()), "wbias": (4, (4, 1))}),
    ({"type": "cudnn_conv", "num_filters": 4, "shared_biases": True,
      "inputs": Input("x", conv=Conv(3, 4, padding=1, stride=1, groups=2))}, {"x": 36}, 36,
     {"w0": (72, ()), "wbias": (4, (4, 1))}),
    ({"type": "convt", "inputs": Input("x", conv=Conv(3, 2, 0, 2, 1)), "num_filters": 4, "shared_biases": True},
     {"x": 18}, 196, {"w0": (72, ()), "wbias": (4, (4, 1))}),
    ({"type": "norm", "inputs": Input("x", norm=Norm("cmrnorm-projection", 3, 5, 0.1, 0.75))}, None, 12, {}),
    ({"type": "norm", "inputs": Input("x", norm=Norm("cross-channel-norm", 3, 12, 0, 0))}, None, 12,
     {"w0": (3, (3, 1))}),
    ({"type": "batch_norm", "inputs": Input("x", image=Image(3))}, None, 12,
     {"w0": (3, ()), "w1": (3, (1, 3)), "w2": (3, (1, 3)), "wbias": (3, (1, 3))}),
    ({"type": "spp", "inputs": Input("x", spp=SpatialPyramidPool("avg-projection", 2, 3))}, None, 15, {}),
    ({"type": "pad", "inputs": Input("x", pad=Pad(3, [1, 0], [0, 2], [1, 1]))}, None, 4 * 4 * 4, {}),
    ({"type": "maxout", "inputs": Input("x", maxout=MaxOut(3, 3))}, None, 4, {}),
    ({"type": "bilinear_interp", "inputs": Input("x", bilinear_interp=BilinearInterp(4, 5, 3))}, None, 60, {}),
    ({"type": "rotate", "inputs": "x", "height": 2, "width": 3}, None, 12, {}),
    ({"type": "blockexpand", "inputs": Input("x", block_expand=BlockExpand(3, block_x=2, block_y=1, stride_x=1,
                                                                          stride_y=1))}, None, 6, {}),
    ({"type": "out_prod", "inputs": ["a", "b"]}, {"a": 2, "b": 3}, 6, {}),
    ({"type": "power", "inputs": ["w", "x"]}, {"w": 1, "x": 5}, 5, {}),
    ({"type": "scaling", "inputs": ["w", "x"]}, {"w": 1, "x": 5}, 5, {}),
    ({"type": "slope_intercept", "inputs": "x"}, None, 12, {}),
    ({"type": "sum_to_one_norm", "inputs": "x"}, None, 12, {}),
    ({"type": "interpolation", "inputs": ["w", "a", "b"]}, {"w": 1, **TWO}, 12, {}),
    ({"type": "conv_shift", "inputs": ["x", "w"]}, {"x": 12, "w": 3}, 12, {}),
    ({"type": "convex_comb", "inputs": ["w", "x"], "size": 4}, {"w": 3, "x": 12}, 4, {}),
    ({"type": "cos", "inputs": ["a", "b"]}, TWO, 1, {}),
    ({"type": "cos_vm", "inputs": ["w", "x"], "size": 4}, {"w": 3, "x": 12}, 4, {}),
    ({"type": "tensor", "inputs": ["a", "b"], "size": 4}, {"a": 2, "b": 3}, 4,
     {"w0": (24, (2, 3, 4)), "wbias": (4, (1, 4))}),
    ({"type": "multiplex", "inputs": ["which", "a", "b"]}, {"which": 1, **TWO}, 12, {}),
    ({"type": "maxid", "inputs": "x"}, None, 12, {}),
    ({"type": "sampling_id", "inputs": "x"}, None, 12, {}),
    ({"type": "eos_id", "inputs": "x", "eos_id": 1}, None, 2, {}),
    ({"type": "recurrent", "inputs": "x"}, None, 12, {"w0": (144, (12, 12)), "wbias": (12, (1, 12))}),
    ({"type": "lstmemory", "inputs": "x"}, None, 3, {"w0": (36, (3, 3, 4)), "wbias": (21, (1, 21))}),
    ({"type": "gated_recurrent", "inputs": "x"}, None, 4, {"w0": (48, (4, 12)), "wbias": (12, (1, 12))}),
    ({"type": "mdlstmemory", "inputs": "x", "directions": [True]}, None, 3,
     {"w0": (36, (3, 3, 4)), "wbias": (21, (1, 21))}),
    *(({"type": kind, "inputs": "x"}, None, 12, {}) for kind in ("max", "average", "seqlastins", "seqfirstins")),
    ({"type": "average", "inputs": "x", "bias": True, "average_strategy": "sum"}, None, 12, {"wbias": (12, (1, 12))}),
    ({"type": "seqconcat", "inputs": ["a", "b"]}, TWO, 12, {}),
    ({"type": "seqreshape", "inputs": "x", "size": 6}, None, 6, {}),
    ({"type": "subseq", "inputs": ["x", "from", "count"]}, {"x": 12, "from": 1, "count": 1}, 12, {}),
    ({"type": "expand", "inputs": ["x", "steps"]}, {"x": 12, "steps": 3}, 12, {}),
    *(({"type": kind, "inputs": ["x", "label"]}, LABELLED, 1, {}) for kind in (
        "multi-class-cross-entropy", "multi_class_cross_entropy_with_selfnorm", "auc-validation")),
    *(({"type": kind, "inputs": ["a", "b"]}, TWO, 1, {}) for kind in (
        "square_error", "smooth_l1", "soft_binary_class_cross_entropy", "multi_binary_label_cross_entropy")),
    *(({"type": kind, "inputs": ["a", "label"]}, {"a": 1, "label": 1}, 1, {}) for kind in ("huber", "lambda_cost")),
    ({"type": "rank-cost", "inputs": ["a", "b", "label"]}, {"a": 1, "b": 1, "label": 1}, 1, {}),
    ({"type": "pnpair-validation", "inputs": ["a", "b", "label"]}, {"a": 1, "b": 1, "label": 1}, 1, {}),
    ({"type": "sum_cost", "inputs": "x"}, None, 1, {}),
    ({"type": "crf", "inputs": ["x", "label"]}, LABELLED, 12, {"w0": (168, (14, 12))}),
    ({"type": "crf_decoding", "inputs": "x", "size": 12}, None, 12, {"w0": (168, (14, 12))}),
    ({"type": "ctc", "inputs": ["x", "label"]}, LABELLED, 12, {}),
    ({"type": "warp_ctc", "inputs": ["x", "label"], "blank": 11}, LABELLED, 12, {}),
    ({"type": "nce", "inputs": ["x", "label"], "num_classes": 7}, LABELLED, 1,
     {"w0": (84, (7, 12)), "wbias": (7, (1, 7))}),
    ({"type": "nce", "inputs": ["x", "label", "weight"], "num_classes": 7}, {"x": 12, "label": 7, "weight": 1}, 1,
     {"w0": (84, (7, 12)), "wbias": (7, (1, 7))}),
    ({"type": "hsigmoid", "inputs": ["x", "label"], "num_classes": 7}, LABELLED, 1,
     {"w0": (72, (6, 12)), "wbias": (6, (1, 6))}),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "data", "size", "expected"), TYPES, ids=lambda value: (
    value.get("type") if isinstance(value, dict) else None))  # fmt: skip
def test_every_type_has_the_size_and_the_parameters_of_paddle(layer, data, size, expected):
    found = model(layer, data=data)
    assert found.layer("out").size == size
    assert parameters(found) == expected


def test_every_type_is_in_the_table():
    shown = {layer["type"] for layer, *_ in TYPES}
    elsewhere = {"data", "pool", "mixed", "concat2", "get_output", "exconvt", "cudnn_convt"}
    assert set(all_types()) == shown | elsewhere


PROJECTIONS = [
    (IdentityProjection("x"), 12, 12, None),
    (IdentityOffsetProjection("x", offset=4), 8, 8, None),
    (DotMulProjection("x"), 0, 12, (12, (1, 12))),
    (ScalingProjection("x"), 0, 12, (1, (1, 1))),
    (TableProjection("x", size=5), 0, 5, (60, (12, 5))),
    (FullMatrixProjection("x"), 5, 5, (60, (12, 5))),
    (TransposedFullMatrixProjection("x"), 5, 5, (60, (5, 12))),
    (ContextProjection("x", context_start=-1, context_length=3), 0, 36, None),
    (ContextProjection("x", context_start=-1, context_length=3, trainable_padding=True), 0, 36, (24, (2, 12))),
    (ConvProjection("x", num_filters=2, conv_conf=Conv(2, 3, 0, 1, 1)), 0, 2, (24, ())),
    (ConvTransProjection("x", num_filters=2, conv_conf=Conv(2, 3, 0, 2, 1)), 0, 32, (24, ())),
]


@pytest.mark.parametrize(
    ("projection", "said", "size", "weight"), PROJECTIONS, ids=lambda value: getattr(value, "kind", None)
)
def test_projections(projection, said, size, weight):
    found = model({"type": "mixed", "size": said, "inputs": projection, "bias": False})
    assert found.layer("out").size == size
    assert parameters(found) == ({"w0": weight} if weight else {})
    settings = found.layer("out").inputs[0].settings["proj"]
    assert (settings["type"], settings["input_size"], settings["output_size"]) == (projection.kind, 12, size)


def test_a_mixed_layer_lists_the_further_inputs_of_operators_last():
    inputs = [DotMulOperator(["a", "b"], scale=2.0), FullMatrixProjection("x")]
    layer = model({"type": "mixed", "inputs": inputs}, data={"x": 3, "a": 4, "b": 4}).layer("out")
    assert [each.layer for each in layer.inputs] == ["a", "x", "b"]
    assert [each.parameter for each in layer.inputs] == [None, "_out.w1", None]
    assert layer.operators == (
        {"type": "dot_mul", "input_indices": [0, 2], "input_sizes": [4, 4], "output_size": 4, "dotmul_scale": 2.0},
    )


@pytest.mark.parametrize(("operator", "size"), [(ConvOperator, 2), (ConvTransOperator, 18)])
def test_operators_that_convolve_take_filters_from_the_rows(operator, size):
    inputs = operator(["x", "filters"], num_filters=2, conv_conf=Conv(2, 3, 0, 1, 1))
    found = model({"type": "mixed", "inputs": inputs, "bias": False}, data={"x": 12, "filters": 24})
    assert found.layer("out").size == size
    assert found.parameters == ()


def test_concat2_puts_projections_side_by_side():
    inputs = [FullMatrixProjection("x", size=3), IdentityProjection("x")]
    found = model({"type": "concat2", "inputs": inputs, "bias": True})
    assert found.layer("out").size == 15
    assert parameters(found) == {"w0": (36, (12, 3)), "wbias": (15, (1, 15))}


def test_convolutions_in_concat2_share_a_bias_for_each_filter():
    conv = Conv(1, 3, 0, 1, 1)
    inputs = [ConvProjection("x", num_filters=2, conv_conf=conv), ConvProjection("x", num_filters=5, conv_conf=conv)]
    found = model({"type": "concat2", "inputs": inputs, "bias": True})
    assert found.layer("out").size == 28
    assert parameters(found)["wbias"] == (7, (1, 7))


def test_statistics_of_a_batch_norm_start_at_zero_and_no_gradient_moves_them():
    found = model({"type": "batch_norm", "inputs": Input("x", image=Image(3), initial_mean=1.0, initial_std=0.0)})
    scale, mean, variance, shift = found.parameters
    assert (scale.initial_mean, scale.is_static, shift.is_static) == (1.0, False, False)
    for each in (mean, variance):
        assert (each.initial_mean, each.initial_std, each.is_static) == (0.0, 0.0, True)
    assert [each.layer for each in found.layer("out").inputs] == ["x", "x", "x"]
    assert found.layer("out").active_type == "linear"


def test_height_and_width_travel_through_layers_that_keep_an_image():
    conv = Conv(3, 2, padding=0, stride=1, groups=1)
    layers = [
        {"name": "sum", "type": "addto", "inputs": ["x"]},
        {"name": "first", "type": "exconv", "num_filters": 4, "inputs": Input("sum", conv=conv)},
        {"name": "rate", "type": "batch_norm", "inputs": Input("first", image=Image(4))},
        {"type": "pool", "inputs": Input("rate", pool=Pool("max-projection", 4, 2, stride=2))},
    ]
    found = model(*layers, data={"x": {"size": 2 * 6 * 10, "height": 6, "width": 10}})
    settings = found.layer("out").inputs[0].settings["pool"]
    assert (settings["img_size_y"], settings["img_size"], settings["output_y"], settings["output_x"]) == (4, 8, 2, 4)


def test_use_gpu_chooses_the_type_that_paddle_would():
    layer = {"type": "conv", "inputs": Input("x", conv=SQUARE), "num_filters": 4}
    assert model(layer, data={"x": 18}).layer("out").type == "exconv"
    assert model(layer, data={"x": 18}, args="use_gpu=1").layer("out").type == "cudnn_conv"


def test_the_first_step_is_a_last_step_that_selects_the_first():
    layer = model({"type": "seqfirstins", "inputs": "x"}).layer("out")
    assert (layer.type, layer.attributes["select_first"], layer.active_type) == ("seqlastins", True, "linear")


def test_the_scale_of_a_normalization_is_divided_by_its_size():
    layer = {"type": "norm", "inputs": Input("x", norm=Norm("cmrnorm-projection", 3, 5, 0.1, 0.75))}
    assert model(layer).layer("out").inputs[0].settings["norm"]["scale"] == pytest.approx(0.02)


def test_a_window_beyond_the_edge_can_be_left_out():
    layer = {"type": "pool", "inputs": Input("x", pool=Pool("max-projection", 3, 1, stride=2))}
    with pytest.raises(ModelError, match="every window.*2 windows.*ceil_mode=False"):
        model(layer)
    assert model({**layer, "ceil_mode": False}).layer("out").size == 3


def test_another_output_of_a_layer():
    steps = [
        {"name": "lstm", "type": "lstmemory", "inputs": "x"},
        {"type": "get_output", "size": 3, "inputs": Input("lstm", input_layer_argument="state")},
    ]
    assert model(*steps).layer("out").inputs[0].argument == "state"


@pytest.mark.parametrize(
    ("layer", "data", "message"),
    [
        ({"type": "exconv", "num_filters": 1, "inputs": Input("x", conv=Conv(1, 5, 0, 1, 1))}, None,
         "Layer 'out' .exconv.: the size of input 'x' must be a multiple of its channels.*size 12, 5 channels"),
        ({"type": "exconv", "num_filters": 1, "inputs": Input("x", conv=Conv(1, 1, 0, 1, 1))}, None,
         "input 'x' must be a square image.*12 pixels.*`height` and `width`"),
        ({"type": "exconv", "num_filters": 1, "inputs": Input("x", conv=Conv(3, 3, 0, 1, 1))}, None,
         "filter must not be larger"),
        ({"type": "exconv", "num_filters": 1, "inputs": Input("x", conv=Conv(1, 3, stride=1, groups=1))}, None,
         "must say its `padding`"),
        ({"type": "exconv", "num_filters": 2, "inputs": Input("x", conv=Conv(1, 3, 0, 1, 2))}, None,
         "`groups` must divide the channels and the filters"),
        ({"type": "exconv", "num_filters": 2, "inputs": "x"}, None, "must say `conv`.*Write Input.…, conv=Conv"),
        ({"type": "exconv", "inputs": Input("x", conv=SQUARE)}, None, "must say `num_filters`"),
        ({"type": "pool", "inputs": Input("x", pool=Pool("max", 3, 2, stride=1))}, None, "`pool_type` must be one of"),
        ({"type": "pool", "inputs": Input("x", pool=Pool("max-projection", 3, 2))}, None,
         "`stride` must be a whole number"),
        ({"type": "pool", "inputs": Input("x", pool=Pool("max-projection", 3, 1, stride=1, start=1, padding=1))}, None,
         "a `start` or a `padding`, not both"),
        ({"type": "pool", "inputs": Input("x", pool=Pool("max-projection", 3, 1, stride=1, padding=2))}, None,
         "every window of a pooling must meet the image"),
        ({"type": "norm", "inputs": Input("x", norm=Norm("rnorm", 3, 5, 1, 1))}, None,
         "nearest is 'cmrnorm-projection'"),
        ({"type": "addto", "inputs": ["a", "b"]}, {"a": 2, "b": 3}, "Layer 'out' .addto.: .* size 3. Received: size 2"),
        ({"type": "concat", "inputs": "x", "size": 5}, None, "give size 12. Received: size 5"),
        ({"type": "concat", "inputs": "x", "bias": True}, None, "layers of this type have no bias"),
        ({"type": "mixed", "inputs": "x", "size": 3}, None, "inputs must be projections or operators"),
        ({"type": "mixed", "inputs": FullMatrixProjection("x")}, None, "must say its size"),
        ({"type": "mixed", "inputs": IdentityProjection("x"), "size": 3}, None, "give size 12. Received: size 3"),
        ({"type": "mixed", "inputs": IdentityOffsetProjection("x", offset=10), "size": 3}, None, "`offset` plus"),
        ({"type": "mixed", "inputs": DotMulOperator(["a", "b"])}, {"a": 2, "b": 3},
         "dot_mul operator must have the same"),
        ({"type": "mixed", "inputs": DotMulOperator(["x"])}, None, "an operator names two layers"),
        ({"type": "mixed", "inputs": ConvOperator(["a", "b"], 2, Conv(2, 3, 0, 1, 1))}, TWO, "filters, 24 numbers"),
        ({"type": "concat2", "inputs": [FullMatrixProjection("x")]}, None, "projection 0 must say its size"),
        ({"type": "lstmemory", "inputs": "x"}, {"x": 6}, "must be 4 times its own.*an input of 6"),
        ({"type": "gated_recurrent", "inputs": "x"}, {"x": 4}, "must be 3 times its own"),
        ({"type": "prelu", "inputs": "x", "partial_sum": 5}, None, "`partial_sum` must divide"),
        ({"type": "power", "inputs": ["a", "b"]}, TWO, "input 0 must be one number a row. Received: 'a' of size 12"),
        ({"type": "conv_shift", "inputs": ["x", "w"]}, {"x": 12, "w": 2}, "odd size"),
        ({"type": "convex_comb", "inputs": ["w", "x"], "size": 5}, {"w": 3, "x": 12}, "its own size times"),
        ({"type": "square_error", "inputs": ["a", "b"]}, {"a": 2, "b": 3}, "'a' of size 2, 'b' of size 3"),
        ({"type": "square_error", "inputs": "x"}, None, "take 2 to 3 inputs. Received: 1 inputs"),
        ({"type": "huber", "inputs": ["x", "label"]}, LABELLED, "input 0 must be one number a row"),
        ({"type": "lambda_cost", "inputs": ["a", "b"], "max_sort_size": 2}, {"a": 1, "b": 1},
         "`max_sort_size` must be"),
        ({"type": "crf", "inputs": ["x", "label"], "size": 5}, LABELLED, "a number for each label"),
        ({"type": "ctc", "inputs": ["x", "label"], "size": 5}, LABELLED, "number of classes plus 1"),
        ({"type": "warp_ctc", "inputs": ["x", "label"], "blank": 12}, LABELLED, "`blank` must be one of the classes"),
        ({"type": "nce", "inputs": ["x", "label"], "num_classes": 2, "neg_sampling_dist": [0.5, 0.6]}, LABELLED,
         "which add up to 1"),
        ({"type": "average", "inputs": "x", "average_strategy": "mean"}, None, "`average_strategy` must be one of"),
        ({"type": "max", "inputs": "x", "trans_type": "seq", "stride": 2}, None, "`stride` must be -1"),
        ({"type": "get_output", "inputs": "x"}, None, "must say which output is meant"),
        ({"type": "data", "inputs": "x", "size": 3}, None, "take 0 inputs"),
        ({"type": "data", "size": 12, "height": 5, "width": 2}, None,
         "`size` must be a multiple of height times width"),
        ({"type": "spp", "inputs": Input("x", spp=SpatialPyramidPool("max-projection", 3, 3))}, None,
         "the finest grid"),
        ({"type": "multiplex", "inputs": ["which", "a", "b"]}, {"which": 1, "a": 2, "b": 3}, "give size 3"),
    ],
)  # fmt: skip
def test_a_layer_that_breaks_a_rule_of_its_type(layer, data, message):
    with pytest.raises(ModelError, match=message):
        model(layer, data=data)
