"""What is broken fails its suite, in the test that is for it, and what is not passes."""

import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

import keraunos.testing

RULES = """
import itertools

import numpy as np

from keraunos import Rule, RuleDeclaration, RuleOption, register_rule
from keraunos.testing import RuleSuite


class Good(Rule):
    declaration = RuleDeclaration(takes=("updates",), options=(RuleOption.number("rate", 0.5, at_least=0),))

    def __init__(self, plan, part, workers):
        super().__init__(plan, part, workers)
        self.memory = np.zeros(part.size, part.layout.dtype)

    def apply(self, sent, parameters, result, *, squared_norm=None):
        for each in sent:
            self.memory += each.values / np.float32(each.rows)
        parameters -= np.float32(self.option("rate")) * self.memory

    def state(self):
        return [self.memory.copy()]

    def restore(self, state):
        np.copyto(self.memory, state[0])


class Forgets(Good):
    def restore(self, state):
        pass


class SharesItsState(Good):
    def state(self):
        return [self.memory]


class Claims(Good):
    declaration = RuleDeclaration(takes=("updates", "gradients"), meets=("synchronous",))

    def apply(self, sent, parameters, result, *, squared_norm=None):
        parameters -= sent[0].values[: parameters.size] / sent[0].rows
        assert sent[0].values.size == parameters.size
        assert self.plan.send == "updates"


class NeedsTheWholeVector(Good):
    def apply(self, sent, parameters, result, *, squared_norm=None):
        for each in sent:
            parameters -= each.values / np.linalg.norm(each.values)


class Scribbles(Good):
    def apply(self, sent, parameters, result, *, squared_norm=None):
        for each in sent:
            each.values[:] /= each.rows
            parameters -= each.values


class TakesTheFirst(Good):
    declaration = RuleDeclaration(takes=("updates",), meets=("synchronous",))

    def apply(self, sent, parameters, result, *, squared_norm=None):
        parameters -= sent[0].values / sent[0].rows


class Draws(Good):
    random = np.random.default_rng()

    def apply(self, sent, parameters, result, *, squared_norm=None):
        parameters -= self.random.normal(size=parameters.size)


class GivesNothing(Good):
    gives_parameters = False


class HasABadDefault(Good):
    declaration = RuleDeclaration(takes=("updates",), options=(RuleOption.number("rate", -1, at_least=0),))


class IsShared(Good):
    declaration = RuleDeclaration(takes=("updates",), meets=("hogwild",))
    busy = False

    def apply(self, sent, parameters, result, *, squared_norm=None):
        super().apply(sent, parameters, result)
        assert self.plan is not None
        self.counts = getattr(self, "counts", itertools.count())
        if next(self.counts) > 40:
            raise RuntimeError("too many threads")


for each in list(vars().values()):
    if isinstance(each, type) and issubclass(each, Rule) and each is not Rule:
        register_rule(each.__name__, f"{__name__}:{each.__name__}")
        suite = type(f"Test{each.__name__}", (RuleSuite,), {"rule": each.__name__})
        vars()[suite.__name__] = suite


class TestRefuses(RuleSuite):
    rule = "Good(rate=0.25)"
    refused = ("Good(rate=-1)", "Good(rate=7)")
"""
RULES_FAIL = {
    "TestForgets": "test_it_goes_on_from_its_state_to_the_bit",
    "TestSharesItsState": "test_a_state_that_was_given_does_not_change",
    "TestClaims": "test_every_worker_gets_finite_numbers",
    "TestNeedsTheWholeVector": "test_slices_together_do_what_one_does",
    "TestScribbles": "test_contributions_are_left_as_they_are",
    "TestTakesTheFirst": "test_the_order_of_a_rounds_contributions_changes_nothing",
    "TestDraws": "test_the_same_contributions_give_the_same_bits_again",
    "TestGivesNothing": "test_every_worker_gets_finite_numbers",
    "TestHasABadDefault": "test_the_default_of_each_option_is_a_value_that_the_option_may_have",
    "TestIsShared": "test_threads_may_apply_at_once",
    "TestRefuses": "test_options_are_checked",
}

