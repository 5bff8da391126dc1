"""Mixed layers: every projection and operator, by `+=` and by `input`, against the raw language."""

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.compat.paddle import config_parser as raw
from keraunos.errors import ModelError
from tests.compat.paddle.trainer_config_helpers.comparison import anonymous, model_of

SMART = {"initial_smart": True}
DATA = {"x": 6, "y": 6, "wide": 20, "ids": 7, "image": 2 * 6 * 6, "filters": 3 * 2 * 9, "small": 2 * 3 * 3}
CONV = {"filter_size": 3, "channels": 2, "stride": 1, "padding": 0, "groups": 1}
SPREAD = {"initial_std": (2 / 18) ** 0.5}

# A projection or an operator, given the data layers; then the raw one, and the size that the layer must say.
TERMS = {
    "full_matrix": (lambda d: tch.full_matrix_projection(d["x"]), lambda: raw.FullMatrixProjection("x", **SMART), 4),
    "full_matrix of its own size": (
        lambda d: tch.full_matrix_projection(d["x"], 4, tch.ParamAttr(initial_std=0.1)),
        lambda: raw.FullMatrixProjection("x", size=4, initial_std=0.1),
        0,
    ),
    "trans_full_matrix": (
        lambda d: tch.trans_full_matrix_projection(d["x"]),
        lambda: raw.TransposedFullMatrixProjection("x", **SMART),
        4,
    ),
    "table": (lambda d: tch.table_projection(d["ids"]), lambda: raw.TableProjection("ids", **SMART), 4),
    "identity": (lambda d: tch.identity_projection(d["x"]), lambda: raw.IdentityProjection("x"), 0),
    "identity from an offset": (
        lambda d: tch.identity_projection(d["x"], 2),
        lambda: raw.IdentityOffsetProjection("x", offset=2),
        4,
    ),
    "dotmul": (lambda d: tch.dotmul_projection(d["x"]), lambda: raw.DotMulProjection("x", **SMART), 0),
    "scaling": (lambda d: tch.scaling_projection(d["x"]), lambda: raw.ScalingProjection("x", **SMART), 0),
    "context of three": (
        lambda d: tch.context_projection(d["x"], 3),
        lambda: raw.ContextProjection("x", context_start=-1, context_length=3, trainable_padding=False),
        0,
    ),
    "context of four, with learned ends": (
        lambda d: tch.context_projection(d["x"], 4, padding_attr=True),
        lambda: raw.ContextProjection(
            "x", context_start=-2, context_length=4, trainable_padding=True, initial_mean=0.0, initial_std=0.0
        ),
        0,
    ),
    "conv": (
        lambda d: tch.conv_projection(d["image"], 3, 5, num_channels=2),
        lambda: raw.ConvProjection("image", num_filters=5, conv_conf=raw.Conv(**CONV), **SPREAD),
        0,
    ),
    "transposed conv": (
        lambda d: tch.conv_projection(d["image"], 3, 5, num_channels=2, trans=True),
        lambda: raw.ConvTransProjection("image", num_filters=5, conv_conf=raw.Conv(**CONV), **SPREAD),
        0,
    ),
    "dotmul operator": (
        lambda d: tch.dotmul_operator(d["x"], d["y"], scale=0.5),
        lambda: raw.DotMulOperator(["x", "y"], scale=0.5),
        0,
    ),
    "dotmul operator by older names": (
        lambda d: tch.dotmul_operator(x=d["x"], y=d["y"]),
        lambda: raw.DotMulOperator(["x", "y"]),
        0,
    ),
    "conv operator": (
        lambda d: tch.conv_operator(d["image"], d["filters"], 3, 3, num_channels=2),
        lambda: raw.ConvOperator(["image", "filters"], num_filters=3, conv_conf=raw.Conv(**CONV)),
        0,
    ),
    "transposed conv operator": (
        lambda d: tch.conv_operator(d["small"], d["filters"], 3, 3, num_channels=2, trans=True),
        lambda: raw.ConvTransOperator(["small", "filters"], num_filters=3, conv_conf=raw.Conv(**CONV)),
        0,
    ),
}


