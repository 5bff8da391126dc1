"""What the language works out of a configuration is what the lowered network gives."""

from __future__ import annotations

import keras
import numpy as np

from keraunos.compat.paddle import config_parser
from keraunos.compat.paddle.config_parser import *  # noqa: F403  # as configurations are written
from keraunos.compat.paddle.lowering.data_kinds import DataKind
from keraunos.compat.paddle.lowering.keras_layers import SummedCost
from keraunos.compat.paddle.lowering.network import lower

# ruff: noqa: F405

_IDS = frozenset({"maxid", "sampling_id", "eos_id"})


def images():
    Settings(batch_size=4, learning_rate=0.01)
    Layer(name="image", type="data", size=2 * 8 * 8)
    Layer(name="label", type="data", size=1)
    conv = Conv(filter_size=3, channels=2, padding=1, stride=2, groups=2, caffe_mode=False)
    Layer(name="conv", type="exconv", active_type="relu", num_filters=4, shared_biases=True,
          inputs=Input("image", conv=conv))  # fmt: skip
    Layer(name="bn", type="batch_norm", active_type="relu", inputs=Input("conv", image=Image(channels=4)))
    Layer(name="norm", type="norm",
          inputs=Input("bn", norm=Norm("cmrnorm-projection", channels=4, size=3, scale=0.1, pow=0.75)))  # fmt: skip
    Layer(name="across", type="norm",
          inputs=Input("bn", norm=Norm("cross-channel-norm", channels=4, size=1, scale=1.0, pow=1.0)))  # fmt: skip
    Layer(name="sum", type="addto", inputs=["norm", "across"])
    Layer(name="pool", type="pool",
          inputs=Input("sum", pool=Pool("max-projection", channels=4, size_x=2, start=0, stride=1)))  # fmt: skip
    Layer(name="up", type="exconvt", num_filters=2,
          inputs=Input("pool", conv=Conv(filter_size=2, channels=4, padding=0, stride=2, groups=1)))  # fmt: skip
    Layer(name="wide", type="bilinear_interp",
          inputs=Input("up", bilinear_interp=BilinearInterp(out_size_x=6, out_size_y=6, channels=2)))  # fmt: skip
    Layer(name="turned", type="rotate", height=6, width=6, inputs="wide")
    Layer(name="padded", type="pad",
          inputs=Input("turned", pad=Pad(channels=2, pad_c=[1, 1], pad_h=[0, 1], pad_w=[1, 0])))  # fmt: skip
    Layer(name="best", type="maxout", inputs=Input("padded", maxout=MaxOut(channels=4, groups=2)))
    Layer(name="pyramid", type="spp",
          inputs=Input("best", spp=SpatialPyramidPool("avg-projection", pyramid_height=2, channels=2)))  # fmt: skip
    Layer(name="out", type="fc", size=3, active_type="softmax", inputs=["pyramid", "pool"])
    Layer(name="cost", type="multi-class-cross-entropy", inputs=["out", "label"])
    Evaluator(name="error", type="classification_error", inputs=["out", "label"])
    Inputs("image", "label")
    Outputs("cost")


def vectors():
    Settings(batch_size=4, learning_rate=0.01)
    for name, size in (("a", 6), ("b", 6), ("word", 10), ("target", 3)):
        Layer(name=name, type="data", size=size)
    Layer(name="mixed", type="mixed", size=6, active_type="tanh", inputs=[
        FullMatrixProjection("a"), TransposedFullMatrixProjection("b"), IdentityProjection("a"), DotMulProjection("b"),
        ScalingProjection("a"), TableProjection("word"), DotMulOperator(["a", "b"], scale=0.5)])  # fmt: skip
    Layer(name="beside", type="concat2", inputs=[IdentityOffsetProjection("mixed", offset=2, size=3),
                                                 FullMatrixProjection("a", size=2)])  # fmt: skip
    Layer(name="slope", type="prelu", partial_sum=2, inputs="mixed")
    Layer(name="one", type="fc", size=1, active_type="sigmoid", inputs="mixed")
    Layer(name="scaled", type="scaling", inputs=["one", "slope"])
    Layer(name="power", type="power", inputs=["one", "scaled"])
    Layer(name="between", type="interpolation", inputs=["one", "a", "slope"])
    Layer(name="outer", type="out_prod", inputs=["between", "beside"])
    Layer(name="cosine", type="cos", inputs=["a", "mixed"])
    Layer(name="cosines", type="cos_vm", size=5, inputs=["a", "outer"])
    Layer(name="combined", type="convex_comb", size=6, inputs=["cosines", "outer"])
    Layer(name="shifted", type="conv_shift", inputs=["combined", "cosines"])
    Layer(name="bilinear", type="tensor", size=4, inputs=["a", "shifted"])
    Layer(name="all", type="concat", inputs=["bilinear", "cosine", "beside"])
    Layer(name="picked", type="maxid", inputs="all")
    Layer(name="drawn", type="sampling_id", inputs="all")
    Layer(name="ended", type="eos_id", eos_id=1, inputs="picked")
    Layer(name="out", type="fc", size=3, inputs="all", drop_rate=0.2)
    Layer(name="squares", type="square_error", inputs=["out", "target"], coeff=0.5)
    Layer(name="smooth", type="smooth_l1", inputs=["out", "target"])
    Inputs("a", "b", "word", "target")
    Outputs("squares", "smooth")


def test_layers_of_images_have_the_sizes_that_were_worked_out_and_train():
    random = np.random.default_rng(0)
    rows = {"image": random.normal(size=(4, 128)).astype(np.float32), "label": np.array([0, 1, 2, 1], np.int32)}
    costs = _trained(images, rows)
    assert costs[-1] < costs[0]


def test_layers_of_vectors_have_the_sizes_that_were_worked_out_and_train():
    random = np.random.default_rng(0)
    rows = {
        name: random.normal(size=(4, size)).astype(np.float32) for name, size in (("a", 6), ("b", 6), ("target", 3))
    }
    rows["word"] = np.array([1, 9, 0, 3], np.int32)
    costs = _trained(vectors, rows)
    assert costs[-1] < costs[0]


def _trained(configuration, rows):
    """The costs of some steps of training with a configuration, whose layers have been compared with what it says."""
    config = config_parser.parse_config(configuration, "").model_config
    kinds = {"target": DataKind("dense_vector")} if "target" in rows else None
    network = lower(config, kinds)
    for layer in config.layers:
        shape = network.flows[layer.name].tensor.shape
        if layer.type not in _IDS and layer.name in network.flows and len(shape) > 1:
            assert shape[-1] == layer.size, layer.name
    model = network.trainer()
    counted = sum(each.size for each in config.parameters)
    assert sum(int(np.prod(each.shape)) for each in model.weights if "seed" not in each.path) == counted
    model.compile(keras.optimizers.SGD(0.005), SummedCost())
    return model.fit(rows, np.zeros(4), batch_size=4, epochs=8, verbose=0).history["loss"]
