# The training program of Analytics Zoo's document, for `keraunos run --as zoo`. Marked "completed" is what the document
# leaves out (the files, their reader, the batch size, LeNet) and what it has wrong (`from tensorflow as tf`, an
# expression over three lines without continuations). All else is word for word.

from zoo import init_nncontext
from zoo.pipeline.api.net import TFDataset
import tensorflow as tf  # completed: the document says "from tensorflow as tf"

# completed: the files and their reader, the batch size, LeNet
from digit_files import decode_to_ndarrays, read_image_and_label, write_digits
import lenet
file_list = write_digits("digits")[:1500]
BATCH_SIZE = 32

sc = init_nncontext()

# Each record in the train_rdd consists of a list of NumPy ndrrays
train_rdd = (sc.parallelize(file_list)  # completed: the parentheses
  .map(lambda x: read_image_and_label(x))
  .map(lambda image_label: decode_to_ndarrays(image_label)))

# TFDataset represents a distributed set of elements,
# in which each element contains one or more Tensorflow Tensor objects. 
dataset = TFDataset.from_rdd(train_rdd,
                             names=["features", "labels"],
                             shapes=[[28, 28, 1], [1]],
                             types=[tf.float32, tf.int32],
                             batch_size=BATCH_SIZE)

import tensorflow as tf

slim = tf.contrib.slim

images, labels = dataset.tensors
squeezed_labels = tf.squeeze(labels)
with slim.arg_scope(lenet.lenet_arg_scope()):
     logits, end_points = lenet.lenet(images, num_classes=10, is_training=True)

loss = tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=squeezed_labels))

from zoo.pipeline.api.net import TFOptimizer
from bigdl.optim.optimizer import MaxIteration, Adam, MaxEpoch, TrainSummary

optimizer = TFOptimizer(loss, Adam(1e-3))
optimizer.set_train_summary(TrainSummary("/tmp/az_lenet", "lenet"))
optimizer.optimize(end_trigger=MaxEpoch(5))

saver = tf.train.Saver()
saver.save(optimizer.sess, "/tmp/lenet/")