def data_layers():
    return {name: tch.data_layer(name, size) for name, size in DATA.items()}


def raw_data():
    for name, size in DATA.items():
        raw.Layer(name=name, type="data", size=size)


@pytest.mark.parametrize("term", TERMS)
def test_each_term_is_the_raw_one(term):
    call, written, size = TERMS[term]

    def by_input():
        tch.mixed_layer(size, call(data_layers()))

    def by_adding():
        layers = data_layers()
        with tch.mixed_layer(size) as mixed:
            mixed += call(layers)  # noqa: PLW2901  (how the language adds terms)

    def by_hand():
        raw_data()
        raw.Layer(name="out", type="mixed", size=size, inputs=[written()], bias=False)

    assert anonymous(model_of(by_input)) == anonymous(model_of(by_adding)) == anonymous(model_of(by_hand))


def test_terms_of_all_kinds_add_up():
    made = {}

    def by_adding():
        layers = data_layers()
        extra = tch.ExtraAttr(drop_rate=0.1)
        mixed = made["layer"] = tch.mixed_layer(act=tch.SigmoidActivation(), bias_attr=True, layer_attr=extra)
        with mixed:
            mixed += tch.identity_projection(layers["x"])
            mixed += tch.dotmul_operator(layers["x"], layers["y"])
            mixed += tch.full_matrix_projection(layers["wide"])

    def by_hand():
        raw_data()
        raw.Layer(
            name="out",
            type="mixed",
            inputs=[
                raw.IdentityProjection("x"),
                raw.DotMulOperator(["x", "y"]),
                raw.FullMatrixProjection("wide", **SMART),
            ],
            bias=raw.Bias(initial_mean=0.0, initial_std=0.0),
            active_type="sigmoid",
            drop_rate=0.1,
        )

    assert anonymous(model_of(by_adding)) == anonymous(model_of(by_hand))
    assert made["layer"].size == 6
    assert [layer.name for layer in made["layer"].parents] == ["x", "x", "y", "wide"]


def test_weights_are_shared_by_their_name():
    def tied():
        layers = data_layers()
        inner = tch.mixed_layer(4, tch.full_matrix_projection(layers["x"], param_attr=tch.ParamAttr(name="w")))
        tch.mixed_layer(6, tch.trans_full_matrix_projection(inner, param_attr=tch.ParamAttr(name="w")))

    assert [(each.name, each.dims) for each in model_of(tied).parameters] == [("w", (6, 4))]


def test_nothing_is_added_after_the_block():
    def late():
        layers = data_layers()
        mixed = tch.mixed_layer(6, tch.identity_projection(layers["x"]))
        mixed += tch.identity_projection(layers["y"])

    with pytest.raises(tch.MixedLayerType.AddToSealedMixedLayerException, match="inside the `with` block"):
        model_of(late)


def test_an_error_inside_the_block_is_the_one_that_is_raised():
    def broken():
        with tch.mixed_layer(6):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model_of(broken)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (lambda d: d["x"], "adds up projections and operators.*identity_projection"),
        (lambda d: tch.dotmul_operator(d["x"], d["wide"]), "must have the same size"),
        (lambda d: tch.conv_operator(d["image"], d["x"], 3, 3, num_channels=2), "a row's filters, 54 numbers"),
        (lambda d: tch.conv_projection(d["image"], (3, 3, 3), 5, num_channels=2), "A pair of lengths"),
        (lambda d: tch.full_matrix_projection("x"), "`input` of `full_matrix_projection`"),
    ],
)
def test_what_is_no_term_is_refused(term, words):
    def wrong():
        tch.mixed_layer(6, term(data_layers()))

    with pytest.raises(ModelError, match=words):
        model_of(wrong)


def test_a_block_that_adds_nothing_is_refused():
    def empty():
        with tch.mixed_layer(6, name="sum"):
            pass

    with pytest.raises(ModelError, match="Mixed layer 'sum' adds up nothing"):
        model_of(empty)
