"""Inputs of a kind that a layer does not take, and random choices."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from keraunos.compat.paddle.lowering.call import Call, Value, known_types, layer_type
from keraunos.compat.paddle.model_config import InputConfig, LayerConfig
from keraunos.errors import ModelError
from tests.compat.paddle.lowering.batch_calls import Arrival, BatchCase, bag, called, dense, ids, weight
from tests.compat.paddle.lowering.mixed_cases import projected

ANY = {"reference": lambda x, _: x[0]}


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        (BatchCase("out", "addto", 3, [ids(1, 2), dense(2, 3)], **ANY),
         "'out' (addto): input 0 ('in0') must be vectors of numbers. Received: ids. A table projection makes vectors"),
        (BatchCase("out", "fc", 3, [ids(1, 2)], parameters={"w0": weight(4, 3)}, **ANY), "must be vectors of numbers"),
        (BatchCase("out", "mixed", 2, [projected(dense(2, 3), "table", 2)], parameters={"w0": weight(3, 2)}, **ANY),
         "'out' (mixed): input 0 ('in0') must be ids. Received: vectors of numbers"),
        (BatchCase("out", "cos", 1, [dense(2, 3), bag([1], [2])], **ANY), "Received: bags of ids"),
        (BatchCase("cost", "multi-class-cross-entropy", 1, [dense(2, 3), dense(2, 3)], **ANY),
         "'cost' (multi-class-cross-entropy): input 1 ('in1') must be ids"),
        (BatchCase("out", "addto", 3, [dense(2, 2, 3, lengths=(1, 2)), dense(2, 3)], **ANY),
         "all inputs must be sequences, or none. Received: 'in0' a sequence, 'in1' none. An expand layer"),
        (BatchCase("out", "mixed", 6, [projected(dense(2, 3), "context", 6, context_start=0, context_length=2)], **ANY),
         "a context projection goes over the steps of a sequence. Received: rows of 'in0'"),
        (BatchCase("out", "trans", 3, [dense(2, 3)], **ANY), "'out' (trans): the transpose of a batch has rows"),
        (BatchCase("out", "trans", 3, [dense(2, 2, 3, lengths=(1, 2))], **ANY), "Received: a sequence from 'in0'"),
        (BatchCase("out", "resize", 4, [dense(2, 3)], **ANY), "must fill rows of 4. Received: 2 rows"),
        (BatchCase("out", "eos_id", 1, [dense(2, 3)], attributes={"eos_id": 1}, **ANY), "must be ids"),
        (BatchCase("out", "mixed", 3, [projected(dense(2, 3), "identify", 3)], **ANY), "Did you mean 'identity'"),
    ],
    ids=lambda each: each.type if isinstance(each, BatchCase) else each[-20:],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_layer_and_the_rule(case, rule):
    with pytest.raises(ModelError) as raised:
        called(case, case.arrays)
    assert rule in str(raised.value)


def test_numbers_in_one_column_count_as_labels():
    chances, labels = Arrival(np.array([[0.2, 0.8], [0.5, 0.5]])), Arrival(np.array([[1.0], [0.0]]))
    case = BatchCase("cost", "multi-class-cross-entropy", 1, [chances, labels], **ANY)
    np.testing.assert_allclose(called(case, case.arrays)[0].tensor, -np.log([0.8, 0.5]), rtol=1e-6)


def test_ids_are_drawn_with_their_probabilities():
    chances = np.tile(np.array([[0.0, 0.25, 0.75]], np.float32), (4000, 1))
    layer = LayerConfig("drawn", "sampling_id", 1, (InputConfig("in"),))
    call = Call(layer, [Value(keras.ops.convert_to_tensor(chances))], {}, False, keras.random.SeedGenerator(1))
    value = layer_type("sampling_id").function(call)
    drawn = keras.ops.convert_to_numpy(value.tensor)
    assert value.kind == "ids"
    assert drawn.shape == (4000,)
    assert (drawn == 0).sum() == 0
    assert abs((drawn == 2).mean() - 0.75) < 0.03


def test_a_type_that_is_not_lowered_is_refused_by_name():
    with pytest.raises(ModelError, match="Layers of type 'priorbox' are not run here"):
        layer_type("priorbox")
    assert {"fc", "exconv", "pool", "mixed", "batch_norm", "square_error"} <= set(known_types())
