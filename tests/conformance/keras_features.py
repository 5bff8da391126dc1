"""What Keras can be told of a model, one case each, and what a fit must make of it: for the tests and the table.

`allreduce` is held against one process of plain Keras that is fed the same global batches, `averaging` with one worker
against plain Keras on that worker's batches. Where n workers cannot be one process (random layers, batch statistics,
sums in half precision) and for `averaging` with two, the judge is a simulation of the plan in plain Keras: one model
per worker, whose gradients or changes are put together by numpy. The judges never see an archive of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np

from keraunos.learners.keras_variables import read_vector, reseed, write_vector
from tests.conformance import engine

FEATURES = 6
SIZES = {1: [96], 2: [64, 32]}
EVERY = 3
SEED = 3
BATCH = 8
EPOCHS = 3
VOCABULARY = 9


@dataclass(frozen=True)
class Feature:
    """One thing that Keras can be told.

    Attributes:
        name: what a reader of the table sees.
        make: gives the compiled model, always with the same weights.
        ids: whether rows are ids for an Embedding.
        weight: whether rows have weights.
        alike: whether several workers equal one process on the global batches; otherwise why not.
        tolerance: the largest difference of weights that float arithmetic explains.
    """

    name: str
    make: Callable[[], keras.Model]
    ids: bool = False
    weight: bool = False
    alike: str = ""
    tolerance: float = 2e-5


def rows(feature: Feature):
    random = np.random.default_rng(0)
    count = sum(SIZES[1])
    x = random.normal(size=(count, FEATURES)).astype("float32")
    y = (x[:, 0] > 0).astype("int64") + (x[:, 1] > 0)
    if feature.ids:
        x = random.integers(0, VOCABULARY, size=(count, FEATURES)).astype("int32")
    return engine.table(x=x, y=y, weight=random.uniform(0.1, 3, count))


def job_of(feature: Feature, workers: int, exchange: str):
    return engine.job_of(
        feature.make(),
        workers,
        exchange=exchange,
        every=EVERY if exchange == "averaging" else None,
        weight="weight" if feature.weight else None,
        batch_size=BATCH,
        epochs=EPOCHS,
        seed=SEED,
    )


def parts_of(feature: Feature, workers: int):
    return engine.partitions(rows(feature), SIZES[workers])


def difference(feature: Feature, workers: int, exchange: str) -> float:
    """The largest difference between the weights that a fit and its judge come to."""
    job, parts = job_of(feature, workers, exchange), parts_of(feature, workers)
    trained, _ = engine.train(job, parts)
    judge = judge_of(feature, workers, exchange)(feature, job, parts)
    return float(np.abs(read_vector(trained) - read_vector(judge)).max())


def judge_of(feature: Feature, workers: int, exchange: str):
    if workers == 1:
        return one_process
    if exchange == "averaging":
        return simulated_averaging
    return simulated_allreduce if feature.alike else one_process


def one_process(feature: Feature, job, parts) -> keras.Model:
    """Plain Keras, fed the global batches; the random numbers of rank 0."""
    model = feature.make()
    reseed(model, seed=job.schedule.seed, rank=0)
    for inputs, targets, weights in engine.global_batches(job, parts):
        model.train_on_batch(inputs, targets, sample_weight=weights)
    return ended(model)


def simulated_averaging(feature: Feature, job, parts) -> keras.Model:
    """A plain model per worker: each steps alone for a round, then all go on from the mean of their changes.

    The change is stretched by the square root of the number of workers that have some; statistics are plain means.
    """
    models = _replicas(feature, job, len(parts))
    size = _trained_size(models[0])
    base = read_vector(models[0])
    for round_ in _rounds(job, parts, EVERY):
        for model, batches in zip(models, round_, strict=True):
            for batch in batches:
                model.train_on_batch(batch.inputs, batch.targets, sample_weight=batch.weights)
        counts = np.array([sum(batch.rows for batch in batches) for batches in round_])
        change = sum((base - read_vector(model)) * count for model, count in zip(models, counts, strict=True))
        change = change / counts.sum()
        change[:size] *= np.sqrt(np.count_nonzero(counts))
        base = (base - change).astype("float32")
        for model in models:
            write_vector(model, base)
    return ended(models[0])


def simulated_allreduce(feature: Feature, job, parts) -> keras.Model:
    """A plain model per worker gives its gradient; the mean, weighted by rows, is applied by each one's optimizer."""
    models = _replicas(feature, job, len(parts))
    size = _trained_size(models[0])
    for round_ in _rounds(job, parts, 1):
        total, count = 0.0, 0
        state = 0.0
        for model, batches in zip(models, round_, strict=True):
            for batch in batches:
                gradient = _gradient(model, batch)
                total = total + gradient * batch.rows
                state = state + read_vector(model)[size:] * batch.rows
                count += batch.rows
        for model in models:
            vector = read_vector(model)
            vector[size:] = state / count
            write_vector(model, vector)
            _apply(model, _split(model, total / count))
    return ended(models[0])


