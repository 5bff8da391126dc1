"""Costs of an order: which of two is the better, and how good a ranked list is. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import DENSE, Call, Value, lowers
from keraunos.compat.paddle.lowering.costs import over_steps
from keraunos.compat.paddle.lowering.steps import a_sequence

ops = keras.ops


@lowers("rank-cost", is_cost=True)
def rank_cost(call: Call) -> Value:
    """`log(1 + e^o) - label o`, with `o` how much higher the first score is than the second."""
    left, right, label = call.inputs[:3]
    margin = (left.tensor - right.tensor)[..., 0]
    # The value is cut to where the exponential is sure; the gradient is the one there.
    margin = margin + ops.stop_gradient(ops.clip(margin, -40.0, 40.0) - margin)
    wanted = label.tensor[..., 0] if label.kind == DENSE else label.tensor
    cost = ops.softplus(margin) - ops.cast(wanted, margin.dtype) * margin
    if len(call.inputs) > 3:
        cost = cost * ops.reshape(call.inputs[3].tensor, ops.shape(cost))
    return Value(over_steps(cost, left.mask))


@lowers("lambda_cost", is_cost=True)
def lambda_cost(call: Call) -> Value:
    """LambdaRank over lists of documents: what is reported is a measure, and what is trained on is not its gradient.

    A row is a list: the scores that the network returns and the relevances that they should follow. Reported is NDCG of
    the first `NDCG_num` places, which grows as the ranking gets better, once for each document of the list, as Paddle
    does it. The gradient moves each pair of documents apart by what their exchange would change in DCG; only pairs with
    one among the `max_sort_size` most relevant count. Lists that are shorter than `NDCG_num` count with the places that
    they have, and lists without anything relevant with nothing.
    """
    value, relevance = a_sequence(call, 0), a_sequence(call, 1)
    scores, mask = value.tensor[..., 0], value.mask
    gains = ops.power(2.0, relevance.tensor[..., 0]) - 1.0
    places = _places(relevance.tensor[..., 0], mask)
    top = int(call.attributes["NDCG_num"])
    best = _gained(gains, places, mask, top)[:, None]
    safe = ops.where(best > 0, best, ops.ones_like(best))
    reached = ops.where(best > 0, _gained(gains, _places(scores, mask), mask, top)[:, None] / safe, 0.0 * best)
    reported = ops.sum(ops.cast(mask, scores.dtype) * reached, axis=1)
    push = _push(call, ops.stop_gradient(scores), gains, places, mask)
    push = ops.where(best > 0, push / safe, ops.zeros_like(push))
    leaning = ops.sum(ops.stop_gradient(push) * scores, axis=1)
    return Value(ops.stop_gradient(reported - leaning) + leaning)


def _places(scores: Any, mask: Any) -> Any:
    """Returns the place of each document, from 0, by falling scores.

    The earlier of equals comes first, absent ones last.
    """
    order = ops.arange(ops.shape(scores)[1])
    equals = ops.logical_and(scores[:, None, :] == scores[:, :, None], order[None, None, :] < order[None, :, None])
    ahead = ops.logical_or(scores[:, None, :] > scores[:, :, None], equals)
    return ops.sum(ops.cast(ops.logical_and(ahead, mask[:, None, :]), "int32"), axis=2)


def _discount(places: Any, like: Any) -> Any:
    return 1.0 / ops.log(ops.cast(places, like.dtype) + 2.0)


def _gained(gains: Any, places: Any, mask: Any, top: int) -> Any:
    """DCG of the first places of each row."""
    counts = ops.cast(ops.logical_and(places < top, mask), gains.dtype)
    return ops.sum(gains * _discount(places, gains) * counts, axis=1)


def _push(call: Call, scores: Any, gains: Any, places: Any, mask: Any) -> Any:
    """Returns the gradient of each document's score, before the division by the best DCG."""
    limit = int(call.attributes["max_sort_size"])
    size = ops.sum(ops.cast(mask, "int32"), axis=1)[:, None]
    sorted_size = size if limit == -1 else ops.minimum(size, limit)
    discount = ops.where(places < sorted_size, _discount(places, gains), ops.zeros_like(gains))
    change = ops.abs((gains[:, :, None] - gains[:, None, :]) * (discount[:, :, None] - discount[:, None, :]))
    both = ops.logical_and(mask[:, :, None], mask[:, None, :])
    counts = ops.logical_and(places[:, :, None] < places[:, None, :], (places < sorted_size)[:, :, None])
    pair = change * ops.sigmoid(scores[:, None, :] - scores[:, :, None])
    pair = ops.where(ops.logical_and(both, counts), pair, ops.zeros_like(pair))
    return ops.sum(pair, axis=1) - ops.sum(pair, axis=2)
