"""What every model format must do, whatever framework runs it.

A test class inherits `FormatSuite` and says which format it is for, what a model of it is, and which rows it takes.
"""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from keraunos.backends import is_installed
from keraunos.batch import Batch, BatchSpec
from keraunos.errors import JobError, KeraunosError
from keraunos.formats.model_format import ModelFormat
from keraunos.formats.registry import format_named, format_of
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch import in_process, local
from keraunos.learners.home_model import HomeModel
from keraunos.learners.learner import Learner
from keraunos.trust import trusting
from tests.conformance import engine

HEAVY = {"jax", "keras", "pyspark", "tensorflow", "torch"}
ROWS = 8


class FormatSuite:
    name = ""
    """What the format is registered as."""

    features = 6
    exchange = ExchangePlan.named("allreduce")
    custom_objects = None

    @property
    def kind(self):
        """The format itself."""
        return format_named(self.name)

    def model(self):
        """A live model that takes rows of `features` numbers, with an optimizer where it may have one."""
        raise NotImplementedError

    def vector(self, model):
        """The live model's parameters as one vector."""
        raise NotImplementedError

    def targets(self, inputs):
        """What it is to learn for such rows."""
        raise NotImplementedError

    def untrusted(self):
        """An archive that does what a file may do only if it is trusted, and the name to trust."""
        raise NotImplementedError

    def backend(self):
        """What runs it in this process."""
        return self.kind.declaration.backends[0]

    def source(self):
        written = self.kind.write(self.model(), self.custom_objects)
        return ModelSource(written.archive, self.backend(), "float32", self.name, written.trusted)

    def batch(self, rows=ROWS):
        inputs = np.random.default_rng(3).normal(size=(rows, self.features)).astype("float32")
        return Batch(inputs, self.targets(inputs), None, rows)

    def learner(self, source=None):
        return self.kind.learner(self.source() if source is None else source, self.custom_objects)

    def home(self, source=None):
        return self.kind.home(self.source() if source is None else source, self.custom_objects)

    def job(self, workers=1, **schedule):
        return TrainingJob(
            model=self.source(),
            columns=Columns((Slot(None, ("x",)),), (Slot(None, ("y",)),)),
            schedule=Schedule(**{"epochs": 3, "batch_size": ROWS, **schedule}),
            exchange=self.exchange,
            workers=workers,
        )

    def rows(self, count=5 * ROWS):
        batch = self.batch(count)
        return engine.table(x=batch.inputs, y=batch.targets)

    def test_it_is_found_by_its_name_and_by_its_home(self):
        source = self.source()
        assert isinstance(self.kind, ModelFormat)
        assert type(format_of(source)) is type(format_named(source.format, source.home))
        assert ModelSource(source.archive, **source.to_json()) == source
        assert source.declared == self.kind.declaration

    @pytest.mark.processes
    def test_its_declaration_is_read_without_a_framework(self):
        home = type(self.kind)
        program = (
            f"import sys; from {home.__module__} import {home.__name__} as kind; "
            "print(kind.declaration.noun); print(*sorted({name.split('.')[0] for name in sys.modules}))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        noun, loaded = done.stdout.splitlines()
        assert noun == self.kind.declaration.noun
        assert not HEAVY & set(loaded.split())

    def test_only_backends_that_run_it_are_taken(self):
        source = self.source()
        assert source.backend in self.kind.declaration.backends
        assert is_installed(source.backend)
        with pytest.raises(JobError, match="backend.*Received: 'abacus'"):
            replace(source, backend="abacus")

    def test_a_model_that_was_written_is_read_with_its_parameters(self):
        kind, source, model = self.kind, self.source(), self.model()
        written = kind.write(model, self.custom_objects)
        back = kind.read(written.archive, self.custom_objects, written.trusted)
        np.testing.assert_array_equal(self.vector(back), self.vector(model))
        again = kind.write(back, self.custom_objects)
        there = self.home(replace(source, archive=again.archive, trusted=again.trusted))
        np.testing.assert_array_equal(there.read(), self.vector(model))

    def test_a_home_model_gives_back_what_was_written_into_it(self):
        source = self.source()
        home = self.home(source)
        assert isinstance(home, HomeModel)
        vector = np.linspace(-1, 1, home.layout.size, dtype=home.layout.dtype)
        given = vector.copy()
        home.write(vector)
        vector[:] = np.nan
        np.testing.assert_array_equal(home.read(), given)
        there = self.home(replace(source, archive=home.to_archive()))
        np.testing.assert_array_equal(there.read(), given)
        home.read()[:] = 7
        np.testing.assert_array_equal(home.read(), given)

    def test_learner_and_home_lay_out_the_same_parameters(self):
        source = self.source()
        learner, home = self.learner(source), self.home(source)
        assert isinstance(learner, Learner)
        learner.prepare(self.batch(), seed=7, rank=0)
        assert learner.layout.shapes == home.layout.shapes
        assert (learner.layout.trainable, learner.layout.dtype) == (home.layout.trainable, home.layout.dtype)
        np.testing.assert_array_equal(learner.read(), home.read())

    def test_what_a_learner_measures_is_read_on_the_driver(self):
        learner, batch = self.learner(), self.batch()
        learner.prepare(batch, seed=7, rank=0)
        learner.evaluate(batch)
        states = self.home().metric_states(BatchSpec.of(batch))
        taken = learner.take_metrics()
        logs = states.read([taken])
        assert next(iter(logs)) == "loss"
        assert np.isfinite(logs["loss"])
        assert states.read([states.merge([taken, taken])]) == pytest.approx(logs)

    def test_a_front_is_there_where_the_format_says_so(self):
        source = self.source()
        assert self.kind.encodes_rows(source) == (self.learner(source).front is not None)

    def test_fewer_rows_than_are_served_at_once_have_the_same_predictions(self):
        learner, inputs = self.learner(), self.batch().inputs
        whole = learner.predict(self.kind.as_served(inputs, ROWS))
        few = self.kind.as_served(inputs[:3], ROWS)
        assert 3 <= len(few) <= ROWS
        np.testing.assert_array_equal(few[:3], inputs[:3])
        part = learner.predict(few)
        assert len(part) == len(few)
        np.testing.assert_allclose(part[:3], whole[:3], rtol=1e-5, atol=1e-6)

    def test_an_archive_without_its_optimizer_predicts_the_same(self):
        source, inputs = self.source(), self.batch().inputs
        slim = replace(source, archive=self.kind.without_optimizer(source.archive))
        assert len(slim.archive) <= len(source.archive)
        np.testing.assert_array_equal(self.learner(slim).predict(inputs), self.learner(source).predict(inputs))

    def test_a_file_may_not_do_what_is_not_trusted(self):
        archive, module = self.untrusted()
        with pytest.raises(KeraunosError, match="not trusted|must not|touches|may only|trust"):
            self.kind.check_file(archive)
        with trusting(module):
            assert module in self.kind.check_file(archive)

    @pytest.mark.parametrize("damage", ["empty", "other", "cut"])
    def test_a_damaged_file_is_refused(self, damage):
        archive = self.source().archive
        self.kind.check_file(archive, self.custom_objects)
        damaged = {"empty": b"", "other": b"nonsense", "cut": archive[:-9]}[damage]
        with pytest.raises(KeraunosError):
            self.kind.check_file(damaged, self.custom_objects)

    def test_a_file_has_a_plain_name_and_a_title(self):
        assert self.kind.file_name == self.kind.file_name.strip("./\\ ")
        assert "." in self.kind.file_name
        assert self.kind.title(self.source().archive)

    @pytest.mark.leaks
    def test_it_trains_in_this_process(self):
        job = self.job()
        result = in_process.fit(job, self.rows(), custom_objects=self.custom_objects)
        assert result.history["loss"][-1] < result.history["loss"][0]
        trained = replace(job.model, archive=result.archive)
        np.testing.assert_array_equal(self.home(trained).read(), result.parameters)
        self.kind.read(result.archive, self.custom_objects, job.model.trusted)

    @pytest.mark.leaks
    @pytest.mark.slow
    def test_it_trains_in_processes_that_have_only_the_job(self):
        """Two workers give what one that sees the same batches does: the format is found, and contributions add up."""
        table = self.rows(4 * ROWS)
        alone = in_process.fit(self.job(shuffle=False, batch_size=4 * ROWS), table)
        job = self.job(2, shuffle=False, batch_size=2 * ROWS)
        result = local.fit(job, engine.partitions(table, [2 * ROWS, 2 * ROWS]), verbose=0)
        np.testing.assert_allclose(result.parameters, alone.parameters, rtol=1e-4, atol=1e-6)
        assert json.dumps(result.history.to_json())
