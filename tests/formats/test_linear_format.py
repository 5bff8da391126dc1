"""The format suite on a format that the package does not know, and a suite that fails where a format is broken."""

import keras
import numpy as np
import pytest

from keraunos.errors import JobError, ModelError
from keraunos.formats.registry import format_named, register_format
from keraunos.job.format_declaration import FormatDeclaration
from keraunos.job.training_job import ModelSource
from keraunos.launch import local
from keraunos.learners.written_model import WrittenModel
from tests.conformance.format_suite import FormatSuite
from tests.formats.linear import NAME, LinearFormat, LinearHome, LinearLearner, LinearModel, to_bytes


def halved(inputs):
    return inputs / 2


class TestLinearFormat(FormatSuite):
    name = NAME

    def model(self):
        random = np.random.default_rng(1)
        weights = random.normal(size=(self.features, 2)).astype("float32")
        return LinearModel(weights, np.array([0.5, -0.5], np.float32))

    def vector(self, model):
        return model.vector()

    def targets(self, inputs):
        return np.stack([inputs.sum(axis=1), inputs[:, 0] - 1], axis=1).astype("float32")

    def untrusted(self):
        return to_bytes(LinearModel(np.ones((1, 1)), np.ones(1), prepared_by=halved)), halved.__module__


class TestLinearFormatWithCode(TestLinearFormat):
    """The same with code of a module that only the driver has vouched for."""

    def model(self):
        model = super().model()
        return LinearModel(model.weights, model.bias, prepared_by=halved)

    test_a_damaged_file_is_refused = None


class Forgetful(LinearFormat):
    def write(self, model, custom_objects=None):
        return WrittenModel(to_bytes(LinearModel(model.weights, 0 * model.bias)))


class Reordering(LinearFormat):
    def home(self, source, custom_objects=None):
        home = super().home(source, custom_objects)
        home.read = lambda: LinearHome.read(home)[::-1]
        return home


class Trusting(LinearFormat):
    def _checked(self, archive):
        from tests.formats.linear import facts_in

        return facts_in(archive)


class Credulous(LinearFormat):
    def check_file(self, archive, custom_objects=None):
        return ()


class Shuffling(LinearFormat):
    def as_served(self, inputs, rows):
        return inputs[::-1]


class Fronted(LinearFormat):
    def encodes_rows(self, source):
        return True


class Unmeasured(LinearFormat):
    def learner(self, source, custom_objects=None):
        made = LinearLearner(self.read(source.archive))
        made.take_metrics = lambda: [np.zeros(2)]
        return made


class Slimmed(LinearFormat):
    def without_optimizer(self, archive):
        return to_bytes(LinearModel(np.zeros((6, 2)), np.zeros(2)))


class Anywhere(LinearFormat):
    declaration = FormatDeclaration("a linear model", ("numpy", "abacus"))


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (Forgetful, "test_a_model_that_was_written_is_read_with_its_parameters"),
        (Reordering, "test_a_home_model_gives_back_what_was_written_into_it"),
        (Reordering, "test_learner_and_home_lay_out_the_same_parameters"),
        (Trusting, "test_a_file_may_not_do_what_is_not_trusted"),
        (Credulous, "test_a_file_may_not_do_what_is_not_trusted"),
        (Shuffling, "test_fewer_rows_than_are_served_at_once_have_the_same_predictions"),
        (Fronted, "test_a_front_is_there_where_the_format_says_so"),
        (Unmeasured, "test_what_a_learner_measures_is_read_on_the_driver"),
        (Slimmed, "test_an_archive_without_its_optimizer_predicts_the_same"),
        (Anywhere, "test_it_is_found_by_its_name_and_by_its_home"),
    ],
)
def test_the_suite_fails_for_a_format_that_is_broken(broken, test):
    class Suite(TestLinearFormat):
        kind = broken()

    getattr(TestLinearFormat(), test)()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(Suite(), test)()


def test_a_damaged_file_that_is_accepted_fails_the_suite():
    class Suite(TestLinearFormat):
        kind = Credulous()

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        Suite().test_a_damaged_file_is_refused("other")


def test_a_name_is_registered_once_and_not_that_of_another_format():
    register_format(NAME, "tests.formats.linear:LinearFormat")
    with pytest.raises(JobError, match="must be registered once"):
        register_format(NAME, "tests.formats.elsewhere:LinearFormat")
    with pytest.raises(JobError, match="an identifier that no format here goes by. Received: 'keras'"):
        register_format("keras", "tests.formats.linear:LinearFormat")
    with pytest.raises(JobError, match="must be written 'module:Class'. Received: 'linear'"):
        register_format("other", "linear")


def test_a_format_that_cannot_be_imported_is_told():
    with pytest.raises(JobError, match="must be importable wherever its models are. Expected: 'tests.nowhere:Format'"):
        format_named("nowhere", "tests.nowhere:Format")
    with pytest.raises(JobError, match="must be a subclass of ModelFormat"):
        format_named("linear", "tests.formats.linear:LinearModel")


def test_a_job_of_another_process_is_read_before_its_format_is_imported():
    source = ModelSource(b"", "abacus", format="elsewhere", home="tests.nowhere:Format")
    assert source.to_json()["home"] == "tests.nowhere:Format"
    with pytest.raises(JobError, match="must be importable"):
        source.declared.check_backend("abacus")


def test_keras_callbacks_follow_keras_models_only():
    suite = TestLinearFormat()
    with pytest.raises(JobError, match="for a model that is not a Keras model. Received: callbacks for LinearHome"):
        local.fit(suite.job(), [suite.rows()], callbacks=[keras.callbacks.EarlyStopping("loss")], verbose=0)


def test_an_archive_names_code_only_with_trust():
    archive = to_bytes(LinearModel(np.ones((1, 1)), np.ones(1), prepared_by=halved))
    with pytest.raises(ModelError, match="is not trusted"):
        format_named(NAME).read(archive)
    assert format_named(NAME).read(archive, trusted=(halved.__module__,)).prepared_by is halved
