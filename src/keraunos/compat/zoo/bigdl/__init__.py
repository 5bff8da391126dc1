"""BigDL by its own names, as far as TensorFlow graphs and Keras models use it. Runs on the driver."""
