"""`zoo.pipeline.nnframes`, and images through nets: in a process whose Keras runs on TensorFlow."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import ParamGridBuilder
from pyspark.sql.functions import col, udf
from pyspark.sql.types import DoubleType

from keraunos.compat.zoo.bigdl.nn.criterion import (
    AbsCriterion,
    BCECriterion,
    ClassNLLCriterion,
    CrossEntropyCriterion,
    MSECriterion,
)
from keraunos.compat.zoo.bigdl.optim.optimizer import (
    MAE,
    SGD,
    Adam,
    EveryEpoch,
    MaxIteration,
    Top1Accuracy,
    TrainSummary,
    ValidationSummary,
)
from keraunos.compat.zoo.feature.common import ChainedPreprocessing, SeqToTensor
from keraunos.compat.zoo.feature.image import (
    ImageCenterCrop,
    ImageChannelNormalize,
    ImageFeatureToTensor,
    ImageMatToTensor,
    ImageResize,
    ImageSet,
    ImageSetToSample,
    RowToImageFeature,
)
from keraunos.compat.zoo.models.image.objectdetection import ObjectDetector
from keraunos.compat.zoo.pipeline.api.keras.layers import Dense, Flatten, Input, merge
from keraunos.compat.zoo.pipeline.api.keras.models import Model, Sequential
from keraunos.compat.zoo.pipeline.nnframes import (
    NNClassifier,
    NNClassifierModel,
    NNEstimator,
    NNImageReader,
    NNModel,
    XGBClassifierModel,
)
from keraunos.compat.zoo.pipeline.nnframes.losses import loss_of
from keraunos.compat.zoo.tfpark.tfnet import TFNet
from keraunos.errors import ColumnError, DataError, JobError, ModelError
from tests.ml.param_surface import load, surface, written

SURFACES = written(Path(__file__).with_name("param_surface.json"))
v1 = tf.compat.v1
RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Forty files: cats are blue at the top, dogs at the bottom."""
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(40):
        kind = ("cat", "dog")[number % 2]
        pixels = RANDOM.integers(0, 120, (24, 20, 3)).astype(np.uint8)
        half = slice(0, 12) if kind == "cat" else slice(12, 24)
        pixels[half, :, 2] = RANDOM.integers(130, 255, (12, 20))
        Image.fromarray(pixels).save(folder / f"{kind}.{number}.png")
    return folder


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """A file with a frozen graph that takes pixels of 8 bits: means over patches, and the mean of all."""
    with tf.Graph().as_default() as graph:
        given = v1.placeholder(tf.uint8, [None, 16, 16, 3], name="image_tensor")
        floats = tf.cast(given, tf.float32) / 255.0
        patches = v1.nn.avg_pool(floats, ksize=[1, 4, 4, 1], strides=[1, 4, 4, 1], padding="VALID")
        tf.reshape(patches, [-1, 48], name="patches")
        tf.reduce_mean(floats, axis=[1, 2, 3], name="mean")
    path = tmp_path_factory.mktemp("graph") / "frozen.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return str(path)


def labelled(spark, folder):
    images = NNImageReader.readImages(str(folder), spark.sparkContext, 2, resizeH=20, resizeW=20, image_codec=1)
    label = udf(lambda row: 1.0 if row[0].rsplit("/", 1)[-1].startswith("cat") else 2.0, DoubleType())
    return images.withColumn("label", label(col("image")))


