"""TensorFlow graphs in files that try to do more than compute. Each is made here, by code."""

import gzip

import tensorflow as tf
from google.protobuf import json_format

v1 = tf.compat.v1


def _touch(marker):
    return tf.raw_ops.WriteFile(filename=str(marker), contents="marked")


def writing(marker, how):
    """A graph from `x` to `out`, with a variable, that writes a file when it is run; `how` says by what way."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        weights = v1.get_variable("w", [2, 1], initializer=v1.ones_initializer(), use_resource=False)
        product = tf.matmul(x, weights)
        if how == "operation":
            with tf.control_dependencies([_touch(marker)]):
                out = tf.identity(product, name="out")
        elif how == "function":
            out = tf.identity(_written_in_function(marker)(product), name="out")
        elif how == "read":
            content = tf.raw_ops.ReadFile(filename=str(marker.parent / "secret"))
            out = tf.identity(product + tf.cast(tf.strings.length(content), tf.float32), name="out")
        elif how == "python":
            out = tf.identity(v1.py_func(lambda each: each, [product], tf.float32), name="out")
        elif how == "restore":
            (found,) = tf.raw_ops.RestoreV2(
                prefix=str(marker.parent / "other"), tensor_names=["w"], shape_and_slices=[""], dtypes=[tf.float32]
            )
            out = tf.identity(product + tf.reduce_sum(found), name="out")
        elif how == "print":
            with tf.control_dependencies([tf.print("marked", output_stream=f"file://{marker}")]):
                out = tf.identity(product, name="out")
        else:
            out = tf.identity(product, name="out")
    return graph, x, out


def _written_in_function(marker):
    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32)])
    def inner(each):
        with tf.control_dependencies([_touch(marker)]):
            return tf.identity(each)

    return inner


# How a graph writes or reads, and the type of the operation that the error names.
WAYS = {
    "operation": "WriteFile",
    "function": "WriteFile",
    "read": "ReadFile",
    "python": "PyFunc",
    "restore": "RestoreV2",
    "print": "PrintV2",
}


def checkpoint(folder, marker, how, *, restoring=None):
    """The prefix of a checkpoint whose graph does that; `restoring` changes the operation that restores."""
    graph, _, _ = writing(marker, how)
    prefix = str(folder / "model")
    with graph.as_default(), v1.Session(graph=graph) as session:
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver()
        saver.save(session, prefix)
        if restoring is not None:
            meta = v1.train.export_meta_graph(graph=graph, saver_def=saver.as_saver_def())
            restoring(meta, marker)
            (folder / "model.meta").write_bytes(meta.SerializeToString())
    return prefix


def writes_while_restoring(meta, marker):
    """The operation that restores also writes a file."""
    for name, value in (("evil/name", str(marker)), ("evil/text", "marked")):
        node = meta.graph_def.node.add(name=name, op="Const")
        node.attr["dtype"].type = tf.string.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    meta.graph_def.node.add(name="evil/write", op="WriteFile", input=["evil/name", "evil/text"])
    (restore,) = (node for node in meta.graph_def.node if node.name == meta.saver_def.restore_op_name)
    restore.input.append("^evil/write")


def restores_from_elsewhere(meta, marker):
    """The operation that restores reads another checkpoint than it is told."""
    node = meta.graph_def.node.add(name="evil/prefix", op="Const")
    node.attr["dtype"].type = tf.string.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(marker.parent / "other")))
    (restoring,) = (node for node in meta.graph_def.node if node.op == "RestoreV2")
    restoring.input[0] = "evil/prefix"


def saved_model(folder, marker, how, *, initializing=False):
    """A SavedModel that does that, in its outputs or while it is initialised."""
    graph, x, out = writing(marker, "nothing" if initializing else how)
    path = str(folder / "saved")
    with graph.as_default(), v1.Session(graph=graph) as session:
        session.run(v1.global_variables_initializer())
        start = _touch(marker) if initializing else None
        signature = v1.saved_model.predict_signature_def({"x": x}, {"out": out})
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(
            session, [tf.saved_model.SERVING], {"serving_default": signature}, main_op=start
        )
        builder.save()
    return path


def table_of_file(folder, file):
    """A SavedModel that fills a table from a file of its own choice, and not from one of its assets."""
    graph = tf.Graph()
    path = str(folder / "saved")
    with graph.as_default(), v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.string, [None], name="x")
        table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        fill = tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=table, filename=str(file), key_index=-2, value_index=-1, vocab_size=-1, delimiter="\t"
        )
        out = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=x, default_value=tf.constant(-1, tf.int64))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"out": out})
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(
            session, [tf.saved_model.SERVING], {"serving_default": signature}, main_op=fill
        )
        builder.save()
    return path


def frozen(marker, how):
    """A frozen GraphDef from `x` to `out`; its variable has become a constant."""
    graph, _, _ = writing(marker, how)
    with graph.as_default(), v1.Session(graph=graph) as session:
        session.run(v1.global_variables_initializer())
        return v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["out"])


def meta_json(marker, how):
    """The JSON that SparkFlow's `build_graph` gives for such a graph."""
    graph, _, _ = writing(marker, how)
    with graph.as_default():
        return json_format.MessageToJson(v1.train.export_meta_graph(graph=graph))


def packed(text):
    """A text as SparkFlow's stages store it."""
    return gzip.compress(text.encode(), mtime=0)
