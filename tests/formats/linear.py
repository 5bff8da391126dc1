"""A model format of the tests' own, in numpy alone: y = x W + b, trained on the mean of squared differences.

Nothing of it is known to the package: it is found by the home that it is registered with.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from keraunos.errors import ModelError
from keraunos.formats.model_format import ModelFormat
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.model_formats import register_format
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Contribution, Learner
from keraunos.learners.row_means import RowMeans
from keraunos.learners.written_model import WrittenModel
from keraunos.parameters import Layout
from keraunos.trust import how_to_trust, is_trusted, trusting

NAME = "linear_of_the_tests"
_START = struct.Struct("!4sQ")
_MAGIC = b"LIN1"


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The parameters, the learning rate, and a function that is applied to the inputs first, if any."""

    weights: np.ndarray
    bias: np.ndarray
    rate: float = 0.1
    prepared_by: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def layout(self):
        return Layout(("weights", "bias"), (self.weights.shape, self.bias.shape), trainable=2)

    def vector(self):
        return self.layout.join([self.weights, self.bias])

    def with_vector(self, vector):
        weights, bias = (np.array(each) for each in self.layout.split(vector))
        return replace(self, weights=weights, bias=bias)

    def outputs(self, inputs):
        given = inputs if self.prepared_by is None else self.prepared_by(inputs)
        return (given @ self.weights + self.bias).astype(np.float32)


def to_bytes(model):
    code = model.prepared_by
    facts = {
        "shape": list(model.weights.shape),
        "rate": model.rate,
        "code": None if code is None else [code.__module__, code.__qualname__],
    }
    header = json.dumps(facts).encode()
    return _START.pack(_MAGIC, len(header)) + header + model.vector().astype("<f4").tobytes()


def facts_in(archive):
    """The header, and the vector; refused where the bytes are of something else."""
    if len(archive) < _START.size or not archive.startswith(_MAGIC):
        raise ModelError(f"The bytes are no linear model. Received: {bytes(archive[:8])!r}.")
    end = _START.size + _START.unpack_from(archive)[1]
    try:
        facts = json.loads(archive[_START.size : end])
        inputs, outputs = facts["shape"]
        vector = np.frombuffer(archive[end:], "<f4").astype(np.float32)
        if vector.size != inputs * outputs + outputs:
            raise ValueError(f"{vector.size} numbers")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"The linear model cannot be read. Received: {error}.") from error
    return facts, vector


class LinearFormat(ModelFormat):
    """Linear models."""

    declaration = FormatDeclaration("a linear model", ("numpy",))
    file_name = "model.linear"

    def learner(self, source, custom_objects=None):
        return LinearLearner(self.read(source.archive, custom_objects, source.trusted))

    def home(self, source, custom_objects=None):
        return LinearHome(self.read(source.archive, custom_objects, source.trusted))

    def as_served(self, inputs, rows):
        return inputs

    def write(self, model, custom_objects=None):
        code = model.prepared_by
        return WrittenModel(to_bytes(model), trusted=() if code is None else (code.__module__,))

    def read(self, archive, custom_objects=None, trusted=()):
        with trusting(*trusted):
            facts, vector = self._checked(archive)
        shape, code = tuple(facts["shape"]), facts["code"]
        function = None if code is None else getattr(importlib.import_module(code[0]), code[1])
        empty = LinearModel(np.zeros(shape, np.float32), np.zeros(shape[1], np.float32), facts["rate"], function)
        return empty.with_vector(vector)

    def check_file(self, archive, custom_objects=None):
        code = self._checked(archive)[0]["code"]
        return () if code is None else (code[0],)

    def title(self, archive):
        return f"linear {tuple(facts_in(archive)[0]['shape'])}"

    def _checked(self, archive):
        facts, vector = facts_in(archive)
        code = facts["code"]
        if code is not None and not is_trusted(code[0]):
            raise ModelError(f"The module {code[0]!r} of a linear model is not trusted. {how_to_trust(code[0])}.")
        return facts, vector


class LinearLearner(Learner):
    """Steps of gradient descent."""

    def __init__(self, model):
        self.model = model
        self.layout = model.layout
        self._state = np.zeros(2)

    def prepare(self, example, *, seed, rank):
        """Nothing has to be built."""

    def read(self, out=None):
        return self.layout.join([self.model.weights, self.model.bias], out)

    def write(self, vector):
        self.model = self.model.with_vector(vector)

    def step(self, batch):
        self.apply(self._gradient(batch))

    def gradient(self, batch):
        return Contribution(self._gradient(batch) * batch.rows, (float(batch.rows),), batch.rows)

    def apply(self, reduced):
        self.write(self.read() - np.float32(self.model.rate) * reduced)

    def evaluate(self, batch):
        self._differences(batch)

    def predict(self, inputs):
        return self.model.outputs(inputs)

    def read_metrics(self):
        return [self._state.copy()]

    def take_metrics(self):
        taken = self.read_metrics()
        self._state[:] = 0
        return taken

    def optimizer_state(self):
        return []

    def restore_optimizer(self, state):
        """It has none."""

    @property
    def learning_rate(self):
        return self.model.rate

    @learning_rate.setter
    def learning_rate(self, value):
        self.model = replace(self.model, rate=value)

    def _differences(self, batch):
        found = self.model.outputs(batch.inputs)
        differences = found - np.asarray(batch.targets, np.float32).reshape(found.shape)
        self._state += (float(np.square(differences).mean(axis=1).sum()), batch.rows)
        return differences

    def _gradient(self, batch):
        differences = self._differences(batch) * (2 / (batch.rows * self.model.bias.size))
        return self.layout.join([batch.inputs.T @ differences, differences.sum(axis=0)])


class LinearHome(HomeModel):
    """The model on the driver."""

    def __init__(self, model):
        self._model = model
        self.layout = model.layout

    def check(self, job):
        if len(job.columns.labels) != 1:
            raise ModelError(f"A linear model takes one label. Received: {len(job.columns.labels)}.")

    def read(self):
        return self._model.vector()

    def write(self, vector):
        self._model = self._model.with_vector(vector)

    def to_archive(self):
        return to_bytes(self._model)

    def metric_states(self, spec):
        return RowMeans(("loss",))

    @property
    def learning_rate(self):
        return self._model.rate

    @learning_rate.setter
    def learning_rate(self, value):
        self._model = replace(self._model, rate=value)


register_format(NAME, f"{__name__}:LinearFormat")
