"""`AsynchSparkModel`, as the asynchronous model was called in 2015. Runs on the driver."""

from keraunos.compat.elephas.spark_model import AsynchronousSparkModel as AsynchSparkModel

__all__ = ["AsynchSparkModel"]
