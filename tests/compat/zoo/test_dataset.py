import contextlib
import gzip

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from pyspark.ml.linalg import Vectors

from keraunos.compat.zoo import init_nncontext, init_spark_on_local, init_spark_on_yarn
from keraunos.compat.zoo.tfpark import TFDataset
from keraunos.compat.zoo.tfpark.placeholders import check_used, dataset_of
from keraunos.compat.zoo.tfpark.structure import TensorMeta, conformed, flat_records, flatten, pack
from keraunos.errors import ColumnError, DataError, JobError, KeraunosError, ModelError
from keraunos.launch.spark import worker_environment
from keraunos.session.registry import session_of

pytestmark = pytest.mark.spark


@pytest.fixture
def graph(spark):
    with tf.Graph().as_default() as graph:
        yield graph


def records(spark, rows=6, partitions=2):
    return spark.sparkContext.parallelize(
        [[np.full((2, 3), i, np.float64), np.array([i])] for i in range(rows)], partitions
    )


def legacy(spark, **options):
    arguments = {"names": ["features", "labels"], "shapes": [[2, 3], [1]], "types": [tf.float32, tf.int32]} | options
    return TFDataset.from_rdd(records(spark), **arguments)


def collected(rdd):
    # In the workers that a fit has, too: whoever comes first imports TensorFlow for all.
    with worker_environment(session_of(rdd), "tensorflow"):
        return rdd.collect()


def kept(dataset):
    return collected(dataset.row_source.records())


def test_tensors_are_placeholders_of_the_described_types_and_shapes(spark, graph):
    images, labels = legacy(spark, batch_size=4).tensors
    assert (images.name, images.dtype, images.shape.as_list()) == ("features:0", tf.float32, [None, 2, 3])
    assert (labels.name, labels.dtype, labels.shape.as_list()) == ("labels:0", tf.int32, [None, 1])


def test_tensors_are_made_once_in_each_graph(spark, graph):
    dataset = legacy(spark, batch_size=4)
    assert dataset.tensors[0] is dataset.tensors[0]
    with tf.Graph().as_default() as other:
        assert dataset.tensors[0].graph is other
    assert dataset.tensors[0].graph is graph


def test_eager_mode_has_no_placeholders(spark):
    with pytest.raises(JobError, match="eager mode"):
        _ = legacy(spark, batch_size=4).tensors


def test_records_take_the_tensors_types_and_shapes(spark):
    dataset = TFDataset.from_rdd(
        spark.sparkContext.parallelize([([[1, 2]], 3.0, "dropped")]),
        names=["a", "b"],
        shapes=[[1, 2], [1]],
        types=[tf.float32, tf.int64],
    )
    ((a, b),) = kept(dataset)
    assert (a.dtype, a.shape, b.dtype, b.shape) == (np.float32, (1, 2), np.int64, (1,))
    assert (a.tolist(), b.tolist()) == ([[1.0, 2.0]], [3])


def test_features_and_labels_keep_their_nest(spark, graph):
    rdd = spark.sparkContext.parallelize([({"b": [1.0], "a": 2}, [np.float32(5)])], 1)
    dataset = TFDataset.from_rdd(
        rdd, features={"b": (tf.float32, [1]), "a": (np.int32, [])}, labels=[(tf.float32, [])], batch_size=2
    )
    features, labels = dataset.tensors
    assert list(features) == ["b", "a"]
    assert features["b"].shape.as_list() == [None, 1]
    assert dataset.feature_tensors["a"] is features["a"]
    assert dataset.label_tensors[0] is labels[0]
    assert dataset.input_names == ["a", "b", "list_input_0"]
    assert [np.asarray(each).tolist() for each in kept(dataset)[0]] == [2, [1.0], 5.0]
    assert [slot.name for slot in dataset.columns().features] == ["a", "b"]
    assert [slot.name for slot in dataset.columns().labels] == ["list_input_0"]


def test_features_alone_leave_out_what_comes_behind_them(spark):
    described = {"features": (tf.float32, [2])}
    for record in (([1, 2],), ([1, 2], 7), np.array([1, 2])):
        dataset = TFDataset.from_rdd(spark.sparkContext.parallelize([record], 1), **described)
        assert kept(dataset)[0][0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([[1.0, 2.0]], "has another shape. Expected: \\[3\\]. Received: \\[2\\]"),
        ([], "must be a list with an array for each of 'a'"),
        ([["x", "y", "z"]], "cannot become float32"),
    ],
)
def test_a_record_that_does_not_fit_is_told(record, message):
    with pytest.raises(DataError, match=message):
        list(flat_records([TensorMeta("float32", (3,), "a")], [record]))


