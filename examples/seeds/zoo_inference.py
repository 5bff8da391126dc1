# The inference program of Analytics Zoo's document, for `keraunos run --as zoo`, in another process than the training.
# Marked "completed" is what the document leaves out (the files, their reader, LeNet, an import, a use of the result)
# and what it has wrong (`from tensorflow as tf`, an expression over three lines without continuations, two names for
# one tensor, a path that is not the saved one). All else is word for word.

from zoo import init_nncontext
from zoo.pipeline.api.net import TFDataset
import tensorflow as tf  # completed: the document says "from tensorflow as tf"

# completed: the files and their reader, LeNet
from digit_files import decode_to_ndarrays, read_image_and_label, write_digits
import lenet
file_list = write_digits("digits")[1500:]

sc = init_nncontext()

# Each record in the train_rdd consists of a list of NumPy ndrrays
testing_rdd = (sc.parallelize(file_list)  # completed: the parentheses
  .map(lambda x: read_image_and_label(x))
  .map(lambda image_label: decode_to_ndarrays(image_label)))

# TFDataset represents a distributed set of elements,
# in which each element contains one or more Tensorflow Tensor objects. 
dataset = TFDataset.from_rdd(testing_rdd,
                             names=["features"],
                             shapes=[[28, 28, 1]],
                             types=[tf.float32])

import tensorflow as tf

slim = tf.contrib.slim

images, = dataset.tensors  # completed: the document says "images, labels = dataset.tensors"
with slim.arg_scope(lenet.lenet_arg_scope()):
     logits, end_points = lenet.lenet(images, num_classes=10, is_training=False)

sess = tf.Session()
saver = tf.train.Saver()
saver.restore(sess, "/tmp/lenet/")  # completed: the document says "/tmp/lenet"

from zoo.pipeline.api.net import TFPredictor  # completed

predictor = TFPredictor(sess, [logits])
predictions_rdd = predictor.predict()

# completed: a use of the predictions, which come in the order of the files
import numpy as np
predictions = np.stack(predictions_rdd.collect())
answers = [read_image_and_label(path)[1] for path in file_list]
print("accuracy", (predictions.argmax(axis=1) == answers).mean())
np.save("predictions.npy", predictions)