def ended(model: keras.Model) -> keras.Model:
    """What `fit` does with a model in the end, which `train_on_batch` leaves out."""
    model.optimizer.finalize_variable_values(model.trainable_weights)
    return model


def _replicas(feature: Feature, job, count: int):
    models = []
    for rank in range(count):
        models.append(feature.make())
        reseed(models[-1], seed=job.schedule.seed, rank=rank)
    return models


def _rounds(job, parts, every: int):
    """Each worker's batches, round by round, until nobody has any; a round ends where an epoch does."""
    shards = engine.shards_of(job, parts)
    for epoch in range(job.schedule.epochs):
        streams = [list(shard.batches(epoch, job.schedule.batch_size)) for shard in shards]
        for start in range(0, max(map(len, streams)), every):
            yield [stream[start : start + every] for stream in streams]


def _gradient(model: keras.Model, batch) -> np.ndarray:
    """The gradient by JAX's own means; random states and batch statistics move as in a step."""
    import jax

    if not hasattr(model, "gradient_program"):

        def loss_of(trained, others, inputs, targets, weights, scale):
            outputs, moved, losses = model.stateless_call(trained, others, inputs, training=True, return_losses=True)
            return (model.loss(targets, outputs, sample_weight=weights) + sum(losses)) * scale, moved

        model.gradient_program = jax.jit(jax.value_and_grad(loss_of, has_aux=True))
    scale = float(model.optimizer.scale_loss(1.0))
    trained, others = (
        [each.value for each in group] for group in (model.trainable_variables, model.non_trainable_variables)
    )
    (_, moved), gradients = model.gradient_program(trained, others, batch.inputs, batch.targets, batch.weights, scale)
    for variable, value in zip(model.non_trainable_variables, moved, strict=True):
        variable.assign(value)
    return np.concatenate([np.asarray(each, dtype="float32").ravel() for each in gradients])


def _apply(model: keras.Model, gradients) -> None:
    optimizer = model.optimizer
    optimizer.build(model.trainable_variables)
    trained, state = optimizer.stateless_apply(
        [each.value for each in optimizer.variables], gradients, [each.value for each in model.trainable_variables]
    )
    for variable, value in zip([*model.trainable_variables, *optimizer.variables], [*trained, *state], strict=True):
        variable.assign(value)


def _trained_size(model) -> int:
    return sum(int(np.prod(each.shape)) for each in model.trainable_variables)


def _split(model, vector):
    sizes = [int(np.prod(each.shape)) for each in model.trainable_variables]
    pieces = np.split(vector, np.cumsum(sizes)[:-1])
    return [piece.reshape(each.shape).astype("float32") for piece, each in zip(pieces, model.trainable_variables)]


