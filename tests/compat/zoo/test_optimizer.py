import json
import logging

import numpy as np
import pytest
import tensorflow as tf

from keraunos.compat.zoo.bigdl.optim.optimizer import (
    AUC,
    MAE,
    SGD,
    Accuracy,
    Adam,
    EveryEpoch,
    HitRatio,
    Loss,
    MaxEpoch,
    MaxIteration,
    MaxScore,
    MinLoss,
    Plateau,
    SeveralIteration,
    Step,
    Top1Accuracy,
    TrainSummary,
    TriggerAnd,
    TriggerOr,
    ValidationSummary,
)
from keraunos.compat.zoo.tfpark import TFDataset, TFOptimizer, ZooOptimizer
from keraunos.errors import JobError, ModelError
from keraunos.telemetry.tensorboard import read_scalars

pytestmark = [pytest.mark.spark, pytest.mark.slow]

v1 = tf.compat.v1
ROWS = 60
GENERATOR = np.random.default_rng(7)
X = GENERATOR.normal(size=(ROWS, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25).astype(np.float32)


@pytest.fixture
def graph(spark):
    with tf.Graph().as_default() as graph:
        yield graph


def dataset(spark, *, partitions=2, val=True, **options):
    context = spark.sparkContext
    rows = [list(row) for row in zip(X, Y, strict=True)]
    arguments = {
        "names": ["x", "y"],
        "shapes": [[3], [1]],
        "types": [tf.float32, tf.float32],
        "batch_size": 20,
        "val_rdd": context.parallelize(rows[:11], 2) if val else None,
    } | options
    return TFDataset.from_rdd(context.parallelize(rows, partitions), **arguments)


def linear(data):
    x, y = data.tensors
    w = v1.get_variable("w", [3, 1], initializer=v1.zeros_initializer())
    b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
    output = tf.matmul(x, w) + b
    return tf.reduce_mean(tf.square(output - y)), output, y


def trained(optimizer):
    with optimizer.sess.graph.as_default():
        return optimizer.sess.run(v1.trainable_variables())


def descended(steps, rate):
    """What gradient descent on all rows gives."""
    w, b = np.zeros((3, 1)), np.zeros(1)
    for _ in range(steps):
        error = 2 * (X @ w + b - Y) / ROWS
        w, b = w - rate * (X.T @ error), b - rate * error.sum(axis=0)
    return w, b


def test_full_batches_are_gradient_descent_whatever_the_number_of_workers(spark, graph):
    loss, _, _ = linear(dataset(spark, batch_size=ROWS, val=False))
    optimizer = TFOptimizer(loss, SGD(0.1))
    optimizer.optimize(end_trigger=MaxEpoch(5))
    w, b = trained(optimizer)
    expected_w, expected_b = descended(5, 0.1)
    np.testing.assert_allclose(w, expected_w, rtol=1e-4)
    np.testing.assert_allclose(b, expected_b, rtol=1e-4)


def test_summaries_validation_and_checkpoints_come_at_their_triggers(spark, graph, tmp_path):
    loss, output, label = linear(dataset(spark, batch_size=8))
    optimizer = TFOptimizer.from_loss(
        loss,
        Adam(0.1),
        val_outputs=[output],
        val_labels=[label],
        val_method=[MAE()],
        metrics={"squares": loss},
        model_dir=str(tmp_path / "checkpoints"),
    )
    train = TrainSummary(str(tmp_path), "app").set_summary_trigger("LearningRate", EveryEpoch())
    train.set_summary_trigger("Parameters", EveryEpoch())
    val = ValidationSummary(str(tmp_path), "app")
    optimizer.set_train_summary(train)
    optimizer.set_val_summary(val)
    optimizer.optimize(end_trigger=MaxEpoch(3))
    steps = 8
    losses = train.read_scalar("Loss")
    assert losses[:, 0].tolist() == list(range(1, 3 * steps + 1))
    assert losses[-1, 1] < losses[0, 1]
    assert len(train.read_scalar("Throughput")) == 3 * steps
    np.testing.assert_allclose(train.read_scalar("LearningRate")[:, 1], [0.1] * 3, rtol=1e-6)
    measured = val.read_scalar("MAE")
    assert measured[:, 0].tolist() == [steps, 2 * steps, 3 * steps]
    w, b = trained(optimizer)
    assert measured[-1, 1] == pytest.approx(np.abs(X[:11] @ w + b - Y[:11]).mean(), rel=1e-4)
    assert optimizer.scores["squares"] == pytest.approx(np.square(X[:11] @ w + b - Y[:11]).mean(), rel=1e-4)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir() if not path.name.startswith("."))
    versions = [steps, 2 * steps, 3 * steps]
    assert names == sorted(
        [f"model.{each}" for each in versions] + [f"optimMethod-TFParkTraining.{each}" for each in versions]
    )
    _continues_from(optimizer, tmp_path / "checkpoints", steps, versions)


