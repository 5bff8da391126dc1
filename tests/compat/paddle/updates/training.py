"""A few parameters, batches of several sizes, and three ways to train: the server's rule, the optimizer, NumPy."""

import itertools

import keras
import numpy as np

from keraunos.compat.paddle.updates.plan import optimizer_of, plan_of
from keraunos.exchange.rules.registry import is_elementwise, make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.parameters import Layout
from tests.compat.paddle.updates import reference

SHAPES = {"_fc.w0": (5, 4), "_fc.wbias": (4,), "_out.w0": (4, 3)}
LAYOUT = Layout(("fc/_fc.w0", "fc/_fc.wbias", "out/_out.w0", "bn/_bn.w1"), (*SHAPES.values(), (3,)), trainable=3)
WHOLE = Slice(LAYOUT, 0, LAYOUT.size)
TRAINABLE = LAYOUT.trainable_size
# Two passes of 21 rows and the beginning of a third, or a part of a single long one.
ROWS = (8, 8, 5, 8, 8, 5, 8)
A_PASS = 21
ONE_PASS = 1000


def start():
    return np.random.default_rng(5).normal(size=LAYOUT.size).astype(np.float32)


def gradients():
    """A summed gradient a batch; some elements get none at first, which is where divisions by zero hide."""
    found = np.random.default_rng(7).normal(size=(len(ROWS), TRAINABLE)).astype(np.float32)
    found[: len(ROWS) // 2, ::3] = 0.0
    return found


def configured(**each):
    """The three parameters, with further attributes by the name's last part."""
    named = {"_fc.w0": "weight", "_fc.wbias": "bias", "_out.w0": "out"}
    return [
        reference.parameter(name, int(np.prod(SHAPES[name])), **each.get(short, {})) for name, short in named.items()
    ]


def sent(gradient, rows, *, trainers=1, staleness=0, state=2.0):
    """What so many trainers send whose gradients have this sum and whose batches have so many rows together."""
    shares = np.random.default_rng(3).normal(size=(trainers, TRAINABLE)) * 0.1
    # Where there is no gradient there is none at all, not one of the last bits.
    shares *= gradient != 0
    shares[0] += gradient - shares.sum(axis=0)
    counts = [rows // trainers + (rank < rows % trainers) for rank in range(trainers)]
    return [
        Sent(
            np.concatenate([share, np.full(LAYOUT.state_size, state * count)]).astype(np.float32),
            (None,),
            count,
            staleness,
            rank=rank,
        )
        for rank, (share, count) in enumerate(zip(shares, counts, strict=True))
    ]


def of_part(each, part):
    """What of a contribution goes to one slice."""
    values = np.concatenate(part.of_contribution(each.values, 1))
    return Sent(values, each.denominators, each.rows, each.staleness, rank=each.rank)


def by_rule(opt, parameters, *, trainers=1, cuts=(), samples_per_pass=ONE_PASS, finish=False):
    """The vector after all batches, on slices that end at `cuts`."""
    plan = plan_of(opt, parameters, trainers, samples_per_pass=samples_per_pass)
    assert is_elementwise(plan)
    parts = [Slice(LAYOUT, *ends) for ends in itertools.pairwise([0, *sorted(cuts), LAYOUT.size])]
    rules = [make_rule(plan, part, trainers) for part in parts]
    vector = start()
    for gradient, rows in zip(gradients(), ROWS, strict=True):
        contributions = sent(gradient, rows, trainers=trainers)
        for part, rule in zip(parts, rules, strict=True):
            mine = vector[part.start : part.stop]
            rule.apply([of_part(each, part) for each in contributions], mine, mine)
    if finish:
        for part, rule in zip(parts, rules, strict=True):
            rule.finish(vector[part.start : part.stop])
    return vector


def variables():
    made = []
    for path, shape, values in zip(LAYOUT.names[:3], LAYOUT.shapes, LAYOUT.split(start()), strict=False):
        with keras.name_scope(path.partition("/")[0]):
            made.append(keras.Variable(values.reshape(shape), name=path.partition("/")[2]))
    return made


def by_optimizer(opt, parameters, *, samples_per_pass=ONE_PASS):
    """The trained part of the vector after as many steps of whole batches."""
    optimizer = optimizer_of(opt, parameters, 1, samples_per_pass=samples_per_pass)
    held = variables()
    optimizer.build(held)
    for gradient in gradients():
        padded = np.concatenate([gradient, np.zeros(LAYOUT.state_size, np.float32)])
        optimizer.apply([keras.ops.convert_to_tensor(each) for each in LAYOUT.split(padded)[:3]], held)
    return np.concatenate([keras.ops.convert_to_numpy(each.value).ravel() for each in held])


def by_reference(opt, parameters, *, rows=ROWS, samples_per_pass=ONE_PASS):
    """The same in double precision."""
    arrays = LAYOUT.split(start())[:3]
    models = [reference.Reference(opt, own, value) for own, value in zip(parameters, arrays, strict=True)]
    seen = 0
    for gradient, count in zip(gradients(), rows, strict=True):
        padded = np.concatenate([gradient, np.zeros(LAYOUT.state_size, np.float32)])
        passes, ends = seen // samples_per_pass, (seen + count) % samples_per_pass == 0
        for model, each in zip(models, LAYOUT.split(padded), strict=False):
            model.step(each, count, passes, ends=ends)
        seen += count
    return np.concatenate([model.w.ravel() for model in models])
