"""Summaries as files that TensorBoard reads and as arrays; validation methods however the rows are cut."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from keraunos.compat.zoo.bigdl.nn.criterion import (
    AbsCriterion,
    BCECriterion,
    ClassNLLCriterion,
    CrossEntropyCriterion,
    MSECriterion,
)
from keraunos.compat.zoo.bigdl.optim import optimizer as bigdl
from keraunos.errors import DataError, JobError
from keraunos.telemetry.tensorboard import read_scalars


def test_a_training_is_read_back_as_steps_values_and_times(tmp_path):
    with bigdl.TrainSummary(str(tmp_path), "lenet") as summary:
        for step in range(1, 4):
            summary.add_scalar("Loss", 1.0 / step, step)
            summary.add_scalar("Throughput", 100.0 * step, step)
        loss = np.array(summary.read_scalar("Loss"))
    assert loss.shape == (3, 3)
    np.testing.assert_allclose(loss[:, :2], [[1, 1], [2, 0.5], [3, 1 / 3]], rtol=1e-6)
    assert (loss[:, 2] > 1_600_000_000).all()
    assert len(list((tmp_path / "lenet" / "train").glob("events.out.tfevents.*"))) == 1
    # Another program, or the same one later, finds them too.
    assert bigdl.TrainSummary(f"file://{tmp_path}", "lenet").read_scalar("Throughput")[:, 1].tolist() == [100, 200, 300]


def test_validation_has_a_folder_of_its_own(tmp_path):
    with bigdl.ValidationSummary(str(tmp_path), "lenet") as summary:
        summary.add_scalar("Top1Accuracy", 0.75, 10)
    assert (tmp_path / "lenet" / "validation").is_dir()
    assert summary.read_scalar("Top1Accuracy")[0, :2].tolist() == [10, 0.75]
    assert summary.read_scalar("Loss").shape == (0, 3)


def test_what_is_noted_when_can_be_set(tmp_path):
    summary = bigdl.TrainSummary(str(tmp_path), "lenet")
    assert sorted(summary.triggers) == ["Loss", "Throughput"]
    summary.set_summary_trigger("Parameters", bigdl.SeveralIteration(20)).set_summary_trigger("Loss", "EveryEpoch")
    assert isinstance(summary.triggers["Loss"], bigdl.EveryEpoch)
    assert summary.triggers["Parameters"].interval == 20
    with pytest.raises(JobError, match="`name` must be one of 'LearningRate'.*Received: 'Lss'. Did you mean 'Loss'?"):
        summary.set_summary_trigger("Lss", bigdl.EveryEpoch())


@pytest.mark.spark
def test_a_summary_is_noted_on_another_file_system(mounted, tmp_path):
    first, second = bigdl.TrainSummary(f"{mounted}/logs", "lenet"), bigdl.TrainSummary(mounted, "lenet")
    folder = tmp_path / "logs" / "lenet" / "train"
    first.add_scalar("Loss", 0.5, 1)
    first.flush()
    assert len(list(folder.glob("events.out.tfevents.*"))) == 1
    first.add_scalar("Loss", 0.25, 2)
    assert first.read_scalar("Loss")[:, :2].tolist() == [[1, 0.5], [2, 0.25]]
    first.add_scalar("Loss", 0.125, 3)
    local = first.folder
    del first
    # What was noted last is there without a word, and nothing else of it is left.
    assert not local.exists()
    assert read_scalars(folder, "Loss")[:, 0].tolist() == [1, 2, 3]
    assert len(list(folder.glob("events.out.tfevents.*"))) == 1
    assert bigdl.TrainSummary(f"{mounted}/logs", "lenet").read_scalar("Loss")[:, 0].tolist() == [1, 2, 3]
    assert second.read_scalar("Loss").shape == (0, 3)
    with pytest.raises(JobError, match="`log_dir` must be a path of this machine.*'nowhere://host/logs'"):
        bigdl.TrainSummary("nowhere://host/logs", "lenet")


def cut_and_merged(method, output, label, cuts):
    bounds = sorted({0, len(output), *(each for each in cuts if each < len(output))})
    states = [method.state(output[a:b], label[a:b]) for a, b in itertools.pairwise(bounds)]
    return method.result(method.merge(states))


def classes(rows=50, count=7):
    random = np.random.default_rng(0)
    return random.normal(size=(rows, count)), random.integers(0, count, rows)


cuts = st.lists(st.integers(1, 49), max_size=6)


@given(cuts)
def test_accuracies_are_those_of_all_rows(where):
    output, label = classes()
    top1 = np.mean(output.argmax(axis=1) == label)
    top5 = np.mean([want in np.argsort(row)[-5:] for row, want in zip(output, label, strict=True)])
    one_hot = np.eye(7)[label]
    for method in (bigdl.Top1Accuracy(), bigdl.Accuracy()):
        assert cut_and_merged(method, output, label, where) == pytest.approx(top1)
        assert cut_and_merged(method, output, label[:, np.newaxis], where) == pytest.approx(top1)
        assert cut_and_merged(method, output, one_hot, where) == pytest.approx(top1)
    assert cut_and_merged(bigdl.Top5Accuracy(), output, label, where) == pytest.approx(top5)
    tree = np.stack([output, output[::-1]], axis=1)
    labels = np.stack([label, label[::-1]], axis=1)
    assert cut_and_merged(bigdl.TreeNNAccuracy(), tree, labels, where) == pytest.approx(top1)


def test_one_output_divides_two_classes_at_a_half():
    output, label = np.array([[0.1], [0.5], [0.9], [0.4]]), np.array([0, 1, 0, 0])
    assert bigdl.Top1Accuracy().result(bigdl.Top1Accuracy().state(output, label)) == 0.75


@given(cuts)
def test_losses_are_means_over_all_rows(where):
    output, label = classes()
    log_probability = output - np.log(np.exp(output).sum(axis=1, keepdims=True))
    nll = -log_probability[np.arange(50), label].mean()
    chance, truth = 1 / (1 + np.exp(-output)), (label[:, np.newaxis] > np.arange(7)).astype(float)
    entropy = -np.mean(truth * np.log(chance) + (1 - truth) * np.log(1 - chance))
    for criterion, given_, labels, expected in (
        (None, log_probability, label, nll),
        (ClassNLLCriterion(logProbAsInput=False), np.exp(log_probability), label, nll),
        (CrossEntropyCriterion(), output, label, nll),
        (MSECriterion(), output, truth, np.mean((output - truth) ** 2)),
        (AbsCriterion(), output, truth, np.mean(np.abs(output - truth))),
        (BCECriterion(), chance, truth, entropy),
    ):
        assert cut_and_merged(bigdl.Loss(criterion), given_, labels, where) == pytest.approx(expected)
    assert cut_and_merged(bigdl.MAE(), output, truth, where) == pytest.approx(np.mean(np.abs(output - truth)))


@given(cuts)
def test_an_area_under_the_curve_is_that_of_all_rows(where):
    random = np.random.default_rng(1)
    label = random.integers(0, 2, 50)
    output = np.clip(np.round(random.normal(0.4 + 0.2 * label, 0.3), 2), 0, 1)
    area = cut_and_merged(bigdl.AUC(10_000), output, label, where)
    assert area == pytest.approx(roc_auc_score(label, output), abs=1e-9)
    assert np.isnan(bigdl.AUC().result(bigdl.AUC().state(output, np.ones(50))))
    # Several outputs have an area each, of which the result is the mean.
    outputs, labels = np.stack([output, random.uniform(size=50) / 4], 1), np.stack([label, np.arange(50) % 3 == 0], 1)
    areas = [roc_auc_score(labels[:, i], outputs[:, i]) for i in range(2)]
    assert cut_and_merged(bigdl.AUC(10_000), outputs, labels, where) == pytest.approx(np.mean(areas), abs=1e-9)


def test_an_area_has_bigdls_thresholds():
    output, label = np.array([0.1, 0.3, 0.5, 0.6, 0.7, 0.9], np.float32), np.array([0, 1, 1, 0, 0, 1])
    reached = output[:, np.newaxis] >= np.array([-1e-7, 2 / 3, 1.0, 1 + 1e-7], np.float32)
    right, wrong = (reached[label == value].mean(axis=0)[::-1] for value in (1, 0))
    method = bigdl.AUC(4)
    assert method.result(method.state(output, label)) == pytest.approx(np.trapezoid(right, wrong))


def test_rankings_look_for_the_one_right_item_of_a_question():
    scores = np.array([[0.9, 0.1, 0.2, 0.3], [0.2, 0.4, 0.1, 0.3], [0.5, 0.7, 0.8, 0.6]])
    label = np.array([[1, 0, 0, 0]] * 3)
    hits, gains = bigdl.HitRatio(3, 3), bigdl.NDCG(3, 3)
    assert hits.result(hits.state(scores, label)) == pytest.approx(2 / 3)
    assert gains.result(gains.state(scores, label)) == pytest.approx((1 + np.log(2) / np.log(4)) / 3)
    flat = hits.state(scores.reshape(-1, 1), label.reshape(-1, 1))
    assert hits.result(flat) == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="HitRatio must be given whole questions of `neg_num` \\+ 1 = 4 scores"):
        hits.state(scores.reshape(-1)[:10], label.reshape(-1)[:10])


def test_methods_may_be_named_and_those_that_are_no_sums_are_refused():
    names = ("acc", "top5acc", "mae", "auc", "treennaccuracy", "loss", "Top1Accuracy")
    assert [bigdl.validation_method(name).name for name in names] == [
        "Accuracy", "Top5Accuracy", "MAE", "AUC", "TreeNNAccuracy", "Loss", "Top1Accuracy",
    ]  # fmt: skip
    with pytest.raises(JobError, match="`val_method` must be one of"):
        bigdl.validation_method("f1")
    with pytest.raises(JobError, match="`MeanAveragePrecision` is not there.*Use AUC"):
        bigdl.MeanAveragePrecision(10, 20)
    with pytest.raises(JobError, match="one of bigdl.nn.criterion's"):
        bigdl.Loss("mse")


def test_no_rows_have_no_result():
    method = bigdl.Top1Accuracy()
    assert np.isnan(method.result(method.merge([])))
    assert np.isnan(bigdl.AUC().result(bigdl.AUC().merge([])))


@pytest.mark.parametrize(
    ("method", "output", "label", "message"),
    [
        (bigdl.Top1Accuracy(), np.zeros((3, 2)), np.zeros(4), "one class a row.*Expected: 3 rows"),
        (bigdl.Top1Accuracy(), np.zeros((3, 2, 2)), np.zeros(3), "rows and classes"),
        (bigdl.TreeNNAccuracy(), np.zeros((3, 2)), np.zeros(3), "rows, nodes and classes.*Use Top1Accuracy"),
        (bigdl.Loss(), np.zeros((3, 2)), np.array([0, 1, 2]), "a class from 0 to 1. Received: classes from 0 to 2"),
        (bigdl.MAE(), np.zeros((3, 2)), np.zeros((3, 3)), "one shape"),
        (bigdl.AUC(), np.array([0.5, 1.5]), np.array([0, 1]), "Apply a sigmoid"),
        (bigdl.AUC(), np.array([0.5, 0.5]), np.array([0, 2]), "labels of 0 and 1"),
        (bigdl.AUC(), np.zeros((2, 2)), np.zeros(4), "one label a row, or as many of both"),
    ],
)
def test_rows_that_do_not_fit_are_an_error(method, output, label, message):
    with pytest.raises(DataError, match=message):
        method.state(output, label)
