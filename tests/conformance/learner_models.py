"""Small compiled models and the batches that feed them, for the learner suite."""

import keras
import numpy as np

from keraunos.batch import Batch
from keraunos.learners.keras_archive import arrange_targets
from keraunos.testing.learner_batches import FEATURES, rows


def as_outputs(model, targets):
    return arrange_targets(model, targets)


def dense(optimizer):
    model = keras.Sequential([keras.Input((FEATURES,)), *_hidden(), keras.layers.Dense(3, activation="softmax")])
    optimizer = keras.optimizers.SGD(0.1) if optimizer == "sgd" else optimizer
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return _seeded(model)


def batch_norm():
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(8),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return _seeded(model)


def dropout():
    model = keras.Sequential(
        [keras.Input((FEATURES,)), *_hidden(), keras.layers.Dropout(0.5), keras.layers.Dense(3, activation="softmax")]
    )
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    return _seeded(model)


def binary():
    model = keras.Sequential([keras.Input((FEATURES,)), *_hidden(), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc")])
    return _seeded(model)


def half_precision():
    layers = [keras.layers.Dense(8, activation="tanh", dtype="mixed_float16")]
    model = keras.Sequential([keras.Input((FEATURES,)), *layers, keras.layers.Dense(3, activation="softmax")])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return _seeded(model)


def two_inputs():
    left, right = keras.Input((4,), name="left"), keras.Input((2,), name="right")
    merged = keras.layers.Concatenate()([left, right])
    model = keras.Model({"left": left, "right": right}, keras.layers.Dense(1, name="out")(merged))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    generator = np.random.default_rng(0)
    batches = [
        Batch(
            {"left": generator.normal(size=(5, 4)), "right": generator.normal(size=(5, 2))},
            generator.normal(size=(5, 1)),
            None,
            5,
        )
        for _ in range(3)
    ]
    return _seeded(model), batches


# The cases of `LOSSES`: a model, and one batch a worker.


def mean_over_rows():
    return dense("sgd"), [rows(4, 1), rows(2, 2), rows(4, 3)]


def weighted_rows():
    return dense("sgd"), _weighted([rows(4, 1), rows(2, 2), rows(4, 3)])


def mean_over_weights():
    model = _with_loss(keras.losses.MeanSquaredError(reduction="mean_with_sample_weight"))
    return model, _weighted(_regression())


def plain_sum():
    return _with_loss(keras.losses.MeanSquaredError(reduction="sum")), _regression()


def sum_and_regulariser():
    loss = keras.losses.MeanSquaredError(reduction="sum")
    return _with_loss(loss, regulariser=keras.regularizers.L2(0.05)), _regression()


def mean_and_regulariser():
    return _with_loss("mse", regulariser=keras.regularizers.L2(0.05)), _regression()


def weights_and_regulariser():
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    return _with_loss(loss, regulariser=keras.regularizers.L2(0.05)), _weighted(_regression())


def masked_sequence():
    model = keras.Sequential(
        [
            keras.Input((5,), dtype="int32"),
            keras.layers.Embedding(7, 4, mask_zero=True),
            keras.layers.LSTM(4, return_sequences=True),
            keras.layers.TimeDistributed(keras.layers.Dense(3, activation="softmax")),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    return _seeded(model), _sequences()


def masked_and_regularised():
    model = keras.Sequential(
        [
            keras.Input((5, 2)),
            keras.layers.Masking(),
            keras.layers.SimpleRNN(4, return_sequences=True, kernel_regularizer=keras.regularizers.L2(0.05)),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse")
    batches = []
    for batch in _sequences():
        steps = np.repeat((batch.inputs > 0)[:, :, None], 2, axis=2) * np.linspace(-1, 1, 10).reshape(5, 2)
        batches.append(Batch(steps.astype("float32"), batch.targets[:, :, None].astype("float32"), None, batch.rows))
    return _seeded(model), batches


def ignored_class():
    model = keras.Sequential([keras.Input((5, 2)), keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.SGD(0.1), loss)
    generator = np.random.default_rng(3)
    return _seeded(model), [
        Batch(generator.normal(size=(batch.rows, 5, 2)).astype("float32"), batch.inputs % 3, None, batch.rows)
        for batch in _sequences()
    ]


def two_outputs():
    inputs = keras.Input((FEATURES,), name="in")
    hidden = keras.layers.Dense(5, activation="tanh")(inputs)
    left = keras.layers.Dense(1, name="left")(hidden)
    right = keras.layers.Dense(3, activation="softmax", name="right")(hidden)
    model = keras.Model(inputs, [left, right])
    model.compile(
        keras.optimizers.SGD(0.1),
        {"left": "mse", "right": "sparse_categorical_crossentropy"},
        loss_weights={"left": 0.3, "right": 2.0},
    )
    return _seeded(model), _two_targets()


def two_outputs_of_two_kinds():
    inputs = keras.Input((FEATURES,), name="in")
    hidden = keras.layers.Dense(5, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.1))(inputs)
    left = keras.layers.Dense(1, name="left")(hidden)
    right = keras.layers.Dense(3, activation="softmax", name="right")(hidden)
    model = keras.Model(inputs, {"left": left, "right": right})
    losses = {
        "left": keras.losses.MeanSquaredError(reduction="sum"),
        "right": keras.losses.SparseCategoricalCrossentropy(reduction="mean_with_sample_weight"),
    }
    model.compile(keras.optimizers.SGD(0.1), losses, loss_weights={"left": 0.3, "right": 2.0})
    return _seeded(model), _weighted(_two_targets())


def a_loss_for_one_of_two_outputs():
    model, batches = two_outputs()
    model.compile(keras.optimizers.SGD(0.1), [None, "sparse_categorical_crossentropy"])
    return model, [Batch(b.inputs, {"right": b.targets["right"]}, None, b.rows) for b in batches]


def a_loss_for_one_of_two_named_outputs():
    model, batches = two_outputs_of_two_kinds()
    model.compile(keras.optimizers.SGD(0.1), {"left": "mse"}, metrics={"right": ["accuracy"]})
    return model, batches


LOSSES = [
    mean_over_rows,
    weighted_rows,
    mean_over_weights,
    plain_sum,
    sum_and_regulariser,
    mean_and_regulariser,
    weights_and_regulariser,
    masked_sequence,
    masked_and_regularised,
    ignored_class,
    two_outputs,
    two_outputs_of_two_kinds,
    a_loss_for_one_of_two_outputs,
    a_loss_for_one_of_two_named_outputs,
]

if "mean_with_sample_weight" not in (keras.losses.Loss.__doc__ or ""):
    # The reduction is younger than the oldest Keras that is supported.
    LOSSES = [case for case in LOSSES if "weights" not in case.__name__ and case is not two_outputs_of_two_kinds]


@keras.saving.register_keras_serializable("learner_suite")
class Squared(keras.layers.Layer):
    """Adds a loss of its own to what it passes on."""

    def call(self, inputs):
        self.add_loss(keras.ops.mean(keras.ops.square(inputs)))
        return inputs


@keras.saving.register_keras_serializable("learner_suite")
class Rebuilding(keras.Sequential):
    """Is compared with its own input."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        assert y is None
        return keras.ops.mean(keras.ops.square(x - y_pred))


def added_loss():
    model = keras.Sequential([keras.Input((FEATURES,)), *_hidden(), Squared(), keras.layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.1), loss=None)
    return _seeded(model)


def rebuilding():
    model = Rebuilding([keras.Input((FEATURES,)), *_hidden(), keras.layers.Dense(FEATURES)])
    model.compile(keras.optimizers.SGD(0.1))
    return _seeded(model)


def unlabelled_step():
    return _of_class(_step_classes()[2], loss=None)


def unlabelled_rows(count, seed=0):
    return Batch(rows(count, seed).inputs, None, None, count)


@keras.saving.register_keras_serializable("learner_suite")
class OwnLoss(keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return 3.0 * super().compute_loss(x, y, y_pred, sample_weight)


@keras.saving.register_keras_serializable("learner_suite")
class Largest(keras.metrics.Metric):
    """The largest output so far: a state that neither adds up nor says how it is merged."""

    def __init__(self, name="largest", **kwargs):
        super().__init__(name=name, **kwargs)
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.seen.assign(keras.ops.maximum(self.seen, keras.ops.max(y_pred)))

    def result(self):
        return self.seen.value


def own_loss():
    return _of_class(OwnLoss)


def clipped_step():
    return _of_class(_step_classes()[0])


def double_step():
    return _of_class(_step_classes()[1])


def _step_classes():
    """Models whose `train_step` clips the gradient, or applies the optimizer twice, as the backend wants it written."""
    if not _classes:
        module = {"jax": _jax_steps, "tensorflow": _tensorflow_steps, "torch": _torch_steps}[keras.config.backend()]
        _classes.extend(module())
        CUSTOM.update({each.__name__: each for each in _classes})
    return _classes


_classes: list[type] = []
CUSTOM: dict[str, type] = {}


def _jax_steps():
    import jax

    class ClippedStep(keras.Sequential):
        times = 1

        def train_step(self, state, data):
            trained, others, optimizer, metrics = state
            x, y = data[:2]
            compute = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
            (_, aux), gradients = compute(
                trained, others, metrics, x, y, None, training=True, optimizer_variables=optimizer
            )
            gradients = [jax.numpy.clip(gradient, -0.01, 0.01) for gradient in gradients]
            for _ in range(self.times):
                trained, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trained)
            return {}, (trained, aux[2], optimizer, metrics)

    class UnlabelledStep(keras.Sequential):
        def train_step(self, state, data):
            trained, others, optimizer, metrics = state

            def loss(trained):
                outputs, moved = self.stateless_call(trained, others, data, training=True)
                return jax.numpy.mean(outputs**2), moved

            (value, moved), gradients = jax.value_and_grad(loss, has_aux=True)(trained)
            trained, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trained)
            return {"loss": value}, (trained, moved, optimizer, metrics)

    return ClippedStep, type("DoubleStep", (ClippedStep,), {"times": 2}), UnlabelledStep


def _tensorflow_steps():
    import tensorflow as tf

    class ClippedStep(keras.Sequential):
        times = 1

        def train_step(self, data):
            x, y = data[:2]
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            gradients = [tf.clip_by_value(each, -0.01, 0.01) for each in tape.gradient(loss, self.trainable_weights)]
            for _ in range(self.times):
                self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
            return {}

    class UnlabelledStep(keras.Sequential):
        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(data, training=True) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
            return {"loss": loss}

    return ClippedStep, type("DoubleStep", (ClippedStep,), {"times": 2}), UnlabelledStep


def _torch_steps():
    import torch

    class ClippedStep(keras.Sequential):
        times = 1

        def train_step(self, data):
            x, y = data[:2]
            self.zero_grad()
            self.compute_loss(x, y, self(x, training=True)).backward()
            gradients = [weight.value.grad.clip(-0.01, 0.01) for weight in self.trainable_weights]
            with torch.no_grad():
                for _ in range(self.times):
                    self.optimizer.apply(gradients, self.trainable_weights)
            return {}

    class UnlabelledStep(keras.Sequential):
        def train_step(self, data):
            self.zero_grad()
            loss = torch.mean(self(data, training=True) ** 2)
            loss.backward()
            gradients = [weight.value.grad for weight in self.trainable_weights]
            with torch.no_grad():
                self.optimizer.apply(gradients, self.trainable_weights)
            return {"loss": loss}

    return ClippedStep, type("DoubleStep", (ClippedStep,), {"times": 2}), UnlabelledStep


def _of_class(model_class, loss="sparse_categorical_crossentropy"):
    model = model_class([keras.Input((FEATURES,)), *_hidden(), keras.layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.1), loss)
    return _seeded(model)


def _hidden():
    return [keras.layers.Dense(8, activation="tanh")]


def _with_loss(loss, regulariser=None):
    layer = keras.layers.Dense(2, kernel_regularizer=regulariser)
    model = keras.Sequential([keras.Input((FEATURES,)), *_hidden(), layer])
    model.compile(keras.optimizers.SGD(0.02), loss)
    return _seeded(model)


def _regression():
    batches = [rows(4, 1), rows(2, 2), rows(4, 3)]
    return [Batch(batch.inputs, batch.inputs[:, :2] * 2 + 1, None, batch.rows) for batch in batches]


def _two_targets():
    batches = [rows(4, 1), rows(2, 2), rows(4, 3)]
    return [Batch(b.inputs, {"left": b.inputs[:, :1], "right": b.targets}, None, b.rows) for b in batches]


def _weighted(batches):
    generator = np.random.default_rng(5)
    return [Batch(b.inputs, b.targets, generator.uniform(0.1, 3, b.rows).astype("float32"), b.rows) for b in batches]


def _sequences():
    """Token sequences whose padding differs from worker to worker."""
    generator = np.random.default_rng(4)
    batches = []
    for count, longest in ((4, 5), (2, 2), (4, 3)):
        tokens = generator.integers(1, 7, (count, 5)).astype("int32")
        lengths = generator.integers(1, longest + 1, count)
        tokens[np.arange(5) >= lengths[:, None]] = 0
        batches.append(Batch(tokens, generator.integers(0, 3, (count, 5)), None, count))
    return batches


def _seeded(model):
    generator = np.random.default_rng(11)
    model.set_weights([_initial(generator, weight.shape, variable) for weight, variable in _weights(model)])
    return model


def _weights(model):
    return zip(model.get_weights(), model.weights)


def _initial(generator, shape, variable):
    if "moving" in variable.path or "gamma" in variable.path:
        return np.ones(shape)
    return generator.normal(size=shape) * 0.3
