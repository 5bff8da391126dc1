"""Programs with the idioms of Analytics Zoo's TensorFlow examples of 2018 to 2021, on digits in MNIST's files.

Each trains or evaluates as the examples of its day did, and those that evaluate print what they reached. They find
MNIST's files in `mnist` and a network in `models`. They run one after the other: a program evaluates what the one
before it saved.
"""

# October 2018: an RDD of lists of arrays, one method to validate with, summaries, a saver.
TRAIN_OF_2018 = """
import tensorflow as tf
from zoo import init_nncontext
from zoo.pipeline.api.net import TFOptimizer, TFDataset
from bigdl.optim.optimizer import *
import numpy as np
import sys

from bigdl.dataset import mnist
from bigdl.dataset.transformer import *

sys.path.append("models")
import lenet

slim = tf.contrib.slim


def main():
    sc = init_nncontext()

    def get_data_rdd(dataset):
        (images_data, labels_data) = mnist.read_data_sets("mnist", dataset)
        pairs = sc.parallelize(images_data, 2).zip(sc.parallelize(labels_data, 2))
        return pairs.map(lambda pair: [normalizer(pair[0], mnist.TRAIN_MEAN, mnist.TRAIN_STD), np.array(pair[1])])

    dataset = TFDataset.from_rdd(get_data_rdd("train"),
                                 names=["features", "labels"],
                                 shapes=[[28, 28, 1], []],
                                 types=[tf.float32, tf.int32],
                                 batch_size=40,
                                 val_rdd=get_data_rdd("test"))
    images, labels = dataset.tensors
    with slim.arg_scope(lenet.lenet_arg_scope()):
        logits, end_points = lenet.lenet(images, num_classes=10, is_training=True)
    loss = tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels))

    optimizer = TFOptimizer(loss, Adam(1e-3), val_outputs=[logits], val_labels=[labels], val_method=Top1Accuracy())
    optimizer.set_train_summary(TrainSummary("az_lenet", "lenet"))
    optimizer.set_val_summary(ValidationSummary("az_lenet", "lenet"))
    optimizer.optimize(end_trigger=MaxEpoch(5))
    tf.train.Saver().save(optimizer.sess, "lenet/")


if __name__ == '__main__':
    main()
"""

EVALUATE_OF_2018 = """
import tensorflow as tf
from zoo import init_nncontext
from zoo.pipeline.api.net import TFDataset, TFPredictor
import numpy as np
import sys

from bigdl.dataset import mnist
from bigdl.dataset.transformer import *

sys.path.append("models")
import lenet

slim = tf.contrib.slim
sc = init_nncontext()
(images_data, labels_data) = mnist.read_data_sets("mnist", "test")
pairs = sc.parallelize(images_data, 2).zip(sc.parallelize(labels_data, 2))
rdd = pairs.map(lambda pair: [normalizer(pair[0], mnist.TRAIN_MEAN, mnist.TRAIN_STD), np.array(pair[1])])
dataset = TFDataset.from_rdd(rdd, names=["features", "labels"], shapes=[[28, 28, 1], [1]],
                             types=[tf.float32, tf.int32], batch_per_thread=20)
images, labels = dataset.tensors
labels = tf.squeeze(labels)
with slim.arg_scope(lenet.lenet_arg_scope()):
    logits, end_points = lenet.lenet(images, num_classes=10, is_training=False)
predictions = tf.to_int32(tf.argmax(logits, axis=1))
correct = tf.expand_dims(tf.to_int32(tf.equal(predictions, labels)), axis=1)
saver = tf.train.Saver()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    saver.restore(sess, "lenet/")
    print("predict accuracy is %s" % TFPredictor(sess, [correct]).predict().mean())
"""

