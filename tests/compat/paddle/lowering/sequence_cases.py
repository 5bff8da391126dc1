"""The cases of layers over sequences: each with rows of several lengths, small parameters, and its reference."""

from __future__ import annotations

import numpy as np

from tests.compat.paddle.lowering import row_references as rows
from tests.compat.paddle.lowering.layer_calls import Case, Given

LENGTHS = (3, 1, 4)


def steps(width, lengths=LENGTHS, seed=0, scale=1.0):
    """Sequences of vectors."""
    random = np.random.default_rng(seed)
    return Given([random.normal(size=(length, width)) * scale for length in lengths])


def vectors(width, count=3, seed=0):
    random = np.random.default_rng(seed)
    return Given([random.normal(size=width) for _ in range(count)], sequence=False)


def ids(*rows_of_ids):
    return Given([np.array(each, np.int64).reshape(-1) for each in rows_of_ids])


def numbers(*each):
    return Given([np.array(number, np.int64) for number in each], sequence=False)


def weight(*shape, seed=7, scale=0.5):
    return np.random.default_rng(seed).normal(size=shape) * scale


def recurrent_cases():
    for reverse in (False, True):
        tag = "reversed" if reverse else "onwards"
        yield Case(f"recurrent_{tag}", "recurrent", 3, [steps(3)], rows.recurrent("tanh", reverse),
                   {"w0": weight(3, 3), "bias": weight(3)}, {"reversed": reverse}, "tanh")  # fmt: skip
        yield Case(f"lstm_{tag}", "lstmemory", 2, [steps(8)], rows.lstm("tanh", "sigmoid", "sigmoid", reverse),
                   {"w0": weight(2, 2, 4), "bias": weight(14)},
                   {"reversed": reverse, "active_gate_type": "sigmoid", "active_state_type": "sigmoid"},
                   "tanh")  # fmt: skip
        yield Case(f"gru_{tag}", "gated_recurrent", 2, [steps(6)], rows.gru("tanh", "sigmoid", reverse),
                   {"w0": weight(2, 6), "bias": weight(6)},
                   {"reversed": reverse, "active_gate_type": "sigmoid"}, "tanh")  # fmt: skip
    yield Case("recurrent_plain", "recurrent", 2, [steps(2)], rows.recurrent(""), {"w0": weight(2, 2)})
    yield Case("lstm_linear", "lstmemory", 2, [steps(8)], rows.lstm("", "tanh", "tanh"),
               {"w0": weight(2, 2, 4), "bias": weight(14)},
               {"active_gate_type": "tanh", "active_state_type": "tanh"})  # fmt: skip


def _sum(x):
    return x.sum(axis=0)


def pooling_cases():
    x, bias = steps(2), weight(2)
    strategies = {
        "average": lambda row: row.mean(axis=0),
        "sum": _sum,
        "squarerootn": lambda row: row.sum(axis=0) / len(row) ** 0.5,
    }
    for name, pooled in strategies.items():
        yield Case(f"{name}_pool", "average", 2, [x], lambda row, own, pooled=pooled: pooled(row[0]), {},
                   {"average_strategy": name, "trans_type": "non-seq"})  # fmt: skip
    yield Case("average_with_bias", "average", 2, [x], lambda row, own: np.tanh(row[0].mean(axis=0) + own["bias"]),
               {"bias": bias}, {"average_strategy": "average"}, "tanh")  # fmt: skip
    yield Case("max_pool", "max", 2, [x], lambda row, own: row[0].max(axis=0))
    yield Case("max_with_bias", "max", 2, [x], lambda row, own: row[0].max(axis=0) + own["bias"], {"bias": bias})
    yield Case("max_index", "max", 2, [x], lambda row, own: row[0].argmax(axis=0), {}, {"output_max_index": True},
               smooth=False)  # fmt: skip
    yield Case("last", "seqlastins", 2, [x], lambda row, own: row[0][-1])
    yield Case("last_with_bias", "seqlastins", 2, [x], lambda row, own: row[0][-1] + own["bias"], {"bias": bias})
    yield Case("first_by_flag", "seqlastins", 2, [x], lambda row, own: row[0][0], {}, {"select_first": True})
    yield Case("first", "seqfirstins", 2, [x], lambda row, own: row[0][0])


