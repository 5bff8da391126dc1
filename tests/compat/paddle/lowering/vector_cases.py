"""The cases of layers of plain vectors and of arithmetic between them."""

from __future__ import annotations

import numpy as np

from tests.compat.paddle.lowering.batch_calls import BatchCase, bag, between, dense, ids, weight

LENGTHS = (2, 3)


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def hot(rows, size):
    found = np.zeros((len(rows), size))
    for at, row in enumerate(rows):
        found[at, [each for each in np.atleast_1d(row) if each >= 0]] = 1
    return found


def fc_cases():
    yield BatchCase(
        "fc_two_inputs", "fc", 3, [dense(4, 2), dense(4, 5, seed=1)],
        lambda x, w: softmax(x[0] @ w["w0"] + x[1] @ w["w1"] + w["bias"]),
        {"w0": weight(2, 3), "w1": weight(5, 3, seed=8), "bias": weight(1, 3, seed=9)}, active_type="softmax",
    )  # fmt: skip
    yield BatchCase(
        "fc_of_bags", "fc", 3, [bag([0, 4, -1], [-1, -1, -1], [2, 1, 3])],
        lambda x, w: hot(x[0], 5) @ w["w0"] + w["bias"], {"w0": weight(5, 3), "bias": weight(3)},
    )  # fmt: skip
    yield BatchCase(
        "fc_of_sequences", "fc", 3, [dense(2, 3, 2, lengths=LENGTHS)],
        lambda x, w: np.tanh(x[0] @ w["w0"]), {"w0": weight(2, 3)}, active_type="tanh",
    )  # fmt: skip
    chosen = [[0, 3, -1], [1, 2, 4]]

    def selected(x, w, act=lambda y, picked: y * picked):
        return act(x[0] @ w["w0"].T + w["bias"], hot(x[1], 5))

    def over_selected(y, picked):
        powers = np.exp(y) * picked
        return powers / powers.sum(axis=1, keepdims=True)

    own = {"w0": weight(5, 3), "bias": weight(1, 5)}
    yield BatchCase("selective_fc_of_a_bag", "selective_fc", 5, [dense(2, 3), bag(*chosen)], selected, own)
    yield BatchCase("selective_fc_softmax", "selective_fc", 5, [dense(2, 3), bag(*chosen)],
                    lambda x, w: selected(x, w, over_selected), own, active_type="softmax")  # fmt: skip
    yield BatchCase("selective_fc_exponential", "selective_fc", 5, [dense(2, 3), bag(*chosen)],
                    lambda x, w: selected(x, w, lambda y, picked: np.exp(y) * picked), own,
                    active_type="exponential")  # fmt: skip
    columns = dense(2, 4)
    columns = type(columns)(np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]]), differentiable=False)
    yield BatchCase("selective_fc_of_zeros_and_ones", "selective_fc", 4, [dense(2, 3), columns],
                    lambda x, w: (x[0] @ w["w0"].T) * x[1], {"w0": weight(4, 3)})  # fmt: skip
    yield BatchCase("selective_fc_of_all", "selective_fc", 4, [dense(2, 3)], lambda x, w: x[0] @ w["w0"].T,
                    {"w0": weight(4, 3)}, {"has_selected_colums": False})  # fmt: skip


