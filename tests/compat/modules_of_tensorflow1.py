"""A program of TensorFlow 1.x that uses modules of its time; prints as JSON what it found. Run by `keraunos run`."""

import gzip
import json
import sys
import traceback

import numpy as np
import tensorflow as tf
from tensorflow.contrib.training import HParams
from tensorflow.examples.tutorials.mnist import input_data

folder, empty = sys.argv[1:]


def told(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - what it says is what is looked at
        return f"{type(error).__name__}: {error}"
    return "nothing"


def mnist():
    """The data sets, in the shapes that TensorFlow gave them."""
    plain = input_data.read_data_sets(folder, validation_size=100)
    hot = input_data.read_data_sets(folder, one_hot=True, reshape=False, dtype=tf.uint8, validation_size=0)
    train = input_data.read_data_sets(folder, validation_size=300, seed=3).train
    again = input_data.read_data_sets(folder, validation_size=300, seed=3).train
    sums = [train.next_batch(500)[0].sum() for _ in range(4)]
    images, labels = train.next_batch(4)
    ordered = plain.test.next_batch(5, shuffle=False)
    with open(f"{folder}/t10k-labels-idx1-ubyte.gz", "rb") as file:  # noqa: PTH123 - as a program writes it
        raw = input_data.extract_labels(file)
    with gzip.open(f"{folder}/t10k-images-idx3-ubyte.gz") as file:
        unzipped = input_data.extract_images(file)
    return {
        "sizes": [each.num_examples for each in plain],
        "images": [list(plain.train.images.shape), str(plain.train.images.dtype), float(plain.train.images.max())],
        "labels": [list(plain.train.labels.shape), str(plain.train.labels.dtype)],
        "hot": [list(hot.test.images.shape), str(hot.test.images.dtype), list(hot.test.labels.shape)],
        "hot sums": float(hot.test.labels.sum(axis=1).min()),
        "validation": bool((hot.train.labels[:100].argmax(1) == plain.validation.labels).all()),
        "epochs": train.epochs_completed,
        "repeated": bool(np.isclose(sums[0], again.next_batch(500)[0].sum())),
        "batch": [list(images.shape), list(labels.shape)],
        "in order": bool((ordered[1] == plain.test.labels[:5]).all()),
        "raw": [list(raw.shape), list(unzipped.shape)],
        "fake": [
            len(each[0]) for each in input_data.read_data_sets("", fake_data=True, one_hot=True).train.next_batch(2)
        ],
        "missing": told(input_data.read_data_sets, empty),
        "nowhere": told(input_data.read_data_sets, empty + "/nowhere"),
        "validation_size": told(input_data.read_data_sets, folder),
        "same": tf.examples.tutorials.mnist.input_data is input_data,
        "other": told(getattr, tf.examples.tutorials.mnist, "mnist"),
    }


def contrib():
    """Sequences as vectors, examples decoded, and nests."""
    ids = tf.constant([[1, 2], [3, 1]])
    plain = tf.contrib.layers.embed_sequence(ids, vocab_size=5, embed_dim=3, scope="words")
    once = tf.contrib.layers.embed_sequence(ids, unique=True, scope="words", reuse=True)
    decoders = tf.contrib.slim.tfexample_decoder
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    example = tf.train.Example(features=tf.train.Features(feature={"label": label})).SerializeToString()
    keys = {"label": tf.FixedLenFeature([1], tf.int64)}
    decoder = decoders.TFExampleDecoder(keys, {"label": decoders.Tensor("label", shape=[])})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, two = session.run([plain, once])
        [decoded] = session.run(decoder.decode(tf.constant(example), ["label"]))
    return {
        "shape": list(one.shape),
        "same": bool((one == two).all()),
        "repeated": bool((one[0, 0] == one[1, 1]).all()),
        "decoded": int(decoded),
        "flat": tf.contrib.framework.nest.flatten([1, (2, 3)]),
        "no size": told(tf.contrib.layers.embed_sequence, ids),
        "rnn": told(getattr, tf.contrib.rnn, "NoSuchCell"),
    }


def hparams():
    """Values, their types, and what is refused."""
    values = HParams(rate=0.1, layers=[4, 8], name="net", deep=True, steps=3)
    values.parse("rate=1e-3,layers=[1,2,3],name=other,deep=false,steps=7,layers[1]=9")
    values.add_hparam("more", 2)
    values.set_hparam("rate", 1)
    return {
        "values": values.values(),
        "json": json.loads(values.to_json()),
        "get": [values.get("rate"), values.get("nothing", 5), "name" in values, "nothing" in values],
        "override": HParams(a=1).override_from_dict({"a": 4}).a,
        "refused": [
            told(values.parse, "rate=fast"),
            told(values.parse, "unknown=1"),
            told(values.set_hparam, "layers", 3),
            told(values.set_hparam, "steps", 0.5),
            told(values.add_hparam, "rate", 2),
            told(values.parse, "steps"),
            told(HParams, model_structure=object()),
        ],
    }


def lookup():
    """Tables in a session."""
    words = tf.constant(["b", "zzz", "a"])
    table = tf.contrib.lookup.index_table_from_tensor(mapping=["a", "b"], num_oov_buckets=1, default_value=-1)
    strings = tf.contrib.lookup.index_to_string_table_from_tensor(mapping=["a", "b"], default_value="?")
    pairs = tf.contrib.lookup.KeyValueTensorInitializer(["x", "y"], [5, 6])
    hashed = tf.contrib.lookup.HashTable(pairs, -7)
    mutable = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    filled = mutable.insert(tf.constant(["k"]), tf.constant([3], tf.int64))
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        session.run(hashed.init)
        session.run(filled)
        return {
            "indices": session.run(table.lookup(words)).tolist(),
            "strings": [each.decode() for each in session.run(strings.lookup(tf.constant([1, 5], tf.int64)))],
            "hashed": session.run(hashed.lookup(tf.constant(["y", "n"]))).tolist(),
            "mutable": session.run(mutable.lookup(tf.constant(["k", "n"]))).tolist(),
            "shared": told(tf.contrib.lookup.HashTable, pairs, -7, "shared"),
            "unknown": told(getattr, tf.contrib.lookup, "Nothing"),
        }


found = {}
for function in (mnist, contrib, hparams, lookup):
    with tf.Graph().as_default():
        try:
            found[function.__name__] = function()
        except Exception:  # noqa: BLE001 - told to the test that asks for this
            found[function.__name__] = {"failed": traceback.format_exc()}
print(json.dumps(found))
