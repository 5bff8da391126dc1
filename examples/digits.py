"""Handwritten digits in a spark.ml pipeline: train, score with Spark's evaluator, save, load."""

import sys

from keraunos import KerasClassifier
from keraunos.data.digits import load_digits

import keras
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession


def main(path="models/digits"):
    spark = SparkSession.builder.appName("digits").getOrCreate()
    digits = load_digits()
    train, test = spark.createDataFrame(digits.frame).randomSplit([0.8, 0.2], seed=1)

    model = keras.Sequential(
        [
            keras.layers.Rescaling(1 / 16),
            keras.layers.Reshape((8, 8, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])

    classifier = KerasClassifier(model=model, labelCol="target", epochs=8, batchSize=16, validationSplit=0.1)
    assembler = VectorAssembler(inputCols=digits.feature_names, outputCol="features")
    fitted = Pipeline(stages=[assembler, classifier]).fit(train)
    print(fitted.stages[-1].history)

    fitted.write().overwrite().save(path)
    evaluator = MulticlassClassificationEvaluator(labelCol="target", metricName="accuracy")
    print(f"accuracy {evaluator.evaluate(PipelineModel.load(path).transform(test)):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
