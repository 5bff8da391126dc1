"""What an archive names is not run because it names it."""

import io
import json
import re
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import keraunos
from keraunos.errors import KeraunosError, ModelError
from keraunos.learners.archive_optimizer import without_optimizer
from keraunos.learners.keras_archive import from_archive, to_archive
from tests.security import malicious_archives as made

CASES = list(made.malicious(Path("nowhere", "marker")))


@pytest.mark.parametrize("case", CASES)
def test_an_archive_runs_nothing_of_what_it_names(case, marker):
    config, named = made.malicious(marker)[case]
    with pytest.raises(KeraunosError, match=named) as raised:
        from_archive(made.archive(config))
    assert not marker.exists()
    assert made.MODULE not in sys.modules
    assert "Received" in str(raised.value)


def test_a_module_that_is_imported_is_not_trusted_for_that(marker):
    __import__(made.MODULE)
    marker.unlink()
    with pytest.raises(ModelError, match=r"class 'Marking' of the module 'a_module_that_marks'.*trustedModules"):
        from_archive(made.archive(made.sequential(made.layer(made.MODULE, made.CLASS))))
    assert not marker.exists()


def test_a_trusted_module_is_trusted_with_what_is_below_it_and_with_nothing_else(marker):
    archive = made.archive(made.sequential(made.layer(made.MODULE, made.CLASS)))
    with keraunos.trusting("a_module", f"{made.MODULE}_too", "keras"), pytest.raises(ModelError, match="not trusted"):
        from_archive(archive)
    assert not marker.exists()
    with keraunos.trusting(made.MODULE):
        assert type(from_archive(archive).layers[-1]).__name__ == made.CLASS
    assert marker.exists()


def test_what_a_trusted_module_has_imported_is_not_its_own(own_module):
    own_module(f"from {made.MODULE} import Marking\n")
    archive = made.archive(made.sequential(made.layer("a_users_own", made.CLASS)))
    with keraunos.trusting("a_users_own"), pytest.raises(ModelError, match="'Marking' of the module 'a_users_own'"):
        from_archive(archive)


def test_registered_code_is_taken_where_it_is_and_not_where_the_archive_says(marker):
    @keras.saving.register_keras_serializable("security_tests")
    class Known(keras.layers.Layer):
        def call(self, inputs):
            return inputs

    config = {**made.layer(made.MODULE, made.CLASS), "registered_name": "security_tests>Known"}
    assert type(from_archive(made.archive(made.sequential(config))).layers[-1]) is Known
    assert not marker.exists()


@pytest.mark.parametrize("name", ["__main__", "my layers", "os.path;", "", 3])
def test_what_is_trusted_must_be_a_module(name):
    with pytest.raises(KeraunosError, match="trustedModules"), keraunos.trusting(name):
        pass


def test_every_class_of_this_package_in_an_archive_is_listed():
    source = Path(keraunos.__file__).parent
    # As a decorator, or called with a class that is made in a function.
    registers = re.compile(r"@keras\.saving\.register_keras_serializable|register_keras_serializable\(PACKAGE\)\(")
    registering = {
        ".".join(("keraunos", *path.relative_to(source).with_suffix("").parts))
        for path in source.rglob("*.py")
        if registers.search(path.read_text(encoding="utf-8"))
    }
    listed = sys.modules["keraunos.trust"].OWN_MODULES
    assert registering <= listed
    rules = {"keraunos.compat.sparkflow.rules", "keraunos.compat.tensorspark.rules"}
    assert listed - registering == rules | {"keraunos.compat.zoo.rules", "keraunos.compat.zoo.vector_rules"}


def dense_archive(**parts):
    return made.archive(made.sequential({**made.dense(), "build_config": {"input_shape": [None, 2]}}), **parts)


@pytest.mark.parametrize("weights", [made.external_weights, made.linked_weights])
def test_weights_lie_in_the_archive(weights, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    with pytest.raises(ModelError, match=r"weights of a model must lie in its own file.*'/layers"):
        from_archive(dense_archive(weights=weights(secret)))


def test_weights_in_a_file_of_numpys_are_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as parts:
        parts.writestr("metadata.json", "{}")
        parts.writestr("config.json", json.dumps(made.sequential(made.dense())))
        parts.writestr("model.weights.npz", made.zeros_npz(1))
    with pytest.raises(ModelError, match=r"must be in 'model\.weights\.h5'.*'model\.weights\.npz'"):
        from_archive(buffer.getvalue())


def test_a_group_of_weights_may_not_hold_itself():
    import h5py

    held = io.BytesIO()
    with h5py.File(held, "w") as file:
        group = file.create_group("layers")
        group["again"] = group
        file["twice"] = group
    with pytest.raises(ModelError):
        from_archive(dense_archive(weights=held.getvalue()))


def test_an_archive_that_unpacks_to_far_more_is_refused_before_it_is(monkeypatch):
    bomb = {"bomb": bytes(300 << 20)}
    archive = dense_archive(extra=bomb, compression=zipfile.ZIP_DEFLATED)
    assert len(archive) < 1 << 20
    for read in (from_archive, without_optimizer):
        with pytest.raises(ModelError, match=r"unpacks to \d+ bytes from \d+.*Received: \d+ times"):
            read(archive)


def test_weights_that_claim_far_more_than_they_hold_are_refused():
    with pytest.raises(ModelError, match=r"dataset '/layers/dense/vars/0' of a model unpacks"):
        from_archive(dense_archive(weights=made.empty_weights(1 << 30)))


def test_arrays_that_claim_far_more_than_they_hold_are_refused():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with zipfile.ZipFile(io.BytesIO(to_archive(model))) as parts:
        files = {name: parts.read(name) for name in parts.namelist()}

    def with_arrays(content):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as parts:
            for name, each in {**files, "keraunos.npz": content}.items():
                parts.writestr(name, each)
        return buffer.getvalue()

    with pytest.raises(ModelError, match="npz file of a model unpacks"):
        from_archive(with_arrays(made.zeros_npz(300)))
    lying = io.BytesIO()
    header = np.lib.format.magic(1, 0) + (118).to_bytes(2, "little")
    header += f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({1 << 40},), }}".encode().ljust(117) + b"\n"
    with zipfile.ZipFile(lying, "w") as parts:
        parts.writestr("lora/0/0.npy", header)
    with pytest.raises(ModelError, match=r"claims \d+ bytes and holds"):
        from_archive(with_arrays(lying.getvalue()))
    pickled = io.BytesIO()
    np.savez(pickled, **{"lora/0/0": np.array([object()], dtype=object)})
    with pytest.raises(ModelError, match=r"Object arrays|claims"):
        from_archive(with_arrays(pickled.getvalue()))


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive at all", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_told_so(content):
    with pytest.raises(ModelError, match="archive"):
        from_archive(content)


def test_a_configuration_that_never_ends_is_refused():
    for text in (b'{"a":' * 3000 + b"1" + b"}" * 3000, b"[" * 500 + b"]" * 500):
        with pytest.raises(ModelError, match=r"config\.json.*cannot be read"):
            from_archive(made.archive(text))


def test_a_file_that_is_in_an_archive_twice_is_refused():
    buffer = io.BytesIO(made.archive(made.sequential(made.dense())))
    with zipfile.ZipFile(buffer, "a") as parts, pytest.warns(UserWarning, match="Duplicate"):
        parts.writestr("config.json", "{}")
    with pytest.raises(ModelError, match=r"'config\.json' more than once"):
        from_archive(buffer.getvalue())
