"""Paddle on Spark: Paddle's configuration language, its training, and a spark.ml estimator for them."""