def _continues_from(optimizer, folder, steps, versions):
    w, b = trained(optimizer)
    optimizer.load_checkpoint(str(folder), versions[0])
    first, _ = trained(optimizer)
    with np.load(folder / f"model.{steps}") as kept:
        np.testing.assert_array_equal(first, kept["w"])
    assert not np.array_equal(first, w)
    optimizer.load_checkpoint(str(folder), versions[2])
    np.testing.assert_array_equal(trained(optimizer)[0], w)
    optimizer.optimize(MaxEpoch(3))
    np.testing.assert_array_equal(trained(optimizer)[1], b)
    with pytest.raises(JobError, match="no 'model.999'"):
        optimizer.load_checkpoint(str(folder), 999)


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        (MaxIteration(4), 4),
        (TriggerOr(MaxIteration(5), MaxEpoch(1)), 3),
        (TriggerAnd(MaxIteration(2), MaxEpoch(2)), 6),
    ],
)
def test_the_end_is_exact(spark, graph, end, steps):
    loss, _, _ = linear(dataset(spark, val=False))
    optimizer = TFOptimizer(loss, SGD(0.05))
    counted = []
    optimizer.set_train_summary(_Counting(counted))
    optimizer.optimize(end_trigger=end)
    assert counted == list(range(1, steps + 1))
    optimizer.optimize(end_trigger=end)
    assert len(counted) == steps


class _Counting(TrainSummary):
    """A summary that keeps the steps whose loss it was told."""

    def __init__(self, steps):
        super().__init__("unused", "unused")
        self._steps = steps

    def add_scalar(self, tag, value, step):
        if tag == "Loss":
            self._steps.append(step)


def test_a_loss_and_a_score_can_end_it(spark, graph):
    loss, output, label = linear(dataset(spark))
    optimizer = TFOptimizer(loss, SGD(0.2), None, [output], [label], MAE())
    counted = []
    optimizer.set_train_summary(_Counting(counted))
    optimizer.optimize(end_trigger=TriggerOr(MinLoss(0.05), MaxEpoch(50)))
    assert 1 < len(counted) < 50
    assert optimizer.history is not None
    # A mean error is a score that is above zero as soon as it is measured, two steps later.
    optimizer.optimize(TriggerOr(MaxScore(-1.0), MaxEpoch(60)), SeveralIteration(1))
    assert optimizer.scores["MAE"] > 0


def test_clipping_bounds_what_a_step_moves(spark, graph):
    loss, _, _ = linear(dataset(spark, batch_size=ROWS, val=False))
    optimizer = TFOptimizer.from_loss(loss, SGD(1.0), clip_norm=0.5)
    optimizer.optimize(MaxIteration(1))
    assert np.sqrt(sum(np.square(each).sum() for each in trained(optimizer))) == pytest.approx(0.5, rel=1e-4)
    constant = TFOptimizer.from_loss(loss, SGD(1.0), clip_value=0.01)
    constant.optimize(MaxIteration(1))
    assert max(np.abs(each).max() for each in trained(constant)) == pytest.approx(0.01, rel=1e-4)


