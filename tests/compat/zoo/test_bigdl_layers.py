"""`bigdl.nn.layer` and `bigdl.optim.optimizer.Optimizer`: BigDL's modules compute BigDL's formulas, and learn."""

import keras
import numpy as np
import pytest
from sklearn.datasets import load_digits

from keraunos.compat.zoo.bigdl.models.lenet.lenet5 import build_model
from keraunos.compat.zoo.bigdl.nn import initialization_method as begin
from keraunos.compat.zoo.bigdl.nn import layer as nn
from keraunos.compat.zoo.bigdl.nn.criterion import (
    BCECriterion,
    ClassNLLCriterion,
    CrossEntropyCriterion,
    MSECriterion,
)
from keraunos.compat.zoo.bigdl.nn.criterion_losses import loss_for
from keraunos.compat.zoo.bigdl.optim.optimizer import (
    SGD,
    Adam,
    EveryEpoch,
    L1L2Regularizer,
    LocalOptimizer,
    Loss,
    MaxEpoch,
    Optimizer,
    SeveralIteration,
    Top1Accuracy,
    TrainSummary,
    ValidationSummary,
)
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.compat.zoo.pipeline.api.keras import layers as zoo
from keraunos.compat.zoo.pipeline.api.keras.models import Sequential as KerasSequential
from keraunos.errors import DataError, JobError, ModelError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
IMAGES = RANDOM.normal(size=(2, 3, 5, 5)).astype(np.float32)

FORMULAS = [
    (nn.ReLU(), X, np.maximum(X, 0)),
    (nn.Tanh(), X, np.tanh(X)),
    (nn.Sigmoid(), X, 1 / (1 + np.exp(-X))),
    (nn.HardSigmoid(), X, np.clip(0.2 * X + 0.5, 0, 1)),
    (nn.LogSoftMax(), X, X - np.log(np.exp(X).sum(-1, keepdims=True))),
    (nn.SoftMax(), X[0], np.exp(X[0]) / np.exp(X[0]).sum(-1, keepdims=True)),
    (nn.SoftMax(), IMAGES, np.exp(IMAGES) / np.exp(IMAGES).sum(1, keepdims=True)),
    (nn.SoftMin(), IMAGES, np.exp(-IMAGES) / np.exp(-IMAGES).sum(1, keepdims=True)),
    (nn.SoftPlus(2.0), X, np.log1p(np.exp(2 * X)) / 2),
    (nn.ELU(0.5), X, np.where(X > 0, X, 0.5 * (np.exp(X) - 1))),
    (nn.LeakyReLU(), X, np.where(X > 0, X, 0.01 * X)),
    (nn.Threshold(0.5, 9), X, np.where(X > 0.5, X, 9)),
    (nn.Clamp(-1, 1), X, np.clip(X, -1, 1)),
    (nn.Power(2, 3, 1), X, (1 + 3 * X) ** 2),
    (nn.PReLU(), X, np.where(X > 0, X, X / 4)),
    (nn.Normalize(2), X[0], X[0] / np.sqrt((X[0] ** 2).sum(-1, keepdims=True))),
    (nn.Normalize(2, 1.0), IMAGES, IMAGES / np.sqrt((IMAGES**2).sum(1, keepdims=True) + 1)),
    (nn.Normalize(1.7976931348623157e308), X[0], X[0] / np.abs(X[0]).max(1, keepdims=True)),
    (nn.Reshape([12]), X, X.reshape(2, 12)),
    (nn.View([2, 6]), X, X.reshape(2, 2, 6)),
    (nn.Select(2, -1), X, X[:, -1]),
    (nn.Select(3, 1), X, X[:, :, 0]),
    (nn.Narrow(3, 2, 2), X, X[:, :, 1:3]),
    (nn.Narrow(2, 2, -1), X, X[:, 1:]),
    (nn.Unsqueeze(2), X, X[:, np.newaxis]),
    (nn.Unsqueeze(0), X, X[..., np.newaxis]),
    (nn.Unsqueeze(-1), X, X[..., np.newaxis, :]),
    (nn.Unsqueeze(1, 2), X, X[:, np.newaxis]),
    (nn.Squeeze(1, 2), X[:, :1], X[:, 0]),
    (nn.Replicate(2, 1, 2), X, np.stack([X, X], 1)),
    (nn.Transpose([(2, 3)]), X, X.swapaxes(1, 2)),
    (nn.Sum(2), X, X.sum(1)),
    (nn.Sum(1, n_input_dims=2, size_average=True), X, X.mean(1)),
    (nn.Max(2), X, X.max(1)),
    (nn.Mean(3, squeeze=False), X, X.mean(2, keepdims=True)),
    (nn.CAddTable(), [X, X], 2 * X),
    (nn.CSubTable(), [X, 3 * X], -2 * X),
    (nn.CDivTable(), [X, 2 * X], np.full_like(X, 0.5)),
    (nn.JoinTable(2, 2), [X, X], np.concatenate([X, X], 2)),
    (nn.JoinTable(2, -1), [X, X], np.concatenate([X, X], 1)),
    # An input without a further dimension: it is no row's dimension that is meant.
    (nn.JoinTable(2, 3), [X, X], np.concatenate([X, X], 1)),
    (nn.JoinTable(2, 2), [X[0], X[0]], np.concatenate([X[0], X[0]], 1)),
    (nn.Sum(2, 3), X, X.sum(1)),
    (nn.Mean(2, 3), X, X.mean(1)),
    (nn.Max(2, 3), X, X.max(1)),
    (nn.Min(2, 3), X, X.min(1)),
    (nn.Min(2, 2), X, X.min(2)),
    (nn.Unsqueeze(2, 3), X, X[:, np.newaxis]),
    (nn.Replicate(2, 2, 3), X, np.stack([X, X], 1)),
    (nn.SelectTable(2), [X, 2 * X], 2 * X),
    (nn.DotProduct(), [X[:, 0], X[:, 1]], (X[:, 0] * X[:, 1]).sum(1)),
    (nn.MM(trans_b=True), [X, X], X @ X.swapaxes(1, 2)),
    (nn.SpatialMaxPooling(2, 2, 2, 2), IMAGES, IMAGES[:, :, :4, :4].reshape(2, 3, 2, 2, 2, 2).max((3, 5))),
    (nn.SpatialAveragePooling(5, 5, global_pooling=True), IMAGES, IMAGES.mean((2, 3), keepdims=True)),
    (nn.SpatialZeroPadding(1, 0, 2, 0), IMAGES, np.pad(IMAGES, ((0, 0), (0, 0), (2, 0), (1, 0)))),
    (nn.Sequential().add(nn.Tanh()).add(nn.Abs()), X, np.abs(np.tanh(X))),
    (nn.Concat(2).add(nn.Identity()).add(nn.Negative()), X, np.concatenate([X, -X], 1)),
]


