"""Saved estimators and models whose files try to do more than they may. Each is made here, by code."""

import json

import keras

from keraunos.learners.keras_archive import to_archive
from tests.security import malicious_archives

SIGNATURE = {
    "inputs": [{"name": "input", "shape": [2], "dtype": "float32"}],
    "outputs": [{"name": "output", "shape": [2], "dtype": "float32"}],
}


def plain_archive():
    """A model that does nothing but compute."""
    model = keras.Sequential([keras.Input((2,), name="input"), keras.layers.Dense(2, name="output")])
    model.compile("sgd", "mse")
    return to_archive(model)


def malicious_archive():
    """A model with a layer of a module that leaves a marker."""
    marking = malicious_archives.layer(malicious_archives.MODULE, malicious_archives.CLASS)
    return malicious_archives.archive(malicious_archives.sequential(marking))


def write(path, class_name, files, *, facts=None, custom_objects=None, params=None, listed=None):
    """A folder as spark.ml and Keraunos write it; `listed` are the files that its metadata names."""
    (path / "metadata").mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    metadata = {
        "class": class_name,
        "timestamp": 0,
        "sparkVersion": "4.0.0",
        "uid": "malicious",
        "paramMap": params or {},
        "defaultParamMap": {},
        "language": "Python",
        "keraunos": {
            "facts": facts or {},
            "custom_objects": custom_objects or {},
            "files": sorted(files) if listed is None else listed,
        },
    }
    (path / "metadata" / "part-00000").write_text(json.dumps(metadata) + "\n")
    (path / "metadata" / "_SUCCESS").write_text("")
    return str(path)


def fitted(path, class_name="keraunos.ml.estimator.KerasModel", archive=None, **more):
    """A folder of a fitted model."""
    files = {
        "model.keras": plain_archive() if archive is None else archive,
        "history.json": json.dumps({"epochs": []}).encode(),
        **more.pop("files", {}),
    }
    facts = {"signature": SIGNATURE, "backend": "jax", "floatx": "float32", "head": None, "rule": None, "lengths": {}}
    return write(path, class_name, files, facts={**facts, **more.pop("facts", {})}, **more)


def pipeline(path, stage):
    """A folder of a pipeline with one stage, which `stage` writes to the path that it is given."""
    (path / "metadata").mkdir(parents=True)
    metadata = {
        "class": "pyspark.ml.pipeline.PipelineModel",
        "timestamp": 0,
        "sparkVersion": "4.0.0",
        "uid": "pipeline",
        "paramMap": {"stageUids": ["malicious"], "language": "Python"},
        "defaultParamMap": {},
    }
    (path / "metadata" / "part-00000").write_text(json.dumps(metadata) + "\n")
    stage(path / "stages" / "0_malicious")
    return str(path)