LISTENERS = """
import threading

import pytest

from keraunos import Listener
from keraunos.testing import ListenerSuite, listener_suite

listener_suite.PATIENCE_S = 5.0


class Good(Listener):
    heard = ()

    def on_event(self, event):
        self.heard = (*self.heard, event)


class IsNone:
    on_event = None


class KnowsOneKind(Listener):
    def on_event(self, event):
        event.metrics


class NeedsItsSize(Listener):
    def on_event(self, event):
        if event.kind == "started":
            0 < event.parameters


class CountsFiniteNumbers(Listener):
    def on_event(self, event):
        if event.kind == "epoch_closed":
            [int(value) for value in event.metrics.values()]


class ClosesForGood(Listener):
    closed = False

    def on_event(self, event):
        assert not self.closed

    def close(self):
        self.closed = True


class TakesOneFitAtATime(Listener):
    fit = None

    def on_event(self, event):
        self.fit = event.fit if event.kind == "started" else self.fit
        assert event.fit == self.fit


class Changes(Listener):
    def on_event(self, event):
        if event.kind == "epoch_closed":
            event.metrics["seen"] = 1.0


class LeavesAThread(Listener):
    def on_event(self, event):
        if event.kind == "started":
            threading.Thread(target=threading.Event().wait, args=(60,)).start()


for each in list(vars().values()):
    if isinstance(each, type) and hasattr(each, "on_event") and each is not Listener:
        suite = type(f"Test{each.__name__}", (ListenerSuite,), {
            "listener": pytest.fixture(lambda self, each=each: each()),
        })
        vars()[suite.__name__] = suite
"""
LISTENERS_FAIL = {
    "TestIsNone": "test_a_fit_takes_it",
    "TestKnowsOneKind": "test_each_kind_of_event_is_taken",
    "TestNeedsItsSize": "test_a_fit_that_fails_before_it_begins_is_taken",
    "TestCountsFiniteNumbers": "test_numbers_that_are_not_finite_are_taken",
    "TestClosesForGood": "test_fits_one_after_the_other_are_taken",
    "TestTakesOneFitAtATime": "test_fits_at_once_are_taken",
    "TestChanges": "test_events_are_left_as_they_are",
    "TestLeavesAThread": "test_no_thread_is_left_when_it_is_closed",
}

FOLDERS = """
import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.testing import CheckpointFolderSuite


class Good(LocalFolder):
    pass


class Overwrites(LocalFolder):
    def write(self, name, buffers):
        (self._root / name).write_bytes(b"".join(buffers))


class IsOpenToAll(LocalFolder):
    def write_private(self, name, content):
        self.write(name, [content])


class RaisesForWhatIsGone(LocalFolder):
    def delete(self, name):
        if not (self._root / name).exists():
            raise FileNotFoundError(name)
        super().delete(name)


class RenamesOver(LocalFolder):
    def rename(self, name, new):
        super().delete(new)
        super().rename(name, new)


class KeepsTheFirstBuffer(LocalFolder):
    def write(self, name, buffers):
        super().write(name, list(buffers)[:1])


for each in list(vars().values()):
    if isinstance(each, type) and issubclass(each, LocalFolder) and each is not LocalFolder:
        suite = type(f"Test{each.__name__}", (CheckpointFolderSuite,), {
            "files": pytest.fixture(lambda self, tmp_path: tmp_path / "files"),
            "folder": pytest.fixture(lambda self, files, each=each: each(files)),
        })
        vars()[suite.__name__] = suite


class TestWithoutFilesOnThisMachine(CheckpointFolderSuite):
    @pytest.fixture
    def folder(self, tmp_path):
        return LocalFolder(tmp_path / "files")
"""
FOLDERS_FAIL = {
    "TestOverwrites": "test_a_file_is_written_once",
    "TestIsOpenToAll": "test_a_private_file_is_its_owners_alone",
    "TestRaisesForWhatIsGone": "test_a_missing_file",
    "TestRenamesOver": "test_a_name_that_is_taken",
    "TestKeepsTheFirstBuffer": "test_what_was_written_is_read",
}

