"""Each layer function against the same layer written in the raw language."""

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers import refused
from keraunos.errors import ModelError
from tests.compat.paddle.trainer_config_helpers.comparison import anonymous, model_of

ZEROS = {"initial_mean": 0.0, "initial_std": 0.0}
BIAS = raw.Bias(**ZEROS)
SMART = {"initial_smart": True}
DATA = {"x": 12, "y": 12, "one": 1, "three": 3, "wide": 36, "ids": 7, "image": 2 * 8 * 8, "gates": 20, "label": 4}


def smart(name, **more):
    return raw.Input(name, initial_smart=True, **more)


def conv_start(filter_size, channels):
    return {"initial_std": (2 / (filter_size**2 * channels)) ** 0.5}


def conv(filter_size, channels, stride=1, padding=0, groups=1, **more):
    return raw.Conv(filter_size=filter_size, channels=channels, stride=stride, padding=padding, groups=groups, **more)


# The function's call, given the data layers; then the raw type, its inputs and what else it is told.
CASES = {
    "fc": (
        lambda d: tch.fc_layer(d["x"], 5),
        ("fc", [smart("x")], {"size": 5, "bias": BIAS, "active_type": "tanh"}),
    ),
    "fc of two": (
        lambda d: tch.fc_layer(
            [d["x"], d["y"]],
            5,
            act=tch.SigmoidActivation(),
            param_attr=[tch.ParamAttr(name="shared", l2_rate=0.1), tch.ParamAttr(initial_max=1, initial_min=0)],
            bias_attr=False,
            layer_attr=tch.ExtraAttr(drop_rate=0.25, error_clipping_threshold=2),
        ),
        (
            "fc",
            [
                smart("x", parameter_name="shared", decay_rate=0.1),
                raw.Input("y", initial_mean=0.5, initial_std=0.5, initial_strategy=1),
            ],
            {"size": 5, "bias": False, "active_type": "sigmoid", "drop_rate": 0.25, "error_clipping_threshold": 2},
        ),
    ),
    "selective_fc": (
        lambda d: tch.selective_fc_layer(d["x"], 4, select=d["label"]),
        (
            "selective_fc",
            [smart("x"), "label"],
            {"size": 4, "bias": BIAS, "active_type": "tanh", "has_selected_colums": True},
        ),
    ),
    "tensor": (
        lambda d: tch.tensor_layer(d["x"], d["three"], 2),
        ("tensor", [smart("x"), "three"], {"size": 2, "bias": BIAS}),
    ),
    "addto": (
        lambda d: tch.addto_layer([d["x"], d["y"]], act=tch.ReluActivation()),
        ("addto", ["x", "y"], {"bias": False, "active_type": "relu"}),
    ),
    "addto with a bias": (
        lambda d: tch.addto_layer([d["x"], d["y"]], bias_attr=True),
        ("addto", ["x", "y"], {"bias": BIAS}),
    ),
    "concat": (lambda d: tch.concat_layer([d["x"], d["one"]]), ("concat", ["x", "one"], {})),
    "concat of projections": (
        lambda d: tch.concat_layer([tch.full_matrix_projection(d["x"], 3), tch.identity_projection(d["y"])]),
        ("concat2", [raw.FullMatrixProjection("x", size=3, **SMART), raw.IdentityProjection("y")], {"bias": False}),
    ),
    "prelu": (
        lambda d: tch.prelu_layer(d["x"], partial_sum=4),
        ("prelu", [raw.Input("x", initial_mean=0.25, initial_std=0.0)], {"partial_sum": 4}),
    ),
    "embedding": (
        lambda d: tch.embedding_layer(d["ids"], 3, param_attr=tch.ParamAttr(sparse_update=True)),
        (
            "mixed",
            [raw.TableProjection("ids", size=3, sparse_update=True, sparse_remote_update=True, **SMART)],
            {"size": 3, "bias": False},
        ),
    ),
    "conv": (
        lambda d: tch.img_conv_layer(d["image"], 3, 4, num_channels=2, stride=2, padding=1, groups=2),
        (
            "conv",
            [raw.Input("image", conv=conv(3, 2, 2, 1, 2), **conv_start(3, 2))],
            {"num_filters": 4, "bias": BIAS, "shared_biases": True, "active_type": "relu"},
        ),
    ),
    "conv not square": (
        lambda d: tch.img_conv_layer(
            d["image"], (3, 2), 4, num_channels=2, stride_y=2, padding=(0, 1), shared_biases=False
        ),
        (
            "conv",
            [raw.Input("image", conv=conv(3, 2, filter_size_y=2, stride_y=2, padding_y=1), **conv_start(3, 2))],
            {"num_filters": 4, "bias": BIAS, "shared_biases": False, "active_type": "relu"},
        ),
    ),
    "transposed conv": (
        lambda d: tch.img_conv_layer(
            d["image"], 3, 4, num_channels=2, stride=2, trans=True, param_attr=tch.ParamAttr(initial_std=0.5)
        ),
        (
            "convt",
            [raw.Input("image", conv=conv(3, 2, 2), initial_std=0.5)],
            {"num_filters": 4, "bias": BIAS, "shared_biases": True, "active_type": "relu"},
        ),
    ),
    "pool": (
        lambda d: tch.img_pool_layer(d["image"], 3, num_channels=2, stride=2, padding=1),
        (
            "pool",
            [raw.Input("image", pool=raw.Pool(pool_type="max-projection", channels=2, size_x=3, stride=2, padding=1))],
            {},
        ),
    ),
    "average pool": (
        lambda d: tch.img_pool_layer(
            d["image"], 3, num_channels=2, stride=2, pool_type=tch.AvgPooling(), ceil_mode=False
        ),
        (
            "pool",
            [raw.Input("image", pool=raw.Pool(pool_type="avg-projection", channels=2, size_x=3, stride=2))],
            {"ceil_mode": False},
        ),
    ),
    "cuDNN's pool": (
        lambda d: tch.img_pool_layer(d["image"], 2, num_channels=2, stride=2, pool_type=tch.CudnnMaxPooling()),
        ("pool", [raw.Input("image", pool=raw.Pool(pool_type="cudnn-max-pool", channels=2, size_x=2, stride=2))], {}),
    ),
    "cmrnorm": (
        lambda d: tch.img_cmrnorm_layer(d["image"], 5, num_channels=2),
        (
            "norm",
            [
                raw.Input(
                    "image", norm=raw.Norm(norm_type="cmrnorm-projection", channels=2, size=5, scale=0.0128, pow=0.75)
                )
            ],
            {},
        ),
    ),
    "batch_norm": (
        lambda d: tch.batch_norm_layer(d["image"], num_channels=2, layer_attr=tch.ExtraAttr(drop_rate=0.5)),
        (
            "batch_norm",
            [raw.Input("image", image=raw.Image(channels=2), initial_mean=1.0, initial_std=0.0)],
            {"bias": BIAS, "active_type": "relu", "drop_rate": 0.5},
        ),
    ),
    "batch_norm of columns": (
        lambda d: tch.batch_norm_layer(d["x"], act=tch.LinearActivation(), use_global_stats=False),
        (
            "batch_norm",
            [raw.Input("x", image=raw.Image(channels=12), initial_mean=1.0, initial_std=0.0)],
            {"bias": BIAS, "active_type": "", "use_global_stats": False},
        ),
    ),
    "spp": (
        lambda d: tch.spp_layer(d["image"], num_channels=2, pool_type=tch.AvgPooling(), pyramid_height=2),
        (
            "spp",
            [raw.Input("image", spp=raw.SpatialPyramidPool(pool_type="avg-projection", pyramid_height=2, channels=2))],
            {},
        ),
    ),
    "maxout": (
        lambda d: tch.maxout_layer(d["image"], 2, num_channels=2),
        ("maxout", [raw.Input("image", maxout=raw.MaxOut(channels=2, groups=2))], {}),
    ),
    "block_expand": (
        lambda d: tch.block_expand_layer(d["image"], 2, 4, 2, 4, num_channels=2),
        (
            "blockexpand",
            [
                raw.Input(
                    "image", block_expand=raw.BlockExpand(channels=2, block_x=2, block_y=4, stride_x=2, stride_y=4)
                )
            ],
            {},
        ),
    ),
    "rotate": (lambda d: tch.rotate_layer(d["image"], 8, 8), ("rotate", ["image"], {"height": 8, "width": 8})),
    "lstmemory": (
        lambda d: tch.lstmemory(d["gates"], reverse=True),
        (
            "lstmemory",
            [smart("gates")],
            {"bias": BIAS, "active_type": "tanh", "active_state_type": "tanh", "reversed": True},
        ),
    ),
    "grumemory": (
        lambda d: tch.grumemory(d["x"], 4, gate_act=tch.TanhActivation()),
        ("gated_recurrent", [smart("x")], {"bias": BIAS, "active_type": "tanh", "active_gate_type": "tanh"}),
    ),
    "recurrent": (
        lambda d: tch.recurrent_layer(d["x"], bias_attr=tch.ParamAttr(learning_rate=2)),
        ("recurrent", [smart("x")], {"bias": raw.Bias(learning_rate=2, **SMART), "active_type": "tanh"}),
    ),
    "max over a sequence": (lambda d: tch.pooling_layer(d["x"]), ("max", ["x"], {})),
    "indices of the largest": (
        lambda d: tch.pooling_layer(d["x"], tch.MaxPooling(output_max_index=True)),
        ("max", ["x"], {"output_max_index": True}),
    ),
    "sum over a sequence": (
        lambda d: tch.pooling_layer(d["x"], tch.SumPooling(), agg_level=tch.AggregateLevel.TO_SEQUENCE),
        ("average", ["x"], {"average_strategy": "sum", "trans_type": "seq"}),
    ),
    "square root of n": (
        lambda d: tch.pooling_layer(d["x"], tch.SquareRootNPooling(), bias_attr=True, stride=3),
        ("average", ["x"], {"average_strategy": "squarerootn", "bias": BIAS, "stride": 3}),
    ),
    "last_seq": (lambda d: tch.last_seq(d["x"], stride=5), ("seqlastins", ["x"], {"stride": 5})),
    "first_seq": (lambda d: tch.first_seq(d["x"]), ("seqfirstins", ["x"], {})),
    "expand": (lambda d: tch.expand_layer(d["x"], d["ids"]), ("expand", ["x", "ids"], {})),
    "repeat": (
        lambda d: tch.repeat_layer(d["x"], 3, as_row_vector=False),
        ("featmap_expand", ["x"], {"num_filters": 3, "as_row_vector": False}),
    ),
    "seq_concat": (
        lambda d: tch.seq_concat_layer(d["x"], d["y"]),
        ("seqconcat", ["x", "y"], {"active_type": ""}),
    ),
    "seq_reshape": (
        lambda d: tch.seq_reshape_layer(d["x"], 6),
        ("seqreshape", ["x"], {"size": 6, "active_type": ""}),
    ),
    "interpolation": (
        lambda d: tch.interpolation_layer([d["x"], d["y"]], d["one"]),
        ("interpolation", ["one", "x", "y"], {}),
    ),
    "power": (lambda d: tch.power_layer(d["x"], d["one"]), ("power", ["one", "x"], {})),
    "scaling": (lambda d: tch.scaling_layer(d["x"], d["one"]), ("scaling", ["one", "x"], {})),
    "slope_intercept": (
        lambda d: tch.slope_intercept_layer(d["x"], slope=2.0, intercept=-1.0),
        ("slope_intercept", ["x"], {"slope": 2.0, "intercept": -1.0}),
    ),
    "trans": (lambda d: tch.trans_layer(d["x"]), ("trans", ["x"], {})),
    "resize": (lambda d: tch.resize_layer(d["x"], 4), ("resize", ["x"], {"size": 4})),
    "cosine": (lambda d: tch.cos_sim(d["x"], d["y"]), ("cos", ["x", "y"], {"cos_scale": 1})),
    "cosine of rows": (
        lambda d: tch.cos_sim(d["x"], d["wide"], scale=5, size=3),
        ("cos_vm", ["x", "wide"], {"size": 3, "cos_scale": 5}),
    ),
    "conv_shift": (lambda d: tch.conv_shift_layer(d["x"], d["three"]), ("conv_shift", ["x", "three"], {})),
    "linear_comb": (lambda d: tch.linear_comb_layer(d["three"], d["x"]), ("convex_comb", ["three", "x"], {"size": 4})),
    "out_prod": (lambda d: tch.out_prod_layer(d["x"], d["three"]), ("out_prod", ["x", "three"], {})),
    "sum_to_one_norm": (lambda d: tch.sum_to_one_norm_layer(d["x"]), ("sum_to_one_norm", ["x"], {})),
    "multiplex": (lambda d: tch.multiplex_layer([d["ids"], d["x"], d["y"]]), ("multiplex", ["ids", "x", "y"], {})),
    "maxid": (lambda d: tch.maxid_layer(d["x"]), ("maxid", ["x"], {})),
    "sampling_id": (lambda d: tch.sampling_id_layer(d["x"]), ("sampling_id", ["x"], {})),
    "eos": (lambda d: tch.eos_layer(d["ids"], 2), ("eos_id", ["ids"], {"eos_id": 2})),
    "dropout": (
        lambda d: tch.dropout_layer(d["x"], 0.3),
        ("addto", ["x"], {"bias": False, "drop_rate": 0.3}),
    ),
    "mse": (lambda d: tch.mse_cost(d["x"], d["y"], d["one"]), ("square_error", ["x", "y", "one"], {})),
    "cross_entropy": (
        lambda d: tch.cross_entropy(d["x"], d["label"], coeff=0.5),
        ("multi-class-cross-entropy", ["x", "label"], {"coeff": 0.5}),
    ),
    "selfnorm": (
        lambda d: tch.cross_entropy_with_selfnorm(d["x"], d["label"], softmax_selfnorm_alpha=0.2),
        ("multi_class_cross_entropy_with_selfnorm", ["x", "label"], {"softmax_selfnorm_alpha": 0.2}),
    ),
    "multi_binary": (
        lambda d: tch.multi_binary_label_cross_entropy(d["x"], d["y"]),
        ("multi_binary_label_cross_entropy", ["x", "y"], {}),
    ),
    "soft_binary": (
        lambda d: tch.soft_binary_class_cross_entropy(d["x"], d["y"]),
        ("soft_binary_class_cross_entropy", ["x", "y"], {}),
    ),
    "huber": (lambda d: tch.huber_cost(d["one"], d["label"]), ("huber", ["one", "label"], {})),
    "smooth_l1": (lambda d: tch.smooth_l1_cost(d["x"], d["y"]), ("smooth_l1", ["x", "y"], {})),
    "sum_cost": (lambda d: tch.sum_cost(d["x"]), ("sum_cost", ["x"], {})),
    "rank": (
        lambda d: tch.rank_cost(d["one"], d["one"], d["one"], coeff=2.0),
        ("rank-cost", ["one", "one", "one"], {"coeff": 2.0}),
    ),
    "lambda": (
        lambda d: tch.lambda_cost(d["one"], d["one"], NDCG_num=3),
        ("lambda_cost", ["one", "one"], {"NDCG_num": 3}),
    ),
    "crf": (
        lambda d: tch.crf_layer(d["label"], d["label"], param_attr=tch.ParamAttr(name="chain")),
        ("crf", [smart("label", parameter_name="chain"), "label"], {"size": 4}),
    ),
    "crf_decoding": (
        lambda d: tch.crf_decoding_layer(d["label"], 4),
        ("crf_decoding", [smart("label")], {"size": 4}),
    ),
    "ctc": (
        lambda d: tch.ctc_layer(d["label"], d["three"], norm_by_times=True),
        ("ctc", ["label", "three"], {"size": 4, "norm_by_times": True}),
    ),
    "warp_ctc": (
        lambda d: tch.warp_ctc_layer(d["label"], d["three"], blank=3),
        ("warp_ctc", ["label", "three"], {"size": 4, "blank": 3}),
    ),
    "nce": (
        lambda d: tch.nce_layer(d["x"], d["label"], neg_distribution=[0.1, 0.2, 0.3, 0.4], num_neg_samples=2),
        (
            "nce",
            [smart("x"), "label"],
            {
                "num_classes": 4,
                "num_neg_samples": 2,
                "neg_sampling_dist": [0.1, 0.2, 0.3, 0.4],
                "bias": BIAS,
                "active_type": "sigmoid",
            },
        ),
    ),
    "hsigmoid": (
        lambda d: tch.hsigmoid([d["x"], d["y"]], d["label"]),
        ("hsigmoid", [smart("x"), smart("y"), "label"], {"num_classes": 4, "bias": BIAS}),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_raw_layer(case):
    call, (kind, inputs, more) = CASES[case]
    made = {}

    def helped():
        made["layer"] = call({name: tch.data_layer(name, size) for name, size in DATA.items()})

    def written():
        for name, size in DATA.items():
            raw.Layer(name=name, type="data", size=size)
        raw.Layer(name="out", type=kind, inputs=inputs, **more)

    ours, theirs = model_of(helped), model_of(written)
    assert anonymous(ours) == anonymous(theirs)
    assert made["layer"].name == ours.layers[-1].name
    if case not in ("crf", "crf_decoding"):
        assert made["layer"].size == ours.layers[-1].size


def test_every_type_that_the_vocabulary_makes_is_lowered():
    from keraunos.compat.paddle.lowering.call import known_types

    def everything():
        layers = {name: tch.data_layer(name, size) for name, size in DATA.items()}
        for call, _ in CASES.values():
            call(layers)

    made = {layer.type for layer in model_of(everything).layers} - {"data"}
    assert made <= set(known_types())
    assert len(made) > 50


def test_layers_know_the_channels_of_what_they_give():
    known = []

    def images():
        image = tch.data_layer("image", 2 * 6 * 4, height=6, width=4)
        net = tch.img_conv_layer(image, 3, 8, padding=1, act=tch.LinearActivation())
        for change in (
            tch.img_cmrnorm_layer(net, 5),
            tch.batch_norm_layer(net),
            tch.maxout_layer(net, 4),
            tch.pad_layer(net, pad_c=[1, 2], pad_h=[0, 1]),
            tch.bilinear_interp_layer(net, 8, 12),
            tch.cross_channel_norm_layer(net),
            tch.dropout_layer(net, 0.1),
            tch.addto_layer([net, net]),
            tch.concat_layer([net, net]),
            tch.img_pool_layer(net, 2, stride=2),
        ):
            known.append((change.num_filters, change.size))
            tch.img_conv_layer(change, 1, 1)

    model_of(images)
    assert known == [
        (8, 192), (8, 192), (2, 48), (11, 11 * 7 * 4), (8, 8 * 8 * 12), (8, 192), (8, 192), (8, 192),
        (16, 384), (8, 48),
    ]  # fmt: skip


def test_a_sequence_gives_its_other_outputs():
    def states():
        memory = tch.lstmemory(tch.data_layer("gates", 8))
        tch.get_output_layer(memory, "state", name="state")

    state = model_of(states).layer("state")
    assert (state.type, state.size, state.inputs[0].argument) == ("get_output", 2, "state")


def test_printing_a_layer_changes_no_network(caplog):
    def printed():
        tch.print_layer([tch.data_layer("x", 3)])

    with caplog.at_level("INFO"):
        assert [layer.name for layer in model_of(printed).layers] == ["x"]
    assert "print_layer" in caplog.text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: tch.fc_layer("x", 3), "`input` of `fc_layer` must be a layer.*'x'.*instead of its name"),
        (lambda d: tch.fc_layer(d["x"], 3, act=tch.ReluActivation), "Did you mean ReluActivation\\(\\)"),
        (lambda d: tch.fc_layer(d["x"], 3, param_attr=[None, None]), "its 1 inputs"),
        (lambda d: tch.img_conv_layer(d["image"], 3, 4), "channels of its input 'image'.*num_channels=None"),
        (
            lambda d: tch.img_conv_layer(d["image"], 3, 4, num_channels=2, layer_type="exconvt"),
            "'exconv', 'cudnn_conv'",
        ),
        (lambda d: tch.img_pool_layer(d["image"], 2, num_channels=2, pool_type=tch.SumPooling()), "pooling_layer"),
        (lambda d: tch.pooling_layer(d["x"], tch.CudnnAvgPooling()), "img_pool_layer"),
        (lambda d: tch.pooling_layer(d["x"], layer_attr=tch.ExtraAttr(drop_rate=0.5)), "dropout_layer"),
        (lambda d: tch.lstmemory(d["three"]), "a multiple of 4 wide.*simple_lstm"),
        (lambda d: tch.grumemory(d["x"], 5), "3 \\* size = 15 wide.*simple_gru2"),
        (lambda d: tch.concat_layer([d["x"], tch.identity_projection(d["y"])]), "not both"),
        (lambda d: tch.concat_layer([d["x"], d["y"]], bias_attr=True), "has no bias"),
        (lambda d: tch.selective_fc_layer(d["x"], 4), "has_selected_colums=False, or use fc_layer"),
        (lambda d: tch.selective_fc_layer(d["x"], 4, d["label"], pass_generation=True), "`pass_generation`"),
        (lambda d: tch.classification_cost(d["x"], d["label"]), "must end with a softmax"),
        (lambda d: tch.crf_layer(d["x"], d["label"]), "how many classes"),
        (lambda d: tch.ctc_layer(d["label"], d["three"], size=9), "one more than the classes of `label`: 4"),
        (lambda d: tch.fc_layer(d["x"], 3, bias_attr=tch.ParamAttr(sparse_update=True)), "cannot be updated sparsely"),
        (lambda d: tch.fc_layer(d["x"], 3, bias_attr="no"), "Received: 'no'"),
        (lambda d: tch.fc_layer(d["x"], 3, name="y"), "names of layers must be unique"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    def wrong():
        call({name: tch.data_layer(name, size) for name, size in DATA.items()})

    with pytest.raises(ModelError, match=words):
        model_of(wrong)


@pytest.mark.parametrize("name", refused.__all__)
def test_words_of_groups_and_generation_are_refused_by_name(name):
    with pytest.raises(ModelError, match=f"`{name}` is not supported"):
        getattr(tch, name)()


def test_refusing_a_group_names_what_there_is_instead():
    with pytest.raises(ModelError, match="lstmemory, grumemory or recurrent_layer, or simple_lstm"):
        tch.recurrent_group(step=None, input=None)
