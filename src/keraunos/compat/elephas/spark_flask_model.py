"""The first name of the asynchronous model, from September 2015. Runs on the driver."""

from keraunos.compat.elephas.spark_model import AsynchronousSparkModel as SparkModel

__all__ = ["SparkModel"]
