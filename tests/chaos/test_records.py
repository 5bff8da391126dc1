"""What a run is judged by, and how it is told."""

import json

import pytest

from chaos.expectations import FINISHED, HANG, INTERRUPTED, REFUSED, WRONG
from chaos.records import Record, fill, stages, summary, table
from chaos.scenarios import DRIVER_PAUSED, INTERRUPT, WORKER, WORKER_PAUSED, Fault, Scenario
from tests.clusters.fit_spec import LOAD, TRAIN

KILLED = Fault(WORKER, 1, 3, 0.1)
SILENT = Fault(WORKER_PAUSED, 1, 3, 0.1, 8, beyond=True)
SILENT_DRIVER = Fault(DRIVER_PAUSED, 1, 0, 0.1, 8, LOAD, beyond=True)
BROKEN_OFF = Fault(INTERRUPT, 1, 0, 0.1, stage=LOAD)


def record(plan="allreduce", servers="driver", fault=KILLED, **facts):
    scenario = Scenario(4, plan, servers, shuffled=True, faults=(fault,))
    good = {"outcome": FINISHED, "accuracy": 0.97, "undisturbed": 0.96, "difference": 1e-7, "struck": [1.5]}
    good |= {"due": {"0": 80, "1": 80}, "recovery": [4.25], "hit": [fault], "ranks": [1]}
    made = Record(scenario, **{**good, **facts})
    made.judge()
    return made


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"contributed": {"0": 80, "1": 80}},
        {"plan": "elastic", "difference": 0.5},
        {"fault": BROKEN_OFF, "outcome": INTERRUPTED},
        {
            "fault": SILENT,
            "outcome": REFUSED,
            "message": "Worker 1 on h failed: nothing was heard from it for 5 s, as workerPatience allows.",
        },
        {
            "fault": SILENT_DRIVER,
            "outcome": REFUSED,
            "message": "WorkerError: Nothing was heard from the driver at tcp://h:1 for 6 s (driverPatience).",
        },
        {"fault": SILENT_DRIVER},
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
        ({"fault": BROKEN_OFF}, FINISHED, "finished, where"),
        ({"fault": BROKEN_OFF, "outcome": INTERRUPTED, "difference": 1e-3}, WRONG, "weights differ"),
        ({"fault": SILENT}, FINISHED, "finished, where"),
        (
            {"fault": SILENT, "outcome": REFUSED, "message": "Worker 0 on h failed: nothing was heard from it"},
            REFUSED,
            "does not say who was silent",
        ),
        ({"fault": SILENT_DRIVER, "outcome": REFUSED, "message": "A task failed."}, REFUSED, "who was silent"),
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


def test_a_fault_at_a_stage_says_so():
    row = table([record(fault=SILENT_DRIVER, recovery=[None])]).splitlines()[2]
    assert "| driver paused beyond patience for 8 s at load (1.5, not) |" in row


def test_the_table_counts_and_names_what_is_wrong():
    never = {"struck": [], "recovery": [], "hit": [], "ranks": []}
    text = table([record(), record(outcome=HANG, left=["12 java"]), record(**never)])
    (counts,) = [line for line in text.splitlines() if "runs:" in line]
    assert counts.startswith(
        "3 runs: 2 finished, 0 refused, 0 interrupted, 1 hang, 0 wrong; 1 left something behind; not as they should be"
    )
    assert "run 4: hang" in counts
    assert "worker killed 1 (nobody left)" in text


def test_each_kind_of_fault_is_summed_up():
    rows = summary(
        [
            record(),
            record(outcome=HANG, left=["12 java"]),
            record(fault=BROKEN_OFF, outcome=INTERRUPTED, recovery=[None]),
            record(fault=SILENT, outcome=REFUSED, recovery=[None], message="The Spark job failed."),
        ]
    )
    assert rows[0].startswith("| fault | runs | right | clean errors | wrong | hangs | left behind |")
    assert rows[2:] == [
        "| Ctrl-C | 1 | 0 | 1 | 0 | 0 | 0 |  |  |",
        "| worker killed | 2 | 1 | 0 | 0 | 1 | 1 | 4.2 | 4.2 |",
        "| worker paused beyond patience | 1 | 0 | 0 | 1 | 0 | 0 |  |  |",
    ]


def test_the_stages_are_counted():
    head, _, *rows = stages([record(), record(fault=SILENT_DRIVER), record(fault=SILENT_DRIVER)])
    places = [each.strip() for each in head.split("|")]
    cells = {row.split("|")[1].strip(): [each.strip() for each in row.split("|")] for row in rows}
    assert cells["driver paused beyond patience"][places.index(LOAD)] == "2"
    assert cells["worker killed"][places.index(TRAIN)] == "1"
    assert cells["worker killed"][places.index(LOAD)] == "0"


def test_a_documents_table_is_replaced(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- chaos: begin -->\nold\n<!-- chaos: end -->\nafter\n")
    for text in ("new", "newer"):
        fill(document, text)
    assert document.read_text() == "before\n<!-- chaos: begin -->\n\nnewer\n<!-- chaos: end -->\nafter\n"
    document.write_text("no marks")
    with pytest.raises(ValueError, match="must hold the lines"):
        fill(document, "new")