def test_whole_numbers_are_not_cut():
    meta = TensorMeta("int32", (), "label")
    assert conformed(2.0, meta, 0).dtype == np.int32
    for value in (2.5, 2**40):
        with pytest.raises(DataError, match="'label' cannot become int32"):
            conformed(value, meta, 0)


NESTS = st.recursive(
    st.integers(0, 99),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(NESTS)
def test_a_nest_is_packed_as_it_was(nest):
    assert pack(nest, flatten(nest)) == nest


@given(npst.arrays(np.float32, npst.array_shapes(max_dims=3, max_side=3)), st.integers(0, 3))
def test_lengths_of_one_may_be_added_and_left_out(array, place):
    shape = list(array.shape)
    shape.insert(min(place, len(shape)), 1)
    given_back = conformed(array, TensorMeta("float32", tuple(shape), "a"), 0)
    assert list(given_back.shape) == shape
    assert given_back.tobytes() == array.tobytes()


def test_both_batch_sizes_together_are_refused(spark):
    with pytest.raises(JobError, match="must not be given together"):
        legacy(spark, batch_size=4, batch_per_thread=2)
    with pytest.raises(JobError, match="`batch_size` must be a whole number"):
        legacy(spark, batch_size=0)


@pytest.mark.parametrize(("batch_size", "workers"), [(1, 1), (2, 2), (5, 2), (64, 2)])
def test_any_batch_size_will_do(spark, batch_size, workers):
    dataset = legacy(spark, batch_size=batch_size)
    assert (dataset.batch_size, dataset.workers, dataset.has_batch) == (batch_size, workers, True)


@pytest.mark.parametrize(("batch_size", "workers", "first"), [(8, 2, 4), (5, 1, 5)])
def test_a_hard_coded_batch_is_the_same_for_every_worker(spark, graph, batch_size, workers, first):
    dataset = legacy(spark, batch_size=batch_size, hard_code_batch_size=True)
    assert dataset.workers == workers
    assert dataset.tensors[0].shape.as_list() == [first, 2, 3]
    assert dataset.output_shapes[1].as_list() == [first, 1]


def test_without_a_batch_size_rows_are_predicted_together_where_they_can_be(spark):
    dataset = legacy(spark)
    assert (dataset.has_batch, dataset.batch_size, dataset.batch_per_thread) == (False, 2, 1)
    assert dataset.rows_predicted_together == 128
    assert legacy(spark, shapes=[[None, 3], [1]]).rows_predicted_together == 1
    assert legacy(spark, batch_per_thread=7).rows_predicted_together == 7


def test_arrays_are_cut_into_rows(spark, graph):
    x, y = np.arange(14.0).reshape(7, 2), np.arange(7)
    dataset = TFDataset.from_ndarrays((x, y), batch_size=4, val_tensors=(x[:2], y[:2]))
    found = kept(dataset)
    np.testing.assert_array_equal(np.stack([row[0] for row in found]), x)
    assert [int(row[1]) for row in found] == y.tolist()
    assert found[0][0].dtype == np.float32
    assert dataset.row_source.training(3).getNumPartitions() == 3
    assert len(dataset.val_rdd.collect()) == 2
    assert [tensor.name for tensor in dataset.tensors] == ["features:0", "labels:0"]


def test_arrays_of_different_lengths_are_refused(spark):
    with pytest.raises(JobError, match="all of one length. Received: shapes \\(3,\\), \\(2,\\)"):
        TFDataset.from_ndarrays((np.zeros(3), np.zeros(2)))
    with pytest.raises(JobError, match="`val_tensors` must have the structure"):
        TFDataset.from_ndarrays(np.zeros((3, 2)), val_tensors=np.zeros((3, 1)))


def test_columns_of_a_dataframe_become_tensors(spark, graph):
    frame = spark.createDataFrame([(Vectors.dense([1.0, 2.0]), [1, 2, 3], 4)], ["features", "ids", "the label"])
    dataset = TFDataset.from_dataframe(frame, ["features", "ids"], ["the label"], batch_size=4)
    (vector, ids), label = dataset.tensors
    assert (vector.dtype, vector.shape.as_list()) == (tf.float32, [None, 2])
    assert (ids.dtype, ids.shape.as_list()) == (tf.int64, [None, 3])
    assert (label.dtype, label.shape.as_list(), label.name) == (tf.int64, [None], "the_label:0")
    assert dataset.columns().labels[0].columns == ("the label",)
    assert [np.asarray(each).tolist() for each in kept(dataset)[0]] == [[1.0, 2.0], [1, 2, 3], 4]
    with pytest.raises(ColumnError, match="Received: 'nothing'"):
        TFDataset.from_dataframe(frame, ["nothing"])


def tfrecords(folder, files=2, each=5, packed=False):
    for number in range(files):
        path = folder / f"part-{number}.tfrecord"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for i in range(each):
                writer.write(b"%d-%d" % (number, i))
        if packed:
            path.write_bytes(gzip.compress(path.read_bytes()))
    return [b"%d-%d" % (number, i) for number in range(files) for i in range(each)]


@pytest.mark.parametrize("packed", [False, True])
def test_tfrecord_files_are_read_in_order_and_shared_out(spark, tmp_path, packed):
    expected = tfrecords(tmp_path, packed=packed)
    dataset = TFDataset.from_tfrecord_file(spark.sparkContext, str(tmp_path / "part-*"), batch_size=4)
    assert [row[0] for row in kept(dataset)] == expected
    shared = dataset.row_source.training(3)
    assert shared.getNumPartitions() >= 3
    assert sorted(row[0] for row in collected(shared)) == expected


def test_files_that_executors_cannot_open_come_through_spark(spark, tmp_path):
    expected = tfrecords(tmp_path)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.zoo.link./data", tmp_path.as_uri())
    dataset = TFDataset.from_tfrecord_file(spark.sparkContext, "viewfs://zoo/data/part-*", batch_size=4)
    assert [row[0] for row in kept(dataset)] == expected


def test_a_damaged_tfrecord_file_is_told(spark, tmp_path):
    tfrecords(tmp_path, files=1)
    path = tmp_path / "part-0.tfrecord"
    damaged = bytearray(path.read_bytes())
    damaged[14] ^= 1
    path.write_bytes(damaged)
    dataset = TFDataset.from_tfrecord_file(spark.sparkContext, str(path))
    with pytest.raises(Exception, match="A TFRecord file is damaged"):
        kept(dataset)


def test_missing_tfrecord_files_are_told(spark, tmp_path):
    with pytest.raises(JobError, match="at least one TFRecord file"):
        TFDataset.from_tfrecord_file(spark.sparkContext, str(tmp_path / "none"))


def test_strings_are_one_tensor(spark, graph):
    dataset = TFDataset.from_string_rdd(spark.sparkContext.parallelize(["a", "é"], 1), batch_per_thread=2)
    assert [row[0] for row in kept(dataset)] == [b"a", "é".encode()]
    (tensor,) = dataset.tensors
    assert (tensor.name, tensor.dtype, tensor.shape.as_list()) == ("input:0", tf.string, [None])
    assert kept(TFDataset.from_bytes_rdd(spark.sparkContext.parallelize([b"\xff"], 1))) == [(b"\xff",)]


def pipeline(rows=7):
    data = tf.data.Dataset.from_tensor_slices((np.arange(rows, dtype=np.float32), np.arange(rows)))
    return data.map(lambda x, y: (tf.stack([x, 2 * x]), y))


@pytest.mark.parametrize("parts", [1, 3])
def test_a_tf_data_pipeline_runs_on_executors(spark, graph, parts):
    with tf.init_scope():
        data = pipeline()
    dataset = TFDataset.from_tf_data_dataset(data, batch_size=4)
    rows = collected(dataset.row_source.training(parts))
    assert sorted((row[0].tolist(), int(row[1])) for row in rows) == [([i, 2.0 * i], i) for i in range(7)]
    assert [int(row[1]) for row in kept(dataset)] == list(range(7))
    assert [tensor.shape.as_list() for tensor in dataset.tensors] == [[None, 2], [None]]


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_a_table_travels_with_a_pipeline(spark, mode):
    with tf.Graph().as_default() if mode == "graph" else contextlib.nullcontext():
        contents = tf.lookup.KeyValueTensorInitializer([1, 0, -1], [-1, 0, 1])
        table = tf.lookup.StaticHashTable(contents, default_value=100)
        data = tf.compat.v1.data.Dataset.from_tensor_slices([1, 2, -1, 5]).map(table.lookup)
        dataset = TFDataset.from_tf_data_dataset(data, batch_size=4)
    assert [int(row[0]) for row in kept(dataset)] == [-1, 100, 1, 100]


def test_batches_of_a_tf_data_pipeline_are_taken_apart(spark):
    dataset = TFDataset.from_tf_data_dataset(pipeline().batch(3), batch_size=4, batch_outside=True)
    assert [int(row[1]) for row in kept(dataset)] == list(range(7))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.repeat(), "must have an end"),
        (lambda data: data.batch(2), "batch_outside=True"),
        (lambda data: data.map(lambda x, y: tf.numpy_function(np.sin, [x], tf.float32)), "a Python function"),
    ],
)
def test_a_pipeline_that_executors_cannot_share_is_refused(spark, change, message):
    with pytest.raises(JobError, match=message):
        TFDataset.from_tf_data_dataset(change(pipeline()), batch_size=4)