def rows_of_two(spark, rows=8, partitions=2):
    made = [([2.0, 1.0], [1.0, 2.0], 1.0), ([1.0, 2.0], [2.0, 1.0], 2.0)] * (rows // 2)
    frame = spark.createDataFrame(made, "features array<double>, both array<double>, label double")
    return frame.repartition(partitions)


@pytest.mark.parametrize("kind", SURFACES)
def test_what_users_see_of_the_params_stays(kind):
    assert surface(load(kind)) == SURFACES[kind]


def test_setters_take_what_they_took_in_analytics_zoo():
    estimator = NNEstimator(Sequential().add(Dense(1, input_shape=(2,))), "mse")
    assert estimator.getBatchSize() == 1
    assert (estimator.getMaxEpoch(), estimator.getLearningRate(), estimator.isCachingSample()) == (50, 1e-3, True)
    assert estimator.setMaxEpoch(val=3).setLearningRate(np.float32(0.5)).setLearningRateDecay("0.25") is estimator
    assert (estimator.getMaxEpoch(), estimator.getLearningRate(), estimator.getLearningRateDecay()) == (
        3,
        0.5,
        0.25,
    )
    assert estimator.copy({estimator.maxEpoch: 7}).getMaxEpoch() == 7
    with pytest.raises(JobError, match="`batchSize` must be a whole number of at least 1. Received: 0"):
        estimator.setBatchSize(0)
    with pytest.raises(TypeError, match='param "maxEpoch". Could not convert x to int'):
        estimator.setMaxEpoch("x")
    with pytest.raises(TypeError, match="NoneType"):
        estimator.setLearningRate(None)
    model = NNClassifierModel(Sequential().add(Dense(1, input_shape=(2,))))
    assert (model.getThreshold(), model.setThreshold(1).getThreshold()) == (0.5, 1.0)


def test_transfer_learning_from_a_frozen_graph(spark, pictures, frozen, tmp_path):
    transformer = ChainedPreprocessing(
        [
            RowToImageFeature(),
            ImageResize(18, 18),
            ImageCenterCrop(16, 16),
            ImageMatToTensor(format="NHWC"),
            ImageFeatureToTensor(),
        ]
    )
    net = NNModel(TFNet(frozen, ["image_tensor:0"], ["patches:0"]), transformer)
    model = Sequential().add(Dense(2, activation="log_softmax", input_shape=(48,)))
    classifier = (
        NNClassifier(model, ClassNLLCriterion(), SeqToTensor([48]))
        .setOptimMethod(Adam())
        .setLearningRate(0.05)
        .setBatchSize(10)
        .setMaxEpoch(15)
        .setFeaturesCol("embedding")
        .setCachingSample(False)
    )
    frame = labelled(spark, pictures)
    pipeline = Pipeline(stages=[net.setFeaturesCol("image").setPredictionCol("embedding"), classifier])
    fitted = pipeline.fit(frame)
    predicted = fitted.transform(frame)
    evaluator = MulticlassClassificationEvaluator(labelCol="label", predictionCol="prediction", metricName="accuracy")
    assert evaluator.evaluate(predicted) > 0.95
    fitted.save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline")).transform(frame)
    assert [row.prediction for row in loaded.collect()] == [row.prediction for row in predicted.collect()]
    assert len(loaded.first().embedding) == 48


@pytest.mark.extended
def test_fine_tuning_of_a_model_of_pixels(spark, pictures):
    entry = Input(name="input", shape=(3, 16, 16))
    model = Model(entry, Dense(2)(Flatten()(entry)))
    transformer = ChainedPreprocessing(
        [
            RowToImageFeature(),
            ImageResize(18, 18),
            ImageCenterCrop(16, 16),
            ImageChannelNormalize(100, 100, 100, 60, 60, 60),
            ImageMatToTensor(),
            ImageFeatureToTensor(),
        ]
    )
    classifier = NNClassifier(model, CrossEntropyCriterion(), transformer).setLearningRate(0.003).setBatchSize(8)
    fitted = classifier.setOptimMethod(Adam()).setMaxEpoch(6).setFeaturesCol("image").fit(labelled(spark, pictures))
    found = fitted.transform(labelled(spark, pictures))
    assert found.filter("label = prediction").count() >= 38
    assert fitted.model is model


def test_images_are_predicted_with_a_net_and_with_a_model(spark, pictures, frozen):
    net = TFNet(frozen, "image_tensor:0", ["patches:0", "mean:0"])
    transformer = ChainedPreprocessing([ImageResize(16, 16), ImageMatToTensor(format="NHWC"), ImageSetToSample()])
    images = ImageSet.read(str(pictures), spark.sparkContext, 2).transform(transformer)
    output = net.predict_image(images.to_image_frame(), batch_per_partition=1)
    path, (patches, mean) = ImageSet.from_image_frame(output).get_predict().first()
    assert path.endswith(".png")
    np.testing.assert_allclose(patches.mean(), mean, rtol=1e-4)
    model = Sequential().add(Flatten(input_shape=(16, 16, 3))).add(Dense(1))
    local = ImageSet.read(str(pictures / "cat.*")).transform(transformer)
    answered = model.predict_image(local)
    assert answered.is_local()
    expected = model.forward(np.stack([each["sample"].feature.to_ndarray() for each in local.images.features]))
    np.testing.assert_allclose(np.stack([each[1][0] for each in answered.get_predict()]), expected, rtol=1e-3)
    with pytest.raises(JobError, match="ObjectDetector is not here"):
        ObjectDetector.load_model("path")


def test_an_estimator_learns_validates_saves_and_notes(spark, tmp_path):
    frame = rows_of_two(spark)
    model = Sequential().add(Dense(2, input_dim=2))
    train, validation = TrainSummary(str(tmp_path), "app"), ValidationSummary(str(tmp_path), "app")
    train.set_summary_trigger("LearningRate", EveryEpoch())
    estimator = (
        NNEstimator(model, MSECriterion(), [2], [2])
        .setBatchSize(4)
        .setMaxEpoch(30)
        .setLearningRate(0.2)
        .setLabelCol("both")
        .setTrainSummary(train)
        .setValidation(EveryEpoch(), frame, [MAE(), Top1Accuracy()], 2)
        .setValidationSummary(validation)
        .setCheckpoint(str(tmp_path / "saved"), MaxIteration(60), isOverWrite=False)
        .setGradientClippingByL2Norm(5.0)
        .setDataCacheLevel("DISK_AND_DRAM", 2)
    )
    fitted = estimator.fit(frame)
    rows = fitted.transform(frame).collect()
    np.testing.assert_allclose([row.prediction for row in rows], [row.both for row in rows], atol=0.1)
    assert len(train.read_scalar("LearningRate")) == 30
    assert train.read_scalar("LearningRate")[0, 1] == pytest.approx(0.2)
    errors = validation.read_scalar("MAE")
    assert len(errors) == 30
    assert errors[-1, 1] < 0.1 < errors[0, 1]
    assert [each.name for each in (tmp_path / "saved").iterdir()] == ["model.60.keras"]
    fitted.write().overwrite().save(str(tmp_path / "model"))
    again = NNModel.load(str(tmp_path / "model")).transform(frame).collect()
    np.testing.assert_allclose([row.prediction for row in again], [row.prediction for row in rows])


@pytest.mark.extended
def test_classes_count_from_one_and_one_output_is_yes_or_no(spark):
    frame = rows_of_two(spark).withColumn("yes", col("label") - 1)
    model = Sequential().add(Dense(1, activation="sigmoid", input_dim=2))
    fitted = (
        NNClassifier(model, BCECriterion(), [2])
        .setOptimMethod(SGD(0.5))
        .setBatchSize(4)
        .setMaxEpoch(20)
        .setLabelCol("yes")
        .fit(frame)
    )
    assert isinstance(fitted, NNClassifierModel)
    assert all(row.yes == row.prediction for row in fitted.transform(frame).collect())
    assert {row.prediction for row in fitted.setThreshold(2.0).transform(frame).collect()} == {0.0}
    classes = Sequential().add(Dense(2, activation="log_softmax", input_dim=2))
    with pytest.raises(Exception, match="A label must be a class from 1 to 2: BigDL counts them from 1"):
        NNClassifier(classes, ClassNLLCriterion(), [2]).setBatchSize(4).setLabelCol("yes").fit(frame)


def test_grids_train_models_of_their_own_and_vectors_are_cut(spark):
    frame = spark.createDataFrame(
        [(Vectors.dense([1.0, 2.0]), 1.0), (Vectors.dense([2.0, 1.0]), 2.0), (None, 1.0)] * 2, ["features", "label"]
    ).coalesce(1)
    one, two = Input(shape=(1,)), Input(shape=(1,))
    model = Model([one, two], Dense(2)(merge([one, two], mode="concat")))
    before = model.get_weights()
    classifier = NNClassifier(model, CrossEntropyCriterion(), [[1], [1]]).setBatchSize(2).setEndWhen(MaxIteration(3))
    grid = ParamGridBuilder().addGrid(classifier.learningRate, [1e-3, 1.0]).build()
    slow, fast = classifier.fit(frame.dropna(), params=grid)
    assert np.abs(slow.model.get_weights()[0] - fast.model.get_weights()[0]).max() > 0.1
    np.testing.assert_array_equal(before[0], model.get_weights()[0])
    found = [row.prediction for row in fast.transform(frame).collect()]
    assert found.count(None) == 2
    assert set(found) <= {None, 1.0, 2.0}


@pytest.mark.parametrize(
    "criterion",
    [ClassNLLCriterion(), ClassNLLCriterion(logProbAsInput=False), CrossEntropyCriterion(), MSECriterion(),
     AbsCriterion(), BCECriterion()],
    ids=["logarithms", "chances", "logits", "squares", "distances", "binary"],
)  # fmt: skip
def test_a_loss_is_its_criterion(criterion):
    by_class = isinstance(criterion, (ClassNLLCriterion, CrossEntropyCriterion))
    output = RANDOM.uniform(0.1, 0.9, (5, 3)).astype(np.float32)
    label = RANDOM.integers(0, 3, (5, 1)) if by_class else RANDOM.uniform(size=(5, 3)).astype(np.float32)
    loss = loss_of(criterion)
    loss = type(loss).from_config(loss.get_config())
    found = float(loss(label + 1 if by_class else label, output))
    assert found == pytest.approx(criterion.rows(output, label).mean(), rel=1e-4)


def test_what_cannot_be_is_refused_by_name(spark):
    frame = rows_of_two(spark)
    model = Sequential().add(Dense(2, input_dim=2))
    with pytest.raises(ModelError, match="`model` must be a Sequential or Model of zoo.pipeline.api.keras.models"):
        NNModel("model")
    with pytest.raises(ModelError, match="`criterion` must be one of bigdl.nn.criterion's"):
        NNEstimator(model, object(), [2], [2]).setLabelCol("both").fit(frame)
    with pytest.raises(ColumnError, match="`labelCol` must name a column: 'features', 'both', 'label'"):
        NNEstimator(model, MSECriterion(), [2], [2]).setLabelCol("other").fit(frame)
    with pytest.raises(JobError, match="`endWhen` and `maxEpoch` must not both be set"):
        NNEstimator(model, MSECriterion()).setMaxEpoch(1).setEndWhen(EveryEpoch()).fit(frame)
    with pytest.raises(JobError, match="Use xgboost.spark"):
        XGBClassifierModel.loadModel("path", 2)
    with pytest.raises(Exception, match="RowToImageFeature|image struct"):
        NNModel(model, RowToImageFeature()).transform(frame).collect()
    assert DataError
