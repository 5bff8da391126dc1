"""Custom code that is found in the model itself: it travels with the archive, and what is ambiguous is refused."""

import keras
import pytest

from keraunos.errors import ModelError
from keraunos.learners.keras_archive import from_archive, write_live
from keraunos.ml.keras.building import unbuilt_copy


class Halving(keras.layers.Layer):
    def call(self, inputs):
        return inputs / 2


def halved(values):
    return values / 2


def compiled(*layers, loss="mse", **arguments):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(2)])
    model.compile("sgd", loss, **arguments)
    return model


def layer_of_a_function(factor):
    class Local(keras.layers.Layer):
        def call(self, inputs):
            return inputs * factor

    return Local


def test_a_class_of_a_function_travels_and_one_of_a_module_does_not():
    local = layer_of_a_function(3)
    written = write_live(compiled(local(), Halving()))
    archive, code = written.archive, written.code
    assert code == {"Local": local}
    # Its module is the live model's, and so one that whoever gets the archive from here may import.
    assert written.trusted == (Halving.__module__,)
    back = from_archive(archive, code, written.trusted)
    assert [type(layer) for layer in back.layers[:2]] == [local, Halving]
    with pytest.raises(ModelError, match=rf"class 'Halving' of the module '{Halving.__module__}'.*not trusted"):
        from_archive(archive, code)


def test_a_class_of_a_script_travels_by_the_name_it_is_registered_under():
    made = type("Trebling", (keras.layers.Layer,), {"__module__": "__main__", "call": lambda self, inputs: inputs * 3})
    keras.saving.register_keras_serializable("live_code_tests")(made)
    assert write_live(compiled(made())).code == {"live_code_tests>Trebling": made}


def test_a_function_travels_wherever_it_lives():
    def distance(y_true, y_pred):
        return keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1)

    model = compiled(
        keras.layers.Dense(3, activation=halved), loss=distance, metrics=[keras.metrics.mean_squared_error]
    )
    written = write_live(model)
    archive, code = written.archive, written.code
    assert code == {"halved": halved, "distance": distance}
    back = from_archive(archive, code)
    assert back.layers[0].activation is halved
    assert back.loss is distance


def test_what_is_handed_over_wins():
    local, other = layer_of_a_function(3), layer_of_a_function(4)
    written = write_live(compiled(local()), {"Local": other})
    archive, code = written.archive, written.code
    assert code == {"Local": other}
    assert type(from_archive(archive, code).layers[0]) is other


def test_two_classes_of_one_name_are_refused():
    with pytest.raises(ModelError, match=r"class 'Local' in the layer .*the only one of its name.*2 different ones"):
        write_live(compiled(layer_of_a_function(3)(), layer_of_a_function(4)()))


def test_a_function_with_a_name_of_keras_is_refused():
    def mean_squared_error(y_true, y_pred):
        return keras.ops.mean(y_true - y_pred, axis=-1)

    with pytest.raises(ModelError, match=r"'mean_squared_error' must not have the name of one of Keras's functions"):
        write_live(compiled(loss=mean_squared_error))
    written = write_live(compiled(loss=mean_squared_error), {"mean_squared_error": mean_squared_error})
    archive, code = written.archive, written.code
    assert from_archive(archive, code).loss is mean_squared_error


@pytest.mark.parametrize("kind", [Halving, layer_of_a_function(3)])
def test_a_model_without_shapes_is_copied_with_classes_of_its_own(kind):
    model = keras.Sequential([kind(), keras.layers.Dense(2, activation=halved)])
    copied = unbuilt_copy(model)
    assert type(copied.layers[0]) is kind
    assert copied.layers[1].activation is halved
    assert copied is not model


class Needy(keras.layers.Layer):
    def __init__(self, part, **options):
        super().__init__(**options)
        self.part = part

    def get_config(self):
        return {"name": self.name, "secret": "configuration"}


def test_an_error_names_the_class_and_repeats_no_configuration():
    model = keras.Sequential([Needy(3), keras.layers.Dense(2)])
    with pytest.raises(ModelError, match="Needy") as told:
        unbuilt_copy(model)
    assert "configuration" not in str(told.value)
    written = write_live(compiled(Needy(3)))
    archive, code = written.archive, written.code
    with pytest.raises(ModelError, match="Needy") as told:
        from_archive(archive, code, written.trusted)
    assert "configuration" not in str(told.value)
    assert len(str(told.value)) < 600
