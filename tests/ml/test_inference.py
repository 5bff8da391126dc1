from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.errors import DataError, JobError
from keraunos.job.columns import Slot
from keraunos.learners.keras_archive import to_archive
from keraunos.ml.heads import Head
from keraunos.ml.inference import Serving, predictions
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.rendering import ArrayColumns, ClassColumns, nested_lists
from tests.ml.models import mlp, two_inputs, two_outputs

MODEL = mlp(units=2, activation=None, loss="mse")
ARCHIVE = to_archive(MODEL)


def serving_of(model, slots, rows=8, backend="jax"):
    signature = signature_of(model)
    targets = tuple(port.name for port in signature.outputs)
    return Serving(
        key=hashlib.sha256(to_archive(model)).hexdigest(),
        backend=backend,
        floatx="float32",
        slots=slots,
        columns=tuple(column for slot in slots for column in slot.columns),
        inputs=signature.inputs,
        batch_rows=rows,
        rendering=ArrayColumns(signature.outputs, targets),
    )


SERVING = serving_of(MODEL, (Slot(None, ("x",)),))


def serve(batches, serving=SERVING, archive=ARCHIVE):
    return pa.chunked_array(list(predictions(batches, serving, lambda: archive, {})))


def lists(rows, width=3):
    return pa.array(rows, type=pa.list_(pa.float32()))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(st.booleans(), max_size=20), min_size=1, max_size=5))
def test_every_row_gets_its_own_prediction_and_nulls_stay_where_they_were(batches):
    generator = np.random.default_rng(0)
    rows = [[list(generator.random(3, dtype=np.float32)) if given else None for given in batch] for batch in batches]
    flat = [row for batch in rows for row in batch]
    if not flat:
        return
    served = serve([(lists(batch),) for batch in rows]).to_pylist()
    assert len(served) == len(flat)
    for row, result in zip(flat, served, strict=True):
        if row is None:
            assert result is None
        else:
            expected = np.asarray(MODEL(np.array([row])))[0]
            np.testing.assert_allclose(result["f0"], expected, rtol=1e-5, atol=1e-6)


def test_no_rows_need_no_model():
    def never():
        raise AssertionError

    assert list(predictions([], SERVING, never, {})) == []
    assert list(predictions([(lists([]),)], SERVING, never, {})) == []


def test_only_nulls():
    served = serve([(lists([None, None]),)])
    assert served.to_pylist() == [None, None]


def test_several_inputs_and_outputs():
    model = two_inputs()
    serving = serving_of(model, (Slot("right", ("a", "b"), stacked=True), Slot("left", ("l",))))
    batch = (pa.array([1.0, 2.0]), pa.array([3, 4]), lists([[1, 2, 3], [4, 5, 6]]))
    served = serve([batch], serving, to_archive(model))
    expected = model([np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 3], [2, 4]])])
    np.testing.assert_allclose([row["f0"] for row in served.to_pylist()], np.asarray(expected), rtol=1e-5)

    model = two_outputs()
    served = serve([(lists([[1, 2, 3]]),)], serving_of(model, (Slot(None, ("x",)),)), to_archive(model))
    pair, single = model(np.array([[1.0, 2, 3]]))
    np.testing.assert_allclose(served[0].as_py()["f0"], np.asarray(pair)[0], rtol=1e-5)
    np.testing.assert_allclose(served[0].as_py()["f1"], np.asarray(single)[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0]], r"does not fit the model's input.*\(3,\).*Received: rows of shape \(2,\)"),
        ([[1.0, 2.0, 3.0], [1.0]], "'x' is ragged"),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(DataError, match=message):
        serve([(lists(rows),)])


ODD = [[float("nan"), 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, float("-inf"), 2.0], None]


def test_rows_that_are_not_finite_get_no_prediction():
    served = serve([(lists(ODD),)], replace(SERVING, allow_nan=False)).to_pylist()
    assert [row is None for row in served] == [True, False, True, True]
    np.testing.assert_allclose(served[1]["f0"], np.asarray(MODEL(np.array([ODD[1]])))[0], rtol=1e-5)


def test_a_model_that_was_fitted_with_nan_sees_it():
    served = serve([(lists(ODD),)], replace(SERVING, allow_nan=True)).to_pylist()
    assert [row is None for row in served] == [False, False, False, True]
    assert np.isnan(served[0]["f0"]).all()


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("units", [1, 3])
def test_a_class_is_null_where_the_output_is_nan(units, logits):
    outputs = np.full((3, units), 0.25, dtype=np.float32)
    outputs[1, 0] = np.nan
    outputs[2, 0] = 0.75
    columns = ClassColumns(Head(units, logits=logits), "prediction", "probability", "raw")
    prediction = columns.arrays(outputs)[-1].to_pylist()
    assert prediction[1] is None
    assert None not in (prediction[0], prediction[2])


def test_an_infinite_logit_gives_no_class():
    columns = ClassColumns(Head(3, logits=True), "prediction", "", "")
    assert columns.arrays(np.array([[np.inf, 0.0, 1.0], [3.0, 0.0, 1.0]]))[-1].to_pylist() == [None, 0.0]


def test_another_backend_than_the_processes():
    other = serving_of(mlp(units=3, activation=None, loss="mse"), SERVING.slots, backend="torch")
    with pytest.raises(JobError, match="KERAS_BACKEND=torch"):
        serve([(lists([[1, 2, 3]]),)], other)


def test_a_worker_keeps_a_few_models_and_loads_each_once():
    loads = []
    for units in (1, 2, 3, 4, 5, 5, 3, 4, 6, 3, 5):
        model = mlp(units=units, activation=None, loss="mse")
        archive = to_archive(model)

        def load(units=units, archive=archive):
            loads.append(units)
            return archive

        serving = serving_of(model, SERVING.slots)
        list(predictions([(lists([[1, 2, 3]]),)], Serving(**{**vars(serving), "key": f"m{units}"}), load, {}))
    # The sixth takes the place of the one that was used longest ago, which is the fifth.
    assert loads == [1, 2, 3, 4, 5, 6, 5]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_arrays_become_lists_of_the_same_shape(shape):
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    assert nested_lists(array).to_pylist() == array.tolist()
