"""Trains one model with three exchange plans, and prints a table of the results."""

import time

from keraunos import ExchangePlan, KerasClassifier
from keraunos.data.digits import load_digits

import keras
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession

PLANS = {
    "allreduce": "allreduce",
    "elastic": "elastic",
    "Adam on the servers": ExchangePlan("gradients", 1, "synchronous", "adam(learning_rate=0.003)"),
}


def main():
    spark = SparkSession.builder.appName("exchange plans").getOrCreate()
    digits = load_digits()
    assembler = VectorAssembler(inputCols=digits.feature_names, outputCol="features")
    rows = assembler.transform(spark.createDataFrame(digits.frame)).select("features", "target")
    train, test = (part.cache() for part in rows.randomSplit([0.8, 0.2], seed=1))

    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Rescaling(1 / 16),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    classifier = KerasClassifier(model=model, labelCol="target", epochs=6, batchSize=16, verbose=0)

    evaluator = MulticlassClassificationEvaluator(labelCol="target", metricName="accuracy")
    print(f"{'plan':22}{'test accuracy':>15}{'seconds':>10}")
    for name, plan in PLANS.items():
        begun = time.monotonic()
        # `fit` does not change the model, so each plan starts from the same weights.
        fitted = classifier.fit(train, {classifier.exchange: plan})
        took = time.monotonic() - begun
        print(f"{name:22}{evaluator.evaluate(fitted.transform(test)):15.4f}{took:10.1f}")


if __name__ == "__main__":
    main()
