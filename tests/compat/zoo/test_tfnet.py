"""TFNet by itself, in folders, inside Keras models, and on executors: in a process whose Keras runs on TensorFlow."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keraunos import KerasEstimator
from keraunos.compat.zoo.bigdl.nn.criterion import MSECriterion
from keraunos.compat.zoo.bigdl.optim.optimizer import Loss, Top1Accuracy
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.compat.zoo.frozen_graph import export_folder
from keraunos.compat.zoo.tfpark import TFDataset
from keraunos.compat.zoo.tfpark.tfnet import TFNet
from keraunos.errors import DataError, JobError, ModelError

v1 = tf.compat.v1
# Constants are folded, and matrices multiplied in another order.
close = {"rtol": 1e-4, "atol": 1e-6}
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(7, 4)).astype(np.float32)


class Small:
    """A session with a graph of two layers, batch statistics and a switch with a default."""

    def __init__(self, *, resource=True):
        self.graph = tf.Graph()
        with self.graph.as_default():
            v1.set_random_seed(3)
            self.x = v1.placeholder(tf.float32, [None, 4], name="x")
            keep = v1.placeholder_with_default(1.0, [], name="keep")
            self.w = v1.get_variable("one/w", [4, 3], use_resource=resource)
            b = v1.get_variable("one/b", initializer=np.array([0.1, 0.2, 0.3], np.float32), use_resource=resource)
            mean = v1.get_variable("mean", initializer=np.ones(3, np.float32), trainable=False)
            self.hidden = tf.tanh(tf.matmul(self.x, self.w) + b - mean) * keep
            v = v1.get_variable("two/v", [3, 2], use_resource=resource)
            self.y = tf.matmul(self.hidden, v, name="y")
            self.classes = tf.argmax(self.y, axis=1, name="classes")
            self.other = v1.placeholder(tf.float32, [None, 2], name="other")
            self.loss = tf.reduce_mean((self.y - self.other) ** 2)
            self.session = v1.Session(graph=self.graph)
            self.session.run(v1.global_variables_initializer())

    def run(self, fetch, x=X):
        return self.session.run(fetch, {self.x: x})

    def net(self, **more):
        return TFNet.from_session(self.session, [self.x], [self.y], **more)


@pytest.fixture
def small():
    made = Small()
    yield made
    made.session.close()


@pytest.mark.parametrize("resource", [True, False])
def test_a_net_of_a_session_gives_what_the_session_gives(resource):
    small = Small(resource=resource)
    net = small.net()
    np.testing.assert_allclose(net.forward(X), small.run(small.y), **close)
    both = TFNet.from_session(small.session, [small.x], [small.y, small.classes])
    values, classes = both.forward(X)
    np.testing.assert_allclose(values, small.run(small.y), **close)
    np.testing.assert_array_equal(classes, small.run(small.classes))
    small.session.close()


def test_a_net_may_begin_inside_a_graph(small):
    hidden = small.run(small.hidden)
    net = TFNet.from_session(small.session, [small.hidden], [small.y])
    np.testing.assert_allclose(net.forward(hidden), small.run(small.y), **close)
    assert list(net.parameters()) == ["two/v"]


def test_backward_gives_the_gradients_that_tensorflow_gives(small):
    net = small.net(generate_backward=True)
    grad = RANDOM.normal(size=(7, 2)).astype(np.float32)
    with small.graph.as_default():
        expected = small.run(tf.gradients(small.y, [small.x, small.w], grad_ys=tf.constant(grad)))
    np.testing.assert_allclose(net.backward(X, grad), expected[0], **close)
    parameters = net.parameters()
    assert list(parameters) == ["one/w", "one/b", "two/v"]
    np.testing.assert_allclose(parameters["one/w"]["gradWeight"], expected[1], **close)
    np.testing.assert_allclose(parameters["one/w"]["weight"], small.run(small.w), **close)


def test_what_cannot_be_differentiated_says_so(small):
    classes = {"inputs": [small.x], "outputs": [small.classes], "generate_backward": True}
    with pytest.raises(ModelError, match="must have a gradient.*generate_backward=False"):
        TFNet.from_session(small.session, **classes)
    net = TFNet.from_session(small.session, [small.x], [small.classes])
    np.testing.assert_array_equal(net.backward(X, np.zeros(7, np.int64)), np.zeros_like(X))


def test_an_input_without_a_gradient_may_be_refused():
    with tf.Graph().as_default(), v1.Session() as session:
        x, i = v1.placeholder(tf.float32, [None, 3], "x"), v1.placeholder(tf.int32, [None], "i")
        y = x * tf.cast(i, tf.float32)[:, tf.newaxis]
        net = TFNet.from_session(session, [x, i], [y], generate_backward=True)
        by_x, by_i = net.backward([np.ones((2, 3)), [2, 3]], np.ones((2, 3)))
        np.testing.assert_array_equal(by_x, [[2, 2, 2], [3, 3, 3]])
        np.testing.assert_array_equal(by_i, [0, 0])
        with pytest.raises(ModelError, match="every input.*'i:0'"):
            TFNet.from_session(session, [x, i], [y], True, False)


def test_a_folder_holds_the_net_in_analytics_zoos_format(small, tmp_path):
    folder = str(tmp_path / "net")
    export_folder(small.session, folder, [small.x], [small.y], generate_backward=True)
    meta = json.loads((tmp_path / "net" / "graph_meta.json").read_text())
    assert meta["input_names"] == ["x:0"]
    assert meta["output_names"] == ["y:0"]
    assert meta["variables"] == ["one/w:0", "one/b:0", "two/v:0"]
    # Anybody can read the graph: it has its values in it.
    with tf.Graph().as_default() as graph, v1.Session() as session:
        tf.graph_util.import_graph_def(
            v1.GraphDef.FromString((tmp_path / "net" / "frozen_inference_graph.pb").read_bytes()), name=""
        )
        np.testing.assert_allclose(session.run("y:0", {"x:0": X}), small.run(small.y), **close)
        assert graph.get_operation_by_name("one/w").type == "Const"
    net = TFNet.from_export_folder(folder)
    assert net.trainable
    np.testing.assert_allclose(net.forward(X), small.run(small.y), **close)
    assert list(net.parameters()) == ["one/w", "one/b", "two/v"]


def test_a_file_with_a_frozen_graph_needs_the_names_of_its_ends(small, tmp_path):
    export_folder(small.session, str(tmp_path), [small.x], [small.y])
    file = str(tmp_path / "frozen_inference_graph.pb")
    np.testing.assert_allclose(TFNet(file, ["x:0"], ["y:0"]).forward(X), small.run(small.y), **close)
    assert TFNet(file, ["x"], ["y"]).parameters() == {}
    with pytest.raises(ModelError, match="`input_names` and `output_names` must be given"):
        TFNet(file)


def test_a_trained_net_is_saved_as_it_is_now(small, tmp_path):
    net = small.net()
    model = keras.Sequential([keras.Input((4,)), net])
    net.weights[0].assign(np.full((4, 3), 0.5))
    net.save(str(tmp_path / "saved"))
    again = TFNet(str(tmp_path / "saved"))
    np.testing.assert_allclose(again.forward(X), model.predict(X, verbose=0), **close)
    assert not again.trainable
    assert list(again.parameters()) == ["one/w", "one/b", "two/v"]
    with pytest.raises(JobError, match="`over_write` must be True"):
        net.save(str(tmp_path / "saved"))
    net.save(str(tmp_path / "saved"), over_write=True)


def test_saved_models_of_both_tensorflows_are_nets(small, tmp_path):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with small.graph.as_default():
        v1.saved_model.simple_save(small.session, first, {"a": small.x}, {"b": small.y})
    np.testing.assert_allclose(TFNet.from_saved_model(first).forward(X), small.run(small.y), **close)
    named = TFNet.from_saved_model(first, inputs=["x:0"], outputs=["classes:0"])
    np.testing.assert_array_equal(named.forward(X), small.run(small.classes))

    class Module(tf.Module):
        def __init__(self):
            self.w = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
        def __call__(self, x):
            return {"out": tf.matmul(x, self.w)}

    module = Module()
    tf.saved_model.save(module, second)
    net = TFNet.from_saved_model(second)
    np.testing.assert_allclose(net.forward(X), X @ module.w.numpy(), **close)
    assert [each["weight"].shape for each in net.parameters().values()] == [(4, 2)]
    with pytest.raises(ModelError, match="`signature` must be one of .*'serving_default'.*Received: 'train'"):
        TFNet.from_saved_model(second, signature="train")
    with pytest.raises(ModelError, match="`model_path` must be a SavedModel"):
        TFNet.from_saved_model(str(tmp_path / "nowhere"))


def test_a_frozen_net_stays_as_it_is_while_layers_around_it_learn(small):
    before = small.run(small.y)
    net = small.net()
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), net, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse")
    assert len(model.trainable_variables) == 4
    kernel = model.layers[0].kernel.numpy().copy()
    model.fit(X, X.sum(axis=1), epochs=3, verbose=0)
    assert not np.allclose(model.layers[0].kernel.numpy(), kernel)
    np.testing.assert_allclose(net.forward(X), before, **close)


def test_a_net_that_learns_moves_as_the_same_layers_of_keras_do(small):
    net = small.net(generate_backward=True)
    model = keras.Sequential([keras.Input((4,)), net])
    twin = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(3),
            keras.layers.Activation("tanh"),
            keras.layers.Dense(2, use_bias=False),
        ]
    )
    w, b, v = (each["weight"] for each in net.parameters().values())
    twin.set_weights([w, b - 1.0, v])
    y = RANDOM.normal(size=(7, 2)).astype(np.float32)
    for each in (model, twin):
        each.compile(keras.optimizers.SGD(0.1), "mse")
        each.fit(X, y, batch_size=7, epochs=5, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.predict(X, verbose=0), twin.predict(X, verbose=0), rtol=1e-4, atol=1e-5)


def test_a_model_with_a_net_in_it_is_saved_and_read(small, tmp_path):
    model = keras.Sequential([keras.Input((4,)), small.net(generate_backward=True), keras.layers.Dense(1)])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert len(again.trainable_variables) == 5
    np.testing.assert_allclose(again.predict(X, verbose=0), model.predict(X, verbose=0), **close)


def test_large_constants_are_weights_that_are_never_trained(tmp_path):
    table = RANDOM.normal(size=(500, 8)).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        i = v1.placeholder(tf.int32, [None], "i")
        net = TFNet.from_session(session, [i], [tf.gather(tf.constant(table), i)])
    assert len(net.get_config()["graph"]["graph"]) < 2000
    model = keras.Sequential([keras.Input((), dtype="int32"), net, keras.layers.Dense(1)])
    model.trainable = True
    net.trainable = True
    assert len(model.trainable_variables) == 2
    np.testing.assert_allclose(net(np.array([3, 499])), table[[3, 499]])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.layers[0](np.array([3, 499])), table[[3, 499]])


@pytest.mark.spark
def test_nets_lie_under_any_hadoop_path(small, mounted, tmp_path):
    expected = small.run(small.y)
    export_folder(small.session, f"{mounted}/net", [small.x], [small.y], generate_backward=True)
    net = TFNet.from_export_folder(f"{mounted}/net")
    net.save(f"file:{tmp_path}/again")
    with pytest.raises(JobError, match="`over_write` must be True"):
        net.save(f"{mounted}/again")
    net.save(f"{mounted}/again", over_write=True)
    file = f"{mounted}/net/frozen_inference_graph.pb"
    with small.graph.as_default():
        v1.saved_model.simple_save(small.session, str(tmp_path / "saved"), {"a": small.x}, {"b": small.y})
    for found in (TFNet(f"{mounted}/again"), TFNet(file, ["x"], ["y"]), TFNet.from_saved_model(f"{mounted}/saved")):
        np.testing.assert_allclose(found.forward(X), expected, **close)
    with pytest.raises(ModelError, match="`folder` must hold .*viewfs.*nothing"):
        TFNet(f"{mounted}/nothing")
    with pytest.raises(JobError, match="`path` must be a path of this machine.*'nowhere://host/net'"):
        TFNet("nowhere://host/net")


def test_several_inputs_and_outputs_are_lists():
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = (v1.placeholder(tf.float32, [None, 2], name) for name in "ab")
        net = TFNet.from_session(session, [a, b], [a + b, a * b])
    one, other = keras.Input((2,)), keras.Input((2,))
    model = keras.Model([one, other], net([one, other]))
    total, product = model.predict([np.full((3, 2), 2.0), np.full((3, 2), 5.0)], verbose=0)
    np.testing.assert_array_equal(total, np.full((3, 2), 7.0))
    np.testing.assert_array_equal(product, np.full((3, 2), 10.0))
    with pytest.raises(DataError, match="`x` must be 2 arrays, for 'a:0', 'b:0'. Received: 1"):
        net.forward([np.ones((1, 2))])
    with pytest.raises(ModelError, match="must be given 2 inputs"):
        net(np.ones((1, 2), np.float32))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: TFNet.from_session(s.session, [s.x], [s.loss]), "no input for 'other'"),
        (lambda s: TFNet.from_session(s.session, [s.x, s.other], [s.y]), "'other:0', which they do not need"),
        (lambda s: TFNet.from_session(s.session, ["nothing:0"], [s.y]), "'nothing:0', which it does not have"),
        (lambda s: TFNet.from_session(s.session, [s.x], []), "`outputs` must name at least one tensor"),
        (lambda s: TFNet("/nowhere/at/all"), "`folder` must hold 'frozen_inference_graph.pb'"),
    ],
)
def test_what_is_no_net_is_refused(make, message):
    small = Small()
    with small.session, pytest.raises(ModelError, match=message):
        make(small)


def test_a_session_without_values_is_refused():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], "x")
        y = tf.matmul(x, v1.get_variable("w", [2, 2]))
        with pytest.raises(ModelError, match="a value for every variable.*Run the initializer"):
            TFNet.from_session(session, [x], [y])


def test_a_graph_with_a_table_is_refused():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.int64, [None], "x")
        entries = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), tf.constant([1.0, 2.0]))
        y = tf.lookup.StaticHashTable(entries, 0.0).lookup(x)
        with pytest.raises(ModelError, match="HashTableV2.*Look words up"):
            TFNet.from_session(session, [x], [y])


@pytest.mark.spark
def test_predictions_come_in_the_order_of_the_records(spark, small):
    net = small.net()
    expected = small.run(small.y)
    context = spark.sparkContext
    np.testing.assert_allclose(net.predict(X, batch_per_thread=2).collect(), expected, **close)
    samples = context.parallelize([Sample.from_ndarray(row, np.array(0)) for row in X], 3)
    np.testing.assert_allclose(net.predict(samples).collect(), expected, **close)
    lists = context.parallelize([[row] for row in X], 2)
    np.testing.assert_allclose(net.predict(lists, 3).collect(), expected, **close)
    here = net.predict(X, batch_per_thread=3, distributed=False)
    assert here.shape == (7, 2)
    np.testing.assert_allclose(here, expected, **close)
    dataset = TFDataset.from_ndarrays((X, np.zeros(7, np.int32)), batch_per_thread=3)
    np.testing.assert_allclose(net.predict(dataset).collect(), expected, **close)
    with pytest.raises(JobError, match="distributed=True"):
        net.predict(lists, distributed=False)
    with pytest.raises(JobError, match="`mini_batch` must be False"):
        net.predict(X, mini_batch=True)


@pytest.mark.spark
def test_rows_of_text_are_predicted_for(spark):
    words = ["a", "three", "", "lengths"]
    with tf.Graph().as_default(), v1.Session() as session:
        text = v1.placeholder(tf.string, [None])
        net = TFNet.from_session(session, [text], [tf.strings.length(text)])
    dataset = TFDataset.from_string_rdd(spark.sparkContext.parallelize(words, 2), batch_per_thread=3)
    assert [int(each) for each in net.predict(dataset).collect()] == [len(word) for word in words]


def test_a_net_is_measured_on_executors(spark, small):
    net, classes = small.net(), small.run(small.classes).astype(np.int32)
    classes[:2] = 1 - classes[:2]
    loss = Loss(MSECriterion())
    for dataset in (
        TFDataset.from_ndarrays((X, classes)),
        spark.sparkContext.parallelize([[row, each] for row, each in zip(X, classes, strict=True)], 3),
    ):
        (found,) = net.evaluate(dataset, 2, [Top1Accuracy()])
        assert (found.result, found.total_num, found.method) == (pytest.approx(5 / 7), 7, "Top1Accuracy")
    rdd = spark.sparkContext.parallelize([Sample.from_ndarray(row, np.zeros(2)) for row in X], 2)
    assert net.evaluate(rdd, 3, [loss])[0].result == pytest.approx(float((small.run(small.y) ** 2).mean()), rel=1e-4)


def test_a_net_of_scalars_gives_a_scalar():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        net = TFNet.from_session(session, [x], [x + 1])
    out = net.forward(np.array(1.0))
    assert out.shape == ()
    assert out == 2.0


@pytest.mark.spark
def test_a_model_with_a_net_in_it_trains_on_executors(spark):
    small = Small()
    x = RANDOM.normal(size=(200, 4)).astype(np.float32)
    label = x @ np.array([1.0, -1.0, 0.5, 0.0], np.float32)
    frame = spark.createDataFrame([(row.tolist(), float(y)) for row, y in zip(x, label, strict=True)], ["x", "y"])
    model = keras.Sequential([keras.Input((4,)), small.net(generate_backward=True), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse")
    fitted = KerasEstimator(
        model=model, featuresCol="x", labelCol="y", epochs=8, batchSize=20, backend="tensorflow", verbose=0
    ).fit(frame.repartition(2))
    small.session.close()
    losses = fitted.history["loss"]
    assert losses[-1] < 0.3 * losses[0]
    net = fitted.model.layers[0]
    assert isinstance(net, TFNet)
    assert not np.allclose(net.parameters()["one/w"]["weight"], small_weight(model))


def small_weight(model):
    return model.layers[0].parameters()["one/w"]["weight"]
