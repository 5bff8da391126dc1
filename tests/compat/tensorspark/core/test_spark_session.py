import contextlib
import socket

import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

from keraunos.compat.tensorspark.core import spark_session as sps
from keraunos.compat.tensorspark.core.weight_combiner import (
    DeltaWeightCombiner,
    MeanWeightCombiner,
    UpdateMeanWeightCombiner,
)
from keraunos.errors import ClusterError, DataError, JobError, KeraunosError, ModelError

v1 = tf.compat.v1

pytestmark = pytest.mark.spark


class Counter:
    """A graph whose step adds the mean of the rows, times a factor that may be fed, to its one weight."""

    def __init__(self, start=1.0):
        graph = tf.Graph()
        with graph.as_default():
            self.x = v1.placeholder(tf.float32, [None], name="x")
            self.factor = v1.placeholder_with_default(1.0, [], name="factor")
            self.unused = v1.placeholder(tf.float32, [None], name="unused")
            self.weight = v1.get_variable("weight", initializer=start)
            self.steps = v1.get_variable("steps", initializer=np.int64(0), trainable=False)
            self.mean = tf.reduce_mean(self.x, name="mean")
            self.counted = v1.assign_add(self.steps, 1).op
            self.step = v1.assign_add(self.weight, self.mean * self.factor).op
            self.session = v1.Session(graph=graph)
            self.session.run(v1.global_variables_initializer())

    @property
    def value(self):
        return float(self.session.run(self.weight))


class Line:
    """A line through points, and a choice of optimizers that remember."""

    def __init__(self, optimizer):
        graph = tf.Graph()
        with graph.as_default():
            self.x = v1.placeholder(tf.float32, [None, 2], name="x")
            self.y = v1.placeholder(tf.float32, [None], name="y")
            self.weights = v1.get_variable("weights", initializer=tf.constant([0.5, -0.5]))
            loss = tf.reduce_mean((tf.linalg.matvec(self.x, self.weights) - self.y) ** 2, name="loss")
            count = v1.train.get_or_create_global_step()
            self.step = optimizer().minimize(loss, global_step=count)
            self.loss = loss
            self.session = v1.Session(graph=graph)
            self.session.run(v1.global_variables_initializer())
            self.count = count

    def read(self):
        return self.session.run(self.weights)


@pytest.fixture
def context(spark):
    return spark.sparkContext


@pytest.fixture
def settings(context):
    """A function that sets what spark-defaults.conf would."""
    given = []

    def set_(name, value):
        context._conf.set(name, value)
        given.append(name)

    yield set_
    for name in given:
        context._conf._jconf.remove(name)


def started(context, model, **options):
    return sps.SparkSession(
        context, model.session, **{"server_port": None, "sync_interval": 2, "batch_size": 4, **options}
    )


def ones(context, rows, partitions):
    return context.parallelize([(1.0,)] * rows, partitions)


def test_without_an_rdd_it_is_a_session(context):
    model = Counter()
    session = started(context, model)
    feed = {model.x: [2.0, 4.0]}
    assert session.run(model.mean, feed_dict=feed) == 3.0
    assert session.run(model.step, feed_dict=feed) is None
    assert session.run({"mean": model.mean, "weight": [model.weight]}, feed_dict=feed) == {"mean": 3.0, "weight": [4.0]}
    assert session.get_session() is model.session


@pytest.mark.parametrize("partitions", [2, 5])
def test_every_step_of_every_worker_is_in_the_sum_once(context, partitions):
    """The old library counted others' steps twice, and the first weight as a step. Five workers have two slots."""
    model = Counter(start=1.0)
    session = started(context, model, sync_interval=3)
    rows = ones(context, partitions * 4 * 7, partitions)
    given = session.run(
        model.step,
        feed_rdd=rows,
        feed_name_list=["x:0"],
        param_list=[model.weight],
        weight_combiner=DeltaWeightCombiner(),
    )
    assert given is None
    assert model.value == pytest.approx(1.0 + partitions * 7)


