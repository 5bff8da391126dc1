"""SparkFlow's second example: a convolutional network on MNIST, with dropout that is disabled in prediction."""

import sys

from digits_csv import mnist_csv
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import OneHotEncoder, VectorAssembler
from pyspark.ml.pipeline import Pipeline
from pyspark.sql import SparkSession

from keraunos.compat import tensorflow1 as tf
from keraunos.compat.sparkflow.graph_utils import build_graph
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL


def cnn_model():
    x = tf.placeholder(tf.float32, shape=[None, 784], name="x")
    y = tf.placeholder(tf.float32, shape=[None, 10], name="y")
    rate = tf.placeholder_with_default(0.25, shape=[], name="dropout")
    images = tf.reshape(x / 255.0, shape=[-1, 28, 28, 1])
    conv1 = tf.layers.max_pooling2d(tf.layers.conv2d(images, 32, 5, activation=tf.nn.relu), 2, 2)
    conv2 = tf.layers.max_pooling2d(tf.layers.conv2d(conv1, 64, 3, activation=tf.nn.relu), 2, 2)
    flat = tf.nn.dropout(tf.layers.flatten(conv2), rate=rate)
    out = tf.layers.dense(flat, 10)
    tf.argmax(out, 1, name="out")
    return tf.losses.softmax_cross_entropy(y, out)


def main(csv="mnist_train.csv", iters=8):
    spark = SparkSession.builder.appName("cnn_example").getOrCreate()
    train, test = spark.read.option("inferSchema", "true").csv(mnist_csv(csv)).randomSplit([0.8, 0.2], seed=1)

    stages = [
        VectorAssembler(inputCols=train.columns[1:785], outputCol="features"),
        OneHotEncoder(inputCol="_c0", outputCol="labels", dropLast=False),
        SparkAsyncDL(
            inputCol="features",
            labelCol="labels",
            tensorflowGraph=build_graph(cnn_model),
            tfInput="x:0",
            tfLabel="y:0",
            tfOutput="out:0",
            tfDropout="dropout:0",
            toKeepDropout=False,
            tfLearningRate=0.001,
            iters=int(iters),
            miniBatchSize=64,
            acquireLock=True,
            predictionCol="predicted",
        ),
    ]
    fitted = Pipeline(stages=stages).fit(train)
    evaluator = MulticlassClassificationEvaluator(labelCol="_c0", predictionCol="predicted", metricName="accuracy")
    print(f"accuracy {evaluator.evaluate(fitted.transform(test)):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