def test_modules_compute_their_formulas():
    for module, given, expected in FORMULAS:
        np.testing.assert_allclose(
            module.evaluate().forward(given), expected, rtol=1e-4, atol=1e-5, err_msg=module.name()
        )


def test_the_parts_of_a_table_are_along_the_dimension_that_is_meant():
    assert [len(nn.SplitTable(2, dims).forward(X)) for dims in (-1, 2, 3)] == [3, 4, 3]


def test_places_that_are_not_there_are_refused():
    for make, told in (
        (lambda: nn.Select(2, 0), "`index` of Select must be counted from 1"),
        (lambda: nn.SelectTable(0), "`index` of SelectTable must be counted from 1"),
        (lambda: nn.SelectTable(-1), "`index` of SelectTable must be counted from 1"),
        (lambda: nn.Narrow(2, 0), "`offset` of Narrow must be counted from 1"),
        (lambda: nn.Narrow(2, -1), "`offset` of Narrow must be counted from 1"),
        (lambda: zoo.Narrow(1, -1), "`offset` of Narrow must be counted from 0"),
    ):
        with pytest.raises(JobError, match=told):
            make()
    for offset, length in ((3, 2), (4, -1), (1, 0)):
        with pytest.raises(ModelError, match="must take places that are there"):
            nn.Narrow(2, offset, length).forward(X)
    for module in (nn.SoftMax(), nn.SoftMin(), nn.Normalize(2)):
        with pytest.raises(ModelError, match="takes rows of numbers"):
            module.forward(X)