def test_runs_go_on_from_the_sessions_values_and_leave_its_graph_as_it_is(context):
    model = Counter(start=0.0)
    session = started(context, model)

    def run(fetches):
        session.run(fetches, feed_rdd=ones(context, 12, 1), feed_name_list=[model.x.name], param_list=[model.weight])

    run([model.step, model.counted])
    assert not session.history
    operations = len(model.session.graph.get_operations())
    run({"step": model.step, "counted": (model.counted, model.mean)})
    assert model.value == pytest.approx(6.0)
    assert len(model.session.graph.get_operations()) == operations
    assert dict(session.history) == {"mean": [1.0]}
    # What is not shared stays with the workers.
    assert model.session.run(model.steps) == 0


def test_a_feed_that_is_the_same_for_every_batch(context):
    model = Counter(start=0.0)
    session = started(context, model)
    session.run(
        model.step,
        feed_rdd=ones(context, 12, 1),
        feed_name_list=["x"],
        param_list=["weight:0"],
        feed_dict={model.factor: 0.5},
    )
    assert model.value == pytest.approx(1.5)


def test_one_pass_by_the_mean_of_two_workers(context):
    model = Counter(start=0.0)
    session = started(context, model, sync_interval=2)
    session.run(
        model.step,
        feed_rdd=ones(context, 2 * 4 * 4, 2),
        feed_name_list=["x:0"],
        param_list=[model.weight],
        weight_combiner=MeanWeightCombiner(2),
    )
    # Four contributions, each two steps ahead of what its sender had: at least alternately, at most one after another.
    assert 2.0 <= model.value <= 4.0


OPTIMIZERS = {
    "adam": lambda: v1.train.AdamOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_that_remembers_is_the_one_of_a_single_session(context, optimizer):
    """Slots begin with the driver's values and are kept across exchanges; the result is that of one long training."""
    model, alone = (Line(OPTIMIZERS[optimizer]) for _ in range(2))
    rows = [(np.array([1.0, 2.0], np.float32), 3.0)] * 40
    batch = {"x:0": [[1.0, 2.0]] * 4, "y:0": [3.0] * 4}
    for _ in range(5):
        model.session.run(model.step, batch)
    before = model.session.run(model.session.graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES))
    started(context, model, sync_interval=3).run(
        model.step,
        feed_rdd=context.parallelize(rows, 1),
        feed_name_list=["x:0", "y:0"],
        param_list=[model.weights],
        shuffle_within_partition=True,
    )
    for _ in range(15):
        alone.session.run(alone.step, batch)
    np.testing.assert_allclose(model.read(), alone.read(), rtol=1e-4)
    after = model.session.run(model.session.graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES))
    assert [np.array_equal(old, new) for old, new in zip(before, after, strict=True)] == [False] + [True] * (
        len(after) - 1
    )


def test_a_users_own_combiner_is_asked(context):
    class Greatest:
        def __init__(self):
            self.asked = []

        def compute(self, origin_weight, new_weight, worker_id=-1, name=None):
            self.asked.append((worker_id, name))
            return np.maximum(origin_weight, new_weight)

    model = Counter(start=0.0)
    combiner = Greatest()
    started(context, model).run(
        model.step,
        feed_rdd=ones(context, 2 * 12, 2),
        feed_name_list=["x:0"],
        param_list=[model.weight],
        weight_combiner=combiner,
    )
    assert sorted(combiner.asked) == [(0, "weight:0"), (0, "weight:0"), (1, "weight:0"), (1, "weight:0")]
    assert 3.0 <= model.value <= 6.0


def test_a_combiner_that_fails_ends_the_run_and_changes_nothing(context):
    class Failing:
        def compute(self, origin_weight, new_weight, worker_id=-1, name=None):
            raise ArithmeticError("no weights today")

    model = Counter(start=2.0)
    with pytest.raises(KeraunosError, match="no weights today"):
        started(context, model).run(
            model.step,
            feed_rdd=ones(context, 12, 1),
            feed_name_list=["x:0"],
            param_list=[model.weight],
            weight_combiner=Failing(),
        )
    assert model.value == 2.0


