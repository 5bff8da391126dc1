"""The cases of plain costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.compat.paddle.lowering.batch_calls import BatchCase, bag, between, dense, ids
from tests.compat.paddle.lowering.vector_cases import hot

LENGTHS = (2, 3)


def given(arrival):
    """Labels and weights, which no gradient is asked of."""
    return replace(arrival, differentiable=False)


def binary(p, t):
    return -(t * np.log(p) + (1 - t) * np.log(1 - p))


def picked(p, label):
    return np.take_along_axis(p, label[..., None], axis=-1)[..., 0]


def entropy_cases():
    yield BatchCase("cross_entropy", "multi-class-cross-entropy", 1, [between(0.1, 1, 3, 4), ids(3, 0, 1)],
                    lambda x, _: -np.log(picked(x[0], x[1])))  # fmt: skip
    yield BatchCase(
        "cross_entropy_weighted", "multi-class-cross-entropy", 1,
        [between(0.1, 1, 3, 4), ids(3, 0, 1), given(between(0, 2, 3, 1, seed=1))],
        lambda x, _: -np.log(picked(x[0], x[1])) * x[2][:, 0],
    )  # fmt: skip
    mask = np.arange(3) < np.array(LENGTHS)[:, None]
    yield BatchCase(
        "cross_entropy_of_sequences", "multi-class-cross-entropy", 1,
        [between(0.1, 1, 2, 3, 4, lengths=LENGTHS), ids([3, 0, -1], [1, 1, 2], lengths=LENGTHS)],
        lambda x, _: (-np.log(picked(x[0], np.maximum(x[1], 0))) * mask).sum(axis=1),
    )  # fmt: skip
    yield BatchCase(
        "cross_entropy_of_weighted_sequences", "multi-class-cross-entropy", 1,
        [between(0.1, 1, 2, 3, 4, lengths=LENGTHS), ids([3, 0, -1], [1, 1, 2], lengths=LENGTHS),
         given(between(0, 2, 2, 3, 1, seed=1, lengths=LENGTHS))],
        lambda x, _: (-np.log(picked(x[0], np.maximum(x[1], 0))) * mask * x[2][..., 0]).sum(axis=1),
    )  # fmt: skip

    def selfnorm(x, _):
        log_sum = np.log(x[0].sum(axis=1))
        return -np.log(picked(x[0], x[1])) + log_sum + 0.3 * log_sum**2

    yield BatchCase("cross_entropy_with_selfnorm", "multi_class_cross_entropy_with_selfnorm", 1,
                    [between(0.1, 2, 3, 4), ids(3, 0, 1)], selfnorm,
                    attributes={"softmax_selfnorm_alpha": 0.3})  # fmt: skip
    yield BatchCase("soft_binary", "soft_binary_class_cross_entropy", 1,
                    [between(0.1, 0.9, 3, 2), given(between(0, 1, 3, 2, seed=1))],
                    lambda x, _: binary(x[0], x[1]).sum(axis=1))  # fmt: skip
    kind = "multi_binary_label_cross_entropy"
    yield BatchCase("multi_binary_vectors", kind, 1, [between(0.1, 0.9, 3, 4), given(between(0, 1, 3, 4, seed=1))],
                    lambda x, _: binary(x[0], x[1] > 0.5).sum(axis=1))  # fmt: skip
    yield BatchCase("multi_binary_bags", kind, 1, [between(0.1, 0.9, 2, 4), bag([0, 3, -1], [2, -1, -1])],
                    lambda x, _: binary(x[0], hot(x[1], 4)).sum(axis=1))  # fmt: skip
    yield BatchCase("multi_binary_ids", kind, 1, [between(0.1, 0.9, 2, 4), ids(0, 3)],
                    lambda x, _: binary(x[0], hot(x[1], 4)).sum(axis=1))  # fmt: skip


def distance_cases():
    pair = [dense(3, 4), given(dense(3, 4, seed=1, scale=2.0))]
    yield BatchCase("square_error", "square_error", 1, pair, lambda x, _: ((x[0] - x[1]) ** 2).sum(axis=1))
    yield BatchCase("square_error_of_numbers", "square_error", 1, [dense(3, 1), ids(2, 0, 1)],
                    lambda x, _: (x[0][:, 0] - x[1]) ** 2)  # fmt: skip
    yield BatchCase("square_error_of_bags", "square_error", 1, [dense(2, 4), bag([0, 3], [2, -1])],
                    lambda x, _: ((x[0] - hot(x[1], 4)) ** 2).sum(axis=1))  # fmt: skip

    def smooth(x, _):
        far = np.abs(x[0] - x[1])
        return np.where(far < 1, far**2 / 2, far - 0.5).sum(axis=1)

    yield BatchCase("smooth_l1", "smooth_l1", 1, pair, smooth)

    def huber(x, _):
        a = x[0][:, 0] * (2 * x[1] - 1)
        return np.where(a < -1, -4 * a, np.where(a < 1, (1 - a) ** 2, 0))

    scores = replace(dense(5, 1), array=np.array([[-2.0], [-0.3], [0.4], [1.7], [1.7]]))
    yield BatchCase("huber", "huber", 1, [scores, ids(1, 1, 0, 1, 0)], huber)
    yield BatchCase("sum_cost", "sum_cost", 1, [dense(3, 4)], lambda x, _: x[0].sum(axis=1))
    yield BatchCase("classification_error", "classification_error", 1, [dense(4, 3), ids(0, 1, 2, 0)],
                    lambda x, _: (x[0].argmax(axis=1) != x[1]).astype(float))  # fmt: skip


CASES = [*entropy_cases(), *distance_cases()]
