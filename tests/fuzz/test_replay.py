"""Every input that the fuzzer kept, through its target once more, without the fuzzer."""

import importlib
import sys
import warnings
from pathlib import Path

import pytest

from fuzz import TARGETS
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.slice_state import SliceState
from keraunos.learners import custom_code

CORPUS = Path(__file__).parent / "corpus"
MOST_FILES, MOST_BYTES = 300, 400_000

pytestmark = pytest.mark.slow


def replay(target):
    """Run the target with its seeds and each of its files; a failure names the input."""
    module = importlib.import_module(f"fuzz.{target}")
    inputs = {f"seed {number}": seed for number, seed in enumerate(module.seeds())}
    inputs |= {file.name: file.read_bytes() for file in sorted((CORPUS / target).iterdir())}
    for name, data in inputs.items():
        with warnings.catch_warnings():
            # Numbers that a stranger sends may overflow.
            warnings.simplefilter("ignore")
            try:
                module.one(data)
            except BaseException as error:
                error.add_note(f"The input was {name} of {target!r}")
                raise


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_fuzzer_kept_breaks_nothing(target):
    replay(target)


@pytest.mark.parametrize("target", TARGETS)
def test_the_inputs_are_few_and_small(target):
    sizes = [file.stat().st_size for file in (CORPUS / target).iterdir()]
    assert 1 <= len(sizes) <= MOST_FILES
    assert sum(sizes) <= MOST_BYTES


def test_a_wire_that_lets_other_errors_out_is_noticed(monkeypatch):
    monkeypatch.setattr("keraunos.exchange.wire.MALFORMED", (TypeError,))
    with pytest.raises((ArithmeticError, LookupError, SyntaxError, ValueError)):
        replay("wire")


def test_a_coordinator_whose_handler_raises_is_noticed(monkeypatch):
    def failing(state, message, said):
        raise RuntimeError("a handler failed")

    monkeypatch.setattr(CoordinatorState, "_norm", failing)
    with pytest.raises(RuntimeError, match="a handler failed"):
        replay("coordinator")


def test_a_coordinator_that_forgets_an_honest_member_is_noticed(monkeypatch):
    monkeypatch.setattr(CoordinatorState, "_lap", lambda state, message, said: [])
    with pytest.raises(AssertionError, match="waits for ever"):
        replay("coordinator")


def test_a_slice_that_applies_what_it_should_drop_is_noticed(monkeypatch):
    def careless(state, message, said):
        state.parameters[0] += 1
        return state.remove(message.rank)

    monkeypatch.setattr(SliceState, "_leave", careless)
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        replay("slices")


def test_a_manifest_that_leads_out_of_its_folder_is_noticed(monkeypatch):
    monkeypatch.setattr("keraunos.ml.persistence.file_names", lambda names: ["/etc/hostname"])
    with pytest.raises(AssertionError, match="opened '/etc/hostname'"):
        replay("manifests")


def test_an_archive_that_has_a_module_imported_is_noticed(monkeypatch, tmp_path):
    from tests.security import malicious_archives

    malicious_archives.write_module(tmp_path, tmp_path / "marker")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(custom_code, "is_trusted", lambda module: True)
    try:
        with pytest.raises(AssertionError, match=f"imported '{malicious_archives.MODULE}'"):
            replay("archives")
    finally:
        sys.modules.pop(malicious_archives.MODULE, None)