def test_a_schedule_goes_on_where_the_last_call_ended(spark, graph):
    loss, _, _ = linear(dataset(spark, batch_size=ROWS, val=False))
    once, twice = (TFOptimizer(loss, SGD(0.1, leaningrate_schedule=Step(2, 0.5))) for _ in range(2))
    once.optimize(MaxIteration(5))
    twice.optimize(MaxIteration(3))
    twice.optimize(MaxIteration(5))
    for expected, found in zip(trained(once), trained(twice), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_methods_by_the_beginnings_of_names(spark, graph):
    loss, _, _ = linear(dataset(spark, batch_size=ROWS, val=False))
    optimizer = TFOptimizer.from_loss(loss, {"w": SGD(0.1), "b": SGD(0.0)})
    optimizer.optimize(MaxIteration(1))
    w, b = trained(optimizer)
    np.testing.assert_allclose(w, descended(1, 0.1)[0], rtol=1e-4)
    assert b.tolist() == [0.0]
    with pytest.raises(JobError, match="'b'"):
        TFOptimizer.from_loss(loss, {"w": SGD(0.1)}).optimize(MaxIteration(1))


def test_dropout_is_fed_and_batch_norm_moves(spark, graph):
    data = dataset(spark, batch_size=ROWS)
    x, y = data.tensors
    keep = v1.placeholder(tf.float32, [], name="keep")
    mean = v1.get_variable("mean", [3], initializer=v1.zeros_initializer(), trainable=False)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign(mean, 0.5 * mean + 0.5 * tf.reduce_mean(x, axis=0)))
    w = v1.get_variable("w", [3, 1], initializer=v1.zeros_initializer())
    output = tf.matmul(x, w) * keep
    loss = tf.reduce_mean(tf.square(output - y))
    with pytest.raises(ModelError, match="'keep:0'.*tensor_with_value"):
        TFOptimizer.from_loss(loss, SGD(0.1))
    optimizer = TFOptimizer.from_loss(
        loss,
        SGD(0.1),
        tensor_with_value={keep: (0.5, 1.0)},
        val_outputs=output,
        val_labels=y,
        val_method="mae",
    )
    optimizer.optimize(MaxEpoch(1))
    np.testing.assert_allclose(trained(optimizer)[0], 0.1 * X.T @ Y / ROWS, rtol=1e-4)
    np.testing.assert_allclose(optimizer.sess.run(mean), 0.5 * X.mean(axis=0), atol=1e-5)
    expected = np.abs(X[:11] @ (0.1 * X.T @ Y / ROWS) - Y[:11]).mean()
    assert optimizer.scores["MAE"] == pytest.approx(expected, rel=1e-4)


def test_a_train_op_applies_the_gradient_of_all_workers(spark, graph):
    loss, _, _ = linear(dataset(spark, batch_size=ROWS, val=False))
    step = v1.train.create_global_step()
    train_op = ZooOptimizer(v1.train.MomentumOptimizer(0.1, 0.9)).minimize(loss, global_step=step)
    optimizer = TFOptimizer.from_train_op(train_op, loss)
    optimizer.optimize(MaxIteration(2))
    assert optimizer.sess.run(step) == 2
    w, b = np.zeros((3, 1)), np.zeros(1)
    velocity_w, velocity_b = np.zeros((3, 1)), np.zeros(1)
    for _ in range(2):
        error = 2 * (X @ w + b - Y) / ROWS
        velocity_w, velocity_b = 0.9 * velocity_w + X.T @ error, 0.9 * velocity_b + error.sum(axis=0)
        w, b = w - 0.1 * velocity_w, b - 0.1 * velocity_b
    np.testing.assert_allclose(trained(optimizer)[0], w, rtol=1e-4)
    np.testing.assert_allclose(trained(optimizer)[1], b, rtol=1e-4)
    with pytest.raises(JobError, match="Clip them in the graph"):
        optimizer.set_gradient_clipping_by_l2_norm(1.0)
    with pytest.raises(ModelError, match="must come from a ZooOptimizer"):
        TFOptimizer.from_train_op(v1.train.GradientDescentOptimizer(0.1).minimize(loss), loss)


def test_a_hard_coded_batch_leaves_rows_out_and_says_how_many(spark, graph, caplog):
    data = dataset(spark, batch_size=14, hard_code_batch_size=True)
    loss, output, label = linear(data)
    assert loss.graph.get_tensor_by_name("x:0").shape.as_list() == [7, 3]
    optimizer = TFOptimizer(loss, SGD(0.05), val_outputs=output, val_labels=label, val_method=MAE())
    with caplog.at_level(logging.WARNING):
        optimizer.optimize(MaxEpoch(1))
    assert any("4" in record.getMessage() and "rows" in record.getMessage().lower() for record in caplog.records)
    w, b = trained(optimizer)
    assert optimizer.scores["MAE"] == pytest.approx(np.abs(X[:11] @ w + b - Y[:11]).mean(), rel=1e-4)


