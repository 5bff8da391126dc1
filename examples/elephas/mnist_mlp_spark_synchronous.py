"""The same perceptron, averaged after each epoch."""

from digits import digits, local_spark, perceptron

from keraunos.compat.elephas.spark_model import SparkModel
from keraunos.compat.elephas.utils.rdd_utils import to_simple_rdd


def main(epochs=10):
    spark = local_spark()
    x_train, y_train, x_test, y_test = digits()
    spark_model = SparkModel(perceptron(), frequency="epoch", mode="synchronous", num_workers=2)
    spark_model.fit(
        to_simple_rdd(spark.sparkContext, x_train, y_train), epochs=epochs, batch_size=16, validation_split=0.1
    )
    loss, accuracy = spark_model.evaluate(x_test, y_test)
    print(f"synchronous, test loss {loss:.3f}, test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
