"""Network functions against their layers written one by one, and the classic networks' parameters counted by hand."""

from pathlib import Path

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.config_parser import parse_config
from keraunos.errors import ModelError
from tests.compat.paddle.trainer_config_helpers.comparison import anonymous, model_of, parameter_count

NETWORKS = Path(__file__).parent.parent / "networks"
BIAS = raw.Bias(initial_mean=0.0, initial_std=0.0)
SMART = {"initial_smart": True}


def same(helped, written):
    assert anonymous(model_of(helped)) == anonymous(model_of(written))


def raw_data(name, size):
    raw.Layer(name=name, type="data", size=size)


def raw_lstm(name, source, size, **told):
    raw.Layer(
        name=f"{name}_in",
        type="mixed",
        size=4 * size,
        bias=False,
        inputs=[raw.FullMatrixProjection(source, **SMART)],
    )
    raw.Layer(
        name=name,
        type="lstmemory",
        inputs=[raw.Input(f"{name}_in", **SMART)],
        bias=BIAS,
        active_type="tanh",
        active_state_type="tanh",
        **told,
    )


def raw_gru(name, source, size, bias=False, **told):
    raw.Layer(
        name=f"{name}_in",
        type="mixed",
        size=3 * size,
        bias=bias,
        inputs=[raw.FullMatrixProjection(source, **SMART)],
    )
    raw.Layer(
        name=name,
        type="gated_recurrent",
        inputs=[raw.Input(f"{name}_in", **SMART)],
        bias=BIAS,
        active_type="tanh",
        **told,
    )


def test_lenet_is_its_layers():
    def helped():
        net = tch.data_layer("image", 784)
        net = tch.simple_img_conv_pool(net, 5, 20, 2, num_channel=1, pool_stride=2, act=tch.TanhActivation())
        tch.fc_layer(net, 10, act=tch.SoftmaxActivation())

    def written():
        raw_data("image", 784)
        raw.Layer(
            name="conv",
            type="exconv",
            inputs=raw.Input(
                "image",
                initial_std=(2 / 25) ** 0.5,
                conv=raw.Conv(filter_size=5, channels=1, padding=0, stride=1, groups=1),
            ),
            bias=BIAS,
            num_filters=20,
            shared_biases=True,
            active_type="tanh",
        )
        raw.Layer(
            name="pool",
            type="pool",
            inputs=raw.Input("conv", pool=raw.Pool(pool_type="max-projection", channels=20, size_x=2, stride=2)),
        )
        raw.Layer(name="fc", type="fc", inputs=raw.Input("pool", **SMART), size=10, bias=BIAS, active_type="softmax")

    same(helped, written)


def test_a_normalized_convolution_is_its_layers():
    def helped():
        tch.img_conv_bn_pool(tch.data_layer("image", 36), 3, 4, 2, num_channel=1, conv_padding=1, pool_stride=2)

    def written():
        image = tch.data_layer("image", 36)
        conv = tch.img_conv_layer(image, 3, 4, num_channels=1, padding=1, act=tch.LinearActivation())
        tch.img_pool_layer(tch.batch_norm_layer(conv, act=tch.ReluActivation()), 2, stride=2)

    same(helped, written)


def test_a_group_of_convolutions_takes_one_value_or_one_each():
    def helped():
        tch.img_conv_group(
            tch.data_layer("image", 64),
            [2, 4],
            2,
            num_channels=1,
            conv_padding=[0, 1],
            conv_act=tch.SigmoidActivation(),
            conv_with_batchnorm=[True, False],
            conv_batchnorm_drop_rate=[0.25, 0],
            pool_stride=2,
            pool_type=tch.AvgPooling(),
        )

    def written():
        image = tch.data_layer("image", 64)
        net = tch.img_conv_layer(image, 3, 2, num_channels=1, act=tch.LinearActivation())
        net = tch.batch_norm_layer(net, act=tch.SigmoidActivation(), layer_attr=tch.ExtraAttr(drop_rate=0.25))
        net = tch.img_conv_layer(net, 3, 4, padding=1, act=tch.SigmoidActivation())
        tch.img_pool_layer(net, 2, stride=2, pool_type=tch.AvgPooling())

    same(helped, written)