def test_a_server_that_is_reused_counts_on(context):
    model = Counter(start=0.0)
    session = started(context, model)

    def run(server_reusable):
        session.run(
            model.step,
            feed_rdd=ones(context, 4, 1),
            feed_name_list=["x:0"],
            param_list=[model.weight],
            weight_combiner=UpdateMeanWeightCombiner(),
            server_reusable=server_reusable,
        )
        return model.value

    assert run(True) == pytest.approx(1.0)
    assert run(True) == pytest.approx(1.5)
    session.stop_param_server()
    assert run(False) == pytest.approx(2.5)
    assert run(False) == pytest.approx(3.5)


def test_digits_are_learned_by_two_workers(context):
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = v1.placeholder(tf.float32, [None, 8, 8]), v1.placeholder(tf.int64, [None])
        hidden = tf.nn.relu(tf.matmul(tf.reshape(x, [-1, 64]), v1.get_variable("first", [64, 32])))
        logits = tf.matmul(hidden, v1.get_variable("second", [32, 10])) + v1.get_variable("bias", [10])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        step = v1.train.AdamOptimizer(0.01).minimize(loss)
        session.run(v1.global_variables_initializer())
        spark_session = sps.SparkSession(context, session, server_port=None, sync_interval=10, batch_size=32)
        rows = context.parallelize(list(zip(images[:1500], digits.target[:1500], strict=True)), 2)
        spark_session.run(
            [step, loss],
            feed_rdd=rows.flatMap(lambda row: [row] * 8),
            feed_name_list=[x.name, y.name],
            param_list=v1.trainable_variables(),
            shuffle_within_partition=True,
        )
        found = session.run(logits, {x: images[1500:]}).argmax(axis=1)
    assert (found == digits.target[1500:]).mean() > 0.85
    assert spark_session.history["loss"][0] < 1.5


def test_the_job_goes_by_its_name(context):
    model = Counter()
    before = context.getJobTags()
    session = started(context, model, name="spark_mnist", user="liangfengsid")
    session.run(model.step, feed_rdd=ones(context, 8, 1), feed_name_list=["x:0"], param_list=[model.weight])
    (job,) = context._jsc.sc().statusTracker().getJobIdsForTag("spark_mnist")
    assert context._jsc.sc().statusStore().job(job).description().get() == "spark_mnist of liangfengsid"
    assert context.getJobTags() == before
    assert context.getLocalProperty("spark.job.description") is None


def test_a_port_that_is_taken_is_told_before_anything_runs(context, jobs_run):
    model = Counter()
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        session = started(context, model, server_port=port)
        before = jobs_run()
        with pytest.raises(
            ClusterError, match=f"Port {port} on 127.0.0.1 is in use, and `server_port` allows no other"
        ):
            session.run(model.step, feed_rdd=ones(context, 8, 1), feed_name_list=["x:0"], param_list=[model.weight])
        assert jobs_run() == before