def test_pooling_fills_up_windows_and_counts_zeros_as_bigdl_does():
    ones = np.ones((1, 1, 4, 4), np.float32)
    assert nn.SpatialMaxPooling(3, 3, 2, 2, to_ceil=True).forward(-ones).shape == (1, 1, 2, 2)
    assert nn.SpatialMaxPooling(3, 3, 2, 2).forward(-ones).shape == (1, 1, 1, 1)
    np.testing.assert_allclose(nn.SpatialMaxPooling(3, 3, 2, 2, 1, 1, to_ceil=True).forward(-ones), -1)
    assert nn.SpatialMaxPooling(2, 2, 2, 2, -1, -1).forward(IMAGES).shape == (2, 3, 3, 3)
    padded = nn.SpatialAveragePooling(2, 2, 2, 2, 1, 1).forward(ones)
    np.testing.assert_allclose(padded[0, 0], [[0.25, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 0.25]])
    without = nn.SpatialAveragePooling(2, 2, 2, 2, 1, 1, count_include_pad=False).forward(ones)
    np.testing.assert_allclose(without, np.ones((1, 1, 3, 3)))


def test_weights_lie_as_bigdl_lays_them_out():
    weight, bias = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=3)
    linear = nn.Linear(4, 3, init_weight=weight, init_bias=bias)
    np.testing.assert_allclose(linear.forward(X[:, 0]), X[:, 0] @ weight.T + bias, rtol=1e-4, atol=1e-5)
    assert [each.shape for each in linear.get_weights()] == [(3, 4), (3,)]
    assert np.abs(nn.Linear(100, 9).get_weights()[0]).max() <= 0.1
    convolution = nn.SpatialConvolution(3, 2, 2, 4, pad_w=1)
    assert [each.shape for each in convolution.get_weights()] == [(1, 2, 3, 4, 2), (2,)]
    filters = RANDOM.normal(size=(2, 3, 4, 2))
    convolution.set_weights([filters, np.zeros(2)])
    padded = np.pad(IMAGES, ((0, 0), (0, 0), (0, 0), (1, 1)))
    expected = np.stack(
        [[np.einsum("bcij,fcij->bf", padded[:, :, r : r + 4, c : c + 2], filters) for c in range(6)]
         for r in range(2)]
    ).transpose(2, 3, 0, 1)  # fmt: skip
    np.testing.assert_allclose(convolution.forward(IMAGES), expected, rtol=1e-3, atol=1e-4)
    steps = nn.TemporalConvolution(4, 2, 2)
    frames = RANDOM.normal(size=(2, 8))
    steps.set_weights([frames, np.zeros(2)])
    windows = np.stack([X[:, i : i + 2].reshape(2, 8) for i in range(2)], 1)
    np.testing.assert_allclose(steps.forward(X), windows @ frames.T, rtol=1e-4, atol=1e-5)
    table = nn.LookupTable(5, 2)
    np.testing.assert_allclose(table.forward(np.array([[1, 5]])), [table.get_weights()[0][[0, 4]]])
    linear.set_init_method(begin.Xavier(), begin.ConstInitMethod(0.5))
    assert linear.get_weights()[1].tolist() == [0.5] * 3
    assert np.abs(linear.get_weights()[0]).max() <= np.sqrt(6 / 7)
    with pytest.raises(ModelError, match="A weight must have the shape \\(3, 4\\)"):
        linear.set_weights([weight[:2], bias])


def test_gradients_are_added_up_and_steps_are_taken():
    linear = nn.Linear(4, 1, with_bias=False).set_name("only")
    before = linear.get_weights()[0]
    x, gradient = X[:, 0], np.ones((2, 1))
    np.testing.assert_allclose(linear.backward(x, gradient), np.repeat(before, 2, 0), rtol=1e-5)
    linear.backward(x, gradient)
    np.testing.assert_allclose(linear.parameters()["only"]["gradWeight"], [2 * x.sum(0)], rtol=1e-4, atol=1e-6)
    linear.update_parameters(0.1)
    np.testing.assert_allclose(linear.get_weights()[0], before - 0.2 * x.sum(0), rtol=1e-4, atol=1e-6)
    linear.zero_grad_parameters()
    assert not linear.parameters()["only"]["gradWeight"].any()


def test_batches_are_normalized_and_elements_dropped_in_training_only():
    normal = nn.SpatialBatchNormalization(3, init_weight=np.ones(3))
    found = normal.forward(IMAGES)
    np.testing.assert_allclose(found.mean((0, 2, 3)), 0, atol=1e-5)
    assert not np.allclose(normal.evaluate().forward(IMAGES), found)
    drop = nn.Dropout(0.5)
    assert (drop.forward(X) == 0).any()
    np.testing.assert_allclose(drop.evaluate().forward(X), X)


