"""A regression in a spark.ml pipeline: predicts the ink in the lower half of a digit from its upper half."""

from keraunos.data.digits import load_digits

import keras
from digits import local_spark
from pyspark.ml import Pipeline
from pyspark.ml.feature import StandardScaler
from pyspark.mllib.evaluation import RegressionMetrics

from keraunos.compat.elephas.ml.adapter import to_data_frame
from keraunos.compat.elephas.ml_model import ElephasEstimator


def main(epochs=30):
    spark = local_spark()
    pixels = load_digits().data
    frame = to_data_frame(spark.sparkContext, pixels[:, :32], pixels[:, 32:].sum(axis=1))
    train, test = frame.randomSplit([0.8, 0.2], seed=1)
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((32,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1, bias_initializer="ones")]
    )
    estimator = ElephasEstimator(
        keras_model_config=model.to_json(),
        optimizer_config=keras.optimizers.serialize(keras.optimizers.RMSprop(0.02)),
        loss="mae",
        metrics=["mae"],
        mode="synchronous",
        frequency="batch",
        epochs=epochs,
        batch_size=16,
        num_workers=2,
        categorical=False,
        featuresCol="scaled",
    )
    scaler = StandardScaler(inputCol="features", outputCol="scaled", withMean=True)
    fitted = Pipeline(stages=[scaler, estimator]).fit(train)
    pairs = fitted.transform(test).select("prediction", "label").rdd.map(tuple)
    metrics = RegressionMetrics(pairs)
    print(f"regression, mean absolute error {metrics.meanAbsoluteError:.1f}, r2 {metrics.r2:.2f}")


if __name__ == "__main__":
    main()
