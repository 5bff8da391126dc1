from types import SimpleNamespace

import numpy as np
import pytest

from keraunos.errors import DataError
from keraunos.job.columns import Columns, Slot
from keraunos.job.training_job import ModelSource
from keraunos.learners.keras_archive import to_archive
from keraunos.testing.learner_batches import rows
from keraunos.worker.record_predictions import predict_records
from tests.conformance import graph_models
from tests.ml.models import mlp

COLUMNS = Columns((Slot(None, ("x",)),))


def predicted(source, records, columns=COLUMNS, batch_rows=4):
    settings = {
        "key": f"test {hash(source.archive)}",
        "model": source.to_json(),
        "columns": columns.to_json(),
        "batch_rows": batch_rows,
    }
    return list(predict_records(settings, SimpleNamespace(value=source.archive), {}, iter(records)))


@pytest.mark.parametrize("count", [0, 1, 4, 9])
def test_a_graph_gives_an_array_a_record(count):
    model = graph_models.dense("sgd")
    inputs = rows(max(1, count)).inputs[:count]
    found = predicted(model.source(), [[row] for row in inputs])
    assert len(found) == count
    if count:
        np.testing.assert_allclose(found, model.predict(inputs), rtol=1e-5, atol=1e-6)


def test_several_outputs_come_as_lists_and_labels_are_not_looked_at():
    model, _ = graph_models.two_outputs()
    inputs = rows(6).inputs
    columns = Columns((Slot("x", ("features",)),), (Slot("y", ("label",)),))
    found = predicted(model.source(), [(row, -1) for row in inputs], columns)
    expected = model.predict(inputs)
    assert {len(pair) for pair in found} == {2}
    np.testing.assert_allclose([left for left, _ in found], expected["left"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose([right for _, right in found], expected["right"], rtol=1e-5, atol=1e-6)


def test_a_keras_model_predicts_too():
    model = mlp(units=2, activation=None, loss="mse")
    inputs = np.random.default_rng(0).normal(size=(9, 3)).astype("float32")
    found = predicted(ModelSource(to_archive(model), "jax"), list(inputs))
    np.testing.assert_allclose(found, model.predict(inputs, verbose=0), rtol=1e-5, atol=1e-6)


def test_an_output_without_an_entry_a_record_says_so():
    model = graph_models.dense("sgd")
    with model.graph.as_default():
        total = graph_models.tf.reduce_sum(model.outputs["probabilities"])
    source = model.source(outputs={"total": total})
    with pytest.raises(DataError, match=r"one entry a record. Expected: 4 entries. Received: an output of shape \(\)"):
        predicted(source, [[row] for row in rows(4).inputs])
