"""The same perceptron on an RDD of LabeledPoints, whose labels are class numbers."""

from digits import CLASSES, digits, local_spark, perceptron

from keraunos.compat.elephas.mllib.adapter import to_matrix
from keraunos.compat.elephas.spark_model import SparkMLlibModel
from keraunos.compat.elephas.utils.rdd_utils import to_labeled_point


def main(epochs=5):
    spark = local_spark()
    x_train, y_train, x_test, y_test = digits()
    points = to_labeled_point(spark.sparkContext, x_train, y_train, categorical=True)
    spark_model = SparkMLlibModel(perceptron(), mode="synchronous", frequency="batch", num_workers=2)
    spark_model.fit(points, epochs=epochs, batch_size=32, categorical=True, nb_classes=CLASSES)
    predicted = spark_model.predict(to_matrix(x_test))
    print(f"LabeledPoints, test accuracy {(predicted.argmax(1) == y_test.argmax(1)).mean():.3f}")


if __name__ == "__main__":
    main()
