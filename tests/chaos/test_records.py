"""What a run is judged by, and how it is told."""

import json

import pytest

from chaos.expectations import FINISHED, HANG, REFUSED, WRONG
from chaos.records import Record, fill, table
from chaos.scenarios import WORKER, Fault, Scenario


def record(plan="allreduce", servers="driver", kind=WORKER, **facts):
    scenario = Scenario(
        4, plan, servers, shuffled=True, faults=(Fault(kind, 1, 3, 0.1, 0.0 if kind == WORKER else 2.0),)
    )
    good = {"outcome": FINISHED, "accuracy": 0.97, "undisturbed": 0.96, "difference": 1e-7, "struck": [1.5]}
    made = Record(scenario, **{**good, "due": {"0": 80, "1": 80}, "recovery": [4.25], **facts})
    made.judge()
    return made


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"contributed": {"0": 80, "1": 80}},
        {"plan": "elastic", "difference": 0.5},
    ],
)
def test_as_it_should_be(facts):
    assert record(**facts).problems == []


@pytest.mark.parametrize(
    ("facts", "outcome", "problem"),
    [
        ({"outcome": HANG}, HANG, "hang"),
        ({"outcome": REFUSED}, REFUSED, "refused"),
        ({"accuracy": 0.9}, WRONG, "accuracy 0.900"),
        ({"accuracy": float("nan")}, WRONG, "accuracy nan"),
        ({"difference": 1e-3}, WRONG, "weights differ by 1.0e-03"),
        ({"difference": float("nan")}, WRONG, "weights differ by nan"),
        ({"plan": "diloco", "difference": 1e-3}, WRONG, "weights differ"),
        ({"contributed": {"0": 80, "1": 88}}, WRONG, "rank 1 contributed 88 rows, not 80"),
        ({"contributed": {"0": 80}}, WRONG, "rank 1 contributed 0 rows, not 80"),
        ({"left": ["12 keraunos-w0"]}, FINISHED, "left behind"),
    ],
)
def test_not_as_it_should_be(facts, outcome, problem):
    judged = record(**facts)
    assert judged.outcome == outcome
    assert problem in "; ".join(judged.problems)


def test_a_run_is_a_line_and_a_row():
    told = record(contributed={"0": 80, "1": 80})
    assert json.loads(told.to_line())["scenario"]["plan"] == "allreduce"
    row = table([told]).splitlines()[2]
    assert row == (
        "| 4 | allreduce | 'driver' | shuffled | worker killed 1 (1.5, 4.2) | finished | 80 of 80, 80 of 80 | "
        "0.970 (0.960) | 1e-07 |"
    )


def test_the_table_counts_and_names_what_is_wrong():
    text = table([record(), record(outcome=HANG, left=["12 java"]), record(struck=[], recovery=[])])
    (counts,) = [line for line in text.splitlines() if "runs:" in line]
    assert counts.startswith(
        "3 runs: 2 finished, 0 refused, 1 hang, 0 wrong; 1 left something behind; not as they should be"
    )
    assert "run 4: hang" in counts
    assert text.endswith("| worker killed | 'driver' | 2 | 4.2 | 4.2 |\n")


def test_a_documents_table_is_replaced(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- chaos: begin -->\nold\n<!-- chaos: end -->\nafter\n")
    for text in ("new", "newer"):
        fill(document, text)
    assert document.read_text() == "before\n<!-- chaos: begin -->\n\nnewer\n<!-- chaos: end -->\nafter\n"
    document.write_text("no marks")
    with pytest.raises(ValueError, match="must hold the lines"):
        fill(document, "new")