def test_workers_validate_as_one_process_would(spark, graph):
    # Uneven partitions, some of them empty, and more of them than workers.
    rows = [list(row) for row in zip(X[:17], Y[:17] > 0, strict=True)]
    parts = [[], rows[:1], rows[1:12], [], rows[12:]]
    uneven = spark.sparkContext.parallelize(range(5), 5).flatMap(parts.__getitem__)
    data = dataset(spark, types=[tf.float32, tf.float32], val_rdd=uneven)
    x, y = data.tensors
    w = v1.get_variable("w", [3, 1], initializer=v1.zeros_initializer())
    output = tf.sigmoid(tf.matmul(x, w))
    loss = tf.reduce_mean(tf.square(output - y))
    methods = [AUC(50), MAE(), Top1Accuracy(), Accuracy(), Loss()]
    optimizer = TFOptimizer.from_loss(
        loss, SGD(0.1), val_outputs=[output], val_labels=[tf.squeeze(y)], val_method=methods, metrics={"squares": loss}
    )
    before = optimizer.tf_model.training_helper_layer.get_weights()
    optimizer.optimize(MaxIteration(4), checkpoint_trigger=SeveralIteration(2))
    (after,) = optimizer.tf_model.training_helper_layer.get_weights()
    assert not np.array_equal(before[0], after)
    found, labels = 1 / (1 + np.exp(-X[:17] @ after)), (Y[:17] > 0).astype(np.float32)
    expected = {tag: method.result(method.state(found, labels)) for tag, method in zip(("AucScore", "MAE"), methods)}
    right = np.mean((found >= 0.5) == labels)
    expected |= {"Top1Accuracy": right, "Top1Accuracy_1": right}
    expected |= dict.fromkeys(("Loss", "squares"), np.square(found - labels).mean())
    assert optimizer.scores == pytest.approx(expected, rel=1e-6)
    assert list(optimizer.scores) == list(expected)
    # Workers have measured them: they are in the history of the fit.
    assert optimizer.history["val_AucScore"][-1] == optimizer.scores["AucScore"]


def test_methods_that_need_the_order_of_the_records_have_it(spark, graph):
    # Questions of three rows: which item is right must be told from the rows' places.
    rows = [[row, [float(at % 3 == 1)]] for at, row in enumerate(X[:18])]
    data = dataset(spark, batch_size=18, val_rdd=spark.sparkContext.parallelize(rows, 4))
    loss, output, y = linear(data)
    optimizer = TFOptimizer(loss, SGD(0.1), None, [output], [y], HitRatio(1, 2))
    optimizer.optimize(MaxEpoch(1))
    w, b = trained(optimizer)
    best = (X[:18] @ w + b).reshape(6, 3).argmax(axis=1)
    assert optimizer.scores == pytest.approx({"HitRate@1": np.mean(best == 1)})


def test_a_plateau_lowers_the_rate(spark, graph, tmp_path):
    loss, output, label = linear(dataset(spark, batch_size=ROWS))
    plateau = Plateau("score", factor=0.5, patience=0, mode="max")
    optimizer = TFOptimizer(loss, SGD(0.1, leaningrate_schedule=plateau), None, [output], [label], MAE())
    summary = TrainSummary(str(tmp_path), "app").set_summary_trigger("LearningRate", EveryEpoch())
    optimizer.set_train_summary(summary)
    optimizer.optimize(MaxEpoch(4))
    rates = summary.read_scalar("LearningRate")[:, 1]
    assert rates[0] == pytest.approx(0.1)
    assert rates[-1] < 0.1


