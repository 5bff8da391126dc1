"""What is measured beside the cost."""

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.errors import ModelError
from tests.compat.paddle.trainer_config_helpers.comparison import model_of


def evaluators_of(call):
    def configs():
        layers = {name: tch.data_layer(name, size) for name, size in (("x", 4), ("label", 4), ("weight", 1))}
        layers["p"] = tch.fc_layer(layers["x"], 4, act=tch.SoftmaxActivation(), name="p")
        call(layers)

    return model_of(configs).evaluators


@pytest.mark.parametrize(
    ("call", "kind", "inputs", "told"),
    [
        (
            lambda d: tch.classification_error_evaluator(d["p"], d["label"], weight=d["weight"], top_k=2),
            "classification_error",
            ("p", "label", "weight"),
            {"top_k": 2},
        ),
        (
            lambda d: tch.classification_error_evaluator(d["p"], d["label"], threshold=0.3),
            "classification_error",
            ("p", "label"),
            {"classification_threshold": 0.3},
        ),
        (lambda d: tch.auc_evaluator(d["p"], d["label"]), "last-column-auc", ("p", "label"), {}),
        (lambda d: tch.pnpair_evaluator(d["p"], d["label"], d["x"]), "pnpair", ("p", "label", "x"), {}),
        (
            lambda d: tch.precision_recall_evaluator(d["p"], d["label"], positive_label=1),
            "precision_recall",
            ("p", "label"),
            {"positive_label": 1},
        ),
        (lambda d: tch.ctc_error_evaluator(d["p"], d["label"]), "ctc_edit_distance", ("p", "label"), {}),
        (
            lambda d: tch.chunk_evaluator(d["p"], d["label"], "IOB", 3, excluded_chunk_types=[1]),
            "chunk",
            ("p", "label"),
            {"chunk_scheme": "IOB", "num_chunk_types": 3, "excluded_chunk_types": [1]},
        ),
        (lambda d: tch.sum_evaluator(d["p"]), "sum", ("p",), {}),
        (lambda d: tch.column_sum_evaluator(d["p"], weight=d["weight"]), "last-column-sum", ("p", "weight"), {}),
        (lambda d: tch.value_printer_evaluator([d["p"], d["x"]]), "value_printer", ("p", "x"), {}),
        (lambda d: tch.gradient_printer_evaluator(d["p"]), "gradient_printer", ("p",), {}),
        (lambda d: tch.maxid_printer_evaluator(d["p"], 3), "max_id_printer", ("p",), {"num_results": 3}),
        (lambda d: tch.maxframe_printer_evaluator(d["p"]), "max_frame_printer", ("p",), {}),
        (
            lambda d: tch.seqtext_printer_evaluator(d["p"], "out.txt", id_input=d["label"]),
            "seq_text_printer",
            ("label", "p"),
            {"result_file": "out.txt"},
        ),
        (
            lambda d: tch.classification_error_printer_evaluator(d["p"], d["label"]),
            "classification_error_printer",
            ("p", "label"),
            {"classification_threshold": 0.5},
        ),
    ],
)
def test_each_is_an_evaluator_of_the_raw_language(call, kind, inputs, told):
    (made,) = evaluators_of(call)
    assert (made.type, made.input_layers) == (kind, inputs)
    assert made.attributes.items() >= told.items()


def test_a_cost_of_classes_measures_wrong_answers():
    (made,) = evaluators_of(lambda d: tch.classification_cost(d["p"], d["label"], d["weight"], top_k=3))
    assert (made.name, made.type) == ("classification_error_evaluator", "classification_error")
    assert made.input_layers == ("p", "label", "weight")
    assert made.attributes["top_k"] == 3


def test_a_cost_of_classes_measures_what_it_is_told_to():
    both = [tch.auc_evaluator, tch.precision_recall_evaluator]
    made = evaluators_of(lambda d: tch.classification_cost(d["p"], d["label"], evaluator=both))
    assert [each.type for each in made] == ["last-column-auc", "precision_recall"]


def test_two_costs_of_classes_measure_both():
    def two(layers):
        tch.classification_cost(layers["p"], layers["label"])
        tch.classification_cost(layers["p"], layers["label"], coeff=0.5)

    made = evaluators_of(two)
    assert [each.type for each in made] == ["classification_error"] * 2
    assert len({each.name for each in made}) == 2


def test_a_cost_of_classes_takes_no_other_evaluator():
    with pytest.raises(ModelError, match="one of the evaluators for classes"):
        evaluators_of(lambda d: tch.classification_cost(d["p"], d["label"], evaluator=tch.sum_evaluator))


def test_printers_say_that_they_print_nothing(caplog):
    with caplog.at_level("INFO"):
        evaluators_of(lambda d: tch.maxid_printer_evaluator(d["p"]))
    assert "'max_id_printer' prints nothing" in caplog.text
