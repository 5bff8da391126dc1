"""The same perceptron without locks: every batch's update goes to the server at once."""

from digits import digits, local_spark, perceptron

from keraunos.compat.elephas.spark_model import AsynchronousSparkModel
from keraunos.compat.elephas.utils.rdd_utils import to_simple_rdd


def main(epochs=5):
    spark = local_spark()
    x_train, y_train, x_test, y_test = digits()
    spark_model = AsynchronousSparkModel(perceptron(), frequency="batch", mode="hogwild", num_workers=2)
    spark_model.fit(to_simple_rdd(spark.sparkContext, x_train, y_train), epochs=epochs, batch_size=32)
    loss, accuracy = spark_model.evaluate(x_test, y_test)
    print(f"hogwild, test loss {loss:.3f}, test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