# January 2019: a functional model of tf.keras, trained by TFOptimizer.
TRAIN_KERAS_OF_2019 = """
import tensorflow as tf
from zoo import init_nncontext
from zoo.pipeline.api.net import TFOptimizer, TFDataset
from bigdl.optim.optimizer import *
from tensorflow.keras.models import Model
from tensorflow.keras.layers import *

from bigdl.dataset import mnist
from bigdl.dataset.transformer import *

sc = init_nncontext()


def get_data_rdd(dataset):
    (images_data, labels_data) = mnist.read_data_sets("mnist", dataset)
    pairs = sc.parallelize(images_data, 2).zip(sc.parallelize(labels_data, 2))
    return pairs.map(lambda pair: [normalizer(pair[0], mnist.TRAIN_MEAN, mnist.TRAIN_STD), np.array(pair[1])])


dataset = TFDataset.from_rdd(get_data_rdd("train"), names=["features", "labels"], shapes=[[28, 28, 1], []],
                             types=[tf.float32, tf.int32], batch_size=40, val_rdd=get_data_rdd("test"))
data = Input(shape=[28, 28, 1])
x = Flatten()(data)
x = Dense(64, activation='relu')(x)
x = Dense(64, activation='relu')(x)
predictions = Dense(10, activation='softmax')(x)
model = Model(inputs=data, outputs=predictions)
model.compile(optimizer='rmsprop', loss='sparse_categorical_crossentropy', metrics=['accuracy'])

optimizer = TFOptimizer.from_keras(model, dataset)
optimizer.set_train_summary(TrainSummary("mnist_log", "mnist"))
optimizer.set_val_summary(ValidationSummary("mnist_log", "mnist"))
optimizer.optimize(end_trigger=MaxEpoch(5))
model.save_weights("mnist_keras.h5")
"""

EVALUATE_KERAS_OF_2019 = """
import tensorflow as tf
from zoo import init_nncontext
from zoo.pipeline.api.net import TFDataset, TFPredictor
import numpy as np
from tensorflow.keras.models import Model
from tensorflow.keras.layers import *

from bigdl.dataset import mnist
from bigdl.dataset.transformer import *

data = Input(shape=[28, 28, 1])
x = Flatten()(data)
x = Dense(64, activation='relu')(x)
x = Dense(64, activation='relu')(x)
predictions = Dense(10, activation='softmax')(x)
model = Model(inputs=data, outputs=predictions)
model.load_weights("mnist_keras.h5")

sc = init_nncontext()
(images_data, labels_data) = mnist.read_data_sets("mnist", "test")
labels_rdd = sc.parallelize(labels_data, 2)
rdd = sc.parallelize(images_data, 2).zip(labels_rdd).map(
    lambda pair: [normalizer(pair[0], mnist.TRAIN_MEAN, mnist.TRAIN_STD)])
dataset = TFDataset.from_rdd(rdd, names=["features"], shapes=[[28, 28, 1]], types=[tf.float32], batch_per_thread=20)
predictor = TFPredictor.from_keras(model, dataset)
accuracy = predictor.predict().zip(labels_rdd).map(lambda x: np.argmax(x[0]) == x[1]).mean()
print("predict accuracy is %s" % accuracy)

model.compile(optimizer='rmsprop', loss='sparse_categorical_crossentropy', metrics=['accuracy'])
images_data = normalizer(images_data, mnist.TRAIN_MEAN, mnist.TRAIN_STD)
here = model.evaluate(images_data, labels_data)
assert model.metrics_names == ['loss', 'acc'], model.metrics_names
assert abs(here[1] - accuracy) < 1e-6, (here, accuracy)
"""

# 2020: KerasModel on arrays, whose training and evaluation are on Spark.
KERAS_ARRAYS_OF_2020 = """
import tensorflow as tf
from zoo import init_nncontext
from bigdl.dataset import mnist
from zoo.tfpark import KerasModel

_ = init_nncontext()
(training_images_data, training_labels_data) = mnist.read_data_sets("mnist", "train")
(testing_images_data, testing_labels_data) = mnist.read_data_sets("mnist", "test")
training_images_data = (training_images_data - mnist.TRAIN_MEAN) / mnist.TRAIN_STD
testing_images_data = (testing_images_data - mnist.TRAIN_MEAN) / mnist.TRAIN_STD

model = tf.keras.Sequential([
    tf.keras.layers.Flatten(input_shape=(28, 28, 1)),
    tf.keras.layers.Dense(64, activation='relu'),
    tf.keras.layers.Dense(64, activation='relu'),
    tf.keras.layers.Dense(10, activation='softmax'),
])
model.compile(optimizer='rmsprop', loss='sparse_categorical_crossentropy', metrics=['accuracy'])
keras_model = KerasModel(model)
keras_model.fit(training_images_data, training_labels_data,
                validation_data=(testing_images_data, testing_labels_data),
                epochs=5, batch_size=40, distributed=True)
result = keras_model.evaluate(testing_images_data, testing_labels_data, distributed=True, batch_per_thread=80)
print("predict accuracy is %s" % result['acc Top1Accuracy'])
keras_model.save_weights("mnist_keras.h5")
"""

