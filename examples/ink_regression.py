"""A regression from Parquet, trained with parameter averaging and early stopping.

The model predicts the amount of ink in the lower half of a handwritten digit from its upper half.
"""

import sys

from keraunos import KerasRegressor
from keraunos.data.digits import load_digits

import keras
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.sql import SparkSession


def main(path="data/ink.parquet"):
    spark = SparkSession.builder.appName("ink").getOrCreate()
    digits = load_digits()
    upper, lower = digits.feature_names[:32], digits.feature_names[32:]
    rows = digits.frame[upper].assign(ink=digits.frame[lower].sum(axis=1))
    spark.createDataFrame(rows).write.mode("overwrite").parquet(path)
    train, test = spark.read.parquet(path).randomSplit([0.8, 0.2], seed=1)

    model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.005), "mse", metrics=["mae"])

    regressor = KerasRegressor(
        model=model,
        featuresCol=upper,
        labelCol="ink",
        epochs=60,
        batchSize=16,
        validationSplit=0.2,
        exchange="averaging",
        every=5,
        callbacks=[keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)],
    )
    fitted = regressor.fit(train)
    error = RegressionEvaluator(labelCol="ink", metricName="mae").evaluate(fitted.transform(test))
    print(f"{len(fitted.history['loss'])} epochs, mean absolute error {error:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
