"""A regression from Parquet, trained with parameter averaging and early stopping."""

import sys

from keraunos import KerasRegressor

import keras
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.sql import SparkSession
from sklearn.datasets import load_diabetes


def main(path="data/diabetes.parquet"):
    spark = SparkSession.builder.appName("diabetes").getOrCreate()
    diabetes = load_diabetes(as_frame=True)
    spark.createDataFrame(diabetes.frame).write.mode("overwrite").parquet(path)
    train, test = spark.read.parquet(path).randomSplit([0.8, 0.2], seed=1)

    model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])

    regressor = KerasRegressor(
        model=model,
        featuresCol=diabetes.feature_names,
        labelCol="target",
        epochs=60,
        batchSize=16,
        validationSplit=0.2,
        exchange="averaging",
        every=5,
        callbacks=[keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)],
    )
    fitted = regressor.fit(train)
    error = RegressionEvaluator(labelCol="target", metricName="mae").evaluate(fitted.transform(test))
    print(f"{len(fitted.history['loss'])} epochs, mean absolute error {error:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
