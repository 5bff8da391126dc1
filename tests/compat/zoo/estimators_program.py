"""A program of its day with estimators; writes as JSON what it found into the folder `estimators`."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tensorflow as tf
from bigdl.dataset import mnist
from bigdl.optim.optimizer import SGD, MaxIteration
from PIL import Image
from tensorflow_estimator.python.estimator.canned import prediction_keys
from zoo import init_nncontext
from zoo.common.nncontext import init_spark_conf
from zoo.feature.common import ChainedPreprocessing
from zoo.feature.image import ImageBytesToMat, ImageMatToTensor, ImageSet, ImageSetToSample
from zoo.tfpark import TFDataset, TFEstimator, ZooOptimizer
from zoo.tfpark.estimator import TFEstimatorSpec
from zoo.tfpark.gan.gan_estimator import GANEstimator

folder = Path("estimators").resolve()
folder.mkdir()
sc = init_nncontext(init_spark_conf().setMaster("local[2]").setAppName("estimators"))
generator = np.random.RandomState(3)
X = generator.randn(90, 4).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0).astype(np.int32)


def told(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - what it says is what is looked at
        return f"{type(error).__name__}: {error}"
    return "nothing"


def records(mode):
    if mode == tf.estimator.ModeKeys.TRAIN:
        return TFDataset.from_ndarrays((X, Y), batch_size=30)
    if mode == tf.estimator.ModeKeys.EVAL:
        return TFDataset.from_ndarrays((X, Y), batch_per_thread=8)
    return TFDataset.from_rdd(sc.parallelize(X, 3), features=(tf.float32, [4]), batch_per_thread=8)


def one_by_one(mode):
    pairs = sc.parallelize(list(zip(X, Y)), 2)
    return TFDataset.from_rdd(pairs, features=(tf.float32, [4]), labels=(tf.int32, []))


def alone(features, labels, mode):
    assert features.shape.ndims == 1
    logits = tf.layers.dense(tf.expand_dims(features, 0), 2)
    return tf.estimator.EstimatorSpec(mode, predictions=logits, loss=tf.reduce_sum(logits))


def model_fn(features, labels, mode, params, config):
    assert config.model_dir
    logits = tf.layers.dense(tf.layers.dense(features, 8, activation=tf.nn.relu), 2)
    predictions = {"logits": logits, "class_ids": tf.argmax(logits, 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels))
    train_op = ZooOptimizer(tf.train.AdamOptimizer(params["rate"])).minimize(loss)
    accuracy = tf.metrics.accuracy(labels, predictions["class_ids"])
    return tf.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy}
    )


def in_memory():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(15)


def last_form():
    where = str(folder / "model_fn")
    params = {"rate": 0.05}
    before = TFEstimator.from_model_fn(model_fn, params=params).evaluate(records, ["acc", "loss"])
    estimator = TFEstimator.from_model_fn(model_fn, model_dir=where, params=params)
    chained = estimator.train(records, steps=20)
    first = tf.train.latest_checkpoint(where)
    again = TFEstimator(tf.estimator.Estimator(model_fn, where, params=params)).train(records, steps=25)
    results = again.evaluate(records, ["acc", "loss"])
    rows = again.predict(records).collect()
    return {
        "chained": chained is estimator,
        "checkpoints": [Path(each).name for each in (first, tf.train.latest_checkpoint(where))],
        "before": before,
        "results": results,
        "both names": [results["acc"], results["Top1Accuracy"]],
        "at the first": again.evaluate(records, ["acc"], checkpoint_path=first),
        "same rows": float(np.mean([row["class_ids"] == y for row, y in zip(rows, Y)])),
        "keys": sorted(rows[0]),
        "asked": sorted(again.predict(records, predict_keys=["class_ids"]).first()),
        "here": {name: float(value) for name, value in again.estimator.evaluate(in_memory).items()},
        "went on here": again.train(in_memory, steps=5).estimator.latest_checkpoint().rsplit("-", 1)[1],
        "single": TFEstimator.from_model_fn(alone).evaluate(one_by_one, ["acc"]),
        "no batch": told(again.train, one_by_one, 1),
        "no steps": told(again.train, records),
        "metric": told(again.evaluate, records, ["f1"]),
        "no optimizer": told(TFEstimator.from_model_fn(plain_model_fn).train, records, 1),
        "wrong key": told(again.predict, records, predict_keys=["classes"]),
    }


def plain_model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features, 1)) + 0.0 * tf.reduce_sum(tf.cast(labels, tf.float32))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def older_model_fn(features, labels, mode):
    weights = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    outputs = tf.matmul(features, weights)
    loss = None
    if labels is not None:
        loss = tf.reduce_mean(tf.square(outputs - tf.expand_dims(tf.cast(labels, tf.float32), 1)))
    return TFEstimatorSpec(mode, outputs, loss)


def older_form():
    """One step by a clipped gradient, with an optimizer of TensorFlow's and with one of BigDL's."""
    found = {}
    for name, optimizer in {"tensorflow": tf.train.GradientDescentOptimizer(0.5), "bigdl": SGD(0.5)}.items():
        estimator = TFEstimator(older_model_fn, optimizer, model_dir=str(folder / name))
        estimator.set_gradient_clipping_by_l2_norm(0.1)
        dataset = TFDataset.from_ndarrays((X, Y), batch_size=len(X))
        estimator.train(lambda dataset=dataset: dataset, steps=1)
        found[name] = estimator.estimator.get_variable_value("w").ravel().tolist()
        found[f"{name} mae"] = estimator.evaluate(records, ["mae"])
    gradient = -2 * (X * Y[:, None]).mean(0)
    found["expected"] = (-0.5 * gradient * 0.1 / np.linalg.norm(gradient)).tolist()
    found["no optimizer"] = told(
        TFEstimator(older_model_fn).train, lambda: TFDataset.from_ndarrays((X, Y), batch_size=9), 1
    )
    return found


def far_away():
    """Checkpoints on a file system that only Hadoop knows."""
    sc._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.far.link./data", folder.as_uri())
    root = "viewfs://far/data/far"
    dataset = TFDataset.from_ndarrays((X, Y), batch_size=30)
    for _ in range(2):
        estimator = TFEstimator(older_model_fn, SGD(0.5), model_dir=f"{root}/estimator").train(lambda: dataset, steps=3)
    found = {"estimator": [estimator.estimator.latest_checkpoint(), estimator.estimator.get_variable_names()]}
    with tf.Graph().as_default(), tf.Session() as session:
        count = tf.Variable(0.0, name="count")
        saver = tf.train.Saver(max_to_keep=2)
        for number in range(3):
            count.load(float(number), session)
            path = saver.save(session, f"{root}/saver/kept", global_step=number)
        state = tf.train.get_checkpoint_state(f"{root}/saver")
        found["saved"] = [path, tf.train.latest_checkpoint(f"{root}/saver"), *state.all_model_checkpoint_paths]
        found["files"] = sorted(each.name for each in (folder / "far" / "saver").glob("[!.]*"))
        found["exist"] = [tf.train.checkpoint_exists(f"{root}/saver/kept-{number}") for number in range(3)]
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        saver.restore(session, path)
        found["restored"] = float(session.run("count:0"))
        found["missing"] = told(saver.restore, session, f"{root}/saver/other")
    return found


def of_images():
    """Measures and predictions for an ImageSet, whose classes are its folders."""
    for name, level in (("bright", 200), ("dark", 20)):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (4, 4), (level + number,) * 3).save(folder / "images" / name / f"{number}.png")
    steps = [ImageBytesToMat(), ImageMatToTensor(format="NHWC")]
    labelled = ImageSet.read(str(folder / "images"), sc=sc, with_label=True, one_based_label=False)
    labelled.transform(ChainedPreprocessing([*steps, ImageSetToSample(["imageTensor"], ["label"])]))
    plain = ImageSet.read(str(folder / "images" / "*"), sc=sc)
    plain.transform(ChainedPreprocessing([*steps, ImageSetToSample(["imageTensor"])]))
    image = (tf.float32, [4, 4, 3])

    def given(mode):
        if mode == tf.estimator.ModeKeys.PREDICT:
            return TFDataset.from_image_set(plain, image=image, batch_per_thread=2)
        return TFDataset.from_image_set(labelled, image=image, label=(tf.int32, [1]), batch_per_thread=2)

    def level_fn(features, labels, mode):
        level = tf.reduce_mean(features, [1, 2, 3])
        return tf.estimator.EstimatorSpec(mode, tf.stack([level - 110, 110 - level], 1), tf.reduce_mean(level))

    estimator = TFEstimator.from_model_fn(level_fn)
    found = estimator.predict(given).get_predict().collect()
    return {
        "measured": estimator.evaluate(given, ["acc", "loss"]),
        "predicted": sorted((Path(path).parent.name, bool(np.ravel(row)[0] > 0)) for path, row in found),
    }


def ready_made():
    """A linear model and a network over feature columns, trained on Spark and measured on Spark and here."""
    columns = {"kind": np.array(["a", "b", "c"])[generator.randint(0, 3, 90)], "size": X[:, 0]}
    labels = ((columns["kind"] == "b") | (columns["size"] > 1)).astype(np.int64)
    kinds = tf.feature_column.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])
    size = tf.feature_column.numeric_column("size")
    found = {}
    estimators = {
        "linear": tf.estimator.LinearClassifier([kinds, size], optimizer=ZooOptimizer(tf.train.FtrlOptimizer(0.2))),
        "network": tf.estimator.DNNClassifier(
            [8], [tf.feature_column.indicator_column(kinds), size], n_classes=3,
            optimizer=ZooOptimizer(tf.train.AdamOptimizer(0.05)),
        ),
    }  # fmt: skip

    def input_fn(mode):
        data = tf.data.Dataset.from_tensor_slices((columns, labels))
        if mode == tf.estimator.ModeKeys.TRAIN:
            return TFDataset.from_tf_data_dataset(data, batch_size=30)
        if mode == tf.estimator.ModeKeys.EVAL:
            return TFDataset.from_tf_data_dataset(data, batch_per_thread=20)
        return TFDataset.from_tf_data_dataset(tf.data.Dataset.from_tensor_slices((columns,)), batch_per_thread=20)

    here = tf.estimator.inputs.numpy_input_fn(columns, labels, batch_size=30, shuffle=False)
    for name, estimator in estimators.items():
        on_spark = TFEstimator(estimator)
        on_spark.train(input_fn, steps=60)
        ids = on_spark.predict(input_fn, predict_keys=[prediction_keys.PredictionKeys.CLASS_IDS]).collect()
        found[name] = {
            "spark": on_spark.evaluate(input_fn, ["acc"])["acc"],
            "here": float(estimator.evaluate(here)["accuracy"]),
            "ids": float(np.mean([int(row["class_ids"][0]) == y for row, y in zip(ids, labels)])),
            "first": str(next(estimator.predict(here, predict_keys=["classes"]))["classes"][0]),
        }
    receive = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"kind": tf.placeholder(tf.string, [None]), "size": tf.placeholder(tf.float32, [None])}
    )
    path = estimators["linear"].export_saved_model(str(folder / "served"), receive).decode()
    with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.load(session, ["serve"], path)
        found["served"] = sorted(meta.signature_def["predict"].outputs)
    return found


def networks():
    """A generator of normal numbers around 3, against a discriminator that moves twice for each of its steps."""
    noise = generator.randn(128, 1).astype(np.float32)
    real = (3 + 0.5 * generator.randn(128, 1)).astype(np.float32)
    where = str(folder / "networks")

    def make(noise):
        return tf.layers.dense(noise, 1, name="make", kernel_initializer=tf.ones_initializer())

    def judge(data, noise):
        return tf.layers.dense(tf.layers.dense(tf.concat([data, data * data], 1), 8, tf.nn.tanh), 1)

    def entropy(opinions, truth):
        labels = truth * tf.ones_like(opinions)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=opinions))

    estimator = GANEstimator(
        make,
        judge,
        lambda made: entropy(made, 1.0),
        lambda real, made: entropy(real, 1.0) + entropy(made, 0.0),
        ZooOptimizer(tf.train.AdamOptimizer(0.05, 0.5)),
        ZooOptimizer(tf.train.AdamOptimizer(0.05, 0.5)),
        discriminator_steps=2,
        model_dir=where,
    )
    dataset = TFDataset.from_ndarrays((noise, real), batch_size=32)
    seen = []
    for steps in (2, 1, 240):
        estimator.train(lambda: dataset, MaxIteration(steps))
        read = tf.train.load_checkpoint(tf.train.latest_checkpoint(where))
        seen.append(
            [float(np.sum(read.get_tensor(f"{each}/bias"))) for each in ("Generator/make", "Discriminator/dense")]
        )
    return {
        "seen": seen,
        "steps": int(read.get_tensor("global_step")),
        "refused": told(GANEstimator, make, judge, None, None, tf.train.AdamOptimizer(), None),
    }


def star_imports():
    """What `from zoo.common.nncontext import *` gave programs beside its own names."""
    namespace = {}
    exec("from zoo.common.nncontext import *", namespace)
    given = SimpleNamespace(**namespace)
    given.init_nncontext(redirect_spark_log=True)
    sc.setLogLevel("INFO")
    counted = sc.parallelize(range(9), 3).count()
    sc.setLogLevel("ERROR")
    logged = "DAGScheduler" in Path("bigdl.log").read_text()
    random = given.RNG()
    random.set_seed(100)
    sparse = given.JTensor.sparse(given.np.array([1, 3, 2, 4]), np.array([0, 0, 1, 2, 0, 3, 2, 1]), np.array([3, 4]))
    return {
        "counted": counted,
        "logged": logged,
        "machines": list(given.get_node_and_core_number()),
        "random": random.uniform(0.1, 0.2, [2, 3]).tolist(),
        "sparse": given.Sample.from_jtensor([sparse], 1).arrays()[0].tolist(),
        "records": given.to_sample_rdd(X[:4], Y[:4]).count(),
        "jvm": told(given.callBigDlFunc, "float", "createLinear"),
        "mnist": told(mnist.read_data_sets, str(folder)),
    }


facts = {}
for fact in (last_form, older_form, far_away, of_images, ready_made, networks, star_imports):
    try:
        facts[fact.__name__] = fact()
    except Exception as error:  # noqa: BLE001 - the test of this fact shows it
        import traceback

        facts[fact.__name__] = {"failed": "".join(traceback.format_exception(error))[-3000:]}
(folder / "facts.json").write_text(json.dumps(facts, default=float))
sc.stop()
