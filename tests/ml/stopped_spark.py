"""A program whose Spark is stopped before it is done with it; prints what each call raises."""

import sys

from pyspark.sql import SparkSession

from keraunos import KerasClassificationModel, KerasClassifier
from tests.ml.models import mlp
from tests.ml.untrained import fitted_of


def main(folder):
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.createDataFrame([([1.0, 2.0, 3.0], 1)], "features array<double>, label int")
    estimator = KerasClassifier(model=mlp())
    fitted = fitted_of(estimator, frame.schema)
    fitted.save(f"{folder}/saved")
    spark.stop()
    calls = {
        "fit": lambda: estimator.fit(frame),
        "transform": lambda: fitted.transform(frame),
        "save": lambda: fitted.save(f"{folder}/again"),
        "load": lambda: KerasClassificationModel.load(f"{folder}/saved"),
    }
    for name, call in calls.items():
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is printed
            print(name, type(error).__name__, error)


if __name__ == "__main__":
    main(sys.argv[1])
