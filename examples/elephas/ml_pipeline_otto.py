"""A table with class names is indexed, scaled and used for training in one pipeline, which is saved and loaded.

The table of the competition of that name is not part of any package; handwritten digits are used instead.
"""

from keraunos.data.digits import load_digits

import keras
from digits import local_spark
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import StandardScaler, StringIndexer, VectorAssembler
from pyspark.sql import functions as sf

from keraunos.compat.elephas.ml_model import ElephasEstimator
from keraunos.compat.elephas.utils.model_utils import argmax


def main(epochs=10, folder="otto"):
    spark = local_spark()
    digits = load_digits()
    table = digits.frame.assign(target=[f"Class_{digit + 1}" for digit in digits.target])
    frame = spark.createDataFrame(table)
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy")
    estimator = ElephasEstimator(
        model,
        epochs=epochs,
        batch_size=16,
        mode="synchronous",
        frequency="batch",
        num_workers=2,
        nb_classes=10,
        featuresCol="scaled",
        labelCol="index",
    )
    stages = [
        StringIndexer(inputCol="target", outputCol="index", stringOrderType="alphabetAsc"),
        VectorAssembler(inputCols=table.columns[:-1].tolist(), outputCol="raw"),
        StandardScaler(inputCol="raw", outputCol="scaled", withMean=True),
        estimator,
    ]
    train, test = frame.randomSplit([0.7, 0.3], seed=2)
    Pipeline(stages=stages).fit(train).write().overwrite().save(folder)
    predicted = PipelineModel.load(folder).transform(test)
    right = predicted.select(sf.avg((argmax("prediction") == sf.col("index")).cast("double"))).first()[0]
    print(f"pipeline, accuracy {right:.3f}")


if __name__ == "__main__":
    main()
