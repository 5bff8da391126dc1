"""A fit on strings: the weights are those of plain Keras, fed what the layers for strings make of the same rows.

`convergence/test_on_tensorflow.py` runs these tests on TensorFlow too.
"""

import os
from dataclasses import replace

import keras
import numpy as np
import pyarrow as pa
import pytest

from keraunos.data.shard import ShardBuilder
from keraunos.errors import ColumnError, DataError
from keraunos.job.columns import Columns, Slot
from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_front import parted
from tests.conformance import engine
from tests.conformance import text_models as models

TEXT = Columns((Slot("text", ("text",), kind="bytes"),), (Slot(None, ("y",)),))
ON_TENSORFLOW = os.environ["KERAS_BACKEND"] == "tensorflow"


def job_of(model, workers=1, columns=TEXT, **schedule):
    return replace(engine.job_of(model, workers, **{"batch_size": 8, "epochs": 2, **schedule}), columns=columns)


def plain_keras(job, part):
    """The same job in plain Keras: the front on all rows, then its outputs in the batches that one worker has."""
    model = from_archive(job.model.archive)
    rest, front = parted(model)
    made = front(models.as_bytes(part["text"].to_pylist()))
    (name,) = made
    numbers = pa.table({name: pa.FixedSizeListArray.from_arrays(made[name].reshape(-1), made[name].shape[1])})
    columns = Columns((Slot(name, (name,)),), (Slot(None, ("y",)),))
    with ShardBuilder(columns, budget=1 << 30, spool_dir=None) as builder:
        for batch in numbers.append_column("y", part["y"]).combine_chunks().to_batches():
            builder.add(batch)
        shard = builder.build(seed=job.schedule.seed, rank=0)
    for epoch in range(job.schedule.epochs):
        for batch in shard.batches(epoch, job.schedule.batch_size):
            rest.train_on_batch(batch.inputs, batch.targets)
    return model


def test_a_process_trains_on_strings_as_plain_keras_on_their_numbers():
    part = models.table(60)
    # On TensorFlow, plain Keras has Adam pass over the rows of an Embedding that a batch does not use.
    job = job_of(models.classifier(shape=(1,), optimizer="sgd" if ON_TENSORFLOW else "adam"))
    result = local.fit(job, [part], verbose=0)
    trained = from_archive(result.archive)
    assert engine.difference(trained, plain_keras(job, part)) < 1e-6
    assert engine.difference(trained, from_archive(job.model.archive)) > 1e-3
    assert trained.input.dtype == "string"
    assert list(trained.layers[1].get_vocabulary()) == list(models.vectorizer().get_vocabulary())
    assert list(result.history) == ["loss", "accuracy"]


@pytest.mark.parametrize("servers", ["driver", "workers"])
def test_two_workers_give_what_one_gives_of_the_same_steps(servers):
    parts = engine.partitions(models.table(64), [40, 24])
    job = replace(job_of(models.classifier(optimizer="sgd"), 2, validation_split=0.2), servers=servers)
    again = [part.take(np.random.default_rng(1).permutation(part.num_rows)) for part in parts]
    trained, history = engine.train(job, parts)
    other, _ = engine.train(job, again)
    assert engine.difference(trained, other) == 0.0  # whatever order the rows come in
    assert list(history) == ["loss", "accuracy", "val_loss", "val_accuracy"]


def test_arrays_of_strings():
    keras.utils.set_random_seed(1)
    inputs = keras.Input((2,), dtype="string", name="tags")
    numbers = keras.layers.StringLookup(vocabulary=["a", "b", "c"])(inputs)
    hidden = keras.layers.Flatten()(keras.layers.Embedding(4, 3)(numbers))
    model = models.compiled(keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(hidden)))
    tags = [["a", "b"], ["c", "zzz"], ["b", "b"], ["a", "c"]] * 4
    rows = pa.table({"tags": tags, "y": pa.array([0, 1, 1, 0] * 4)})
    columns = Columns((Slot("tags", ("tags",), kind="bytes", shape=(2,)),), (Slot(None, ("y",)),))
    _, history = engine.train(job_of(model, columns=columns, epochs=20), [rows])
    assert history["loss"][-1] < history["loss"][0]
    ragged = rows.set_column(0, "tags", pa.array([["a"], *tags[1:]]))
    with pytest.raises(DataError, match="'tags' is ragged"):
        engine.train(job_of(model, columns=columns), [ragged])


def test_a_null_ends_the_fit_by_name():
    rows = pa.table({"text": ["good", None], "y": pa.array([0, 1])})
    with pytest.raises(DataError, match="Column 'text' holds a null"):
        engine.train(job_of(models.classifier()), [rows])


def test_strings_for_a_model_of_numbers_are_refused_before_a_worker_starts():
    model = models.compiled(keras.Sequential([keras.Input((1,), name="text"), keras.layers.Dense(2, "softmax")]))
    with pytest.raises(ColumnError, match="'text' holds strings, which the model .* does not take.*StringIndexer"):
        local.fit(job_of(model), [models.table(4)], verbose=0)
