"""The same perceptron as a stage of a spark.ml pipeline, evaluated with spark.mllib's metrics."""

import keras
from digits import CLASSES, digits, local_spark, perceptron
from pyspark.ml import Pipeline
from pyspark.mllib.evaluation import MulticlassMetrics

from keraunos.compat.elephas.ml.adapter import to_data_frame
from keraunos.compat.elephas.ml_model import ElephasEstimator


def main(epochs=5):
    spark = local_spark()
    x_train, y_train, x_test, y_test = digits()
    train = to_data_frame(spark.sparkContext, x_train, y_train, categorical=True)
    test = to_data_frame(spark.sparkContext, x_test, y_test, categorical=True)
    estimator = ElephasEstimator(
        keras_model_config=perceptron().to_json(),
        optimizer_config=keras.optimizers.serialize(keras.optimizers.SGD(0.1)),
        loss="categorical_crossentropy",
        metrics=["acc"],
        mode="synchronous",
        frequency="batch",
        epochs=epochs,
        batch_size=32,
        validation_split=0.1,
        num_workers=2,
        categorical=True,
        nb_classes=CLASSES,
    )
    fitted = Pipeline(stages=[estimator]).fit(train)
    rows = fitted.transform(test).select("prediction", "label").rdd
    pairs = rows.map(lambda row: (float(max(range(CLASSES), key=row.prediction.__getitem__)), row.label))
    metrics = MulticlassMetrics(pairs)
    print(f"classification, accuracy {metrics.accuracy:.3f}, F of the first class {metrics.fMeasure(0.0):.3f}")


if __name__ == "__main__":
    main()
