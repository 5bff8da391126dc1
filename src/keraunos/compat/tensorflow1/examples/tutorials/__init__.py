"""`tensorflow.examples.tutorials`: MNIST. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.tensorflow1.examples.tutorials import mnist as mnist