def test_a_graph_and_recurrent_cells():
    a, b = nn.Input(), nn.Input()
    shared = nn.Linear(4, 2)
    joined = nn.CAddTable()([shared(a), nn.Linear(3, 2).set_name("right")(b)])
    graph = nn.Model([a, b], [nn.Tanh()(joined)])
    given = [X[:, 0], X[:, :, 0]]
    left, right = shared.forward(given[0]), graph.node("right").element().forward(given[1])
    np.testing.assert_allclose(graph.forward(given), np.tanh(left + right), rtol=1e-4, atol=1e-5)
    assert len(graph.get_weights()) == 4
    for cell in (nn.LSTM(4, 5, 0.0, "tanh", nn.HardSigmoid()), nn.GRU(4, 5), nn.RnnCell(4, 5, nn.Tanh())):
        model = nn.Sequential().add(nn.Recurrent().add(cell)).add(nn.TimeDistributed(nn.Linear(5, 2)))
        assert model.forward(X).shape == (2, 3, 2)


def test_recurrent_cells_begin_as_bigdls_do():
    for cell in (nn.LSTM(64, 4), nn.GRU(64, 4), nn.RnnCell(64, 4, nn.Tanh())):
        for _ in range(2):
            matrix, own, bias = cell.get_weights()
            assert 0.11 < np.abs(matrix).max() <= 1 / 8
            assert np.abs(bias).max() <= 1 / 8
            assert 0.25 < np.abs(own).max() <= 1 / 2
            cell.reset()


def test_a_module_is_a_layer_of_a_keras_model():
    inner = nn.Sequential().add(nn.Linear(4, 3)).add(nn.Tanh())
    model = KerasSequential([zoo.KerasLayerWrapper(inner, input_shape=(4,)), zoo.Dense(2)])
    model.add(zoo.KerasLayerWrapper(nn.SoftMax()))
    np.testing.assert_allclose(model.forward(X[:, 0]).sum(1), 1, rtol=1e-5)
    with pytest.raises(JobError, match="must have `input_shape`"):
        zoo.KerasLayerWrapper(inner)


def test_criteria_count_classes_from_one_and_have_gradients():
    logs = np.log(np.array([[0.2, 0.8], [0.5, 0.5]], np.float32))
    labels = np.array([2.0, 1.0])
    assert ClassNLLCriterion().forward(logs, labels) == pytest.approx(-(np.log(0.8) + np.log(0.5)) / 2)
    np.testing.assert_allclose(ClassNLLCriterion().backward(logs, labels), [[0, -0.5], [-0.5, 0]])
    # Probabilities that are quite wrong have BigDL's loss.
    chances, truth = np.array([[1.0], [0.0], [0.25]]), np.array([0.0, 1.0, 1.0])
    wrong = -(2 * np.log(1e-12) + np.log(0.25)) / 3
    assert BCECriterion().forward(chances, truth) == pytest.approx(wrong, rel=1e-5)
    assert BCECriterion().rows(chances, truth).mean() == pytest.approx(wrong, rel=1e-5)
    # A class of -1 is no row, and what is no class is no label.
    logs = np.concatenate([logs, logs])
    padded = np.array([2.0, -1.0, -1.0, 1.0])
    for criterion in (ClassNLLCriterion(), CrossEntropyCriterion()):
        assert criterion.forward(logs, padded) == pytest.approx(-(np.log(0.8) + np.log(0.5)) / 2)
        np.testing.assert_array_equal(criterion.backward(logs, padded)[1:3], 0)
        np.testing.assert_allclose(loss_for(criterion)(padded, logs), -(np.log(0.8) + np.log(0.5)) / 2, rtol=1e-5)
        for wrong in (0.0, 3.0, 1.5):
            with pytest.raises(DataError, match=f"must be a class from 1 to 2.*Received: {wrong}"):
                criterion.forward(logs, np.array([1.0, 1.0, 2.0, wrong]))
    np.testing.assert_allclose(MSECriterion().backward(np.array([1.0, 4.0]), np.array([0.0, 0.0])), [1.0, 4.0])
    # BigDL's own loop: a bias for each of five rows.
    bias = nn.CAdd([5, 1])
    for _ in range(150):
        x = RANDOM.random((5, 4))
        target = x + np.arange(1, 6).reshape(5, 1)
        gradient = MSECriterion().backward(bias.forward(x), target)
        bias.zero_grad_parameters()
        bias.backward(x, gradient)
        bias.update_parameters(0.1)
    np.testing.assert_allclose(bias.get_weights()[0].ravel(), np.arange(1, 6), rtol=0.1)