# 2021: arrays of the driver's, a metric of one's own, checkpoints, names that star imports brought.
TRAIN_OF_2021 = """
from zoo import init_nncontext
from zoo.tfpark import TFOptimizer, TFDataset
from bigdl.optim.optimizer import *
import numpy as np
import sys

from bigdl.dataset import mnist
from bigdl.dataset.transformer import *
import tensorflow as tf

sys.path.append("models")
import lenet

slim = tf.contrib.slim


def accuracy(logits, labels):
    predictions = tf.argmax(logits, axis=1, output_type=labels.dtype)
    return tf.reduce_mean(tf.cast(tf.equal(predictions, labels), dtype=tf.float32))


def main(max_epoch, data_num):
    sc = init_nncontext()

    def get_data(kind):
        images, labels = mnist.read_data_sets("mnist", kind)
        return (images[:data_num] - mnist.TRAIN_MEAN) / mnist.TRAIN_STD, labels[:data_num].astype(np.int)

    dataset = TFDataset.from_ndarrays(get_data("train"), batch_size=40, val_tensors=get_data("test"))
    images, labels = dataset.tensors
    with slim.arg_scope(lenet.lenet_arg_scope()):
        logits, end_points = lenet.lenet(images, num_classes=10, is_training=True)
    loss = tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels))
    optimizer = TFOptimizer.from_loss(loss, Adam(1e-3), metrics={"acc": accuracy(logits, labels)}, model_dir="lenet21/")
    optimizer.optimize(end_trigger=MaxEpoch(max_epoch))
    saver = tf.train.Saver()
    saver.save(optimizer.sess, "lenet21/model")


if __name__ == '__main__':
    main(5, 60000)
"""

EVALUATE_OF_2021 = """
import tensorflow as tf
from zoo import init_nncontext
from zoo.tfpark import TFDataset, TFPredictor
import numpy as np
import sys

from bigdl.dataset import mnist

sys.path.append("models")
import lenet

slim = tf.contrib.slim
sc = init_nncontext()
(images_data, labels_data) = mnist.read_data_sets("mnist", "test")
images_data = (images_data - mnist.TRAIN_MEAN) / mnist.TRAIN_STD
dataset = TFDataset.from_ndarrays((images_data, labels_data.astype(np.int32)), batch_per_thread=20)
images, labels = dataset.tensors
labels = tf.squeeze(labels)
with slim.arg_scope(lenet.lenet_arg_scope()):
    logits, end_points = lenet.lenet(images, num_classes=10, is_training=False)
    photos = tf.placeholder(tf.float32, [None, 28, 28, 3], name="photos")
    grey = (tf.reduce_mean(photos, axis=3, keepdims=True) - mnist.TRAIN_MEAN) / mnist.TRAIN_STD
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        of_photos, _ = lenet.lenet(grey, num_classes=10, is_training=False)
predictions = tf.to_int32(tf.argmax(logits, axis=1))
correct = tf.expand_dims(tf.to_int32(tf.equal(predictions, labels)), axis=1)
saver = tf.train.Saver()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    saver.restore(sess, "lenet21/model")
    print("predict accuracy is %s" % TFPredictor(sess, [correct]).predict().mean())
    tf.saved_model.simple_save(sess, "served", {"photos": photos}, {"logits": of_photos})
"""

# A SavedModel is frozen for TFNet, which then predicts for the images of a folder.
FREEZE = """
import sys
import tensorflow as tf
from zoo.util.tf import export_tf

with tf.Session() as sess:
    loaded = tf.saved_model.load(sess, tags=["serve"], export_dir="served")
    signature = loaded.signature_def["serving_default"]
    print("Inputs are \\n{}".format(signature.inputs))
    graph = tf.get_default_graph()
    inputs = [graph.get_tensor_by_name(signature.inputs[key].name) for key in signature.inputs.keys()]
    outputs = [graph.get_tensor_by_name(signature.outputs[key].name) for key in signature.outputs.keys()]
    export_tf(sess, folder="frozen", inputs=inputs, outputs=outputs)
"""