def test_a_group_of_convolutions_wants_as_many_values_as_convolutions():
    with pytest.raises(ModelError, match="`conv_padding` of `img_conv_group`.*2 convolutions"):
        model_of(lambda: tch.img_conv_group(tch.data_layer("image", 64), [2, 4], 2, num_channels=1, conv_padding=[1]))


def test_text_convolution_is_its_layers():
    def helped():
        tch.sequence_conv_pool(tch.data_layer("text", 6), 3, 5)

    def written():
        raw_data("text", 6)
        raw.Layer(
            name="context",
            type="mixed",
            size=18,
            bias=False,
            inputs=[raw.ContextProjection("text", context_start=-1, context_length=3)],
        )
        raw.Layer(name="fc", type="fc", inputs=raw.Input("context", **SMART), size=5, bias=BIAS, active_type="tanh")
        raw.Layer(name="pool", type="max", inputs="fc")

    same(helped, written)


def test_simple_lstm_is_its_layers():
    def written():
        raw_data("x", 6)
        raw_lstm("lstm", "x", 5, reversed=True)

    same(lambda: tch.simple_lstm(tch.data_layer("x", 6), 5, reverse=True), written)


@pytest.mark.parametrize("function", [tch.simple_gru, tch.simple_gru2])
def test_simple_gru_is_its_layers(function):
    def written():
        raw_data("x", 6)
        raw_gru("gru", "x", 5, active_gate_type="tanh")

    same(lambda: function(tch.data_layer("x", 6), 5, gate_act=tch.TanhActivation()), written)


def test_a_lstm_group_is_a_lstm_with_a_sigmoid_of_its_state():
    def helped():
        tch.lstmemory_group(tch.data_layer("gates", 20), mixed_bias_attr=True, reverse=True)

    def written():
        tch.lstmemory(tch.data_layer("gates", 20), state_act=tch.SigmoidActivation(), reverse=True)

    same(helped, written)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "Give mixed_bias_attr=True, or use lstmemory"),
        ({"mixed_bias_attr": True, "lstm_bias_attr": False}, "both must be there"),
        ({"mixed_bias_attr": tch.ParamAttr(name="b"), "lstm_bias_attr": tch.ParamAttr(name="b")}, "by name"),
        ({"mixed_bias_attr": True, "mixed_layer_attr": tch.ExtraAttr(drop_rate=0.1)}, "`mixed_layer_attr`"),
        ({"mixed_bias_attr": True, "lstm_layer_attr": tch.ExtraAttr(drop_rate=0.1)}, "dropout_layer"),
    ],
)
def test_a_lstm_group_that_is_no_lstm_is_refused(told, words):
    with pytest.raises(ModelError, match=words):
        model_of(lambda: tch.lstmemory_group(tch.data_layer("gates", 20), **told))


def test_a_gru_group_keeps_no_matrices_apart():
    with pytest.raises(ModelError, match="`naive` of `gru_group`"):
        model_of(lambda: tch.gru_group(tch.data_layer("gates", 15), naive=True))


def test_both_directions_of_a_lstm_stand_side_by_side():
    def written():
        raw_data("x", 6)
        raw_lstm("fw", "x", 5)
        raw_lstm("bw", "x", 5, reversed=True)
        raw.Layer(name="last", type="seqlastins", inputs="fw")
        raw.Layer(name="first", type="seqfirstins", inputs="bw")
        raw.Layer(name="both", type="concat", inputs=["last", "first"])

    same(lambda: tch.bidirectional_lstm(tch.data_layer("x", 6), 5), written)


def test_both_directions_of_a_gru_may_stay_sequences():
    def helped():
        tch.bidirectional_gru(tch.data_layer("x", 6), 5, return_seq=True, fwd_mixed_bias_attr=True)

    def written():
        raw_data("x", 6)
        raw_gru("fw", "x", 5, bias=BIAS)
        raw_gru("bw", "x", 5, reversed=True)
        raw.Layer(name="both", type="concat", inputs=["fw", "bw"])

    same(helped, written)