def test_penalties_add_to_the_gradient_what_bigdls_do():
    layer = zoo.Dense(1, W_regularizer=L1L2Regularizer(0.5, 0.1), bias=False, input_shape=(2,))
    layer(np.ones((1, 2), np.float32))
    layer.set_weights([np.array([[2.0], [-4.0]])])
    # Half of the sum, which is six, and a twentieth of the squares, which are twenty.
    np.testing.assert_allclose(layer.losses[0], 4.0, rtol=1e-6)


def test_vectors_need_no_batch_and_first_modules_are_inputs():
    first, second = nn.Linear(4, 2)(), nn.Linear(4, 2)()
    joined = nn.CAddTable()([first, second])
    model = nn.Model([first, second], [nn.ReLU()(joined), nn.Threshold(10.0)(joined)])
    for node, value in ((first, 1), (second, 2)):
        node.element().set_weights([np.ones((4, 2)) * value, np.ones(2) * value])
    given = [np.array([0.1, 0.2, -0.3, -0.4]), np.array([0.5, 0.4, -0.2, -0.1])]
    np.testing.assert_allclose(model.forward(given)[0], [3.8, 3.8], rtol=1e-5)
    left, right = model.backward(given, [np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    np.testing.assert_allclose([left, right], [[3.0] * 4, [6.0] * 4])
    # Dimensions of a vector are its own, and not those of a batch.
    vector = np.array([3.0, 1.0, 2.0])
    for module, expected in (
        (nn.Sum(1), 6.0),
        (nn.Max(1), 3.0),
        (nn.Narrow(1, 2, 2), vector[1:]),
        (nn.Select(1, 2), 1.0),
        (nn.JoinTable(1, 1), np.concatenate([vector, vector])),
        (nn.JoinTable(1, -1), np.concatenate([vector, vector])),
    ):
        given = [vector, vector] if isinstance(module, nn.JoinTable) else vector
        np.testing.assert_allclose(module.forward(given), expected)
    np.testing.assert_allclose(nn.Narrow(1, 2, 2).backward(vector, np.ones(2)), [0, 1, 1])
    for module in (nn.Sequential().add(nn.Tanh()).add(nn.Sum(1)), nn.Concat(1).add(nn.Tanh())):
        with pytest.raises(JobError, match="must be given a batch"):
            module.forward(vector)
    seeded = [nn.Linear(10, 20).set_init_method(begin.Xavier()).set_seed(7).reset() for _ in range(2)]
    np.testing.assert_array_equal(seeded[0].get_weights()[0], seeded[1].get_weights()[0])


@pytest.mark.spark
def test_lenet_learns_digits_on_executors(spark, tmp_path):
    digits = load_digits()
    # 8 rows and columns, each point three times, and an edge.
    images = np.pad(digits.images.repeat(3, 1).repeat(3, 2) / 16, ((0, 0), (2, 2), (2, 2))).astype(np.float32)
    samples = [Sample.from_ndarray(*each) for each in zip(images, digits.target + 1.0, strict=True)]
    train, test = (spark.sparkContext.parallelize(each, 2) for each in (samples[:1000], samples[1000:1300]))
    keras.utils.set_random_seed(3)
    model = build_model(10)
    optimizer = Optimizer(
        model=model,
        training_rdd=train,
        criterion=ClassNLLCriterion(),
        optim_method=Adam(0.003),
        end_trigger=MaxEpoch(4),
        batch_size=50,
    )
    optimizer.set_validation(
        batch_size=100, val_rdd=test, trigger=EveryEpoch(), val_method=[Top1Accuracy(), Loss(ClassNLLCriterion())]
    )
    optimizer.set_checkpoint(SeveralIteration(40), str(tmp_path / "checkpoints"), isOverWrite=False)
    optimizer.set_train_summary(TrainSummary(str(tmp_path), "lenet"))
    summary = ValidationSummary(str(tmp_path), "lenet")
    optimizer.set_val_summary(summary)
    trained = optimizer.optimize()
    assert trained is model
    (accuracy,) = trained.evaluate(test, 100, [Top1Accuracy()])
    assert accuracy.total_num == 300
    assert accuracy.result > 0.9
    assert summary.read_scalar("Top1Accuracy")[-1, 1] == pytest.approx(accuracy.result)
    assert summary.read_scalar("Loss")[-1, 1] < 0.5
    assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == [
        "model.40.keras",
        "model.80.keras",
    ]
    classes = np.array(trained.predict_class(test).collect())
    assert np.mean(classes == digits.target[1000:1300] + 1) == pytest.approx(accuracy.result)
    trained.saveModel(str(tmp_path / "lenet.keras"))
    again = nn.Model.loadModel(str(tmp_path / "lenet.keras"))
    np.testing.assert_allclose(again.predict(images[:5]), trained.predict(images[:5]), rtol=1e-4, atol=1e-5)
    for ours, read in zip(trained.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, read)
    with pytest.raises(JobError, match="`over_write` must be True"):
        trained.saveModel(str(tmp_path / "lenet.keras"))


def test_arrays_of_the_driver_are_trained_on():
    x = RANDOM.normal(size=(200, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    model = nn.Sequential().add(nn.Linear(3, 1)).add(nn.CAdd([1]).set_name("still"))
    model.layers[1].set_weights([np.array([0.25])])
    model.freeze(["still"])
    optimizer = Optimizer.create(model, (x, y), MSECriterion(), MaxEpoch(20), 20, SGD(0.1))
    optimizer.optimize()
    local = LocalOptimizer(X=x, Y=y, model=nn.Linear(3, 1), criterion=MSECriterion(), end_trigger=MaxEpoch(20),
                           batch_size=20, optim_method=SGD(0.1), cores=2)  # fmt: skip
    local.set_validation(20, X_val=x, Y_val=y, trigger=EveryEpoch(), val_method=[Loss(MSECriterion())])
    np.testing.assert_allclose(local.optimize().get_weights()[0], [[1.0, -2.0, 0.5]], atol=0.01)
    classifier = nn.Sequential().add(nn.Linear(3, 2)).add(nn.LogSoftMax())
    zeros = (y > 0).astype(np.float32)
    with pytest.raises(DataError, match="must be a class from 1 to 2.*Received: 0.0"):
        Optimizer.create(classifier, (x, zeros), ClassNLLCriterion(), MaxEpoch(1), 20).optimize()
    np.testing.assert_allclose(model.get_weights()[0], [[1.0, -2.0, 0.5]], atol=0.01)
    np.testing.assert_allclose(model.get_weights()[1:], [[-0.25], [0.25]], atol=0.01)
    assert model.parameters()["still"]["bias"].tolist() == [0.25]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.SpatialConvolution(4, 4, 3, 3, n_group=2), JobError, "`n_group` of Spatial"),
        (lambda: nn.LookupTable(4, 4, 1.0), JobError, "`padding_value`"),
        (lambda: nn.Dropout(scale=False), JobError, "`scale` of Dropout"),
        (lambda: nn.Linear(2, 2, init_grad_bias=np.zeros(2)), JobError, "`init_grad_weight`"),
        (lambda: nn.LSTM(2, 2, 0.5), JobError, "`p` of a recurrent cell"),
        (lambda: nn.Recurrent().add(nn.Linear(2, 2)), JobError, "A Recurrent has one cell"),
        (lambda: nn.Sequential().add(zoo.Dense(3)), JobError, "must be one of bigdl.nn.layer's"),
        (lambda: nn.VolumetricConvolution(1, 1, 2, 2, 2), JobError, "'VolumetricConvolution' is not among"),
        (lambda: nn.Model(nn.Tanh(), nn.Tanh()), JobError, "must be nodes"),
        (lambda: nn.Tanh().saveModel("/nowhere"), ModelError, "Call forward, or train it"),
        (lambda: nn.Model.loadModel(__file__), DataError, "BigDL's own are JVM objects"),
        (lambda: Optimizer(nn.Tanh(), [], CrossEntropyCriterion(), MaxEpoch(1), 1), JobError, "RDD of Samples"),
        (lambda: Optimizer(None, None, None, None, 1), JobError, "`model` must be a module of bigdl.nn.layer"),
        (lambda: Optimizer(nn.Linear(2, 2), (X, X), "mse", MaxEpoch(1), 1), JobError, "`criterion` must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