def test_a_host_that_is_not_this_machine_is_told(context):
    model = Counter()
    with pytest.raises(KeraunosError, match="`server_host` must be .*192.0.2.1"):
        started(context, model, server_host="192.0.2.1").run(
            model.step, feed_rdd=ones(context, 8, 1), feed_name_list=["x:0"], param_list=[model.weight]
        )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"feed_name_list": ["y:0"]}, ModelError, "`feed_name_list` must name a tensor of the graph. Received: 'y:0'"),
        (
            {"feed_name_list": ["unused:0"]},
            ModelError,
            "`fetches` needs 'x:0', which nothing feeds.*`feed_name_list` or",
        ),
        ({"feed_name_list": None}, JobError, "`feed_name_list` must be a list of the placeholders"),
        ({"feed_name_list": "x:0"}, JobError, "`feed_name_list` must be a list of the placeholders"),
        ({"feed_name_list": ["x:0", "x"]}, JobError, "must name each placeholder once. Received: 'x:0'"),
        ({"param_list": []}, JobError, "`param_list` must be a list of the variables"),
        ({"param_list": ["weigth:0"]}, ModelError, "`param_list` must name.*Did you mean 'weight:0'"),
        ({"param_list": ["steps:0"]}, ModelError, "`param_list` must be floating-point variables"),
        ({"fetches": []}, JobError, "`fetches` must hold an operation that trains"),
        ({"fetches": "nothing"}, ModelError, "`fetches` must name"),
        ({"feed_dict": {"nowhere:0": 1.0}}, ModelError, "`feed_dict` must name a tensor"),
        ({"weight_combiner": "mean"}, JobError, "`weight_combiner` must be an object with the method"),
        ({"options": object()}, JobError, "`options` must be left out with `feed_rdd`"),
        ({"run_metadata": object()}, JobError, "`run_metadata` must be left out with `feed_rdd`"),
        ({"feed_rdd": [(1.0,)]}, JobError, "`feed_rdd` must be an RDD of tuples"),
    ],
)
def test_what_cannot_run_is_told_on_the_driver(context, jobs_run, change, error, message):
    model = Counter()
    arguments = {
        "fetches": model.step,
        "feed_rdd": ones(context, 8, 1),
        "feed_name_list": ["x:0"],
        "param_list": [model.weight],
    }
    with pytest.raises(error, match=message):
        started(context, model).run(**{**arguments, **change})
    assert not jobs_run()


def test_a_placeholder_of_another_graph_is_refused(context):
    model, other = Counter(), Counter()
    with pytest.raises(ModelError, match="`feed_name_list` must be a tensor of the graph.*belongs to another graph"):
        started(context, model).run(
            model.step, feed_rdd=ones(context, 8, 1), feed_name_list=[other.x], param_list=[model.weight]
        )


def test_an_rdd_without_partitions_or_rows_is_an_error(context):
    model = Counter()
    run = {"fetches": model.step, "feed_name_list": ["x:0"], "param_list": [model.weight]}
    with pytest.raises(JobError, match="at least one partition"):
        started(context, model).run(feed_rdd=context.emptyRDD(), **run)
    with pytest.raises(DataError, match="no rows"):
        started(context, model).run(feed_rdd=context.parallelize([], 2), **run)


def test_records_of_another_length_are_an_error_that_says_so(context):
    model = Counter()
    with pytest.raises(KeraunosError, match="has 2 entries"):
        started(context, model).run(
            model.step,
            feed_rdd=context.parallelize([(1.0, 2.0)] * 4, 1),
            feed_name_list=["x:0"],
            param_list=[model.weight],
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sync_interval": 0}, "`sync_interval` must be a whole number of at least 1. Received: 0"),
        ({"batch_size": 1.5}, "`batch_size` must be a whole number of at least 1. Received: 1.5"),
        ({"server_port": 70000}, "`server_port` must be"),
        ({"server_host": ""}, "`server_host` must be the name or address"),
        ({"target": "grpc://far:2222"}, "`target` must be left empty"),
        ({"graph": tf.Graph()}, "`graph` must be the session's own graph"),
        ({"config": v1.ConfigProto(allow_soft_placement=True)}, "`config` must be left out"),
    ],
)
def test_an_option_that_has_no_meaning_is_refused(context, options, message):
    with pytest.raises(JobError, match=message):
        started(context, Counter(), **options)


def test_what_is_no_session_is_refused(context):
    with pytest.raises(JobError, match="`session` must be a TensorFlow session"):
        sps.SparkSession(context, "local")


def test_arguments_of_training_need_rows(context):
    model = Counter()
    with pytest.raises(JobError, match="`param_list` must come with `feed_rdd`"):
        started(context, model).run(model.step, param_list=[model.weight])


