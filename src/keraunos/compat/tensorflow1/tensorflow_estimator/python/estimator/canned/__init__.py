"""The package that `tf.estimator` was in, as far as programs imported from it. Runs on the driver."""
