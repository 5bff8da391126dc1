"""What only one cost or layer does: drawn classes, rankings, probabilities that add up, gradients by length."""

from __future__ import annotations

import itertools
from dataclasses import replace

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from keraunos.compat.paddle.lowering.call import known_types
from keraunos.errors import ModelError
from tests.compat.paddle.lowering import row_references as rows
from tests.compat.paddle.lowering.layer_calls import Case, Given, differences, evaluated, expected_rows, values
from tests.compat.paddle.lowering.sequence_cases import CASES, ids, numbers, steps, vectors, weight

SPREAD = [0.05, 0.4, 0.15, 0.3, 0.1]


def noise_case(spread, inputs, active_type="sigmoid"):
    own = {"w0": weight(5, 3), "bias": weight(1, 5)}
    told = {"num_classes": 5, "num_neg_samples": 4, "neg_sampling_dist": spread}
    return Case("nce", "nce", 1, inputs, lambda row, own: 0.0, own, told, active_type, seed=11)


def drawn(spread, shape):
    """The classes that the case's seed draws, by the formula: edges of the distribution, or all alike."""
    seed = keras.random.SeedGenerator(11)
    if not spread:
        return keras.ops.convert_to_numpy(keras.random.randint(shape, 0, 5, dtype="int32", seed=seed))
    uniform = keras.ops.convert_to_numpy(keras.random.uniform(shape, dtype="float32", seed=seed))
    return np.searchsorted(np.cumsum(spread, dtype=np.float32), uniform, side="right")


def noise_cost(x, label, samples, own, spread, act):
    chances = np.array(spread or [0.2] * 5) * 4
    o = act(own["w0"] @ x + own["bias"][0])
    cost = -np.log(o[label] / (o[label] + chances[label]))
    return cost - sum(np.log(chances[each] / (o[each] + chances[each])) for each in samples)


@pytest.mark.parametrize("spread", [[], SPREAD])
@pytest.mark.parametrize(("active_type", "act"), [("", rows.sigmoid), ("exponential", np.exp)])
def test_nce_is_the_formula_over_the_classes_that_were_drawn(spread, active_type, act):
    case = noise_case(spread, [vectors(3), numbers(4, 0, 2)], active_type)
    samples = drawn(spread, (3, 4))
    x, labels = (each.rows for each in case.inputs)
    expected = [noise_cost(x[at], labels[at], samples[at], case.parameters, spread, act) for at in range(3)]
    assert_allclose(values(case), expected, rtol=1e-5)


def test_nce_sums_over_steps_and_weighs_rows():
    weights = Given([np.full((length, 1), at + 0.5) for at, length in enumerate((3, 1, 4))])
    case = noise_case(SPREAD, [steps(3), ids([0, 1, 2], [3], [4, 0, 1, 2]), weights])
    samples = drawn(SPREAD, (3, 4, 4))
    x, labels, _ = (each.rows for each in case.inputs)
    expected = [
        sum(noise_cost(x[row][t], labels[row][t], samples[row][t], case.parameters, SPREAD, rows.sigmoid)
            for t in range(len(x[row]))) * (row + 0.5)
        for row in range(3)
    ]  # fmt: skip
    assert_allclose(values(case), expected, rtol=1e-5)


def test_nce_draws_by_its_distribution():
    count = 4000
    case = noise_case(SPREAD, [vectors(3, 2), numbers(0, 1)])
    case = replace(case, attributes={**case.attributes, "num_neg_samples": count})
    found = np.bincount(drawn(SPREAD, (2, count)).ravel(), minlength=5) / (2 * count)
    assert_allclose(found, SPREAD, atol=0.03)
    assert np.all(np.isfinite(values(case)))


