"""SparkFlow's first example: a dense network on MNIST, evaluated on test rows, saved and loaded."""

import sys

from digits_csv import mnist_csv
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import OneHotEncoder, VectorAssembler
from pyspark.ml.pipeline import Pipeline, PipelineModel
from pyspark.sql import SparkSession

from keraunos.compat import tensorflow1 as tf
from keraunos.compat.sparkflow.graph_utils import build_adam_config, build_graph
from keraunos.compat.sparkflow.pipeline_util import PysparkPipelineWrapper
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL


def small_model():
    x = tf.placeholder(tf.float32, shape=[None, 784], name="x")
    y = tf.placeholder(tf.float32, shape=[None, 10], name="y")
    layer1 = tf.layers.dense(x / 255.0, 256, activation=tf.nn.relu)
    layer2 = tf.layers.dense(layer1, 256, activation=tf.nn.relu)
    out = tf.layers.dense(layer2, 10)
    tf.argmax(out, 1, name="out")
    return tf.losses.softmax_cross_entropy(y, out)


def main(csv="mnist_train.csv", path="models/simple_dnn"):
    spark = SparkSession.builder.appName("simple_dnn").getOrCreate()
    train, test = spark.read.option("inferSchema", "true").csv(mnist_csv(csv)).randomSplit([0.8, 0.2], seed=1)

    assembler = VectorAssembler(inputCols=train.columns[1:785], outputCol="features")
    encoder = OneHotEncoder(inputCol="_c0", outputCol="labels", dropLast=False)
    network = SparkAsyncDL(
        inputCol="features",
        labelCol="labels",
        tensorflowGraph=build_graph(small_model),
        tfInput="x:0",
        tfLabel="y:0",
        tfOutput="out:0",
        tfOptimizer="adam",
        optimizerOptions=build_adam_config(learning_rate=0.001),
        iters=50,
        partitions=4,
        miniBatchSize=300,
        miniStochasticIters=4,
        predictionCol="predicted",
        verbose=1,
    )
    fitted = Pipeline(stages=[assembler, encoder, network]).fit(train)
    fitted.write().overwrite().save(path)

    loaded = PysparkPipelineWrapper.unwrap(PipelineModel.load(path))
    evaluator = MulticlassClassificationEvaluator(labelCol="_c0", predictionCol="predicted", metricName="accuracy")
    print(f"test error {1 - evaluator.evaluate(loaded.transform(test)):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
