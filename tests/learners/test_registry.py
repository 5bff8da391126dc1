"""Finding the learner for a model source."""

import os
import subprocess
import sys

import keras
import pytest

from keraunos.errors import JobError
from keraunos.formats.registry import load_learner
from keraunos.job import model_formats
from keraunos.job.training_job import ModelSource
from keraunos.learners.keras_archive import to_archive
from keraunos.learners.registry import use_backend


def test_another_backend_than_the_running_one_is_refused():
    running = keras.config.backend()
    other = "tensorflow" if running != "tensorflow" else "jax"
    with pytest.raises(JobError, match=f"must run on '{other}'.*Received: '{running}'.*KERAS_BACKEND={other}"):
        load_learner(ModelSource(b"", other))


def test_a_fresh_process_takes_the_backend_that_is_asked_for():
    backend = keras.config.backend()
    program = (
        "from keraunos.learners.registry import use_backend\n"
        f"use_backend({backend!r})\nimport keras\nprint(keras.config.backend())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == backend


def test_the_float_type_of_the_source_is_set():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    archive = to_archive(model)
    try:
        load_learner(ModelSource(archive, keras.config.backend(), floatx="float16"))
        assert keras.config.floatx() == "float16"
    finally:
        keras.config.set_floatx("float32")


def test_the_running_backend_is_accepted():
    use_backend(keras.config.backend())
    assert os.environ.get("KERAS_BACKEND", keras.config.backend()) == keras.config.backend()


def test_formats_that_nobody_reads_are_refused(monkeypatch):
    # Other tests of this process may have registered theirs.
    monkeypatch.setattr(model_formats, "_REGISTERED", {})
    with pytest.raises(JobError, match="`format` must be one of 'keras', 'tensorflow_graph'. Received: 'graph'"):
        ModelSource(b"", "tensorflow", format="graph")
    with pytest.raises(JobError, match="A TensorFlow graph needs backend='tensorflow'. Received: 'jax'"):
        ModelSource(b"", "jax", format="tensorflow_graph")