CODECS = """
import numpy as np

from keraunos.exchange.codecs.bfloat16 import Bfloat16Codec
from keraunos.exchange.codecs.plain import PlainCodec
from keraunos.testing import CodecSuite


class Good(PlainCodec):
    pass


class Trusts(PlainCodec):
    def decode(self, payload, out):
        given = np.frombuffer(payload, np.uint8)[: out.nbytes]
        out.view(np.uint8)[: given.size] = given


class RunsTogether(Bfloat16Codec):
    def encode(self, values, out):
        values = values.copy()
        values[1:] += values[:-1] * np.float32(0.01)
        return super().encode(values, out)


class Miscounts(PlainCodec):
    def encoded_size(self, length, itemsize=4):
        return length * itemsize + 4


class LosesInfinities(PlainCodec):
    def encode(self, values, out):
        return np.nan_to_num(values).view(np.uint8)


class Remembers(Bfloat16Codec):
    def encode(self, values, out):
        values *= np.float32(0.5)
        return super().encode(values, out)


for each in list(vars().values()):
    if isinstance(each, type) and hasattr(each, "encode") and each.__module__ == __name__:
        suite = type(f"Test{each.__name__}", (CodecSuite,), {"codec": each, "relative_error": 0.01})
        vars()[suite.__name__] = suite
"""
CODECS_FAIL = {
    "TestTrusts": "test_a_payload_of_another_size_is_refused",
    "TestRunsTogether": "test_a_run_that_starts_at_a_block_has_the_same_bytes_alone",
    "TestMiscounts": "test_the_bytes_are_as_many_as_it_says",
    "TestLosesInfinities": "test_a_value_that_is_not_finite_is_not_finite_when_decoded",
    "TestRemembers": "test_values_are_left_as_they_are",
}


PROGRAMS = {
    "rules": (RULES, RULES_FAIL),
    "listeners": (LISTENERS, LISTENERS_FAIL),
    "folders": (FOLDERS, FOLDERS_FAIL),
    "codecs": (CODECS, CODECS_FAIL),
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """Which tests of which suites failed, of all programs in one process."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "pytest.ini").write_text("[pytest]\npython_files = broken_*.py\n")
    for name, (program, _) in PROGRAMS.items():
        (folder / f"broken_{name}.py").write_text(program)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-4000:] + done.stderr[-2000:]
    found = {name: {} for name in PROGRAMS}
    for case in ET.parse(folder / "report.xml").iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            module, _, suite = case.get("classname").partition(".")
            name = case.get("name").partition("[")[0]
            found[module.removeprefix("broken_")].setdefault(suite, set()).add(name)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_broken_fails_in_the_test_that_is_for_it(failures, name):
    _, expected = PROGRAMS[name]
    found = failures[name]
    assert {suite: test for suite, test in expected.items() if test not in found.get(suite, ())} == {}
    assert set(found) == set(expected)


def test_without_pytest_it_says_what_to_install():
    program = "import sys; sys.modules['pytest'] = None; import keraunos.testing"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "`keraunos.testing` needs pytest, which is not installed. Install it: pip install" in done.stderr


def test_the_exported_names():
    expected = [
        "CheckpointFolderSuite",
        "CodecSuite",
        "LearnerSuite",
        "ListenerSuite",
        "RuleSuite",
        "SessionSuite",
    ]
    assert keraunos.testing.__all__ == dir(keraunos.testing) == expected
    assert [getattr(keraunos.testing, name).__name__ for name in expected] == expected
    assert not hasattr(keraunos.testing, "FormatSuite")


def test_the_suites_load_no_framework():
    program = """
import sys
import keraunos.testing
[getattr(keraunos.testing, name) for name in keraunos.testing.__all__]
print({"keras", "tensorflow", "torch", "jax"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
