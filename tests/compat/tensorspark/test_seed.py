"""The program of TensorSpark's document, run as a user would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SEED = Path(__file__).resolve().parents[3] / "examples/seeds/tensorspark.py"
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1"}

DOCUMENT = """
import tensorflow as tf
x = tf.placeholder(tf.float32, [None, 784])
W = tf.Variable(tf.zeros([784, 10]))
b = tf.Variable(tf.zeros([10]))
y = tf.nn.softmax(tf.matmul(x, W) + b)
y_ = tf.placeholder(tf.float32, [None, 10])
cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
init = tf.initialize_all_variables()
sess = tf.Session()
sess.run(init)
feed_name_list = [x.name, y_.name]
param_list = [W, b]
spark_sess = sps.SparkSession(sc, sess, user='liangfengsid', name='spark_mnist', server_host='localhost', server_port=10080, sync_interval=100, batch_size=100)
spark_sess.run(train_step, feed_rdd=image_label_rdd, feed_name_list=feed_name_list, param_list=param_list, shuffle_within_partition=True)
""".strip().splitlines()  # noqa: E501 - the document's own lines


def test_every_line_of_the_document_is_in_the_program_as_it_is_written():
    lines = SEED.read_text().splitlines()
    places = [lines.index(line) for line in DOCUMENT]
    assert places == sorted(places)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.extended
def test_the_documents_program_learns_the_digits(tmp_path):
    command = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "tensorspark", str(SEED)]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert float(re.search(r"^accuracy (\S+)$", done.stdout, re.MULTILINE).group(1)) > 0.85