def test_a_direction_knows_its_arguments():
    with pytest.raises(ModelError, match="knows no argument `fwd_size`"):
        model_of(lambda: tch.bidirectional_lstm(tch.data_layer("x", 6), 5, fwd_size=3))


def test_attention_is_its_layers():
    def helped():
        encoded, projected = tch.data_layer("encoded", 6), tch.data_layer("projected", 4)
        tch.simple_attention(encoded, projected, tch.data_layer("state", 4))

    def written():
        for name, size in (("encoded", 6), ("projected", 4), ("state", 4)):
            raw_data(name, size)
        raw.Layer(name="moved", type="mixed", size=4, bias=False, inputs=[raw.FullMatrixProjection("state", **SMART)])
        raw.Layer(name="spread", type="expand", inputs=["moved", "encoded"])
        raw.Layer(
            name="joined",
            type="mixed",
            size=4,
            bias=False,
            active_type="tanh",
            inputs=[raw.IdentityProjection("spread"), raw.IdentityProjection("projected")],
        )
        raw.Layer(
            name="weight",
            type="fc",
            size=1,
            bias=False,
            active_type="sequence_softmax",
            inputs=raw.Input("joined", **SMART),
        )
        raw.Layer(name="scaled", type="scaling", inputs=["weight", "encoded"])
        raw.Layer(name="sum", type="average", average_strategy="sum", inputs="scaled")

    same(helped, written)


def test_small_vgg_normalizes_and_drops():
    def configs():
        tch.small_vgg(tch.data_layer("image", 3 * 32 * 32), 3, 10)

    layers = model_of(configs).layers
    assert [layer.drop_rate for layer in layers if layer.type == "batch_norm"] == [
        0.3, 0.0, 0.4, 0.0, 0.4, 0.4, 0.0, 0.4, 0.4, 0.0, 0.0,
    ]  # fmt: skip
    assert [layer.size for layer in layers if layer.type == "pool"] == [64 * 256, 128 * 64, 256 * 16, 512 * 4, 512]


def convolution(filter_size, channels, filters, groups=1):
    return filter_size**2 * channels // groups * filters + filters


def matrix(rows, columns):
    return rows * columns + columns


