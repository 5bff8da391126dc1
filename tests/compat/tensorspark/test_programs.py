"""A program with the idioms of TensorSpark's own examples, of 2016 and for Python 2, by the real `keraunos run`."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.compat.tensorspark.idx import encoded, enlarged_digits

# Tabs, xrange, iterators' next, buffers, modules named `core`, two epochs with another spread of the rows, and the
# accuracy by TensorFlow's own reader of MNIST.
DISTRIBUTED = """\
import struct
import numpy as np
import tensorflow as tf

import core.spark_session as sps
import core.partitioner as par
import core.weight_combiner as comb

folder = 'MNIST_data/'


def images_in(pairs):
	found = []
	while True:
		try:
			path, data = pairs.next()
			magic, count, height, width = struct.unpack('>iiii', buffer(data, 0, 16))
			if magic <> 2051:
				raise ValueError, 'not a file of images: %s' % path
			pixels = np.frombuffer(buffer(data, 16), dtype=np.uint8).reshape(count, height * width)
			found.append((path.split('-')[-2], np.multiply(pixels, 1.0 / 255.0)))
		except StopIteration:
			break
	return found


def labels_in(pairs):
	found = []
	for path, data in pairs:
		numbers = np.frombuffer(buffer(data, 8), dtype=np.uint8)
		hot = np.zeros((len(numbers), 10))
		hot.flat[np.arange(len(numbers)) * 10 + numbers.ravel()] = 1
		found.append((path.split('-')[-2], hot))
	return found


def rows_of(parts):
	return [(images[i], labels[i]) for _, (images, labels) in parts for i in xrange(images.shape[0])]


images = sc.binaryFiles(folder + 'train-images-idx1-ubyte').mapPartitions(images_in)
labels = sc.binaryFiles(folder + 'train-labels-idx1-ubyte').mapPartitions(labels_in)
rows = images.join(labels, numPartitions=2).mapPartitions(rows_of).repartition(2).cache()

x = tf.placeholder(tf.float32, [None, 784])
W = tf.Variable(tf.zeros([784, 10]))
b = tf.Variable(tf.zeros([10]))
logits = tf.matmul(x, W) + b
y = tf.nn.softmax(logits)
y_ = tf.placeholder(tf.float32, [None, 10])
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=logits))
train_step = tf.train.GradientDescentOptimizer(0.1).minimize(cross_entropy)
sess = tf.Session()
sess.run(tf.initialize_all_variables())

spark_sess = sps.SparkSession(sc, sess, name='digits', server_port=None, sync_interval=10, batch_size=100 / 3)
for epoch in range(2):
	spark_sess.run(train_step, feed_rdd=rows, feed_name_list=[x.name, y_.name], param_list=[W, b],
		weight_combiner=comb.DeltaWeightCombiner(), shuffle_within_partition=True, server_reusable=True)
	rows = rows.partitionBy(2, par.RandomPartitioner(2)).cache()
spark_sess.stop_param_server()

from tensorflow.examples.tutorials.mnist import input_data
mnist = input_data.read_data_sets(folder, one_hot=True)
right = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
print 'accuracy', sess.run(accuracy, feed_dict={x: mnist.test.images, y_: mnist.test.labels})
spark_sess.close()
"""

ALONE = """\
from tensorflow.examples.tutorials.mnist import input_data
mnist = input_data.read_data_sets("MNIST_data/", one_hot=True)
import tensorflow as tf
x = tf.placeholder(tf.float32, [None, 784])
y_ = tf.placeholder(tf.float32, [None, 10])
W = tf.Variable(tf.zeros([784, 10]))
y = tf.matmul(x, W) + tf.Variable(tf.zeros([10]))
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
train_step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
sess = tf.Session()
sess.run(tf.initialize_all_variables())
for i in range(200):
  batch_xs, batch_ys = mnist.train.next_batch(100)
  sess.run(train_step, feed_dict={x: batch_xs, y_: batch_ys})
right = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
print("accuracy", sess.run(accuracy, feed_dict={x: mnist.test.images, y_: mnist.test.labels}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """MNIST_data with digits under the names of TensorSpark's repository: enough rows that 5,000 can be set aside."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "MNIST_data").mkdir()
    images, labels = enlarged_digits()
    for part, rows in (("train", np.tile(np.arange(297, 1797), 4)), ("t10k", np.arange(297))):
        (folder / "MNIST_data" / f"{part}-images-idx1-ubyte").write_bytes(encoded(images[rows]))
        (folder / "MNIST_data" / f"{part}-labels-idx1-ubyte").write_bytes(encoded(labels[rows]))
    return folder


def accuracy_of(program, folder):
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "tensorspark", "program.py"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "MASTER": "local[2]"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return float(re.search(r"^accuracy (\S+)$", done.stdout, re.MULTILINE).group(1))


@pytest.mark.spark
@pytest.mark.slow
def test_the_distributed_example_learns_the_digits(folder):
    assert accuracy_of(DISTRIBUTED, folder) > 0.85


@pytest.mark.slow
@pytest.mark.extended
def test_the_example_in_one_process_learns_the_digits(folder):
    assert accuracy_of(ALONE, folder) > 0.85
