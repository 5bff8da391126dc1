"""Models as archives: what survives, and what is refused before any work starts."""

import os
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest

from keraunos.batch import ArraySpec, BatchSpec
from keraunos.errors import ModelError
from keraunos.learners.keras_archive import build, check_trainable, from_archive, to_archive
from keraunos.learners.keras_variables import has_schedule, layout_of, read_vector, write_vector


class Doubling(keras.layers.Layer):
    def __init__(self, factor=2, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs):
        return inputs * self.factor


class Opaque(keras.layers.Layer):
    def __init__(self, thing, **kwargs):
        super().__init__(**kwargs)
        self.thing = thing

    def call(self, inputs):
        return inputs


def absolute(y_true, y_pred):
    return keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1)


def compiled(*layers, loss="mse", optimizer="sgd", **arguments):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(2)])
    model.compile(optimizer, loss, **arguments)
    return model


def test_a_model_comes_back_compiled_and_with_its_weights():
    model = compiled(keras.layers.Dense(3, activation="relu"), optimizer="adam", metrics=["mae"])
    back = from_archive(to_archive(model))
    assert back.compiled
    assert type(back.optimizer).__name__ == "Adam"
    np.testing.assert_array_equal(read_vector(back), read_vector(model))


def test_a_class_in_a_trusted_module_is_found_in_another_process(tmp_path, monkeypatch):
    (tmp_path / "a_users_layers.py").write_text(
        "import keras\n\nclass Halving(keras.layers.Layer):\n    def call(self, inputs):\n        return inputs / 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import a_users_layers

    (tmp_path / "model.keras").write_bytes(to_archive(compiled(a_users_layers.Halving())))
    program = """
        import numpy
        from pathlib import Path
        import keraunos
        from keraunos.learners.keras_archive import from_archive
        try:
            from_archive(Path("model.keras").read_bytes())
        except keraunos.KeraunosError as error:
            print(error)
        keraunos.trust_modules("a_users_layers")
        model = from_archive(Path("model.keras").read_bytes())
        print(float(model.layers[0](numpy.full((1, 4), 8.0, "float32"))[0][0]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    refused, value = done.stdout.strip().splitlines()
    assert "class 'Halving' of the module 'a_users_layers'" in refused
    assert "spark.keraunos.trustedModules=a_users_layers" in refused
    assert value == "4.0", done.stderr


def test_a_layer_that_needs_tensorflow_finds_it_in_a_process_that_has_not_loaded_it(tmp_path):
    pytest.importorskip("tensorflow")
    model = keras.Sequential([keras.Input((1,), dtype="int32"), keras.layers.Hashing(3), keras.layers.Embedding(3, 2)])
    model.compile("sgd", "mse")
    (tmp_path / "model.keras").write_bytes(to_archive(model))
    program = """
        from pathlib import Path
        from keraunos.learners.keras_archive import from_archive
        print(from_archive(Path("model.keras").read_bytes()).layers[0].num_bins)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "3", done.stderr


def test_a_class_of_a_notebook_is_refused_unless_handed_over(monkeypatch):
    monkeypatch.setattr(Doubling, "__module__", "__main__")
    model = compiled(Doubling(name="twice"))
    with pytest.raises(ModelError, match=r"class 'Doubling' in the layer 'twice'.*customObjects"):
        to_archive(model)
    archive = to_archive(model, {"Doubling": Doubling})
    assert isinstance(from_archive(archive, {"Doubling": Doubling}).layers[0], Doubling)
    with pytest.raises(ModelError, match=r"class 'Doubling' in the layer 'twice' cannot be found.*customObjects"):
        from_archive(archive)


def test_a_registered_class_of_a_notebook_is_handed_over_by_its_plain_name(monkeypatch):
    made = type("Trebling", (keras.layers.Layer,), {"__module__": "__main__", "call": lambda self, inputs: inputs * 3})
    keras.saving.register_keras_serializable("archive_tests")(made)
    model = compiled(made())
    with pytest.raises(ModelError, match="Trebling"):
        to_archive(model)
    archive = to_archive(model, {"Trebling": made})
    monkeypatch.delitem(keras.saving.get_custom_objects(), "archive_tests>Trebling")
    assert isinstance(from_archive(archive, {"Trebling": made}).layers[0], made)


def test_a_layer_without_get_config_is_refused():
    with pytest.raises(ModelError, match=r"Opaque.*get_config"):
        to_archive(compiled(Opaque(object())))


def test_a_lambda_is_refused_where_it_stands():
    with pytest.raises(ModelError, match="lambda in the compiled loss"):
        to_archive(compiled(loss=lambda y_true, y_pred: keras.ops.mean(y_true - y_pred)))
    with pytest.raises(ModelError, match="lambda in the layer 'twice'"):
        to_archive(compiled(keras.layers.Lambda(lambda inputs: inputs * 2, name="twice")))


def test_a_function_is_refused_unless_handed_over():
    model = compiled(loss=absolute, metrics=[keras.metrics.mean_squared_error])
    with pytest.raises(ModelError, match=r"function 'absolute' in the compiled loss.*customObjects"):
        to_archive(model)
    archive = to_archive(model, {"absolute": absolute})
    assert from_archive(archive, {"absolute": absolute}).loss is absolute


def test_an_unbuilt_model_is_built_from_a_spec():
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    back = from_archive(to_archive(model))
    with pytest.raises(ModelError, match="must be built"):
        layout_of(back)
    build(back, BatchSpec(ArraySpec((4,), "float32"), ArraySpec((1,), "float32"), weighted=False))
    assert layout_of(back).shapes == ((4, 3), (3,), (3, 1), (1,))
    again = from_archive(to_archive(back))
    np.testing.assert_array_equal(read_vector(again), read_vector(back))
    assert not model.built


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(ModelError, match="10 elements"):
        write_vector(compiled(), np.zeros(9, dtype=np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": None}, "must be compiled with a loss"),
        ({"loss": keras.losses.MeanSquaredError(reduction=None)}, "reduce to one number"),
        ({"optimizer": None}, "must be compiled"),
    ],
    ids=["no loss", "no reduction", "no optimizer"],
)
def test_a_model_that_cannot_be_trained_is_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        check_trainable(compiled(**arguments))


def test_a_model_that_was_not_compiled_is_refused():
    with pytest.raises(ModelError, match=r"must be compiled.*model\.compile"):
        check_trainable(keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]))


def test_a_schedule_is_told_from_a_number():
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(schedule))
    assert has_schedule(compiled(optimizer=keras.optimizers.SGD(schedule)))
    assert has_schedule(compiled(optimizer=scaled))
    assert not has_schedule(compiled(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))))
