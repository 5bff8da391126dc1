"""The optimizers of TensorFlow 1.x, BigDL and Paddle on a server give the bits that they gave when this was recorded.

What they compute is compared with the systems' own elsewhere, within a tolerance. Here a change of the code's shape is
told from a change of its results. All cases are of additions, multiplications, divisions and square roots, which every
processor rounds alike; powers and dot products of vectors are not.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from keraunos.compat.paddle.model_config import OptimizationConfig, ParameterConfig
from keraunos.compat.paddle.updates.plan import plan_of
from keraunos.compat.sparkflow.optimizers import rule_of
from keraunos.compat.zoo.bigdl.optim import optimizer as bigdl
from keraunos.compat.zoo.pipeline.api.keras import optimizers as zoo
from keraunos.exchange.rules.elementwise import BLOCK
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

RECORDED = Path(__file__).with_name("optimizer_bits.json")
NAMES = ("fc/w0", "fc/wbias", "out/w0", "mean")
SHAPES = ((BLOCK // 4, 4), (90,), (30, 3), (3,))
TRAINABLE = sum(int(np.prod(shape)) for shape in SHAPES[:3])
STEPS = 12

L1, L2 = {"l1_regularization_strength": 0.05}, {"l2_regularization_strength": 0.1}
SHRINKAGE = {"l2_shrinkage_regularization_strength": 0.03}


def numbers(seed, size, dtype):
    """Numbers between -4 and 4 of which every bit is told by the seed, some of them zeros of either sign."""
    found = np.random.default_rng(seed).integers(-(1 << 20), 1 << 20, size) / (1 << 18)
    found[::7], found[1::14] = 0.0, -0.0
    return found.astype(dtype)


def tensorflow(name, **options):
    return ExchangePlan("gradients", 1, "asynchronous", rule_of(name, 0.05, options))


def of_bigdl(method, meet="synchronous", **clipping):
    return ExchangePlan("gradients", 1, meet, method.rule(**clipping))


def by_prefix():
    methods = {"fc": bigdl.SGD(0.1, momentum=0.5), "fc/wb": bigdl.Adam(0.1), "out": bigdl.Adagrad(0.1, 0.1, 0.01)}
    return ExchangePlan("gradients", 1, "synchronous", bigdl.combined_rule(methods, clip_norm=0.5))


def paddle(method, own=None, **settings):
    opt = OptimizationConfig(batch_size=8, algorithm="sgd", learning_method=method, learning_rate=0.1, **settings)
    apart = {"decay_rate_l1": 0.01, "decay_rate": 0.02, "learning_rate": 0.5}
    configured = [
        ParameterConfig(name="w0", size=BLOCK, **(own or {})),
        ParameterConfig(name="wbias", size=90, **apart),
    ]
    return plan_of(opt, configured, 2, samples_per_pass=30)


PADDLES = ("momentum", "torch_momentum", "sparse_momentum", "adagrad", "adadelta", "rmsprop", "decayed_adagrad")
OWN = {"momentum": 0.6, "decay_rate": 0.02, "gradient_clipping_threshold": 1.5}
SPARSE = {"sparse_update": True, "num_batches_regularization": 3, "decay_rate": 0.02}
GOES_ON = bigdl.SequentialSchedule(4).add(bigdl.Warmup(0.02), 3).add(bigdl.Step(2, 0.5), 10)

CASES = {
    "tf gradient_descent": tensorflow("gradient_descent"),
    "tf momentum": tensorflow("momentum"),
    "tf momentum of 0": tensorflow("momentum", momentum=0.0),
    "tf momentum, nesterov": tensorflow("momentum", momentum=0.6, use_nesterov=True),
    "tf adam": tensorflow("adam"),
    "tf adam, other moments": tensorflow("adam", beta1=0.7, beta2=0.9, epsilon=0.01),
    "tf rmsprop": tensorflow("rmsprop"),
    "tf rmsprop, momentum": tensorflow("rmsprop", decay=0.8, momentum=0.5, epsilon=1e-3),
    "tf rmsprop, centered": tensorflow("rmsprop", centered=True, momentum=0.3, epsilon=1e-2),
    "tf adadelta": tensorflow("adadelta"),
    "tf adadelta, long memory": tensorflow("adadelta", rho=0.5, epsilon=1e-3),
    "tf adagrad": tensorflow("adagrad"),
    "tf adagrad, large accumulator": tensorflow("adagrad", initial_accumulator_value=2.0),
    "tf adagrad_da": tensorflow("adagrad_da"),
    "tf adagrad_da, strengths": tensorflow("adagrad_da", **L1, **L2),
    "tf ftrl": tensorflow("ftrl"),
    "tf ftrl, l1": tensorflow("ftrl", **L1),
    "tf ftrl, strengths": tensorflow("ftrl", **L1, **L2, **SHRINKAGE, beta=0.4),
    "tf proximal_adagrad": tensorflow("proximal_adagrad"),
    "tf proximal_adagrad, strengths": tensorflow("proximal_adagrad", **L1, **L2),
    "tf proximal_gradient_descent": tensorflow("proximal_gradient_descent"),
    "tf proximal_gradient_descent, strengths": tensorflow("proximal_gradient_descent", **L1, **L2),
    "bigdl sgd": of_bigdl(bigdl.SGD(0.1, 0.2)),
    "bigdl sgd, decay": of_bigdl(bigdl.SGD(0.1, weightdecay=0.3)),
    "bigdl sgd, momentum": of_bigdl(bigdl.SGD(0.1, momentum=0.7)),
    "bigdl sgd, undamped": of_bigdl(bigdl.SGD(0.1, momentum=0.7, dampening=0.0, weightdecay=0.1)),
    "bigdl sgd, nesterov": of_bigdl(bigdl.SGD(0.1, momentum=0.7, dampening=0.0, nesterov=True), clip_norm=1.0),
    "bigdl sgd, own numbers": of_bigdl(
        bigdl.SGD(0.1, learningrates=np.arange(TRAINABLE) / 1e4, weightdecays=np.arange(TRAINABLE) / 1e5)
    ),
    "bigdl sgd, schedule": of_bigdl(bigdl.SGD(0.1, leaningrate_schedule=GOES_ON), clip_constant=(-0.5, 0.25)),
    "bigdl adagrad": of_bigdl(bigdl.Adagrad(0.05)),
    "bigdl adagrad, decays": of_bigdl(bigdl.Adagrad(0.05, 0.1, 0.2), "asynchronous"),
    "bigdl adadelta": of_bigdl(bigdl.Adadelta()),
    "bigdl adadelta, clipped": of_bigdl(bigdl.Adadelta(0.8, 1e-4), clip_norm=0.5, clip_constant=(-0.5, 0.25)),
    "bigdl adam": of_bigdl(bigdl.Adam(0.05, 0.1, 0.8, 0.9, 1e-6)),
    "bigdl adam, clipped": of_bigdl(bigdl.Adam(), "hogwild", clip_norm=0.5),
    "bigdl parallel adam": of_bigdl(bigdl.ParallelAdam(0.05, 0.1, 0.8, 0.9, 1e-6)),
    "bigdl adamax": of_bigdl(bigdl.Adamax()),
    "bigdl adamax, epsilon": of_bigdl(bigdl.Adamax(0.05, 0.8, 0.9, 1e-3), clip_constant=(-0.5, 0.25)),
    "bigdl rmsprop": of_bigdl(bigdl.RMSprop()),
    "bigdl rmsprop, decay": of_bigdl(bigdl.RMSprop(0.05, 0.1, 0.8, 1e-6), clip_norm=0.5),
    "bigdl ftrl": of_bigdl(bigdl.Ftrl(0.3)),
    "bigdl ftrl, from 0": of_bigdl(bigdl.Ftrl(0.3, -0.5, 0.0)),
    "bigdl ftrl, strengths": of_bigdl(bigdl.Ftrl(0.3, -0.5, 0.2, 0.05, 0.02, 0.03), clip_norm=0.5),
    "bigdl by prefix": by_prefix(),
    "zoo adam": of_bigdl(zoo.Adam(0.05, decay=0.1)),
    "zoo adam, decay": of_bigdl(zoo.Adam(0.05, schedule=GOES_ON, weight_decay=0.1), clip_norm=0.5),
    "zoo adam with decoupled decay": of_bigdl(zoo.AdamWeightDecay(0.05)),
    "zoo adam with decoupled decay, warm-up": of_bigdl(zoo.AdamWeightDecay(0.05, 0.25, 10), clip_constant=(-0.5, 0.5)),
    **{f"paddle {name}": paddle(name) for name in (*PADDLES, "adam", "adamax")},
    **{f"paddle {name}, attributes": paddle(name, OWN) for name in PADDLES},
    **{f"paddle {name}, sparse": paddle(name, SPARSE) for name in (*PADDLES, "adam", "adamax")},
    "paddle adam, clipped": paddle("adam", {"gradient_clipping_threshold": 1.5}, adam_beta1=0.8, adam_beta2=0.9),
    "paddle rmsprop, schedule": paddle(
        "rmsprop", OWN, learning_rate_schedule="linear", learning_rate_decay_a=1e-4, learning_rate_decay_b=0.05
    ),
    "paddle momentum, averaged": paddle(
        "momentum", learning_rate_schedule="pass_manual", learning_rate_args="1:1.0,2:0.5", average_window=0.5
    ),
}


def bits(plan, dtype):
    """A hash of the parameters after every step, of what the rule remembers, and of what it makes of it at the end."""
    layout = Layout(NAMES, SHAPES, 3, dtype)
    rule = make_rule(plan, Slice(layout, 0, layout.size), 2)
    parameters = numbers(0, layout.size, dtype)
    found = hashlib.sha256()
    for step in range(STEPS):
        values = numbers([1, step], layout.size, dtype)
        values[: TRAINABLE // 2] *= step > 2
        norm = 3.0 if plan.rule.option("clip_norm") else None
        sent = [Sent(values, (4.0,), 4), Sent(values[::-1].copy(), (8.0,), 8)]
        rule.apply(sent if plan.synchronous else sent[:1], parameters, parameters, squared_norm=norm)
        found.update(parameters.tobytes())
    for each in rule.state():
        found.update(each.tobytes())
    rule.finish(parameters)
    found.update(parameters.tobytes())
    # Which bits a NaN has is a processor's own.
    assert np.isfinite(parameters).all()
    return found.hexdigest()[:16]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_a_methods_bits_are_those_recorded(name, dtype):
    assert bits(CASES[name], dtype) == json.loads(RECORDED.read_text())[name][dtype]


def test_every_case_is_recorded_in_both_precisions():
    recorded = json.loads(RECORDED.read_text())
    assert set(recorded) == set(CASES)
    assert all(each["float32"] != each["float64"] for each in recorded.values())