def _compiled(layers, optimizer="sgd", change=None, **options) -> keras.Model:
    model = keras.Sequential(layers)
    if change is not None:
        change(model)
    made = keras.optimizers.SGD(0.1) if optimizer == "sgd" else optimizer
    model.compile(made, keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"], **options)
    return model


def dense(optimizer=None, change=None, extra=(), **dense_options):
    """A small classifier; `optimizer` makes its optimizer."""

    def make():
        keras.utils.set_random_seed(1)
        layers = [
            keras.Input((FEATURES,)),
            keras.layers.Dense(8, activation="tanh", **dense_options),
            *(each() for each in extra),
            keras.layers.Dense(3, activation="softmax", dtype="float32"),
        ]
        return _compiled(layers, "sgd" if optimizer is None else optimizer(), change)

    return make


def sequence(change=None):
    def make():
        keras.utils.set_random_seed(1)
        layers = [
            keras.Input((FEATURES,), dtype="int32"),
            keras.layers.Embedding(VOCABULARY, 4),
            keras.layers.EinsumDense("bti,io->bto", output_shape=(None, 5)),
            keras.layers.Conv1D(6, 2, activation="tanh"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(3, activation="softmax"),
        ]
        return _compiled(layers, "sgd", change)

    return make


def _lora(model):
    for layer in model.layers:
        if hasattr(layer, "enable_lora"):
            layer.enable_lora(2)


def _freeze_kernel(model):
    model.layers[0].kernel.trainable = False


def _freeze_layer(model):
    model.layers[0].trainable = False


def _without_decay():
    optimizer = keras.optimizers.AdamW(0.02, weight_decay=0.2)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer


def _schedule():
    return keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.3, 30), momentum=0.9)


def _sgd(**options):
    return lambda: keras.optimizers.SGD(0.1, **options)


def _dropout():
    return keras.layers.Dropout(0.4)


HALVES = "each worker rounds its own sum"

FEATURES_OF_KERAS = [
    Feature("SGD with momentum", dense(_sgd(momentum=0.9, nesterov=True))),
    Feature("Adam", dense(lambda: keras.optimizers.Adam(0.01)), tolerance=2e-4),
    Feature("AdamW, biases excluded from weight decay", dense(_without_decay), tolerance=2e-4),
    Feature("`use_ema`", dense(_sgd(use_ema=True, ema_momentum=0.9))),
    Feature(
        "`use_ema` with `ema_overwrite_frequency`",
        dense(_sgd(use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=4)),
    ),
    Feature("LoRA on a Dense layer", dense(change=_lora)),
    Feature("LoRA on Embedding, EinsumDense, Conv1D", sequence(_lora), ids=True),
    Feature("one frozen variable", dense(change=_freeze_kernel)),
    Feature("a frozen layer", dense(change=_freeze_layer)),
    Feature("`clipnorm`", dense(_sgd(clipnorm=0.05))),
    Feature("`clipvalue`", dense(_sgd(clipvalue=0.01))),
    Feature("`global_clipnorm`", dense(_sgd(global_clipnorm=0.05))),
    Feature("a learning-rate schedule", dense(_schedule)),
    Feature("`gradient_accumulation_steps`", dense(_sgd(gradient_accumulation_steps=2))),
    Feature("L2 regularizers", dense(kernel_regularizer="l2", bias_regularizer=keras.regularizers.L2(0.1))),
    Feature("constraints", dense(kernel_constraint=keras.constraints.MaxNorm(0.5))),
    Feature("sample weights", dense(), weight=True),
    Feature("mixed_bfloat16", dense(dtype="mixed_bfloat16"), alike=HALVES, tolerance=2e-4),
    Feature(
        "mixed_float16 with loss scaling",
        dense(
            lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=256.0),
            dtype="mixed_float16",
        ),
        alike=HALVES,
    ),
    Feature("dropout", dense(extra=(_dropout,)), alike="each worker draws its own random numbers"),
    Feature(
        "batch normalization", dense(extra=(keras.layers.BatchNormalization,)), alike="statistics are each worker's own"
    ),
]