def test_nce_gradients_follow_the_formula():
    case = noise_case(SPREAD, [vectors(3), numbers(4, 0, 2)])
    samples = drawn(SPREAD, (3, 4))
    _, found = evaluated(case)
    own = {name: array.copy() for name, array in case.parameters.items()}
    x, labels = (each.rows for each in case.inputs)

    def total():
        return sum(noise_cost(x[at], labels[at], samples[at], own, SPREAD, rows.sigmoid) for at in range(3))

    for name, array in own.items():
        assert_allclose(found[name], differences(total, array), rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("classes", [2, 3, 7, 8])
def test_probabilities_of_all_leaves_of_the_tree_add_up_to_one(classes):
    own = {"w0": weight(classes - 1, 3, scale=2.0), "bias": weight(1, classes - 1)}
    same = Given([vectors(3, 1).rows[0]] * classes, sequence=False)
    case = Case("tree", "hsigmoid", 1, [same, numbers(*range(classes))], lambda row, own: 0.0, own,
                {"num_classes": classes})  # fmt: skip
    assert np.exp(-np.array(values(case))).sum() == pytest.approx(1, abs=1e-5)


def test_probabilities_of_all_paths_of_the_chain_add_up_to_one():
    paths = list(itertools.product(range(3), repeat=3))
    case = Case("crf", "crf", 1, [Given(steps(3, (3,)).rows * len(paths)), ids(*paths)], rows.crf, {"w0": weight(5, 3)})
    assert np.exp(-np.array(values(case))).sum() == pytest.approx(1, abs=1e-5)


def test_chain_finds_the_best_of_all_paths():
    random = np.random.default_rng(9)
    case = Case("crf", "crf_decoding", 3, [steps(3, random.integers(1, 6, 40))], rows.crf_best, {"w0": weight(5, 3)})
    for found, expected in zip(values(case), expected_rows(case), strict=True):
        assert np.array_equal(found, expected)


def test_norm_by_times_divides_the_gradient_by_the_steps_and_leaves_the_cost():
    case = CASES["warp_ctc"]
    costs, plain = evaluated(case)
    normed, divided = evaluated(replace(case, attributes={**case.attributes, "norm_by_times": True}))
    assert_allclose(normed, costs, rtol=1e-6)
    lengths = np.array([len(row) for row in case.inputs[0].rows])
    assert_allclose(divided["in0"], plain["in0"] / lengths[:, None, None], rtol=1e-5, atol=1e-7)


def test_labels_that_do_not_fit_cost_nothing_and_move_nothing():
    costs, found = evaluated(CASES["ctc"])
    assert costs[4] == 0
    assert not np.any(found["in0"][4])
    assert np.any(found["in0"][3])


@pytest.mark.parametrize("reverse", [False, True])
def test_the_cell_of_an_lstm_is_its_further_output(reverse):
    case = CASES["lstm_reversed" if reverse else "lstm_onwards"]
    reference = rows.lstm("tanh", "sigmoid", "sigmoid", reverse, cells=True)
    for found, row in zip(values(case, "state"), case.inputs[0].rows, strict=True):
        assert_allclose(found, reference([row], case.parameters), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("sort_size", [-1, 3])
def test_lambda_cost_reports_ndcg_for_each_document_and_pushes_pairs_apart(sort_size):
    relevances = [[0.0, 2.0, 1.0], [1.0, 0.0, 3.0, 2.0, 0.5]]
    scores = steps(1, (3, 5))
    wanted = Given([np.array(each)[:, None] for each in relevances])
    told = {"NDCG_num": 3, "max_sort_size": sort_size}
    case = Case("rank", "lambda_cost", 1, [scores, wanted], lambda row, own: 0.0, {}, told)
    for padding in (0, 2):
        found, pushed = evaluated(case, padding=padding, junk=9.0)
        for at, (score, relevance) in enumerate(zip(scores.rows, relevances, strict=True)):
            size = len(relevance)
            assert found[at] == pytest.approx(rows.ndcg(score[:, 0], relevance, 3) * size, rel=1e-5)
            expected = rows.lambda_gradient(score[:, 0], relevance, 3, sort_size)
            assert_allclose(pushed["in0"][at, :size, 0], expected, rtol=1e-4, atol=1e-6)
            assert not np.any(pushed["in0"][at, size:])


def test_lists_without_relevance_count_nothing():
    wanted = Given([np.zeros((3, 1)), np.ones((2, 1))])
    case = Case("rank", "lambda_cost", 1, [steps(1, (3, 2)), wanted], lambda row, own: 0.0, {},
                {"NDCG_num": 5, "max_sort_size": -1})  # fmt: skip
    found, pushed = evaluated(case)
    assert_allclose(found, [0, 2], rtol=1e-6)
    assert not np.any(pushed["in0"])


def test_the_first_of_equal_steps_takes_the_gradient_of_the_highest():
    case = CASES["max_pool"].with_rows(0, [np.zeros((3, 2)), np.zeros((1, 2)), -np.ones((4, 2))])
    _, found = evaluated(case)
    assert np.array_equal(found["in0"][:, 0], np.ones((3, 2)))
    assert not np.any(found["in0"][:, 1:])


@pytest.mark.parametrize("name", ["max_pool", "average_pool", "squarerootn_pool", "last", "first", "crf"])
def test_a_row_without_steps_gives_zeros(name):
    case = CASES[name]
    kept = [replace(each, rows=[each.rows[0], each.rows[1][:0]]) for each in case.inputs]
    found = values(replace(case, inputs=kept))
    assert not np.any(found[1])
    assert np.any(found[0])


@pytest.mark.parametrize(
    ("name", "changed", "wrong"),
    [
        ("average_pool", {"trans_type": "seq"}, "sequences of sequences.*'seq'"),
        ("for_each_step", {"trans_type": "seq"}, "sequences of sequences.*'seq'"),
        ("max_pool", {"seq_pool_stride": 2}, "windows.*stride=2"),
        ("average_pool", {"average_strategy": "median"}, "average_strategy.*'median'"),
    ],
)
def test_what_is_not_run_is_refused_by_name(name, changed, wrong):
    case = CASES[name]
    with pytest.raises(ModelError, match=f"(?s){case.name}.*{wrong}"):
        values(replace(case, attributes={**case.attributes, **changed}))


def test_inputs_of_the_wrong_kind_are_refused_by_layer_and_rule():
    alike = vectors(2)
    for name in ("recurrent_plain", "last", "one_after_the_other"):
        case = replace(CASES[name], inputs=[alike] * len(CASES[name].inputs))
        with pytest.raises(ModelError, match=f"{name}.*sequence.*Received"):
            values(case)
    single = replace(CASES["crf"], inputs=[CASES["crf"].inputs[0], numbers(0, 1, 2)])
    with pytest.raises(ModelError, match="crf.*integer_value_sequence.*Received"):
        values(single)
    nested = replace(CASES["for_each_step"], inputs=[steps(2), steps(1)])
    with pytest.raises(ModelError, match="for_each_step.*one vector a row.*a sequence"):
        values(nested)
    bare = {name: array for name, array in CASES["lstm_linear"].parameters.items() if name != "bias"}
    with pytest.raises(ModelError, match="lstm_linear.*peepholes"):
        values(replace(CASES["lstm_linear"], parameters=bare))


def test_types_of_groups_and_of_several_dimensions_are_not_lowered():
    assert not {"lstm_step", "gru_step", "mdlstmemory", "auc-validation", "pnpair-validation"} & set(known_types())