def test_a_dataframe_and_a_classifier(spark, graph):
    classes = (X[:, 0] > 0).astype(int)
    frame = spark.createDataFrame(
        [(row.tolist(), int(label)) for row, label in zip(X, classes, strict=True)], ["x", "label"]
    )
    data = TFDataset.from_dataframe(frame, ["x"], ["label"], batch_size=16, validation_df=frame.limit(20))
    logits = tf.matmul(data.feature_tensors, v1.get_variable("weights", [3, 2]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=data.label_tensors, logits=logits))
    optimizer = TFOptimizer(loss, Adam(0.1), None, [logits], [data.label_tensors], Top1Accuracy())
    optimizer.optimize(MaxEpoch(40))
    assert optimizer.scores["Top1Accuracy"] > 0.9


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda loss, data: TFOptimizer("loss", SGD()), ModelError, "must be a tensor of a TensorFlow graph"),
        (lambda loss, data: TFOptimizer(loss, "adam"), JobError, "one of bigdl.optim.optimizer's methods"),
        (lambda loss, data: TFOptimizer(tf.constant(1.0), SGD()), ModelError, "no dataset's"),
        (lambda loss, data: TFOptimizer(tf.reduce_sum(data.tensors[0]), SGD()), ModelError, "not depend on 'y:0'"),
        (lambda loss, data: TFOptimizer(loss, SGD(), val_method=MAE()), JobError, "no val_outputs and no val_labels"),
        (lambda loss, data: TFOptimizer.from_loss(loss, SGD(), inputs=[loss]), JobError, "must come with `dataset`"),
        (lambda loss, data: TFOptimizer(loss, SGD()).set_train_summary("x"), JobError, "must be a TrainSummary"),
        (lambda loss, data: TFOptimizer(loss, SGD()).optimize("soon"), JobError, "A trigger must be"),
        (lambda loss, data: TFOptimizer(loss, SGD()).optimize(MaxScore(1.0)), JobError, "nothing to validate"),
        (lambda loss, data: TFOptimizer(loss * data.tensors[1], SGD()).optimize(), ModelError, "(?i)scalar"),
    ],
)
def test_a_mistake_is_told_before_any_work(spark, graph, jobs_run, change, error, message):
    data = dataset(spark, val=False)
    loss, _, _ = linear(data)
    with pytest.raises(error, match=message):
        change(loss, data)
    assert not jobs_run()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": -1, "batch_per_thread": 4}, "Set `batch_size` instead"),
        ({"sequential_order": True}, "With shuffle=False"),
    ],
)
def test_a_dataset_that_is_not_for_training_is_refused(spark, graph, options, message):
    loss, _, _ = linear(dataset(spark, **options))
    with pytest.raises(JobError, match=message):
        TFOptimizer(loss, SGD())


@pytest.mark.parametrize("local", [True, False])
def test_a_checkpoint_says_where_training_stood(spark, graph, tmp_path, mounted, local):
    loss, _, _ = linear(dataset(spark, val=False))
    root = tmp_path.as_uri() if local else mounted
    optimizer = TFOptimizer.from_loss(loss, SGD(0.1), model_dir=root)
    optimizer.set_train_summary(TrainSummary(root, "app"))
    optimizer.optimize(MaxIteration(9), SeveralIteration(4))
    optimizer.optimize(MaxIteration(12), SeveralIteration(4))
    assert read_scalars(tmp_path / "app" / "train", "Loss")[:, 0].tolist() == list(range(1, 13))
    after = trained(optimizer)[0]
    optimizer.load_checkpoint(root, 4)
    assert not np.array_equal(trained(optimizer)[0], after)
    optimizer.load_checkpoint(root, 12)
    np.testing.assert_array_equal(trained(optimizer)[0], after)
    where = json.loads((tmp_path / "optimMethod-TFParkTraining.8").read_text())
    assert (where["steps"], where["epochs"]) == (8, 2)
    # An epoch has three steps; the trigger counts on, over epochs and over calls.
    assert sorted(path.name for path in tmp_path.glob("model.*")) == ["model.12", "model.4", "model.8"]


def test_records_of_files_and_pipelines_are_trained_on(spark, graph, tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "rows.tfrecord")) as writer:
        for x, y in zip(X, Y, strict=True):
            features = {"x": x.tolist(), "y": y.tolist()}
            lists = {name: tf.train.Feature(float_list=tf.train.FloatList(value=v)) for name, v in features.items()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString())
    data = TFDataset.from_tfrecord_file(spark.sparkContext, str(tmp_path / "rows.tfrecord"), batch_size=ROWS)
    (examples,) = data.tensors
    shapes = {"x": tf.io.FixedLenFeature([3], tf.float32), "y": tf.io.FixedLenFeature([1], tf.float32)}
    parsed = tf.io.parse_example(examples, shapes)
    _check_one_descent(parsed["x"], parsed["y"], "from_file")
    with tf.init_scope():
        pipeline = tf.data.Dataset.from_tensor_slices((X / 2, Y)).map(lambda x, y: (2 * x, y))
    _check_one_descent(*TFDataset.from_tf_data_dataset(pipeline, batch_size=ROWS).tensors, "from_pipeline")


def _check_one_descent(x, y, scope):
    with v1.variable_scope(scope):
        w = v1.get_variable("w", [3, 1], initializer=v1.zeros_initializer())
        b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
    optimizer = TFOptimizer(tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y)), SGD(0.1))
    optimizer.optimize(MaxIteration(2))
    expected_w, expected_b = descended(2, 0.1)
    np.testing.assert_allclose(optimizer.sess.run(w), expected_w, rtol=1e-4)
    np.testing.assert_allclose(optimizer.sess.run(b), expected_b, rtol=1e-4)
