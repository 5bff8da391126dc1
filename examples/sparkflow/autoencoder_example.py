"""SparkFlow's third example: an autoencoder, which needs no labels."""

import sys

from digits_csv import mnist_csv
from pyspark.ml.feature import Normalizer, VectorAssembler
from pyspark.ml.functions import vector_to_array
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from keraunos.compat import tensorflow1 as tf
from keraunos.compat.sparkflow.graph_utils import build_graph
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel


def autoencoder():
    x = tf.placeholder(tf.float32, shape=[None, 784], name="x")
    layer1 = tf.layers.dense(x, 256, activation=tf.nn.relu)
    layer2 = tf.layers.dense(layer1, 128, activation=tf.nn.relu)
    layer3 = tf.layers.dense(layer2, 256, activation=tf.nn.relu)
    out = tf.identity(tf.layers.dense(layer3, 784), name="out")
    return tf.losses.mean_squared_error(x, out)


def main(csv="mnist_train.csv", path="models/autoencoder"):
    spark = SparkSession.builder.appName("autoencoder_example").getOrCreate()
    pixels = spark.read.option("inferSchema", "true").csv(mnist_csv(csv))
    vectors = VectorAssembler(inputCols=pixels.columns[1:785], outputCol="raw").transform(pixels).select("raw")
    rows = Normalizer(inputCol="raw", outputCol="features", p=2.0).transform(vectors).select("features")

    SparkAsyncDL(
        inputCol="features",
        tensorflowGraph=build_graph(autoencoder),
        tfInput="x:0",
        tfLabel=None,
        tfOutput="out:0",
        tfOptimizer="adam",
        tfLearningRate=0.001,
        iters=20,
        miniBatchSize=64,
        partitions=3,
        predictionCol="rebuilt",
    ).fit(rows).write().overwrite().save(path)

    rebuilt = SparkAsyncDLModel.load(path).transform(rows)
    given, found = vector_to_array("features"), vector_to_array("rebuilt")
    difference = sf.zip_with(given, found, lambda one, other: (one - other) ** 2)
    error = sf.aggregate(difference, sf.lit(0.0), lambda total, each: total + each)
    # The rows have length 1, so a model that returns zeros has an error of 1.
    print(f"mean squared error {rebuilt.select(sf.avg(error)).first()[0]:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
