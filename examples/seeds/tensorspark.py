# The program of TensorSpark's document, word for word, for `keraunos run --as tensorspark`. `sc` and `sps`, which the
# document does not import, come from there. Completed, because the document leaves it out, and marked "completed":
# the rows, which are handwritten digits enlarged to 28 by 28, and the test at the end.

#initialize the learning model exactly as Tensorflow
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

#Extra information to notify the SparkSession about the input/output tensor and the variables.
feed_name_list = [x.name, y_.name]
param_list = [W, b]

# completed: image_label_rdd, 1500 digits in two partitions, each 30 times, as the run below is one pass over the rows
import numpy as np
from keraunos.data.digits import load_digits
digits = load_digits()
images = np.pad(np.kron(digits.images / 16, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))).reshape(-1, 784).astype("float32")
labels = np.eye(10, dtype="float32")[digits.target]
image_label_rdd = sc.parallelize(list(zip(images[:1500], labels[:1500])), 2).flatMap(lambda row: [row] * 30)

#Initialize the SparkSession and run it with the Spark RDD data. 
spark_sess = sps.SparkSession(sc, sess, user='liangfengsid', name='spark_mnist', server_host='localhost', server_port=10080, sync_interval=100, batch_size=100)
spark_sess.run(train_step, feed_rdd=image_label_rdd, feed_name_list=feed_name_list, param_list=param_list, shuffle_within_partition=True)

# completed: what was learned is in `sess`
found = sess.run(y, feed_dict={x: images[1500:]}).argmax(axis=1)
print("accuracy", (found == digits.target[1500:]).mean())