PREDICT_IMAGES = """
from optparse import OptionParser

from zoo.tfpark import TFNet
from zoo.common.nncontext import init_nncontext
from zoo.feature.common import *
from zoo.models.image.objectdetection import *
import numpy as np

sc = init_nncontext("TFNet Example")
model = TFNet.from_export_folder("frozen")
image_set = ImageSet.read("images", sc, 2)
transformer = ChainedPreprocessing([ImageResize(28, 28), ImageMatToTensor(format="NHWC"), ImageSetToSample()])
output = model.predict_image(image_set.transform(transformer).to_image_frame(), batch_per_partition=1)
predicted = ImageSet.from_image_frame(output).get_predict().collect()
right = [int(np.argmax(each)) == int(path.split("-")[-1][0]) for path, each in predicted]
print("predict accuracy is %s" % np.mean(right))
"""

# A tf.keras model of 1.x on an RDD, in the forms that programs of 2019 have.
KERAS_ON_AN_RDD = """
import sys
import tensorflow as tf
import numpy as np
from zoo import init_nncontext
from zoo.tfpark import KerasModel, TFDataset
from zoo.util.triggers import MaxEpoch, SeveralIteration, TriggerOr
from sklearn.datasets import load_digits

def get_data_rdd(kind, sc):
    images, labels = load_digits(return_X_y=True)
    rows = slice(None, 1400) if kind == "train" else slice(1400, None)
    image_rdd = sc.parallelize(images[rows].reshape(-1, 8, 8, 1))
    labels_rdd = sc.parallelize(labels[rows].astype(np.int))
    return image_rdd.zip(labels_rdd).map(lambda pair: (pair[0] / np.float(16), np.array(pair[1])))

def main(max_epoch):
    sc = init_nncontext()
    training_rdd, testing_rdd = get_data_rdd("train", sc), get_data_rdd("test", sc)
    dataset = TFDataset.from_rdd(training_rdd, features=(tf.float32, [8, 8, 1]), labels=(tf.int32, []), batch_size=40,
                                 val_rdd=testing_rdd)
    model = tf.keras.Sequential([
        tf.keras.layers.Flatten(input_shape=(8, 8, 1)),
        tf.keras.layers.Dense(48, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer=tf.train.AdamOptimizer(0.005), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    keras_model = KerasModel(model)
    keras_model.fit(dataset, epochs=max_epoch, distributed=True)
    eval_dataset = TFDataset.from_rdd(testing_rdd, features=(tf.float32, [8, 8, 1]), labels=(tf.int32, []),
                                      batch_per_thread=80)
    result = keras_model.evaluate(eval_dataset)
    images, labels = load_digits(return_X_y=True)
    here = keras_model.evaluate(images[1400:].reshape(-1, 8, 8, 1) / 16, labels[1400:])
    assert abs(here["acc"] - result["acc Top1Accuracy"]) < 1e-6 and abs(here["loss"] - result["loss"]) < 1e-5
    keras_model.save_weights("weights.h5")
    first = keras_model.get_weights()
    keras_model.train_on_batch(images[:20].reshape(-1, 8, 8, 1), labels[:20])
    assert not np.allclose(keras_model.get_weights()[0], first[0])
    keras_model.load_weights("weights.h5")
    assert np.allclose(keras_model.get_weights()[0], first[0])
    print("accuracy", result["acc Top1Accuracy"])

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
"""

PROGRAMS = {
    "train_lenet.py": TRAIN_OF_2018,
    "evaluate_lenet.py": EVALUATE_OF_2018,
    "train_mnist_keras.py": TRAIN_KERAS_OF_2019,
    "evaluate_mnist_keras.py": EVALUATE_KERAS_OF_2019,
    "keras_ndarray.py": KERAS_ARRAYS_OF_2020,
    "train.py": TRAIN_OF_2021,
    "evaluate.py": EVALUATE_OF_2021,
    "freeze.py": FREEZE,
    "predict_images.py": PREDICT_IMAGES,
    "keras_dataset.py": KERAS_ON_AN_RDD,
}