def shaping_cases():
    bias = weight(2)
    yield Case("one_after_the_other", "seqconcat", 2, [steps(2), steps(2, (2, 4, 1), 1)],
               lambda row, own: np.tanh(np.concatenate(row) + own["bias"]), {"bias": bias},
               active_type="tanh")  # fmt: skip
    yield Case("narrower_steps", "seqreshape", 2, [steps(4)], lambda row, own: row[0].reshape(-1, 2))
    yield Case("wider_steps", "seqreshape", 6, [steps(2, (3, 6, 0))], lambda row, own: row[0].reshape(-1, 6))
    yield Case("other_steps", "seqreshape", 3, [steps(2, (3, 6))], lambda row, own: row[0].reshape(-1, 3))
    yield Case("row_to_steps", "seqreshape", 2, [vectors(6)], lambda row, own: row[0].reshape(-1, 2) + own["bias"],
               {"bias": bias})  # fmt: skip
    yield Case("part", "subseq", 2, [steps(2), numbers(1, 0, 0), numbers(2, 1, 3)],
               lambda row, own: row[0][int(row[1]) : int(row[1] + row[2])] + own["bias"], {"bias": bias})  # fmt: skip
    yield Case("part_by_sequences", "subseq", 2, [steps(2), ids(1, 0, 2), ids(2, 0, 2)],
               lambda row, own: row[0][row[1][0] : row[1][0] + row[2][0]])  # fmt: skip
    yield Case("for_each_step", "expand", 2, [vectors(2), steps(1)],
               lambda row, own: np.tile(row[0] + own["bias"], (len(row[1]), 1)), {"bias": bias})  # fmt: skip
    yield Case("same", "get_output", 2, [steps(2)], lambda row, own: row[0])


def labelled_cases():
    label = ids([2, 0, 1], [1], [0, 0, 2, 1])
    chain = {"w0": weight(5, 3)}
    yield Case("crf", "crf", 1, [steps(3), label], rows.crf, chain)
    yield Case("crf_weighted", "crf", 1, [steps(3), label, vectors(1)], rows.crf, chain)
    yield Case("crf_best", "crf_decoding", 1, [steps(3)], rows.crf_best, chain, smooth=False)
    yield Case("crf_wrong", "crf_decoding", 1, [steps(3), label], rows.crf_wrong, chain, smooth=False)
    # Repeats, fewer labels than steps, no labels, and more labels than fit.
    short = ids([1, 1], [0], [0, 1], [], [1, 1])
    soft = steps(3, (4, 1, 4, 2, 2), scale=0.7)
    soft = Given([np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in soft.rows])
    yield Case("ctc", "ctc", 1, [soft, short], rows.ctc, {}, {"norm_by_times": False})
    scores = steps(3, (4, 1, 4, 2, 2), scale=0.7)
    shifted = Given([each + 1 for each in short.rows])
    yield Case("warp_ctc", "warp_ctc", 1, [scores, shifted], rows.warp_ctc(0), {}, {"blank": 0, "norm_by_times": False})
    yield Case("warp_ctc_last", "warp_ctc", 1, [scores, short], rows.warp_ctc(2), {}, {"blank": 2})


def class_cases():
    x, label = vectors(3, 6), numbers(0, 1, 2, 3, 4, 5)
    own = {"w0": weight(5, 3), "bias": weight(1, 5)}
    yield Case("tree", "hsigmoid", 1, [x, label], rows.hsigmoid(6), own, {"num_classes": 6})
    yield Case("tree_of_two_inputs", "hsigmoid", 1, [x, vectors(2, 6, 3), label], rows.hsigmoid(6),
               {"w0": weight(5, 3), "w1": weight(5, 2)}, {"num_classes": 6})  # fmt: skip
    yield Case("tree_of_steps", "hsigmoid", 1, [steps(3), ids([5, 0, 1], [4], [0, 3, 2, 1])],
               rows.over_each_step(rows.hsigmoid(6)), own, {"num_classes": 6})  # fmt: skip
    preferred = Given([np.array([each]) for each in (0.0, 1.0, 0.5)], sequence=False)
    yield Case("better_of_two", "rank-cost", 1, [vectors(1), vectors(1, seed=1), preferred], rows.rank_cost)
    yield Case("weighted_better", "rank-cost", 1,
               [vectors(1), vectors(1, seed=1), numbers(0, 1, 1), vectors(1, seed=2)], rows.rank_cost)  # fmt: skip


CASES = {
    case.name: case
    for family in (recurrent_cases, pooling_cases, shaping_cases, labelled_cases, class_cases)
    for case in family()
}
