"""The copy of a model that goes through an archive is the model that was given, or is refused by name."""

import json
import zipfile

import keras
import numpy as np
import pytest

from keraunos.errors import ModelError
from keraunos.learners.keras_archive import from_archive, to_archive

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = (X.sum(axis=1) > 0).astype("int64")


def classifier(optimizer="adam", *, dtype=None, extra=(), **compiled):
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(5, activation="tanh", dtype=dtype),
            *extra,
            keras.layers.Dense(2, activation="softmax", dtype="float32"),
        ]
    )
    model.compile(optimizer, "sparse_categorical_crossentropy", **compiled)
    return model


def copied(model):
    return from_archive(to_archive(model))


def values(variables):
    return [np.asarray(keras.ops.convert_to_numpy(each.value)) for each in variables]


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(values(ours), values(theirs), strict=True):
        np.testing.assert_array_equal(one, other)


class TestLora:
    def test_adapters_and_the_kernel_below_them_come_back_as_they_were(self):
        model = classifier()
        model.layers[0].enable_lora(2, lora_alpha=6.0)
        model.fit(X, Y, verbose=0)
        copy = copied(model)
        assert_same(copy.weights, model.weights)
        layer = copy.layers[0]
        assert (layer.lora_enabled, layer.lora_rank, layer.lora_alpha) == (True, 2, 6.0)
        np.testing.assert_array_equal(copy.predict(X, verbose=0), model.predict(X, verbose=0))

    def test_a_copy_learns_as_the_model_does(self):
        model = classifier(keras.optimizers.SGD(0.1))
        model.layers[0].enable_lora(2)
        copy = copied(model)
        for each in (model, copy):
            each.fit(X, Y, shuffle=False, verbose=0)
        assert_same(copy.weights, model.weights)

    def test_plain_keras_reads_the_same_predictions(self, tmp_path):
        model = classifier()
        model.layers[0].enable_lora(2)
        model.fit(X, Y, verbose=0)
        (tmp_path / "model.keras").write_bytes(to_archive(model))
        plain = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(plain.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)


class TestFlags:
    def test_single_frozen_variables_stay_frozen_and_layers_too(self):
        model = classifier(extra=[keras.layers.Dense(3)])
        model.layers[0].kernel.trainable = False
        model.layers[1].trainable = False
        copy = copied(model)
        assert [each.trainable for each in copy.weights] == [each.trainable for each in model.weights]
        assert [each.shape for each in copy.trainable_variables] == [(5,), (3, 2), (2,)]
        assert not copy.layers[1].trainable

    def test_the_optimizer_of_a_model_with_frozen_variables_keeps_its_state(self):
        model = classifier()
        model.layers[0].kernel.trainable = False
        model.fit(X, Y, epochs=2, verbose=0)
        copy = copied(model)
        assert_same(copy.optimizer.variables, model.optimizer.variables)
        for each in (model, copy):
            each.fit(X, Y, shuffle=False, verbose=0)
        assert_same(copy.weights, model.weights)


class TestOptimizer:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: keras.optimizers.Adam(0.01, amsgrad=True),
            lambda: keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 20), momentum=0.9),
            lambda: keras.optimizers.SGD(0.1, use_ema=True),
            lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
            lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(), initial_scale=64.0),
        ],
        ids=["adam", "schedule", "ema", "accumulation", "loss scale"],
    )
    def test_state_and_steps_come_back(self, make):
        model = classifier(make())
        model.fit(X, Y, epochs=3, batch_size=8, verbose=0)
        copy = copied(model)
        assert_same(copy.optimizer.variables, model.optimizer.variables)
        assert int(copy.optimizer.iterations) == int(model.optimizer.iterations) > 0

    def test_what_weight_decay_leaves_out_is_left_out(self):
        model = classifier(keras.optimizers.AdamW(0.01, weight_decay=0.5))
        model.optimizer.exclude_from_weight_decay(var_names=["bias"], var_list=[model.layers[1].kernel])
        copy = copied(model)
        for each in (model, copy):
            each.fit(X, Y, epochs=2, shuffle=False, verbose=0)
        assert_same(copy.weights, model.weights)


class TestModel:
    def test_dtype_policies_come_back(self):
        copy = copied(classifier(dtype="mixed_bfloat16"))
        assert [layer.dtype_policy.name for layer in copy.layers] == ["mixed_bfloat16", "float32"]

    def test_the_states_of_random_layers_come_back(self):
        model = classifier(extra=[keras.layers.Dropout(0.5, seed=7)])
        model(X, training=True)
        copy = copied(model)
        np.testing.assert_array_equal(copy(X, training=True), model(X, training=True))

    @pytest.mark.parametrize("options", [{"jit_compile": False}, {"run_eagerly": True}, {"steps_per_execution": 3}])
    def test_how_it_was_compiled_comes_back(self, options):
        copy = copied(classifier(metrics=["accuracy"], weighted_metrics=["mae"], **options))
        for name, value in options.items():
            assert getattr(copy, name) == value

    def test_a_method_that_was_set_on_one_model_is_refused(self):
        model = classifier()
        model.train_step = lambda *args: None
        with pytest.raises(ModelError, match=r"has its own `train_step`, set on the object"):
            to_archive(model)

    def test_a_layer_that_does_not_keep_its_values_is_refused_by_name(self):
        archive = to_archive(classifier(extra=[Forgetful(name="forgetful")]))
        with pytest.raises(ModelError, match=r"'.*forgetful/factor' .* does not come back .* other values"):
            from_archive(archive, {"Forgetful": Forgetful})

    def test_an_archive_of_plain_keras_is_read_as_it_is(self, tmp_path):
        model = classifier()
        model.save(tmp_path / "model.keras")
        assert_same(from_archive((tmp_path / "model.keras").read_bytes()).weights, model.weights)

    def test_what_is_added_is_plain_data(self, tmp_path):
        model = classifier()
        model.layers[0].enable_lora(2)
        (tmp_path / "model.keras").write_bytes(to_archive(model))
        with zipfile.ZipFile(tmp_path / "model.keras") as archive:
            facts = json.loads(archive.read("keraunos.json"))
            assert {"keraunos.json", "keraunos.npz", "config.json", "model.weights.h5"} <= set(archive.namelist())
        assert facts["trainable"] == [False, True, True, True, True, True]


@keras.saving.register_keras_serializable("test_archive_extras")
class Forgetful(keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(name="factor", shape=(1,), initializer=keras.initializers.RandomNormal())

    def call(self, inputs):
        return inputs * self.factor

    def save_own_variables(self, store):
        """Nothing is saved."""

    def load_own_variables(self, store):
        """Nothing is loaded."""
