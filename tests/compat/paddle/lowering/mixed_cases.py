"""The cases of projections and operators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.compat.paddle.lowering import image_references as images
from tests.compat.paddle.lowering.batch_calls import BatchCase, bag, dense, ids, weight
from tests.compat.paddle.lowering.image_cases import conv_settings
from tests.compat.paddle.lowering.vector_cases import hot

LENGTHS = (4, 1, 2)


def projected(arrival, kind, size, **told):
    """An input under a projection."""
    width = arrival.array.shape[-1]
    return replace(arrival, settings={"proj": {"type": kind, "input_size": width, "output_size": size, **told}})


def plain_cases():
    yield BatchCase(
        "sum_of_projections", "mixed", 3,
        [projected(dense(2, 3), "identity", 3), projected(dense(2, 5, seed=1), "identity_offset", 3, offset=2),
         projected(dense(2, 3, seed=2), "dot_mul", 3), projected(dense(2, 3, seed=3), "scaling", 3),
         projected(dense(2, 4, seed=4), "fc", 3), projected(dense(2, 4, seed=5), "trans_fc", 3)],
        lambda x, w: np.tanh(x[0] + x[1][:, 2:5] + x[2] * w["w2"] + x[3] * w["w3"] + x[4] @ w["w4"] + x[5] @ w["w5"].T
                             + w["bias"]),
        {"w2": weight(1, 3), "w3": weight(1, 1), "w4": weight(4, 3), "w5": weight(3, 4), "bias": weight(1, 3, seed=8)},
        active_type="tanh",
    )  # fmt: skip
    table = {"proj": {"type": "table", "input_size": 4, "output_size": 2}}
    yield BatchCase("table", "mixed", 2, [ids(3, -1, 0, 3, **table)], lambda x, w: hot(x[0], 4) @ w["w0"],
                    {"w0": weight(4, 2)})  # fmt: skip
    yield BatchCase("table_of_sequences", "mixed", 2, [ids([1, 3], [2, -1], lengths=(2, 1), **table)],
                    lambda x, w: np.stack([hot(row, 4) @ w["w0"] for row in x[0]]), {"w0": weight(4, 2)})  # fmt: skip
    yield BatchCase("table_of_bags", "mixed", 2, [bag([1, 3], [2, -1], **table)], lambda x, w: hot(x[0], 4) @ w["w0"],
                    {"w0": weight(4, 2)})  # fmt: skip
    yield BatchCase(
        "concat2", "concat2", 5, [projected(dense(2, 3), "fc", 2), projected(dense(2, 3, seed=1), "identity", 3)],
        lambda x, w: np.concatenate([x[0] @ w["w0"], x[1]], axis=1) + w["bias"],
        {"w0": weight(3, 2), "bias": weight(5)},
    )  # fmt: skip
    yield BatchCase(
        "dot_mul_operator", "mixed", 3,
        [dense(2, 3), dense(2, 3, seed=1), projected(dense(2, 3, seed=2), "identity", 3)],
        lambda x, _: 0.5 * x[0] * x[1] + x[2],
        operators=[{"type": "dot_mul", "input_indices": [0, 1], "input_sizes": [3, 3], "output_size": 3,
                    "dotmul_scale": 0.5}],
    )  # fmt: skip


def context_case(name, start, length, *, trained):
    before, behind = max(0, -start), max(0, start + length - 1)
    told = {"context_start": start, "context_length": length, "trainable_padding": trained}

    def reference(x, w):
        out = np.zeros((len(LENGTHS), max(LENGTHS), 2 * length))
        for row, steps in enumerate(LENGTHS):
            for step, place in np.ndindex(steps, length):
                target = step + start + place
                if 0 <= target < steps:
                    found = x[0][row, target]
                elif not trained:
                    continue
                elif target < 0:
                    found = w["w0"][before + target]
                else:
                    found = w["w0"][before + target - steps]
                out[row, step, 2 * place : 2 * place + 2] = found
        return out

    return BatchCase(name, "mixed", 2 * length,
                     [projected(dense(3, 4, 2, lengths=LENGTHS), "context", 2 * length, **told)], reference,
                     {"w0": weight(before + behind, 2)} if trained else {})  # fmt: skip


def context_cases():
    yield context_case("context_zeros", -1, 3, trained=False)
    yield context_case("context_trained", -1, 3, trained=True)
    yield context_case("context_trained_before", -2, 2, trained=True)
    yield context_case("context_trained_behind", 1, 2, trained=True)
    yield context_case("context_longer_than_some", -3, 6, trained=True)


def convolution_cases():
    conv = conv_settings(2, (4, 3), (3, 2), (2, 1), (1, 0))
    convt = conv_settings(2, (2, 2), (3, 2), (2, 1), (1, 0), filters=2)
    out, wide = (conv["output_y"], conv["output_x"]), (convt["img_size_y"], convt["img_size"])
    size, spread = 2 * out[0] * out[1], 2 * wide[0] * wide[1]

    def convolved(x, filters):
        return images.conv(x.reshape(-1, 2, 4, 3), filters.reshape(2, 2, 3, 2), (2, 1), (1, 0)).reshape(len(x), -1)

    def transposed(x, filters):
        own = filters.reshape(2, 2, 3, 2)
        return images.conv_transposed(x.reshape(-1, 2, 2, 2), own, (2, 1), (1, 0), wide).reshape(len(x), -1)

    yield BatchCase(
        "conv_projection", "mixed", size, [projected(dense(2, 24), "conv", size, conv=conv, num_filters=2)],
        lambda x, w: convolved(x[0], w["w0"]) + np.repeat(w["bias"], size // 2),
        {"w0": weight(24), "bias": weight(2)}, {"shared_biases": True},
    )  # fmt: skip
    yield BatchCase(
        "convt_projection", "mixed", spread, [projected(dense(2, 8), "convt", spread, conv=convt, num_filters=2)],
        lambda x, w: transposed(x[0], w["w0"]), {"w0": weight(24)},
    )  # fmt: skip
    for kind, width, settings, total, one in (
        ("conv", 24, conv, size, convolved), ("convt", 8, convt, spread, transposed)
    ):  # fmt: skip
        yield BatchCase(
            f"{kind}_operator", "mixed", total, [dense(2, width), dense(2, 24, seed=1)],
            lambda x, _, one=one: np.concatenate([one(row[None], own) for row, own in zip(x[0], x[1], strict=True)]),
            operators=[{"type": kind, "input_indices": [0, 1], "input_sizes": [width, 24], "output_size": total,
                        "conv": settings, "num_filters": 2}],
        )  # fmt: skip


CASES = [*plain_cases(), *context_cases(), *convolution_cases()]