@pytest.mark.parametrize("seed", [5, None])
def test_a_shuffle_is_the_same_for_every_task(spark, seed):
    tf.random.set_seed(None)  # one that another test has set would seed the shuffle
    dataset = TFDataset.from_tf_data_dataset(pipeline(40).shuffle(40, seed=seed), batch_size=4)
    rows = [int(row[1]) for row in collected(dataset.row_source.training(3))]
    assert sorted(rows) == list(range(40))
    assert rows != [number for part in range(3) for number in range(part, 40, 3)]


def test_what_lives_in_bigdl_only_is_refused_by_name():
    with pytest.raises(JobError, match="TFDataset.from_text_set .*from_dataframe"):
        TFDataset.from_text_set(None, (tf.float32, [1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a", "a"]}, "names must differ"),
        ({"names": ["a"]}, "one entry for each tensor"),
        ({"types": [tf.float32, tf.complex64]}, "'labels' must be a boolean"),
        ({"types": [tf.float32, tf.string]}, "one string a record"),
        ({"shapes": [[2, 3], "x"]}, "'labels' must be a list of lengths"),
        ({"features": (tf.float32, [2])}, "must not be given with `shapes` and `types`"),
        ({"memory_type": "PMEM"}, "spark.local.dir"),
        ({"val_rdd": [1]}, "`val_rdd` must be an RDD"),
    ],
)
def test_a_wrong_description_is_told(spark, options, message):
    with pytest.raises(JobError, match=message):
        legacy(spark, **options)


def test_the_dataset_is_found_from_what_depends_on_it(spark, graph):
    dataset = legacy(spark, batch_size=4)
    images, labels = dataset.tensors
    loss = tf.reduce_mean(tf.reduce_sum(images, [1, 2]) - tf.cast(labels, tf.float32)[:, 0])
    assert dataset_of([loss], "The loss") is dataset
    check_used(dataset, [loss], "The loss")
    with pytest.raises(ModelError, match="does not depend on 'labels:0'"):
        check_used(dataset, [tf.reduce_sum(images)], "The loss")
    foreign = tf.compat.v1.placeholder(tf.float32, [], name="foreign")
    with pytest.raises(ModelError, match="Received: 'foreign:0'"):
        dataset_of([loss * foreign], "The loss")
    assert dataset_of([loss * foreign], "The loss", aside=[foreign]) is dataset
    with pytest.raises(ModelError, match="Received: no dataset's"):
        dataset_of([tf.constant(1.0)], "The loss")
    other = TFDataset.from_ndarrays(np.zeros((2, 1)))
    with pytest.raises(ModelError, match="those of 2 datasets"):
        dataset_of([loss + tf.reduce_sum(other.tensors)], "The loss")


def test_contexts(spark):
    assert init_nncontext() is spark.sparkContext
    assert init_nncontext("a name") is spark.sparkContext
    spark.sparkContext.setLogLevel("OFF")
    with pytest.raises(JobError, match="keraunos submit --as zoo --master yarn"):
        init_spark_on_yarn("/etc/hadoop", "conda", 2, 4)
    with pytest.raises(KeraunosError, match="PYSPARK_PYTHON"):
        init_spark_on_local(2, python_location="/usr/bin/python")
