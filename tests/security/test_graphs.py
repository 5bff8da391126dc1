"""A TensorFlow graph in a file computes, and touches nothing else."""

import base64
import zlib

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keraunos
from keraunos.compat.sparkflow.graph_model import GraphModel, graph_from_bytes
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDLModel
from keraunos.compat.sparkflow.tensorflow_model_loader import load_tensorflow_model
from keraunos.compat.zoo import frozen_graph
from keraunos.errors import ModelError
from tests.security import malicious_graphs as made

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

WAYS = sorted(made.WAYS)


@pytest.fixture
def marker(tmp_path):
    (tmp_path / "secret").write_text("secret")
    path = tmp_path / "marker"
    yield path
    assert not path.exists()


@pytest.mark.parametrize("how", WAYS)
def test_a_checkpoint(how, tmp_path, marker):
    prefix = made.checkpoint(tmp_path, marker, how)
    with pytest.raises(ModelError, match=rf"'{made.WAYS[how]}'.*tensorflow\.raw_ops\.{made.WAYS[how]}"):
        load_tensorflow_model(prefix, "features", "x:0", "out:0")


@pytest.mark.parametrize(
    ("change", "named"), [(made.writes_while_restoring, "WriteFile"), (made.restores_from_elsewhere, "RestoreV2")]
)
def test_a_checkpoint_restores_itself_and_does_nothing_else(change, named, tmp_path, marker):
    prefix = made.checkpoint(tmp_path, marker, "nothing", restoring=change)
    with pytest.raises(ModelError, match=f"of type '{named}'"):
        load_tensorflow_model(prefix, "features", "x:0", "out:0")


@pytest.mark.parametrize("how", WAYS)
def test_a_saved_model(how, tmp_path, marker):
    path = made.saved_model(tmp_path, marker, how)
    for read in (
        lambda: load_tensorflow_model(path, "features", "x:0", "out:0"),
        lambda: frozen_graph.read_saved_model(path),
    ):
        with pytest.raises(ModelError, match=rf"'{made.WAYS[how]}'.*tensorflow\.raw_ops\.{made.WAYS[how]}"):
            read()


def test_a_saved_model_behind_an_address(tmp_path, marker):
    path = made.saved_model(tmp_path, marker, "operation")
    with pytest.raises(ModelError, match="'WriteFile'"):
        frozen_graph.read_saved_model(f"file://{path}")


def test_a_saved_model_that_writes_when_it_is_initialised(tmp_path, marker):
    path = made.saved_model(tmp_path, marker, "operation", initializing=True)
    for read in (
        lambda: load_tensorflow_model(path, "features", "x:0", "out:0"),
        lambda: frozen_graph.read_saved_model(path),
    ):
        with pytest.raises(ModelError, match=r"'WriteFile'.*tensorflow\.raw_ops\.WriteFile"):
            read()


def test_a_saved_model_that_reads_a_file_that_is_no_asset(tmp_path, marker):
    path = made.table_of_file(tmp_path, tmp_path / "secret")
    with pytest.raises(ModelError, match="InitializeTableFromTextFileV2"):
        load_tensorflow_model(path, "features", "x:0", "out:0")


def test_a_saved_model_with_an_asset_outside_of_its_folder(tmp_path, marker):
    path = made.saved_model(tmp_path, marker, "nothing")
    from tensorflow.core.protobuf import saved_model_pb2

    file = tmp_path / "saved" / "saved_model.pb"
    held = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    held.meta_graphs[0].asset_file_def.add(filename="../../secret").tensor_info.name = "x:0"
    file.write_bytes(held.SerializeToString())
    with pytest.raises(ModelError, match=r"asset .* must lie in its folder.*'../../secret'"):
        load_tensorflow_model(path, "features", "x:0", "out:0")


@pytest.mark.parametrize("how", WAYS)
def test_a_frozen_graph(how, tmp_path, marker):
    file = tmp_path / "frozen.pb"
    file.write_bytes(made.frozen(marker, how).SerializeToString())
    with pytest.raises(ModelError, match=rf"'{made.WAYS[how]}'.*tensorflow\.raw_ops\.{made.WAYS[how]}"):
        frozen_graph.read_file(str(file), ["x:0"], ["out:0"])


@pytest.mark.parametrize("how", WAYS)
def test_a_saved_graph_of_sparkflow(how, marker):
    text = made.meta_json(marker, how)
    files = {**GraphModel("", {"w": np.ones((2, 1), np.float32)}).to_files(), "graph.json.gz": made.packed(text)}
    with pytest.raises(ModelError, match=f"'{made.WAYS[how]}'"):
        GraphModel.from_files(files).source("x:0", "out:0", None, keeps=False)
    # What a program builds is its own.
    GraphModel(text, {"w": np.ones((2, 1), np.float32)})


def test_a_trusted_operation_is_run(spark, trusted, tmp_path):
    (tmp_path / "secret").write_text("secret")
    prefix = made.checkpoint(tmp_path, tmp_path / "marker", "read")
    with keraunos.trusting("tensorflow.raw_ops.WriteFile"), pytest.raises(ModelError, match="ReadFile"):
        load_tensorflow_model(prefix, "features", "x:0", "out:0")
    with keraunos.trusting("tensorflow.raw_ops.ReadFile"):
        loaded = load_tensorflow_model(prefix, "features", "x:0", "out:0")
    rows = spark.createDataFrame([([1.0, 2.0],)], "features array<double>")
    assert loaded.transform(rows).head().predicted == 3.0 + len("secret")
    # So it is with one that was saved and read: it goes on doing what was trusted then.
    loaded.save(str(tmp_path / "saved"))
    with pytest.raises(ModelError, match="ReadFile"):
        SparkAsyncDLModel.load(str(tmp_path / "saved"))
    trusted("tensorflow.raw_ops.ReadFile")
    again = SparkAsyncDLModel.load(str(tmp_path / "saved"))
    trusted("another")
    assert again.transform(rows).head().predicted == 3.0 + len("secret")


def test_a_graph_that_unpacks_to_far_more_is_refused_before_it_is():
    with pytest.raises(ModelError, match="graph of a model unpacks"):
        graph_from_bytes(made.packed("0" * (300 << 20)))
    bomb = base64.b64encode(zlib.compress(bytes(300 << 20))).decode()
    told = {"graph": bomb, "inputs": [], "outputs": [], "variables": [], "constants": []}
    with pytest.raises(ModelError, match="graph of a model unpacks"):
        frozen_graph.FrozenGraph.from_json(told)


def test_a_saved_model_of_today_with_a_vocabulary_is_read(tmp_path):
    from keraunos.learners.graph_files import check_saved_model

    words = tmp_path / "words.txt"
    words.write_text("red\ngreen\n")

    class Looking(tf.Module):
        def __init__(self):
            initializer = tf.lookup.TextFileInitializer(
                str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            )
            self.table = tf.lookup.StaticHashTable(initializer, -1)
            self.scale = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, each):
            return {"out": tf.cast(self.table.lookup(each), tf.float32) * self.scale}

    looking = Looking()
    tf.saved_model.save(looking, str(tmp_path / "saved"), signatures=looking.__call__)
    check_saved_model(str(tmp_path / "saved"))
    (tmp_path / "saved" / "saved_model.cpb").touch()
    with pytest.raises(ModelError, match="must be in one file"):
        check_saved_model(str(tmp_path / "saved"))
