"""`tf.keras` of TensorFlow 2 before Keras 3, on today's Keras. Runs on the driver and on workers."""

from keraunos.compat.old_keras.packages import furnish

furnish(__name__, "tf2")