def test_it_is_a_context_manager_that_closes_the_session(context):
    model = Counter()
    with started(context, model, graph=model.session.graph, config=v1.ConfigProto()) as session:
        assert v1.get_default_session() is model.session
        assert tf.reduce_sum([1.0, 2.0]).eval() == 3.0
    assert v1.get_default_session() is None
    with pytest.raises(JobError, match="The session must be open"):
        session.run(model.mean)
    with pytest.raises(RuntimeError, match="closed"):
        model.session.run(model.weight)
    session.close()


def test_a_session_is_saved_under_a_hadoop_path(context, tmp_path, mounted):
    model = Counter(start=4.0)
    session = started(context, model, name="counted")
    folder = tmp_path / "saved"
    folder.mkdir()
    saved = session.save_session_hdfs(model.session, None, "counter", folder.as_uri())
    assert saved == tuple(f"{folder.as_uri()}/counter{ending}" for ending in ("", ".meta", ".saver.proto"))
    described = v1.train.SaverDef.FromString((folder / "counter.saver.proto").read_bytes())
    assert described.restore_op_name == "save/restore_all"
    # Another checkpoint of the name takes its place, as it did.
    assert session.save_session_hdfs(model.session, None, "counter", str(folder))[0] == f"{folder}/counter"
    elsewhere, _, _ = session.save_session_hdfs(model.session, None, "mounted", f"{mounted}/new")
    assert elsewhere == f"{mounted}/new/mounted"
    assert sorted(each.name for each in (tmp_path / "new").glob("m*")) == [
        "mounted.data-00000-of-00001", "mounted.index", "mounted.meta", "mounted.saver.proto",
    ]  # fmt: skip
    with pytest.raises(JobError, match="`base_dir` must be a path .*'nowhere://host/a'"):
        session.save_session_hdfs(model.session, None, "counter", "nowhere://host/a")
    first, meta, saver = session.broadcast_session(base_dir=str(folder))
    assert (meta, saver) == (f"{first}.meta", f"{first}.saver.proto")
    assert first.startswith(f"{folder}/session_counted_")
    with tf.Graph().as_default(), v1.Session() as restored:
        v1.train.import_meta_graph(str(folder / "counter.meta")).restore(restored, str(folder / "counter"))
        (weight,) = v1.trainable_variables()
        assert restored.run(weight) == 4.0


def test_a_checkpoint_lies_in_the_folder_for_temporary_files_only_until_it_is_copied(context, tmp_path, settings):
    model = Counter()
    session = started(context, model)
    settings("spark.hdfs.dir", tmp_path.as_uri())
    settings("spark.tmp.dir", str(tmp_path / "nowhere"))
    with pytest.raises(JobError, match="spark.tmp.dir must name a folder of this machine that exists"):
        session.broadcast_session()
    (tmp_path / "nowhere").mkdir()
    path, _, _ = session.broadcast_session()
    assert path.startswith(f"{tmp_path.as_uri()}/session_")
    assert (tmp_path / path.rpartition("/")[2]).with_suffix(".index").exists()
    assert not list((tmp_path / "nowhere").iterdir())


def test_saving_needs_a_folder_a_name_and_the_right_user(context, tmp_path):
    model = Counter()
    session = started(context, model)
    for arguments, message in [
        ((model.session, "", "counter"), "spark.hdfs.dir names. Received: neither"),
        ((model.session, "", "a/b", str(tmp_path)), "`filename` must be a name without folders. Received: 'a/b'"),
        ((model.session, "nobody else", "counter", str(tmp_path)), "`user` must be the one that Spark runs as"),
    ]:
        with pytest.raises(JobError, match=message):
            session.save_session_hdfs(*arguments)


def test_resetting_is_tensorflows(context):
    with pytest.raises(tf.errors.OpError):
        sps.SparkSession.reset("grpc://127.0.0.1:1", config=v1.ConfigProto(operation_timeout_in_ms=1))
