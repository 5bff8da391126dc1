"""What sequence layers should give, one row at a time and step by step, in plain NumPy of 64 bits."""

from __future__ import annotations

import itertools

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -40, 13)))


ACT = {"": lambda x: x, "sigmoid": sigmoid, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


def _order(steps, reverse):
    return range(steps - 1, -1, -1) if reverse else range(steps)


def recurrent(act, reverse=False):
    def row(inputs, parameters):
        (x,) = inputs
        bias = parameters.get("bias", np.zeros(x.shape[1]))
        out, before = np.zeros_like(x), np.zeros(x.shape[1])
        for t in _order(len(x), reverse):
            before = out[t] = ACT[act](x[t] + before @ parameters["w0"] + bias)
        return out

    return row


def lstm(act, gate, state, reverse=False, cells=False):
    def row(inputs, parameters):
        (x,) = inputs
        n = x.shape[1] // 4
        weight, bias = parameters["w0"].reshape(n, 4 * n), parameters["bias"]
        b_candidate, b_in, b_forget, b_out, p_in, p_forget, p_out = bias.reshape(7, n)
        h, c = np.zeros(n), np.zeros(n)
        outputs, states = np.zeros((len(x), n)), np.zeros((len(x), n))
        for t in _order(len(x), reverse):
            candidate, i, f, o = np.split(x[t] + h @ weight, 4)
            candidate = ACT[act](candidate + b_candidate)
            i = ACT[gate](i + b_in + p_in * c)
            f = ACT[gate](f + b_forget + p_forget * c)
            c = candidate * i + c * f
            o = ACT[gate](o + b_out + p_out * c)
            h = o * ACT[state](c)
            outputs[t], states[t] = h, c
        return states if cells else outputs

    return row


def gru(act, gate, reverse=False):
    def row(inputs, parameters):
        (x,) = inputs
        n = x.shape[1] // 3
        flat, bias = parameters["w0"].ravel(), parameters.get("bias", np.zeros(3 * n))
        gates, candidate = flat[: 2 * n * n].reshape(n, 2 * n), flat[2 * n * n :].reshape(n, n)
        h, outputs = np.zeros(n), np.zeros((len(x), n))
        for t in _order(len(x), reverse):
            z = ACT[gate](x[t, :n] + bias[:n] + h @ gates[:, :n])
            r = ACT[gate](x[t, n : 2 * n] + bias[n : 2 * n] + h @ gates[:, n:])
            new = ACT[act](x[t, 2 * n :] + bias[2 * n :] + (r * h) @ candidate)
            h = outputs[t] = (1 - z) * h + z * new
        return outputs

    return row


def crf_paths(x, weight):
    """Every sequence of labels and its score."""
    start, end, change = weight[0], weight[1], weight[2:]
    for path in itertools.product(range(x.shape[1]), repeat=len(x)):
        score = start[path[0]] + end[path[-1]] + sum(x[t, label] for t, label in enumerate(path))
        yield path, score + sum(change[a, b] for a, b in itertools.pairwise(path))


def crf(inputs, parameters):
    x, label = inputs[:2]
    n = x.shape[1]
    scores = dict(crf_paths(x, parameters["w0"].reshape(n + 2, n)))
    cost = np.log(np.sum(np.exp(list(scores.values())))) - scores[tuple(label)]
    return cost if len(inputs) < 3 else cost * inputs[2][0]


def crf_best(inputs, parameters):
    x = inputs[0]
    scores = dict(crf_paths(x, parameters["w0"].reshape(x.shape[1] + 2, x.shape[1])))
    return np.array(max(scores, key=scores.__getitem__))


def crf_wrong(inputs, parameters):
    return (crf_best(inputs, parameters) != inputs[1]).astype(float)[:, None]


def ctc_probability(p, label, blank):
    """The sum over all alignments: sequences of classes that are the labels once repeats and blanks are taken out."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        merged = [each for each, _ in itertools.groupby(path)]
        if [each for each in merged if each != blank] == list(label):
            total += np.prod([p[t, each] for t, each in enumerate(path)])
    return total


def ctc(inputs, parameters):
    p, label = inputs
    found = ctc_probability(p, label, p.shape[1] - 1)
    return -np.log(found) if found > 0 else 0.0


def warp_ctc(blank):
    def row(inputs, parameters):
        x, label = inputs
        p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        found = ctc_probability(p, label, blank)
        return -np.log(found) if found > 0 else 0.0

    return row


def tree_probability(x, label, weight, bias, classes):
    """How probable a class is as a leaf of a heap: node k has children 2 k and 2 k + 1; leaves are numbered from
    `classes`, and a node decides for its second child with the sigmoid of its score."""
    probability, node = 1.0, label + classes
    while node > 1:
        parent = node // 2
        to_second = sigmoid(weight[parent - 1] @ x + bias[parent - 1])
        probability *= to_second if node % 2 else 1 - to_second
        node = parent
    return probability


def hsigmoid(classes):
    def row(inputs, parameters):
        *xs, label = inputs
        bias = parameters.get("bias", np.zeros(classes - 1)).ravel()
        x, weight = np.concatenate(xs), np.hstack([parameters[f"w{at}"] for at in range(len(xs))])
        return -np.log(tree_probability(x, int(label), weight, bias, classes))

    return row


def over_each_step(reference):
    """A cost of rows as one of sequences: the sum over the steps."""

    def row(inputs, parameters):
        return sum(reference(step, parameters) for step in zip(*inputs, strict=True))

    return row


def rank_cost(inputs, parameters):
    left, right, label, *weight = inputs
    o = float(np.clip(left - right, -40, 40)[0])
    cost = np.log1p(np.exp(o)) - float(np.ravel(label)[0]) * o
    return cost * (weight[0][0] if weight else 1.0)


def dcg(relevances, top):
    return sum((2.0**each - 1) / np.log(at + 2) for at, each in enumerate(relevances[:top]))


def ndcg(scores, relevances, top):
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    return dcg([relevances[at] for at in order], top) / dcg(sorted(relevances, reverse=True), top)


def lambda_gradient(scores, relevances, top, sort_size):
    """What each document's score is pushed by: for each pair, what their exchange would change."""
    order = sorted(range(len(scores)), key=lambda at: -relevances[at])
    size = len(scores) if sort_size == -1 else min(sort_size, len(scores))
    best, found = dcg([relevances[at] for at in order], top), np.zeros(len(scores))
    for i in range(size):
        for j in range(i + 1, len(scores)):
            a, b = order[i], order[j]
            gap = 2.0 ** relevances[a] - 2.0 ** relevances[b]
            change = gap * (1 / np.log(i + 2) - 1 / np.log(j + 2)) if j < size else gap / np.log(i + 2)
            push = -abs(change) / (1 + np.exp(scores[a] - scores[b])) / best
            found[a] += push
            found[b] -= push
    return found