def shape_cases():
    for strategy, told in {
        "z-score": lambda x, w: (x[0] - w["w0"][2]) * w["w0"][3],
        "min-max": lambda x, w: (x[0] - w["w0"][0]) * w["w0"][1],
        "decimal-scaling": lambda x, w: x[0] * w["w0"][4],
    }.items():
        yield BatchCase(f"data_norm_{strategy}", "data_norm", 3, [dense(2, 3)], told, {"w0": weight(5, 3)},
                        {"data_norm_strategy": strategy})  # fmt: skip
    yield BatchCase("addto", "addto", 3, [dense(2, 3), dense(2, 3, seed=1)],
                    lambda x, w: np.abs(x[0] + x[1] + w["bias"]), {"bias": weight(3)}, active_type="abs")  # fmt: skip
    yield BatchCase("concat", "concat", 5, [dense(2, 3), dense(2, 2, seed=1)],
                    lambda x, _: np.concatenate([x[0], x[1]], axis=-1))  # fmt: skip
    yield BatchCase("trans", "trans", 3, [dense(3, 3)], lambda x, _: x[0].T)
    yield BatchCase("resize_wider", "resize", 6, [dense(3, 4)], lambda x, _: x[0].reshape(2, 6))
    yield BatchCase("resize_narrower", "resize", 2, [dense(3, 4)], lambda x, _: x[0].reshape(6, 2))
    yield BatchCase("featmap_expand", "featmap_expand", 6, [dense(2, 3)], lambda x, _: np.tile(x[0], 2),
                    attributes={"num_filters": 2, "as_row_vector": True})  # fmt: skip
    yield BatchCase("featmap_expand_columns", "featmap_expand", 6, [dense(2, 3)],
                    lambda x, _: np.repeat(x[0], 2, axis=1),
                    attributes={"num_filters": 2, "as_row_vector": False})  # fmt: skip
    for shared in (1, 2, 6):
        yield BatchCase(
            f"prelu_{shared}", "prelu", 6, [dense(3, 6)],
            lambda x, w, shared=shared: np.where(x[0] > 0, x[0], x[0] * np.repeat(w["w0"].ravel(), shared)),
            {"w0": weight(1, 6 // shared)}, {"partial_sum": shared},
        )  # fmt: skip


def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def circular(x, _):
    a, b = x
    out = np.zeros_like(a)
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            out[:, i] += a[:, (i + j - (b.shape[1] - 1) // 2) % a.shape[1]] * b[:, j]
    return out


def arithmetic_cases():
    yield BatchCase("out_prod", "out_prod", 6, [dense(2, 2), dense(2, 3, seed=1)],
                    lambda x, _: np.einsum("ni,nj->nij", x[0], x[1]).reshape(2, 6))  # fmt: skip
    yield BatchCase("out_prod_of_sequences", "out_prod", 6,
                    [dense(2, 3, 2, lengths=LENGTHS), dense(2, 3, 3, seed=1, lengths=LENGTHS)],
                    lambda x, _: np.einsum("nti,ntj->ntij", x[0], x[1]).reshape(2, 3, 6))  # fmt: skip
    yield BatchCase("power", "power", 3, [between(0.5, 2, 2, 1), between(0.5, 2, 2, 3, seed=1)],
                    lambda x, _: x[1] ** x[0])  # fmt: skip
    yield BatchCase("slope_intercept", "slope_intercept", 3, [dense(2, 3)], lambda x, _: 2.5 * x[0] - 1.0,
                    attributes={"slope": 2.5, "intercept": -1.0})  # fmt: skip
    yield BatchCase("scaling", "scaling", 3, [dense(2, 1), dense(2, 3, seed=1)], lambda x, _: x[0] * x[1])
    yield BatchCase("interpolation", "interpolation", 3, [dense(2, 1), dense(2, 3, seed=1), dense(2, 3, seed=2)],
                    lambda x, _: x[0] * x[1] + (1 - x[0]) * x[2])  # fmt: skip
    yield BatchCase("conv_shift", "conv_shift", 5, [dense(2, 5), dense(2, 3, seed=1)], circular)
    yield BatchCase("convex_comb", "convex_comb", 4, [dense(2, 3), dense(2, 12, seed=1)],
                    lambda x, _: np.einsum("nm,nms->ns", x[0], x[1].reshape(2, 3, 4)))  # fmt: skip
    yield BatchCase("sum_to_one_norm", "sum_to_one_norm", 3, [between(0.5, 2, 2, 3)],
                    lambda x, _: x[0] / x[0].sum(axis=1, keepdims=True))  # fmt: skip
    yield BatchCase("cos", "cos", 1, [dense(2, 3), dense(2, 3, seed=1)], lambda x, _: 5 * cosine(x[0], x[1])[:, None])
    yield BatchCase("cos_scaled", "cos", 1, [dense(2, 3), dense(2, 3, seed=1)],
                    lambda x, _: cosine(x[0], x[1])[:, None], attributes={"cos_scale": 1})  # fmt: skip
    yield BatchCase("cos_vm", "cos_vm", 4, [dense(2, 3), dense(2, 12, seed=1)],
                    lambda x, _: 2 * cosine(x[0][:, None], x[1].reshape(2, 4, 3)),
                    attributes={"cos_scale": 2.0})  # fmt: skip
    yield BatchCase("tensor", "tensor", 2, [dense(3, 2), dense(3, 4, seed=1)],
                    lambda x, w: np.einsum("nm,kml,nl->nk", x[0], w["w0"].reshape(2, 2, 4), x[1]) + w["bias"],
                    {"w0": weight(16), "bias": weight(2)})  # fmt: skip
    yield BatchCase("multiplex", "multiplex", 2, [ids(1, 0, 1), dense(3, 2), dense(3, 2, seed=1)],
                    lambda x, _: np.where(x[0][:, None] == 0, x[1], x[2]))  # fmt: skip


def choice_cases():
    yield BatchCase("maxid", "maxid", 1, [dense(4, 3)], lambda x, _: x[0].argmax(axis=1), smooth=False)
    yield BatchCase("maxid_beam", "maxid", 1, [dense(4, 5)], lambda x, _: np.argsort(-x[0], axis=1)[:, :3],
                    attributes={"beam_size": 3}, smooth=False)  # fmt: skip
    yield BatchCase("eos_id", "eos_id", 1, [ids(2, 5, 2)], lambda x, _: (x[0] == 2).astype(int),
                    attributes={"eos_id": 2}, smooth=False)  # fmt: skip


CASES = [*fc_cases(), *shape_cases(), *arithmetic_cases(), *choice_cases()]
