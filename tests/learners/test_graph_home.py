"""The driver's copy of a graph: its vector is replaced in the archive, and nothing of TensorFlow or Keras is needed."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from keraunos.errors import ModelError
from keraunos.formats.registry import load_home
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.model_formats import GRAPH
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_home import GraphHome
from keraunos.learners.row_means import RowMeans
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "b", "moving"), ((2, 2), (2,), (3,)), trainable=2)
ARCHIVE = GraphArchive(
    b"a graph",
    LAYOUT,
    np.arange(9, dtype=np.float32).tobytes(),
    inputs={"x": "x:0"},
    derivatives=("g:0", "h:0"),
    train_op="t",
    metrics={"accuracy": "a:0"},
)


def job(**schedule):
    return TrainingJob(
        model=ModelSource(ARCHIVE.to_bytes(), "tensorflow", format=GRAPH),
        columns=Columns((Slot(None, ("x",)),)),
        schedule=Schedule(**schedule),
        exchange=ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)"),
        workers=1,
    )


def test_what_was_written_is_in_the_archive_and_nothing_else_has_changed():
    home = load_home(job().model)
    assert isinstance(home, GraphHome)
    assert home.layout == LAYOUT
    np.testing.assert_array_equal(home.read(), np.arange(9))
    vector = np.arange(9, dtype=np.float32) * 2
    home.write(vector)
    vector[:] = -1
    back = GraphArchive.from_bytes(home.to_archive())
    np.testing.assert_array_equal(back.vector(), np.arange(9) * 2)
    assert replace(back, parameters=ARCHIVE.parameters).to_bytes() == ARCHIVE.to_bytes()
    with pytest.raises(ModelError, match="must have 9 elements. Received: shape \\(3,\\)"):
        home.write(np.zeros(3, np.float32))


def test_what_is_read_is_the_readers_own():
    home = GraphHome(ARCHIVE.to_bytes())
    home.read()[:] = 7
    np.testing.assert_array_equal(home.read(), np.arange(9))


def test_a_learning_rate_is_not_for_the_driver_to_set():
    home = GraphHome(ARCHIVE.to_bytes())
    home.check(job())
    assert home.learning_rate is None
    with pytest.raises(ModelError, match="`learningRate` must be left out for a TensorFlow graph"):
        home.check(job(learning_rate=0.1))
    with pytest.raises(ModelError, match="cannot be set while it trains"):
        home.learning_rate = 0.1


def test_means_are_over_the_rows_of_everyone():
    states = [[np.array([6.0, 3.0, 3.0, 3.0])], [np.array([1.0, 1.0, 0.0, 1.0])]]
    means = RowMeans(("loss", "accuracy"))
    assert means.read(states) == {"loss": 1.75, "accuracy": 0.75}
    assert means.read([means.merge(states)]) == means.read(states)
    empty = means.read([[np.zeros(4)]])
    assert list(empty) == ["loss", "accuracy"]
    assert all(math.isnan(value) for value in empty.values())
    assert means.read([]) == {}


def test_states_of_measures_add_up():
    class Share:
        def state(self, output, label):
            return np.array([np.count_nonzero(output == label), len(label)], dtype=np.float64)

        def result(self, state):
            return float(state[0] / state[1])

    share = Share()
    means = RowMeans(("loss",), measures={"share": share})
    states = [
        [np.array([6.0, 3.0]), share.state(np.arange(3), np.array([0, 1, 1]))],
        [np.zeros(2), np.zeros(0)],
        [np.array([1.0, 1.0]), share.state(np.arange(1), np.arange(1))],
    ]
    assert means.read(states) == {"loss": 1.75, "share": 0.75}
    assert means.read([means.merge(states[:2]), states[2]]) == means.read(states)
    # Training measures nothing but the loss.
    assert means.read([[np.array([6.0, 3.0]), np.zeros(0)]]) == {"loss": 2.0}


def test_following_a_graph_needs_neither_keras_nor_tensorflow():
    program = """
        import sys
        from keraunos.job.training_job import TrainingJob
        from keraunos.launch import hooks, local, spark
        from keraunos.launch.fit import Fit
        from keraunos.launch.fit_events import FitEvents
        job = TrainingJob.from_bytes(sys.stdin.buffer.read())
        with FitEvents(job) as events, Fit.open(job, events, verbose=0):
            print(sorted({"keras", "tensorflow", "jax", "torch"} & set(sys.modules)))
    """
    text = "\n".join(line.removeprefix(" " * 8) for line in program.splitlines())
    plan = ExchangePlan("updates", 1, "synchronous", "mean")
    blob = replace(job(), exchange=plan).to_bytes()
    done = subprocess.run([sys.executable, "-c", text], input=blob, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == "[]"