def vgg(divisor, pixels, classes):
    widths = [width // divisor for width in (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)]
    convolutions = sum(convolution(3, before, after) for before, after in zip([3, *widths], widths))
    full = 4096 // divisor
    return convolutions + matrix(512 // divisor * pixels, full) + matrix(full, full) + matrix(full, classes)


def two_lstms(words, embedding, hidden, classes):
    memory = hidden * 4 * hidden + 7 * hidden
    return words * embedding + embedding * 4 * hidden + memory + hidden * 4 * hidden + memory + matrix(hidden, classes)


def wide_and_deep(crossed, users, items, numbers, embedding, hidden, classes):
    deep = matrix(2 * embedding + numbers, hidden) + matrix(hidden, hidden // 2)
    return crossed * classes + (users + items) * embedding + deep + matrix(hidden // 2, classes)


def alexnet(divisor, pixels, classes):
    one, two, three = 96 // divisor, 256 // divisor, 384 // divisor
    convolutions = (
        convolution(11, 3, one)
        + convolution(5, one, two, groups=2)
        + convolution(3, two, three)
        + convolution(3, three, three, groups=2)
        + convolution(3, three, two, groups=2)
    )
    full = 4096 // divisor
    return convolutions + matrix(two * pixels, full) + matrix(full, full) + matrix(full, classes)


LENET = convolution(5, 1, 20) + convolution(5, 20, 50) + matrix(50 * 4 * 4, 500) + matrix(500, 10)


@pytest.mark.parametrize(
    ("network", "args", "count"),
    [
        ("lenet", "", LENET),
        ("lenet", "side=16,classes=3", LENET - 500 * 50 * (4 * 4 - 1) - 7 * 501),
        ("alexnet", "", alexnet(1, 6 * 6, 1000)),
        ("alexnet", "side=67,shrink=16,classes=5", alexnet(16, 1, 5)),
        ("vgg16", "", vgg(1, 7 * 7, 1000)),
        ("vgg16", "side=32,shrink=16,classes=3", vgg(16, 1, 3)),
        ("lstm_text", "", two_lstms(30000, 128, 128, 2)),
        ("lstm_text", "words=20,embedding=4,hidden=3,classes=5", two_lstms(20, 4, 3, 5)),
        ("wide_and_deep", "", wide_and_deep(100000, 5000, 2000, 13, 32, 64, 2)),
        (
            "wide_and_deep",
            "crossed=50,users=7,items=5,numbers=3,embedding=2,hidden=4,classes=3",
            wide_and_deep(50, 7, 5, 3, 2, 4, 3),
        ),
    ],
)
def test_a_classic_network_has_the_parameters_that_were_counted_by_hand(network, args, count):
    assert parameter_count(parse_config(NETWORKS / f"{network}.py", args).model_config) == count


def test_the_counts_by_hand_are_those_that_are_known():
    assert (LENET, alexnet(1, 6 * 6, 1000), vgg(1, 7 * 7, 1000)) == (431_080, 60_965_224, 138_357_544)


def test_narrow_and_whole_vgg_have_the_same_layers():
    whole, narrow = (parse_config(NETWORKS / "vgg16.py", f"side=32,shrink={by}").model_config for by in (1, 16))
    shape = [(layer.type, layer.active_type, layer.drop_rate) for layer in whole.layers]
    assert [(layer.type, layer.active_type, layer.drop_rate) for layer in narrow.layers] == shape
    assert [layer.type for layer in whole.layers].count("exconv") == 13


def test_outputs_order_the_data_layers_as_they_are_met():
    def configs():
        tch.settings(batch_size=4)
        label, late, early = (tch.data_layer(name, 2) for name in ("label", "late", "early"))
        first = tch.fc_layer(early, 2)
        net = tch.fc_layer([first, late, early], 2, act=tch.SoftmaxActivation())
        tch.outputs(tch.classification_cost(net, label, name="cost"))

    model = parse_config(configs, "").model_config
    assert model.input_layer_names == ("early", "late", "label")
    assert model.output_layer_names == ("cost",)


def test_inputs_that_were_named_stay_as_they_were_named():
    def configs():
        tch.settings(batch_size=4)
        one, two = tch.data_layer("one", 2), tch.data_layer("two", 2)
        tch.inputs(two, one)
        tch.outputs([tch.mse_cost(one, two, name="a")], tch.mse_cost(two, one, name="b"))

    model = parse_config(configs, "").model_config
    assert model.input_layer_names == ("two", "one")
    assert model.output_layer_names == ("a", "b")


def test_names_are_made_up_anew_in_every_parse():
    def configs():
        tch.fc_layer(tch.fc_layer(tch.data_layer("x", 2), 3), 3)

    for _ in range(2):
        assert [layer.name for layer in model_of(configs).layers] == ["x", "__fc_layer_0__", "__fc_layer_1__"]


def test_the_vocabulary_is_for_configurations_alone():
    with pytest.raises(ModelError, match="no configuration is being parsed"):
        tch.data_layer("x", 2)


def test_a_configuration_file_imports_the_vocabulary_by_its_old_name(tmp_path):
    file = tmp_path / "trainer_config.py"
    file.write_text(
        "from paddle.trainer_config_helpers import *\n"
        "settings(batch_size=get_config_arg('rows', int, 8), learning_method=AdamOptimizer())\n"
        "define_py_data_sources2('train.list', None, module='provider', obj='process')\n"
        "x = data_layer('x', 4)\n"
        "outputs(mse_cost(layer_math.exp(fc_layer(x, 1)) * 2 + 1, data_layer('y', 1)))\n"
    )
    config = parse_config(str(file), "rows=2")
    assert (config.opt_config.batch_size, config.opt_config.learning_method) == (2, "adam")
    assert [layer.type for layer in config.model_config.layers] == [
        "data", "fc", "mixed", "slope_intercept", "slope_intercept", "data", "square_error",
    ]  # fmt: skip


def test_every_name_that_a_star_brings_is_there():
    assert sorted(tch.__all__) == sorted(set(tch.__all__))
    assert all(hasattr(tch, name) for name in tch.__all__)
